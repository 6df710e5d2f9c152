"""Who listens on the job's ports: from /proc/net/tcp by way of the socket's inode, without `ss`."""

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from rlxdeploy.facts import rows
from rlxdeploy.facts.places import tagged, with_privilege
from rlxdeploy.facts.question import Answers, Question
from rlxdeploy.facts.supervisors import rank_of
from rlxdeploy.model.survey import PortHolder, RankSeen
from rlxdeploy.model.targets import Enquiry

NAME = "ports"

# The words are the ports in hexadecimal.  Descriptors are listed only when one of them is held,
# and a holder's forebears tell whether it is a child of one of our ranks.  A rank of another job of
# ours says so in its environment, and the mark of that job's apply whose it is.
_HOLDERS = """\
wanted=" $* "; filter=
# A table of all connections takes the kernel ten milliseconds; ss asks for the listeners alone.
for port; do filter="$filter or sport = :$((0x$port))"; done
heard=$(ss -Hltn "${filter# or }") && [ -z "$heard" ] && exit 0
if [ -r /proc/net/tcp ]; then
  awk -v wanted="$wanted" '
    $4 == "0A" { n = split($2, at, ":"); if (index(wanted, " " at[n] " ")) print $2, $10 }
  ' /proc/net/tcp /proc/net/tcp6 | while read -r at inode; do
    echo "held|$at $inode"
    ls -l /proc/[0-9]*/fd | awk -v socket="socket:[$inode]" '
      /^\\/proc\\// { split($1, part, "/"); pid = part[3] }
      $NF == socket { print pid }
    ' | sort -u | while read -r pid; do
      echo "pid|$pid"; job=; path=
      tr '\\0\\n' '  ' <"/proc/$pid/cmdline" | sed 's/^/command|/'; echo
      sed 's/^/comm|/' "/proc/$pid/comm"
      sed 's/^/cgroup|/' "/proc/$pid/cgroup"
      tr '\\0' '\\n' <"/proc/$pid/environ" | sed -n 's/^RLX_JOB=/job|/p; s/^PYTHONPATH=/path|/p' |
        while IFS='|' read -r tag value; do
          echo "$tag|$value"
          case $tag in job) job=$value ;; *) path=$value ;; esac
          [ -n "$job" ] && [ -n "$path" ] || continue
          mark=${path%%/store/*}/$job/deployment.json
          [ -f "$mark" ] && sed 's/^/mark|/' "$mark" && echo
        done
      up=$pid
      while [ "${up:-0}" -gt 1 ]; do
        echo "forebear|$up"; up=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$up/status")
      done
    done
  done
else
  lsof -nP -iTCP -sTCP:LISTEN -Fpcn | sed 's/^/lsof|/'
fi
"""


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the job's ports; nothing where it has none."""
    if not enquiry.ports:
        return ()
    ports = (f"{port:04X}" for port in enquiry.ports)
    return (Question(NAME, with_privilege(_HOLDERS, *ports, sudo=enquiry.sudo), row=rows.ROOT),)


def parse(enquiry: Enquiry, answers: Answers, ranks: Sequence[RankSeen]) -> tuple[PortHolder, ...]:
    """Read the holders; one whose unit or forebear is a rank's is that rank."""
    by_pid = {seen.pid: seen.rank for seen in ranks if seen.pid}
    held: list[list[tuple[str, str]]] = []
    brand = f"rlx-{enquiry.job}@"
    for tag, rest in tagged(answers.text(NAME)):
        if tag == "held":
            held.append([])
        if held:
            held[-1].append((tag, rest))
    linux = (_holder(lines, brand, by_pid) for lines in held)
    found = [*linux, *_lsof(answers.text(NAME), set(enquiry.ports), by_pid)]
    return tuple(dict.fromkeys(found))


def _holder(lines: Sequence[tuple[str, str]], brand: str, by_pid: dict[int, int]) -> PortHolder:
    """Read one listening socket; of several processes that share it the first one stands."""
    said: dict[str, list[str]] = {}
    for tag, rest in lines:
        said.setdefault(tag, []).append(rest)
    address, port = _endpoint(said["held"][0].split()[0])
    unit = _unit(said.get("cgroup", []))
    forebears = map(int, said.get("forebear", []))
    rank = rank_of(unit) if unit.startswith(brand) else None
    if rank is None:
        rank = next((by_pid[pid] for pid in forebears if pid in by_pid), None)
    command = said.get("command", [""])[0].strip() or said.get("comm", [""])[0]
    pid = int(said.get("pid", ["0"])[0])
    return PortHolder(address, port, pid, command, unit, rank, *_job(said, unit))


def _job(said: dict[str, list[str]], unit: str) -> tuple[str, str]:
    """Return the job of ours that a holder belongs to, and its inventory as the host has it.

    A rank has the job in its environment; its unit tells, too, where that cannot be read.
    """
    named = re.fullmatch(r"rlx-(.+)@[0-9]+\.service", unit)
    job = said.get("job", [""])[0] or (named[1] if named else "")
    try:
        mark = json.loads(said.get("mark", ["{}"])[0])
    except ValueError:
        mark = {}
    inventory = mark.get("inventory") if isinstance(mark, dict) else None
    return job, inventory if isinstance(inventory, str) else ""


def _endpoint(text: str) -> tuple[str, int]:
    """Read `0100007F:7310`: 32-bit words as the host keeps them, little-endian, and the port."""
    words, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)


def _unit(cgroups: Iterable[str]) -> str:
    """Return the innermost unit of a process's cgroup, "" for none."""
    for line in cgroups:
        units = re.findall(r"[^/]+\.(?:service|scope)(?=/|$)", line.partition("::")[2] or line)
        if units:
            return str(units[-1])
    return ""


def _lsof(text: str, ports: set[int], by_pid: dict[int, int]) -> Iterator[PortHolder]:
    """Read `lsof -F`: a line a field, which its first letter names."""
    pid, command = 0, ""
    for tag, rest in tagged(text):
        if tag != "lsof":
            continue
        match rest[:1]:
            case "p":
                pid = int(rest[1:])
            case "c":
                command = rest[1:]
            case "n":
                address, _, port = rest[1:].rpartition(":")
                if port.isdigit() and int(port) in ports:
                    address = {"*": "::"}.get(address, address.strip("[]"))
                    yield PortHolder(address, int(port), pid, command, "", by_pid.get(pid))
