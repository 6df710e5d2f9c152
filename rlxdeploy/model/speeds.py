"""How fast machines were measured to be, kept beside the inventory for the plans that follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class MachineSpeeds:
    """What was measured of one machine, known by its machine-id and a MAC of its own.

    *measured_at* counts seconds since the epoch; *gflops* goes by label, ident and name of the
    device, so that another card in its place has no speed.
    """

    machine: str
    macs: tuple[str, ...]
    measured_at: float
    gflops: Mapping[str, float]
    io_mbps: float = 0.0

    def is_of(self, machine: str, macs: tuple[str, ...]) -> bool:
        """Tell whether it is the machine with this id and these MACs."""
        return self.machine == machine and (self.macs == macs or bool({*self.macs} & {*macs}))


@dataclass(frozen=True, slots=True)
class Speeds:
    """All machines that were measured."""

    machines: tuple[MachineSpeeds, ...] = field(default=())
    format_version: int = FORMAT_VERSION
