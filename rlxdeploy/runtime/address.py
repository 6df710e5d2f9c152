"""Where a rank listens: `host:port`, with IPv6 addresses in brackets."""

import re
from typing import NamedTuple, Optional

MAX_PORT = 65535
_ADDRESS = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[^\]]+)?)\]|(?P<host>[^\s:\[\]]+))(?::(?P<port>[0-9]{1,5}))?"
)
_BARE_SIX = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\S+)?")


class Address(NamedTuple):
    """A host (a name or a numeric address, without brackets) and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, port: Optional[int] = None) -> Address:
    """Read `host:port` or `[v6]:port`; *port* stands in where the text has none.

    With a *port* to stand in, a bare IPv6 address needs no brackets.

    Raises ValueError for anything else, and for a port outside 1..65535.
    """
    text = text.strip()
    if port is not None and _BARE_SIX.fullmatch(text):
        return Address(text, port)
    found = _ADDRESS.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not HOST:PORT or [IPV6]:PORT")
    number = int(found["port"]) if found["port"] else port
    if number is None:
        raise ValueError(f"{text!r} lacks a port")
    if not 1 <= number <= MAX_PORT:
        raise ValueError(f"{text!r} has a port outside 1..{MAX_PORT}")
    return Address(found["six"] or found["host"], number)
