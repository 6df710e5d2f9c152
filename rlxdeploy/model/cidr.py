"""Subnets as a person writes them; their size is computed, never walked."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated

from pydantic import AfterValidator, Field

from rlxdeploy.model.addresses import parse_host

# What a scan may walk: 65,534 addresses of either family.
LONGEST_SCAN = {4: 16, 6: 112}

# A cautious rate of TCP connects, for the estimate shown when a subnet is refused.
_SCANNED_PER_SECOND = 1000

_UNITS = (
    ("years", 365 * 86_400),
    ("days", 86_400),
    ("hours", 3_600),
    ("minutes", 60),
    ("seconds", 1),
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A subnet, and whether the address written had bits beyond the prefix."""

    network: IPv4Network | IPv6Network
    masked: bool

    @property
    def hosts(self) -> int:
        """How many hosts it can hold: all of /31 and /32, of /127 and /128."""
        total = self.network.num_addresses
        if total <= 2:  # noqa: PLR2004 - a point-to-point link or one host has nothing reserved
            return total
        return total - (2 if self.network.version == 4 else 1)  # noqa: PLR2004 - IPv4


def parse_cidr(text: str) -> Parsed:
    """Return the subnet that *text* names; raise ValueError in one clear line."""
    base, slash, prefix = text.partition("/")
    if not slash:
        raise ValueError(f"{text!r} lacks its prefix, as in '10.0.5.0/24'")
    address = _base(text, base)
    if not re.fullmatch(r"0|[1-9][0-9]{0,2}", prefix) or int(prefix) > address.max_prefixlen:
        raise ValueError(
            f"{text!r}: the prefix is a number from 0 to {address.max_prefixlen}, not {prefix!r}"
        )
    kind = IPv4Network if isinstance(address, IPv4Address) else IPv6Network
    network = kind((int(address), int(prefix)), strict=False)
    return Parsed(network, masked=network.network_address != address)


def _base(text: str, base: str) -> IPv4Address | IPv6Address:
    try:
        return IPv6Address(base) if ":" in base else IPv4Address(base)
    except ValueError as error:
        raise ValueError(f"{text!r}: {base!r} is no whole address ({error})") from None


def check_scannable(text: str) -> Parsed:
    """Return the subnet that *text* names if a scan may walk it; raise ValueError if not."""
    parsed = parse_cidr(text)
    limit = LONGEST_SCAN[parsed.network.version]
    if parsed.network.prefixlen < limit:
        raise ValueError(
            f"{text!r} holds {parsed.hosts:,} addresses, {_duration(parsed.hosts)} to scan; list"
            f" the machines in ssh_hosts, set mdns = true, or write a prefix of /{limit} or longer"
        )
    return parsed


def _duration(addresses: int) -> str:
    seconds = addresses // _SCANNED_PER_SECOND
    for name, length in _UNITS:
        if seconds >= 2 * length:
            return f"about {seconds // length:,} {name}"
    return "about a second"


def _cidr(text: str) -> str:
    parse_cidr(text)
    return text


def _subnet(text: str) -> str:
    check_scannable(text)
    return text


def _excluded(text: str) -> str:
    if "/" in text:
        parse_cidr(text)
    else:
        parse_host(text)
    return text


_CIDR = Field(json_schema_extra={"pattern": r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"})

Cidr = Annotated[str, AfterValidator(_cidr), _CIDR]
Subnet = Annotated[str, AfterValidator(_subnet), _CIDR]
ExcludedText = Annotated[
    str, AfterValidator(_excluded), Field(json_schema_extra={"pattern": r"^\S+$"})
]
