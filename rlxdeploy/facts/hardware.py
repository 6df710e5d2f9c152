"""What a host computes with: processor, memory, free space and devices."""

import re
from collections.abc import Iterator, Sequence

from rlxdeploy.facts import amd, nvidia, rows
from rlxdeploy.facts.places import tagged
from rlxdeploy.facts.question import Answers, Question, fields, quoted, whole
from rlxdeploy.model.survey import Device, Hardware
from rlxdeploy.model.targets import Enquiry

NAME = "hardware"

# A control group's limit holds for all below it, so each folder up to the root is asked; version 1
# keeps the two controllers apart.
_HARDWARE = """\
if [ ! -r /proc/cpuinfo ]; then
  sysctl machdep.cpu.brand_string hw.logicalcpu hw.memsize hw.pagesize | sed 's/^/sysctl|/'
  vm_stat | sed 's/^/vm_stat|/'
  return 0
fi
while IFS= read -r line; do # of the first processor, which a blank line ends
  case $line in 'model name'*) echo "cpu|$line"; break;; '') break;; esac
done </proc/cpuinfo
while read -r key value; do
  case $key in Cpus_allowed_list:) echo "allowed|$value"; break;; esac
done </proc/self/status
if read -r value </sys/devices/system/cpu/online; then echo "online|$value"
else echo "nproc|$(nproc || grep -c '^processor' /proc/cpuinfo)"
fi
while IFS= read -r line; do
  case $line in MemTotal:* | MemAvailable:* | MemFree:* | Buffers:*) echo "mem|$line";;
  Cached:*) echo "mem|$line"; break;;
  esac
done </proc/meminfo
climb() { # the files $2 and on, in the group's folder and in those above it
  at=$1; stop=$2; shift 2
  while :; do
    for f; do
      [ -r "$at/$f" ] && { IFS= read -r value <"$at/$f"; echo "limit|$f $at $value"; }
    done
    [ "$at" = "$stop" ] && break
    case $at in "$stop"/*) at=${at%/*};; *) break;; esac
  done
}
while IFS=: read -r id controllers path; do
  path=${path%/}
  case ,$controllers, in
  ,,) root=/sys/fs/cgroup; [ -f "$root/cgroup.controllers" ] || root=$root/unified
    climb "$root$path" "$root" cpu.max memory.max memory.current;;
  *,cpu,*) root=/sys/fs/cgroup/cpu
    climb "$root$path" "$root" cpu.cfs_quota_us cpu.cfs_period_us;;
  *,memory,*) root=/sys/fs/cgroup/memory
    climb "$root$path" "$root" memory.limit_in_bytes memory.usage_in_bytes;;
  esac
done </proc/self/cgroup
"""

# The folder may not be there yet: its nearest existing parent will hold it.  A folder on a network
# mount is not touched: a dead server would hang whoever asks.  The kernel writes what would part a
# line as octal numbers; awk reads such numbers in what -v assigns, but not in its environment.
_DISK = """\
[ -d /proc/self ] && net=$(at=$folder awk '
  {
    place = $2
    gsub(/\\\\040/, " ", place); gsub(/\\\\011/, "\\t", place); gsub(/\\\\012/, "\\n", place)
    gsub(/\\\\134/, "\\\\", place)
  }
  index(ENVIRON["at"] "/", (place == "/" ? "" : place) "/") == 1 && length(place) >= length(best) {
    best = place; type = $3
  }
  END {
    if (type ~ /^(nfs|nfs4|cifs|smb3|smbfs|afs|9p|ceph|glusterfs|lustre|beegfs|fuse\\..*)$/)
      print type
  }' /proc/mounts)
[ -n "$net" ] && { echo "network|$net"; exit 0; }
while [ -n "$folder" ] && [ ! -d "$folder" ]; do
  case $folder in */*) folder=${folder%/*};; *) folder=;; esac
done
shown=$(df -kP "${folder:-/}") && printf 'df|%s\\n' "${shown%%
*}" "${shown#*
}"
"""

_KIB = 1 << 10
_PAGE = 16384
_MOST = 1 << 16  # processors: Linux can be built for an eighth of it
# Version 1 writes "no limit" as a number just below 2**63.
_UNLIMITED = 1 << 62


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the hardware; each folder apart, lest one dead mount hide all."""
    return (
        *nvidia.questions(),
        *amd.questions(),
        Question(NAME, _HARDWARE, row=rows.KERNEL, plain=True),
        *(
            Question(_disk(folder), f"folder={quoted([folder])}\n{_home(folder)}{_DISK}")
            for folder in enquiry.folders
        ),
    )


def parse(enquiry: Enquiry, answers: Answers) -> Hardware:
    """Read the answers; raise Unanswered where the host gave none about its memory."""
    text = answers.required(NAME)
    said = tuple(tagged(text))
    mac = any(tag == "sysctl" for tag, _ in said)
    cpu, cores, total, available = _mac(said) if mac else _linux(said)
    found = _mac_devices() if mac else _devices(answers, total)
    sizes = ((folder, _free(answers.text(_disk(folder)))) for folder in enquiry.folders)
    return Hardware(
        cpu=cpu,
        cores=cores,
        ram_total=total,
        ram_avail=available,
        disk_free={folder: free for folder, free in sizes if free is not None},
        devices=(Device("cpu", cpu, unified=True), *found),
    )


def _disk(folder: str) -> str:
    return f"free space of {folder}"


def _home(folder: str) -> str:
    """Return what makes a folder written as `~` or relative absolute: it means the home's."""
    if folder == "~" or folder.startswith("~/"):
        return 'folder=$HOME${folder#"~"}\n'
    return "" if folder.startswith("/") else "folder=$HOME/$folder\n"


def _devices(answers: Answers, ram_total: int) -> tuple[Device, ...]:
    return (*nvidia.parse(answers, ram_total), *amd.parse(answers))


def _mac_devices() -> tuple[Device, ...]:
    return (Device("metal", "Metal GPU", unified=True), Device("ane", "ANE", unified=True))


def _free(text: str) -> int | None:
    """Read row 2, column 4 of `df -kP`; the name in column 1 may hold blanks, so from the right."""
    rows = [row for tag, row in tagged(text) if tag == "df"]
    found = re.search(r"\s(\d+)\s+-?\d+%?\s+/", rows[1]) if len(rows) > 1 else None
    return int(found[1]) * _KIB if found else None


def _linux(said: Sequence[tuple[str, str]]) -> tuple[str, int, int, int]:
    """Return the processor's name, the usable cores, and total and available RAM in bytes."""
    models = (row.partition(":")[2].strip() for tag, row in said if tag == "cpu")
    memory = {
        row.partition(":")[0]: whole(row.partition(":")[2].removesuffix("kB")) * _KIB
        for tag, row in said
        if tag == "mem"
    }
    spare = sum(memory.get(key, 0) for key in ("MemFree", "Buffers", "Cached"))
    total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", spare)
    limits = [row.split(" ", 2) for tag, row in said if tag == "limit"]
    cores = min([_counted(said), *_core_limits(limits)])
    for limit, used in _memory_limits(limits):
        total, available = min(total, limit), min(available, max(0, limit - used))
    return next(models, "") or "CPU", max(1, cores), total, available


def _counted(said: Sequence[tuple[str, str]]) -> int:
    """Return how many processors we may run on, of those that are there.

    A process may be allowed more of them than there are: also those that could be plugged in.
    """
    lists = [_processors(row) for tag, row in said if tag in {"allowed", "online"}]
    counted = next((whole(row) for tag, row in said if tag == "nproc"), 0)
    return counted or len(frozenset.intersection(*lists) if lists else ()) or 1


def _processors(text: str) -> frozenset[int]:
    """Read the kernel's list of processors, `0-3,8`."""
    spans = (part.partition("-") for part in text.split(",") if part)
    ends = ((whole(first), min(whole(last or first), _MOST)) for first, _, last in spans)
    return frozenset(one for first, last in ends for one in range(first, last + 1))


def _core_limits(limits: Sequence[Sequence[str]]) -> Iterator[int]:
    """Yield the whole cores that each group's quota is worth."""
    by_place = {(name, at): value for name, at, value in limits}
    for (name, at), value in by_place.items():
        if name == "cpu.max":
            quota, _, period = value.partition(" ")
        elif name == "cpu.cfs_quota_us":
            quota, period = value, by_place.get(("cpu.cfs_period_us", at), "")
        else:
            continue
        if whole(quota) and whole(period):
            yield max(1, whole(quota) // whole(period))


def _memory_limits(limits: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yield each group's limit and use in bytes."""
    uses = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
    by_place = {(name, at): whole(value) for name, at, value in limits}
    for (name, at), limit in by_place.items():
        if name in uses and 0 < limit < _UNLIMITED:
            yield limit, by_place.get((uses[name], at), 0)


def _mac(said: Sequence[tuple[str, str]]) -> tuple[str, int, int, int]:
    """Return what `_linux` does, from sysctl and vm_stat."""
    sysctl = fields("\n".join(row.replace(": ", "=", 1) for tag, row in said if tag == "sysctl"))
    page = whole(sysctl.get("hw.pagesize", "")) or _PAGE
    rows = (row.partition(":")[::2] for tag, row in said if tag == "vm_stat")
    pages = {key.strip('"'): whole(count.strip().rstrip(".")) for key, count in rows}
    spare = sum(pages.get(f"Pages {kind}", 0) for kind in ("free", "inactive", "purgeable"))
    total = whole(sysctl.get("hw.memsize", ""))
    cores = whole(sysctl.get("hw.logicalcpu", ""), 1)
    return sysctl.get("machdep.cpu.brand_string", "CPU"), cores, total, min(total, spare * page)
