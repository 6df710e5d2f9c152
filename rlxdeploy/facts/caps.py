"""What a machine can do as upstream's workers print it: one JSON object on one line.

`gflops` and `available` of a device came with rlx-distributed 0.2.16 and may be missing.
"""

import json
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlxdeploy.model.survey import Device, Hardware, HostFacts

_Bytes = Field(ge=0, lt=1 << 64)


class DeviceInfo(BaseModel):
    """One device; *mem_bytes* 0 means that it shares RAM or that nobody knows."""

    model_config = ConfigDict(frozen=True)

    device: str
    name: str
    mem_bytes: int = _Bytes
    unified: bool
    gflops: float = 0.0
    available: bool = True


class NodeCaps(BaseModel):
    """One machine; *devices* begins with the processor."""

    model_config = ConfigDict(frozen=True)

    addr: str
    os: str
    cores: int = Field(ge=0)
    ram_total: int = _Bytes
    ram_avail: int = _Bytes
    disk_free: int = _Bytes
    devices: tuple[DeviceInfo, ...]
    gflops: float
    io_mbps: float

    def line(self) -> str:
        """Return the JSON, on one line without its end."""
        return json.dumps(self.model_dump(), separators=(",", ":"), ensure_ascii=False)

    def hardware(self, folder: str) -> Hardware:
        """Return what it says as our facts; *folder* is the one whose free space it names."""
        devices = tuple(Device(**info.model_dump()) for info in self.devices)
        cpu = next((device.name for device in devices if device.device == "cpu"), "CPU")
        return Hardware(
            cpu=cpu,
            cores=self.cores,
            ram_total=self.ram_total,
            ram_avail=self.ram_avail,
            disk_free={folder: self.disk_free},
            devices=devices,
            gflops=self.gflops,
            io_mbps=self.io_mbps,
        )


def caps(facts: HostFacts, addr: str, folder: str) -> NodeCaps:
    """Return *facts* as a worker at *addr* with its checkpoints in *folder* would put them."""
    hardware = facts.hardware
    devices = tuple(
        DeviceInfo.model_validate(device, from_attributes=True) for device in hardware.devices
    )
    return NodeCaps(
        addr=addr,
        os=facts.platform.os,
        cores=hardware.cores,
        ram_total=hardware.ram_total,
        ram_avail=hardware.ram_avail,
        disk_free=hardware.disk_free.get(folder, 0),
        devices=devices,
        gflops=hardware.gflops,
        io_mbps=hardware.io_mbps,
    )


def read_caps(stdout: str) -> NodeCaps:
    """Return the first line that is a whole NodeCaps object; a login profile may print others.

    Raises ValueError, saying what the first JSON object lacks, where no line is one.
    """
    why = "no line begins with {"
    for line in stdout.split("\n"):
        if not line.startswith("{"):
            continue
        try:
            return NodeCaps.model_validate_json(line)
        except ValidationError as error:
            if why.startswith("no line"):
                why = _first(error.errors()[0])
    raise ValueError(f"no capabilities in the answer: {why}")


def read_workers(text: str) -> dict[str, NodeCaps] | None:
    """Return the capabilities in a file by whom they belong to, None where it holds none.

    Known are a JSON list, what workers printed one after the other, and the document of
    `probe --json`.  The key is the name that the document gives, or else the worker's `addr`.
    Raises ValueError where one of them is not whole.
    """
    said = _documents(text)
    if not said or not all(_is_caps(one) for _, one in said):
        return None
    found: dict[str, NodeCaps] = {}
    for number, (name, one) in enumerate(said):
        try:
            caps = NodeCaps.model_validate(one)
        except ValidationError as error:
            whose = name or f"capabilities number {number + 1}"
            raise ValueError(f"{whose}: {_first(error.errors()[0])}") from None
        found[name or caps.addr] = caps
    return found


def _documents(text: str) -> list[tuple[str, object]]:
    """Return the objects that may be capabilities, each with the name it goes by there."""
    try:
        whole = json.loads(text)
    except ValueError:
        return [("", one) for line in text.split("\n") if (one := _object(line)) is not None]
    if isinstance(whole, dict) and isinstance(whole.get("hosts"), dict):
        return list(whole["hosts"].items())
    return [("", one) for one in (whole if isinstance(whole, list) else [whole])]


def _object(line: str) -> object:
    """Return the object on a line; a login profile may print others, and lines that are none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if _is_caps(found) else None


def _is_caps(one: object) -> bool:
    return isinstance(one, dict) and "devices" in one and "addr" in one


def _first(error: Mapping[str, object]) -> str:
    place = error["loc"]
    field = ".".join(map(str, place)) if isinstance(place, tuple) else ""
    return f"{field}: {error['msg']}" if field else str(error["msg"])
