"""What kinds of hosts there are to ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.fleet.harness.images import RELEASES, Release

Place = Literal["lan", "inner", "nat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """One host as wanted; the default is a complete bookworm next to the controller.

    `place` is where it stands: on the controller's own network, on one that only the bastion
    reaches, or behind a router that lets it out and lets nobody in but SSH by a forwarded port.
    """

    name: str = ""
    release: Release = "bookworm"
    place: Place = "lan"
    systemd: bool = True
    python: bool = True
    numpy: bool = True
    zeroconf: bool = True
    user_units: bool = True

    def absent(self) -> Iterator[str]:
        """Yield globs of what this host lacks of its base image."""
        modules = "usr/lib/python3*/dist-packages"
        if not self.python:
            yield from ("usr/bin/python3*", "usr/lib/python3*")
        if self.python and not self.numpy:
            yield f"{modules}/numpy*"
        if self.python and not self.zeroconf:
            yield f"{modules}/zeroconf*"
        if not self.user_units:
            yield "usr/lib/*/security/pam_systemd.so"


def mixture(count: int) -> list[HostSpec]:
    """Return *count* hosts that take turns through the releases."""
    return [HostSpec(release=RELEASES[turn % len(RELEASES)]) for turn in range(count)]
