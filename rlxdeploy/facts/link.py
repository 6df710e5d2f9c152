"""One network interface in the making: the tools tell its parts in different places."""

from dataclasses import dataclass, field

from rlxdeploy.model.survey import Interface

_NAMED = {"docker": "bridge", "br-": "bridge", "virbr": "bridge", "veth": "veth", "tun": "tunnel"}


@dataclass(slots=True)
class Link:
    """An interface while its parts are gathered."""

    name: str
    mac: str = ""
    up: bool = False
    mtu: int = 0
    kind: str = ""
    addresses: list[str] = field(default_factory=list)

    def done(self) -> Interface:
        """Return the interface; its name says its kind where the host told no more."""
        kind = self.kind or next(
            (kind for prefix, kind in _NAMED.items() if self.name.startswith(prefix)), ""
        )
        addresses = tuple(dict.fromkeys(self.addresses))
        return Interface(self.name, self.mac, self.up, self.mtu, addresses, kind)
