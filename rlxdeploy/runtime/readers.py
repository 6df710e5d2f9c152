"""How a variable's text becomes a value; each reader raises SettingsError naming the variable."""

from __future__ import annotations

import re
from typing import Any, Callable, Tuple

from rlxdeploy.runtime.address import MAX_PORT, Address, parse_address
from rlxdeploy.runtime.errors import SettingsError

Reader = Callable[[str, str], Any]

_MAX_NAME = 128

# What Rust's `parse` takes for an unsigned integer; nothing here is over 20 digits.
_INTEGER = re.compile(r"\+?[0-9]{1,20}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


def integer(least: int, most: int) -> Reader:
    """Read an integer in *least*..*most*."""

    def read(variable: str, said: str) -> int:
        if not _INTEGER.fullmatch(said) or not least <= int(said) <= most:
            raise SettingsError(variable, said, f"an integer in {least}..{most}")
        return int(said)

    return read


def one_of(words: Tuple[str, ...]) -> Reader:
    """Read one of *words*."""

    def read(variable: str, said: str) -> str:
        if said not in words:
            raise SettingsError(variable, said, " or ".join(words))
        return said

    return read


def seconds(variable: str, said: str) -> float:
    """Read a number of seconds over 0."""
    if not _SECONDS.fullmatch(said) or not float(said):
        raise SettingsError(variable, said, "seconds, over 0")
    return float(said)


def truth(variable: str, said: str) -> bool:
    """Read 0, 1, true or false."""
    if said not in {"0", "1", "true", "false"}:
        raise SettingsError(variable, said, "0, 1, true or false")
    return said in {"1", "true"}


def set_and_not_zero(_variable: str, said: str) -> bool:
    """Read a switch that anything but 0 turns on, even an empty text."""
    return said != "0"


def filled_and_not_zero(_variable: str, said: str) -> bool:
    """Read a switch that anything but 0 or an empty text turns on."""
    return said not in {"", "0"}


def words(_variable: str, said: str) -> str:
    """Take the text as it is."""
    return said


def name(variable: str, said: str) -> str:
    """Read a name of at most 128 characters: it goes into the first message to every rank."""
    if len(said) > _MAX_NAME:
        raise SettingsError(variable, said, f"at most {_MAX_NAME} characters")
    return said


def path(variable: str, said: str) -> str:
    """Read a path."""
    if not said:
        raise SettingsError(variable, said, "a path")
    return said


def addresses(variable: str, said: str) -> Tuple[Address, ...]:
    """Read `host:port` entries with commas between."""
    return tuple(_address(variable, entry) for entry in said.split(","))


def bind_address(variable: str, said: str) -> str:
    """Read a host with or without a port."""
    try:
        parse_address(said, MAX_PORT)
    except ValueError as error:
        raise SettingsError(variable, said, f"HOST, HOST:PORT or [IPV6]:PORT ({error})") from None
    return said


def _address(variable: str, said: str) -> Address:
    try:
        return parse_address(said)
    except ValueError as error:
        raise SettingsError(variable, said, f"HOST:PORT or [IPV6]:PORT ({error})") from None
