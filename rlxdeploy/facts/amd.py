"""AMD cards by rocminfo, and whatever Vulkan reaches where ROCm does not run."""

import re
from collections.abc import Iterator

from rlxdeploy.facts import rows
from rlxdeploy.facts.places import tagged
from rlxdeploy.facts.question import Answers, Question, whole
from rlxdeploy.model.survey import Device

ROCM, VULKAN, GTT = "rocminfo", "vulkaninfo", "amdgpu"

# The graphics translation table: how much of the host's RAM the driver lets a card use.
_GTT = """\
for f in /sys/class/drm/card[0-9]*/device/mem_info_gtt_total; do
  [ -r "$f" ] && read -r size <"$f" && echo "gtt|$size"
done
"""

_UNKNOWN_PROGRAM = 127
# A part with less memory of its own than this works in the host's: the firmware's carve-out.
_OWN_MEMORY = 3 << 30


def questions() -> tuple[Question, ...]:
    """Return what to ask about AMD cards and Vulkan."""
    return (
        Question(ROCM, "rocminfo", slow=True, needs="rocminfo"),
        Question(VULKAN, "vulkaninfo --summary", slow=True, needs="vulkaninfo"),
        Question(GTT, _GTT, row=rows.KERNEL, plain=True),
    )


def parse(answers: Answers) -> tuple[Device, ...]:
    """Return one rocm device a GPU agent where rocminfo runs, else one vulkan device or none."""
    table = _gtt(answers.text(GTT))
    if ROCM in answers.unanswered:
        return (_unusable("rocminfo did not answer in time"),)
    rocm = answers.given.get(ROCM)
    if rocm is not None and rocm.status == 0:
        return tuple(_agents(rocm.text, table))
    broken: tuple[Device, ...] = ()
    if rocm is not None and rocm.status != _UNKNOWN_PROGRAM and table:
        said = " ".join(line.strip() for line in rocm.text.splitlines()[:2] if line.strip())
        broken = (_unusable(said or f"rocminfo ended with exit status {rocm.status}"),)
    return (*broken, *_vulkan(answers, table))


def _unusable(error: str) -> Device:
    return Device("rocm", "AMD ROCm", available=False, error=error)


def _gtt(text: str) -> int:
    sizes = (whole(size) for tag, size in tagged(text) if tag == "gtt")
    return next(filter(None, sizes), 0)


def _agents(text: str, table: int) -> Iterator[Device]:
    """Read rocminfo's agents; HIP counts the GPUs among them in this order."""
    agents = re.split(r"(?m)^\*{3,}\s*\n^Agent \d+", text)[1:]
    gpus = (agent for agent in agents if _value(agent, "Device Type") == "GPU")
    for index, agent in enumerate(gpus):
        name = _value(agent, "Marketing Name") or _value(agent, "Name") or "AMD ROCm"
        own = _own_memory(agent)
        shared = own < _OWN_MEMORY or "APU" in _value(agent, "Memory Properties")
        yield Device("rocm", name, table if shared else own, unified=shared, ident=str(index))


def _value(agent: str, key: str) -> str:
    found = re.search(rf"(?m)^\s*{key}:[ \t]*(.*?)\s*$", agent)
    return found[1] if found else ""


def _own_memory(agent: str) -> int:
    """Return the size of the agent's coarse-grained global pool in bytes, 0 without one."""
    pools = re.split(r"(?m)^\s*Pool \d+", agent)[1:]
    sizes = (
        int(found[1]) << 10
        for pool in pools
        if re.search(r"Segment:\s*GLOBAL;.*COARSE", pool)
        and (found := re.search(r"Size:\s*(\d+)", pool))
    )
    return max(sizes, default=0)


def _vulkan(answers: Answers, table: int) -> Iterator[Device]:
    """Yield one device where Vulkan sees a GPU; a driver that computes on the CPU is none."""
    types = re.findall(r"deviceType\s*=\s*PHYSICAL_DEVICE_TYPE_(\w+)", answers.text(VULKAN))
    gpus = [kind for kind in types if kind.endswith("_GPU")]
    if gpus or table:
        shared = bool(table) or "INTEGRATED_GPU" in gpus
        yield Device("vulkan", "Vulkan GPU", table, unified=shared)
