"""What each node brings to a placement: memory after all reserves, and speed as measured.

The rules are upstream's: memory counts in decimal GB, and a cuda device is bounded by its host's
memory, since it pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rlxdeploy.model.survey import Hardware
from rlxdeploy.model.vocabulary import Optimize, Policy, UnknownKv
from rlxdeploy.resolve.allot import Allotted
from rlxdeploy.resolve.devices import CPU, usable
from rlxdeploy.resolve.entries import Entry
from rlxdeploy.resolve.group import Group, Stand
from rlxdeploy.resolve.placement import Model, Stage
from rlxdeploy.resolve.report import Report

GB = 1e9

# Drivers and screens take some of an accelerator's own memory.
_OF_ACCELERATOR = 0.85
_HOST_BOUND = frozenset({CPU, "cuda"})

_MEASURE = (
    "measure once with probe --bench: plan and apply take what it keeps"
    " (for --survey, what it saves with --out)"
)


@dataclass(frozen=True, slots=True)
class Bearer:
    """An active node with all its ranks, which share its layers, and its primary device.

    *told* is the hardware of one that nobody surveyed, as its own worker tells it.
    """

    stands: tuple[Stand, ...]
    device: str
    told: Hardware | None = None

    @property
    def entry(self) -> Entry:
        return self.stands[0].entry

    @property
    def hardware(self) -> Hardware | None:
        facts = self.stands[0].facts
        return facts.hardware if facts else self.told

    @property
    def gflops(self) -> float:
        """What was measured of the device, else of the node; 0 if nothing was."""
        if self.hardware is None:
            return 0.0
        device = next(iter(usable(self.hardware, self.device)), None)
        return (device.gflops if device else 0.0) or self.hardware.gflops

    def budget(self, reserve: float) -> float:
        """Return the bytes that the node has for the model, as upstream counts them."""
        hardware, written = self.hardware, self.entry.node.max_ram_gb
        if hardware is None:
            return max(0.0, (written or 0.0) * GB - reserve)
        room = float(hardware.ram_avail)
        if written is not None:
            room = min(written * GB, hardware.ram_total)
        own = [one.mem_bytes for one in hardware.devices if one.available and one.device != CPU]
        memory = max(own, default=0) or hardware.ram_total
        if self.device not in _HOST_BOUND and memory < hardware.ram_total:
            room = min(room, _OF_ACCELERATOR * memory)
        return max(0.0, room - reserve)


def bearers(
    members: Group, allotted: Mapping[int, Allotted], told: Mapping[int, Hardware]
) -> list[Bearer]:
    """Return the active nodes in the order of their first ranks: so the stages follow."""
    found: dict[int, list[Stand]] = {}
    for stand in sorted(members.stands, key=lambda one: one.rank):
        found.setdefault(stand.entry.index, []).append(stand)
    return [
        Bearer(tuple(few), allotted[few[0].rank].devices[0], told.get(index))
        for index, few in found.items()
    ]


def stages(nodes: Sequence[Bearer], report: Report) -> list[Stage]:
    """Return what each node brings; none, and an error in *report*, if that cannot be said."""
    inventory, whole = report.loaded.inventory, model(report)
    errors = len(report.errors)
    _check(nodes, whole, report)
    reserve = inventory.reserve_ram_gb * GB + _cache(len(nodes), whole, report)
    if len(report.errors) > errors:
        return []
    return [Stage(one.entry.name, one.budget(reserve), max(1.0, one.gflops)) for one in nodes]


def model(report: Report) -> Model:
    """Return what the inventory says of the layers."""
    placement = report.loaded.inventory.placement
    return Model(placement.n_layers or 0, placement.layer_bytes or 0, placement.layer_flops or 0.0)


def _check(nodes: Sequence[Bearer], whole: Model, report: Report) -> None:
    """Say what the policy needs and nobody gave."""
    placement = report.loaded.inventory.placement
    slow = ", ".join(_slow(node) for node in nodes if not node.gflops)
    if placement.policy is not Policy.RAM_BALANCED and (days := _days(nodes)):
        report.notice(("placement", "policy"), f"speeds measured on {' to '.join(days)}")
    if placement.policy is Policy.AUTO:
        missing = [
            *(() if whole.layer_bytes else ("layer_bytes",)),
            *(() if whole.layer_flops else ("layer_flops",)),
            *((f"the measured speed of {slow}",) if slow else ()),
        ]
        if missing:
            what = f"auto is not supported without {', '.join(missing)}"
            report.error(("placement", "policy"), what, f"write what is missing, or {_MEASURE}")
    elif placement.policy is Policy.THROUGHPUT and slow:
        what = f"nobody measured how fast {slow} is: counted as 1 GFLOP/s"
        report.warning(("placement", "policy"), what, _MEASURE)
    if placement.objective.optimize is Optimize.LATENCY and not whole.layer_bytes:
        what = "latency fills node after node, and is not supported without layer_bytes"
        report.error(("placement", "objective", "optimize"), what, "write layer_bytes")
    for node in nodes:
        if node.hardware is None and node.entry.node.max_ram_gb is None:
            what = f"{node.entry.name} is not asked for its memory"
            report.error(node.entry.key("max_ram_gb"), what, "write max_ram_gb")


def _slow(node: Bearer) -> str:
    """Return the name of a node that was not measured, with the reason where it is known."""
    why = node.hardware.unmeasured.get("processor", "") if node.hardware else ""
    return node.entry.name + (f" ({why})" if why else "")


def _days(nodes: Sequence[Bearer]) -> list[str]:
    """Return the first and the last day on which a node was measured, as far as that is known."""
    times = sorted(node.hardware.measured_at for node in nodes if node.hardware)
    known = [datetime.fromtimestamp(time, UTC).date().isoformat() for time in times if time]
    return [*dict.fromkeys((known[0], known[-1]))] if known else []


def _cache(nodes: int, whole: Model, report: Report) -> float:
    """Return the bytes of key-value cache that each node has to keep free."""
    objective = report.loaded.inventory.placement.objective
    key = ("placement", "objective", "on_unknown_kv")
    if objective.kv_bytes_per_layer_token is not None:
        window = -(-whole.layers // nodes)
        return float(window * objective.context * objective.kv_bytes_per_layer_token)
    if not report.loaded.written(key):
        what = "the key-value cache is not reckoned with"
        report.notice(
            ("placement",), what, "write kv_bytes_per_layer_token in [placement.objective]"
        )
    elif objective.on_unknown_kv is not UnknownKv.IGNORE:
        what = f"{objective.on_unknown_kv}: rlxdeploy reads no model to tell the cache from"
        remedy = 'write kv_bytes_per_layer_token, or on_unknown_kv = "ignore"'
        report.error(key, what, remedy)
    return 0.0
