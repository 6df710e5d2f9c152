"""Which of a host's device nodes the processes of its ranks see.

A hardened unit may have a /dev of its own, and then a rank has no GPU on a host that has one.  The
process is looked at from outside, through /proc/PID/root: any command can be checked in this way,
and nothing is opened.  A node counts as seen if it is the same device there, not only a name.
"""

import re
from collections.abc import Iterator, Mapping

from rlxdeploy.facts import rows
from rlxdeploy.facts.places import USER_MANAGER, USER_PLACES, tagged, with_privilege
from rlxdeploy.facts.question import Answers, Question, quoted
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry

SYSTEM, USER = "devices of system units", "devices of the user's ranks"

# The nodes through which a device of each label is used.  Without any on the host (a Mac has none)
# nothing can be compared.
_NODES: Mapping[str, tuple[str, ...]] = {
    "cuda": (
        *("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dxg"),
        *("/dev/nvhost-gpu", "/dev/nvhost-ctrl-gpu", "/dev/nvmap"),
    ),
    "rocm": ("/dev/kfd", "/dev/dri/renderD[0-9]*"),
    "vulkan": ("/dev/dri/renderD[0-9]*",),
    "oneapi": ("/dev/dri/renderD[0-9]*",),
    "xdna": ("/dev/accel/accel[0-9]*",),
}

# A host without any such node is asked no more.  The names are ours, so none needs quoting.
_PRESENT = """\
nodes=
for n in {patterns}; do [ -e "$n" ] && nodes="$nodes ${{n#/}}"; done
[ -n "$nodes" ] || exit 0
"""
_LOOK = """\
look() { # pid
  ( cd "/proc/$1/root" && [ -x dev ] || exit
    echo "process|$1"; ls -lnd $nodes | sed 's/^/there|/' )
}
(cd / && ls -lnd $nodes | sed 's/^/here|/')
"""
_UNITS = """\
systemctl $manager show -p MainPID "$1*" | sed -n 's/^MainPID=\\([1-9]\\)/\\1/p' |
  while read -r pid; do look "$pid"; done
"""
_SUPERVISED = """\
for f in "$data_home/rlx/$job/run"/*.supervisor "$runtime_dir/rlx/$job"/*.supervisor; do
  [ -f "$f" ] && sed -n 's/.*"pid" *: *\\([1-9][0-9]*\\).*/\\1/p' "$f"
done | while read -r pid; do look "$pid"; done
"""

# `crw-rw-rw- 1 0 0 195, 0 Nov 30 19:51 dev/nvidia0`
_LINE = re.compile(r"([bc])\S+ +\d+ +\d+ +\d+ +(\d+), *(\d+) .* (dev/\S+)$")


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the devices of the job's instances under each launch."""
    stem = f"rlx-{enquiry.job}@"
    patterns = " ".join(dict.fromkeys(one for few in _NODES.values() for one in few))
    present = _PRESENT.format(patterns=patterns)
    booted = "[ -d /run/systemd/system ] || exit 0\n"
    units = f"{present}{_LOOK}manager=--system\n{_UNITS}"
    user = (
        f"{present}{_LOOK}{USER_PLACES}job={quoted([enquiry.job])}\n{_SUPERVISED}{booted}"
        f"{USER_MANAGER}manager=--user\nset -- {quoted([stem])}\n{_UNITS}"
    )
    # Root is asked for only where there is something to look at.
    system = f"{booted}{present}{with_privilege(units, stem, sudo=enquiry.sudo)}"
    return (
        Question(SYSTEM, system, row=rows.SYSTEM_MANAGER),
        Question(USER, user, row=rows.USER_MANAGER),
    )


def parse(answers: Answers) -> Mapping[int, Mapping[str, bool]]:
    """Return by process id which nodes of the host it sees; without those not looked into."""
    found: dict[int, Mapping[str, bool]] = {}
    for name in (SYSTEM, USER):
        found |= _views(answers.text(name))
    return found


def hidden(labels: str, seen: RankSeen) -> tuple[str, ...]:
    """Return the host's nodes of the devices *labels* (`cuda, cpu`) that the rank does not see."""
    return tuple(node for node, there in _wanted(labels, seen.nodes or {}) if not there)


def blindness(labels: str, seen: RankSeen) -> str:
    """Say which nodes of its devices are hidden from the rank, "" where none is known to be."""
    nodes = hidden(labels, seen)
    if not nodes:
        return ""
    why = 'hardening = "strict" or a drop-in of its unit hides it (PrivateDevices)'
    return f"it does not see {', '.join(nodes)}, which the host has; {why}"


def is_proven(labels: str, seen: RankSeen) -> bool:
    """Tell whether the rank was seen with every node there is of its devices, or needs none."""
    needed = [label for label in labels.split(", ") if label in _NODES]
    nodes = seen.nodes or {}
    return all(any(_wanted(label, nodes)) for label in needed) and not hidden(labels, seen)


def _wanted(labels: str, nodes: Mapping[str, bool]) -> Iterator[tuple[str, bool]]:
    patterns = [one for label in labels.split(", ") for one in _NODES.get(label, ())]
    # A shell's pattern of these few forms is a regular expression, but for its last star.
    wanted = re.compile("|".join(one.replace("*", ".*") for one in patterns) or "(?!)")
    yield from ((node, there) for node, there in nodes.items() if wanted.fullmatch(node))


def _views(text: str) -> dict[int, dict[str, bool]]:
    here: dict[str, tuple[str, ...]] = {}
    there: dict[int, dict[str, tuple[str, ...]]] = {}
    view: dict[str, tuple[str, ...]] = {}
    for tag, rest in tagged(text):
        if tag == "process":
            view = there.setdefault(int(rest), {})
        elif found := _LINE.match(rest):
            *device, path = found.groups()
            (here if tag == "here" else view)[f"/{path}"] = tuple(device)
    return {
        pid: {node: view.get(node) == device for node, device in here.items()}
        for pid, view in there.items()
    }
