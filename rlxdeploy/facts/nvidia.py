"""NVIDIA cards: what nvidia-smi says, and what is right where it says that it does not know.

A card that is there and cannot be used is a device with an error, never a host without a card.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rlxdeploy.facts.question import Answer, Answers, Question, whole
from rlxdeploy.model.survey import Device

CARDS, SLICES = "nvidia-smi", "nvidia-smi -L"

# Older drivers do not know mig.mode.current and exit with 2; the exit status is the last query's.
_CARDS = """\
ask() { echo "fields=$1"; nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits; }
ask index,uuid,name,memory.total,mig.mode.current,pci.bus_id
status=$?
[ $status = 2 ] && { ask index,uuid,name,memory.total; status=$?; }
if [ $status != 0 ] && [ $status != 14 ] && [ -d /sys/bus/pci/devices ]; then
  echo "pci=seen"
  for d in /sys/bus/pci/devices/*; do
    read -r vendor <"$d/vendor"; read -r class <"$d/class"
    case $vendor$class in 0x10de0x03*) echo "card=${d##*/}";; esac
  done
fi
exit $status
"""
_SLICES = "nvidia-smi -L"

_MIB = 1 << 20
_ABSENT, _UNREACHABLE, _INFOROM, _MISMATCH = 6, 9, 14, 18
_UNKNOWN_PROGRAM = 127
# What the question says itself, and what nvidia-smi warns of below its table.
_OURS = re.compile(r"(fields|pci|card)=")
_WARNING = re.compile(r"(?m)^WARNING: *(.+)$")
# Parts that compute in the host's own memory: Grace Blackwell desktops and the Jetson family.
_UNIFIED = re.compile(r"\b(GB10|Orin|Xavier|Thor|Tegra|nvgpu|Jetson)\b", re.IGNORECASE)
_NOT_KNOWN = re.compile(r"\[(N/A|Not Supported|Insufficient Permissions)\]|N/A")


def questions() -> tuple[Question, ...]:
    """Return what to ask about NVIDIA cards; both at once, since each waits for the driver."""
    return (
        Question(CARDS, _CARDS, slow=True, needs="nvidia-smi"),
        Question(SLICES, _SLICES, slow=True, needs="nvidia-smi"),
    )


def parse(answers: Answers, ram_total: int) -> tuple[Device, ...]:
    """Return the cards in the driver's order, each split into its slices where MIG is on."""
    answer = answers.given.get(CARDS)
    if answer is None:
        return (_broken("nvidia-smi did not answer in time"),) if _asked(answers) else ()
    rows = tuple(_rows(answer.text))
    # A damaged infoROM is only warned of, behind a table that is whole.
    if answer.status != 0 and not (answer.status == _INFOROM and rows):
        return _failed(answer)
    slices = _slices(answers.text(SLICES))
    why = "nvidia-smi -L did not answer in time" if SLICES in answers.unanswered else ""
    return tuple(
        replace(device, trouble=_trouble(row, rows, answer))
        for row in rows
        for device in _devices(row, slices, why, ram_total)
    )


def _asked(answers: Answers) -> bool:
    return CARDS in answers.unanswered


def _broken(error: str, name: str = "NVIDIA GPU", ident: str = "") -> Device:
    return Device("cuda", name, available=False, ident=ident, error=error)


def _failed(answer: Answer) -> tuple[Device, ...]:
    """Tell a broken driver from a host that has the program and no card."""
    lines = [line for line in answer.text.splitlines() if not _OURS.match(line)]
    cards = re.findall(r"(?m)^card=(.+)$", answer.text)
    if answer.status in {_UNKNOWN_PROGRAM, _ABSENT} and not cards:
        return ()
    if answer.status == _UNREACHABLE and "pci=seen" in answer.text and not cards:
        return ()
    why = " ".join(line.strip() for line in lines[:2] if line.strip())
    why = why or f"nvidia-smi ended with exit status {answer.status}"
    if answer.status in {_UNREACHABLE, _MISMATCH} or "mismatch" in why:
        why += "; reboot the host or reload the nvidia kernel module"
    return tuple(_broken(why) for _ in cards or [""])


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Read the last table; a name may hold a comma, the fields around it may not."""
    asked, _, table = text.rpartition("fields=")[2].partition("\n")
    names = asked.split(",")
    behind = len(names) - names.index("name") - 1 if "name" in names else 0
    for line in filter(str.strip, table.splitlines()):
        if _OURS.match(line) or _WARNING.match(line):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(names):
            yield {"name": line.strip(), "broken": line.strip()}
            continue
        last = len(cells) - behind
        cells[2:last] = [", ".join(cells[2:last])]
        yield dict(zip(names, cells, strict=True))


def _trouble(row: Mapping[str, str], rows: Sequence[Mapping[str, str]], answer: Answer) -> str:
    """Return what nvidia-smi warns of, unless it names another card than that of *row*."""
    said = [text.strip() for text in _WARNING.findall(answer.text)]
    if answer.status == _INFOROM and not said:
        said = [f"the infoROM of a card is corrupted (nvidia-smi ended with {_INFOROM})"]
    others = {_bus(one) for one in rows} - {_bus(row), ""}
    return "; ".join(text for text in said if not any(bus in text.lower() for bus in others))


def _bus(row: Mapping[str, str]) -> str:
    """Return where a card sits, as warnings write it: the domain in four digits, not in eight."""
    return row.get("pci.bus_id", "").lower()[-len("0000:00:00.0") :]


def _devices(
    row: Mapping[str, str], slices: Mapping[str, list[Device]], why_none: str, ram_total: int
) -> Iterator[Device]:
    if "broken" in row:
        yield _broken(row["broken"])
        return
    index, name, memory = row["index"], row["name"], row["memory.total"]
    if row.get("mig.mode.current") == "Enabled":
        lacking = _broken(why_none or "MIG is on and has no compute instance", name, index)
        yield from slices.get(row["uuid"], [lacking])
    elif memory.isdigit():
        yield Device("cuda", name, int(memory) * _MIB, ident=index)
    elif _NOT_KNOWN.fullmatch(memory):
        unified = bool(_UNIFIED.search(name))
        yield Device("cuda", name, ram_total if unified else 0, unified=unified, ident=index)
    else:
        yield _broken(f"nvidia-smi says {memory.strip('[]')}", name, index)


def _slices(text: str) -> dict[str, list[Device]]:
    """Read `nvidia-smi -L`: each card, and indented below it its MIG devices, by the card's UUID.

    The profile (`1g.10gb`) names the memory in nominal GB, which is a little less than there is.
    """
    found: dict[str, list[Device]] = {}
    card, uuid = "", ""
    for line in text.splitlines():
        if head := re.match(r"GPU \d+: (.+) \(UUID: (GPU-[^)]+)\)", line):
            card, uuid = head.groups()
        elif mig := re.match(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)", line):
            profile, ident = mig.groups()
            gigabytes = re.search(r"\.(\d+)gb", profile)
            size = whole(gigabytes[1]) * 10**9 if gigabytes else 0
            device = Device("cuda", f"{card} MIG {profile}", size, ident=ident)
            found.setdefault(uuid, []).append(device)
    return found
