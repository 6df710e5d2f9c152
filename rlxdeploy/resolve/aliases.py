"""What an SSH alias says of where it leads: `host`, `user@host` or `ssh://user@host:port`."""

from collections.abc import Iterable

_URI = "ssh://"


def bare_host(alias: str) -> str:
    """Return the host of *alias* in lower case, without user and port."""
    return _split(alias)[0]


def way(alias: str) -> str:
    """Return where *alias* leads, the user aside: its host, with the port where it names one.

    Behind one address the ports of a gateway may lead to as many machines; a port that is not
    named is whatever the SSH configuration says, and so no number to compare with.
    """
    host, port = _split(alias)
    if not port:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def alias_of(address: str, port: int, usual: int) -> str:
    """Return what to dial for *port* of a numeric *address*, plain where SSH dials it anyway.

    *usual* is the port that SSH dials where an alias names none.
    """
    if port == usual:
        return address
    return f"{_URI}[{address}]:{port}" if ":" in address else f"{_URI}{address}:{port}"


def port_to_dial(answered: Iterable[int], usual: int, stage: int) -> int:
    """Return which of the ports that *answered* SSH is to be tried on.

    That is its *usual* one where it answered, or else the first; not the *stage* port, at which
    upstream's workers listen: a host that answers nowhere else is dialled at the usual one.
    """
    ports = [port for port in answered if port != stage]
    return usual if usual in ports or not ports else ports[0]


def _split(alias: str) -> tuple[str, str]:
    host = alias.removeprefix(_URI).rstrip("/").rpartition("@")[2].lower()
    if not alias.startswith(_URI):
        return host, ""
    if host.startswith("["):
        inside, _, port = host[1:].partition("]")
        return inside, port.removeprefix(":")
    return host.partition(":")[::2]
