"""What the errors of a scan's connects mean: what others answered, and what this machine lacks."""

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_ANSWERS = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EHOSTUNREACH: "unreachable",
    errno.ETIMEDOUT: "silent",
}
_FAMILY = ("this machine does not speak this kind of address", "enable IPv6 here")
_FIREWALL = ("this machine's own firewall forbids it", "let connects to the port out")
_DESCRIPTORS = ("no descriptors are left here", "raise the limit (ulimit -n)")
_MEMORY = ("the kernel has no memory for more connects", "scan a smaller subnet")
_LACKS = {
    errno.EAFNOSUPPORT: _FAMILY,
    errno.EPROTONOSUPPORT: _FAMILY,
    errno.EADDRNOTAVAIL: (
        "this machine has no address to dial from, or no free port",
        "give it an address of that kind, or scan a smaller subnet",
    ),
    errno.ENETUNREACH: ("no route leads there", "add one"),
    errno.ENETDOWN: ("the interface that leads there is down", "set it up"),
    errno.EINVAL: ("a route here throws away what goes there", "remove the blackhole"),
    errno.EPERM: _FIREWALL,
    errno.EACCES: _FIREWALL,
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: _DESCRIPTORS,
    errno.ENOBUFS: _MEMORY,
    errno.ENOMEM: _MEMORY,
}
_OTHER = ("this machine could not connect", "try one of them by hand")
_LIST = "or list the machines in ssh_hosts"


@dataclass(frozen=True, slots=True)
class Lack:
    """So many connects found nobody because of something here, and what to do about it."""

    count: int
    why: str
    remedy: str


def lacks(failed: Mapping[int, int]) -> Iterator[Lack]:
    """Yield what kept us from connecting, from the failures by errno, the most frequent first."""
    for number, count in sorted(failed.items(), key=lambda pair: (-pair[1], pair[0])):
        if number not in _ANSWERS:
            why, remedy = _LACKS.get(number, _OTHER)
            yield Lack(
                count, f"{why} ({errno.errorcode.get(number, number)})", f"{remedy}, {_LIST}"
            )


def counted(failed: Mapping[int, int]) -> str:
    """Return how the addresses answered that were not found, as in `3 refused, 250 silent`."""
    words = [f"{failed[number]} {word}" for number, word in _ANSWERS.items() if number in failed]
    untried = sum(count for number, count in failed.items() if number not in _ANSWERS)
    return ", ".join([*words, *([f"{untried} not tried"] if untried else [])]) or "nobody to try"
