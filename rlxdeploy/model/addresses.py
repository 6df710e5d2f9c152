"""Addresses as a person writes them: `host`, `host:port`, an IPv6 literal, `[v6]:port`."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated

from pydantic import AfterValidator, Field

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NAME_LIMIT = 253
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and perhaps a port.

    *host* is a lower-case name or an address in its canonical form, IPv4-mapped IPv6 made IPv4;
    an IPv6 address may carry a zone.
    """

    host: str
    port: int | None = None

    @property
    def ip(self) -> IPv4Address | IPv6Address | None:
        """The address, None for a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or (self.ip is not None and self.ip.is_loopback)

    @property
    def is_unspecified(self) -> bool:
        """True for 0.0.0.0 and ::, which can be listened on but not dialled."""
        return self.ip is not None and self.ip.is_unspecified

    @property
    def zone(self) -> str:
        """The interface that a link-local address holds for, "" for other addresses."""
        return self.host.partition("%")[2]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def parse_address(text: str) -> HostPort:
    """Return the host and port that *text* names; raise ValueError in one clear line."""
    if match := re.fullmatch(r"\[([^\]]*)\](?::(.*))?", text):
        return HostPort(_ipv6(match[1]), None if match[2] is None else _port(match[2]))
    host, colon, port = text.rpartition(":")
    if not colon:
        return HostPort(parse_host(text))
    if ":" in host:
        return HostPort(_ipv6(text))
    return HostPort(parse_host(host), _port(port))


def parse_host(text: str) -> str:
    """Return a name or an address in canonical form; raise ValueError in one clear line."""
    if ":" in text:
        return _ipv6(text)
    labels = text.removesuffix(".").split(".")
    if labels[-1].isdecimal():
        return str(_ipv4(text))
    if len(text) > _NAME_LIMIT or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f"{text!r} is neither an address nor a host name")
    return text.lower()


def _ipv4(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no IPv4 address: four numbers of 0 to 255 without leading zeros"
        ) from None


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no IPv6 address; with a port, write [fd00::5]:29500"
        ) from None
    return str(address.ipv4_mapped or address)


def _port(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > _LAST_PORT:
        raise ValueError(f"{text!r} is no port: write a number from 1 to 65535")
    return int(text)


def _address(text: str) -> str:
    parse_address(text)
    return text


def _bind(text: str) -> str:
    try:
        ip_address(text)
    except ValueError:
        raise ValueError("write a numeric address without a port, as in '0.0.0.0'") from None
    return text


Address = Annotated[
    str, AfterValidator(_address), Field(json_schema_extra={"pattern": r"^[^\s/]+$"})
]
BindAddress = Annotated[
    str, AfterValidator(_bind), Field(json_schema_extra={"pattern": r"^[0-9A-Fa-f.:]+(%\S+)?$"})
]
