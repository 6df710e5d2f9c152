"""Multicast DNS: finding rank 0 of a star, and showing every node to whoever looks for some.

zeroconf is needed here, and nowhere else.

Rank 0 is the service `coord._rlx-coord._udp.local.` at `rlx-coord.local.`, its port that where
rank 0 listens.  On the native wire the instance is named for the job, and a TXT record holds the
job's announcement of the address, which is what counts there.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Set

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import RefusedError, WireError
from rlxdeploy.runtime.link.udp import Until
from rlxdeploy.runtime.wire.beacon import Dialect

if TYPE_CHECKING:
    from zeroconf import ServiceInfo, ServiceStateChange, Zeroconf

SERVICE = "_rlx-coord._udp.local."
NODE = "_rlx-node._tcp.local."
_SERVER = "rlx-coord"
_TXT = "rlx"
# Once one has answered, others on the LAN have this long to show that there are several.
_SETTLE_S = 1.0
# Who shows a name answers for it in a moment, on a busy machine later.
_RESOLVE_MS = 3000
_CLAIM_S = 3.0
# Who has a name says so at once.
_PROBE_MS = 750


def available() -> bool:
    """Whether zeroconf is installed."""
    try:
        import zeroconf  # noqa: F401, PLC0415 - only whoever asks for mDNS needs it
    except ImportError:
        return False
    return True


def shut(zeroconf: Zeroconf) -> None:
    """Close it whole: zeroconf leaves the event loop of its thread open."""
    loop = getattr(zeroconf, "loop", None)
    zeroconf.close()
    if loop is not None and not loop.is_running():
        loop.close()


def _free_name(zeroconf: Zeroconf, instance: str) -> str:
    """Return a name for rank 0 that nobody has, which zeroconf looks for itself from 0.32 on.

    Older ones do ask, but in a way that keeps their like from answering.
    """
    name, number = f"{instance}.{SERVICE}", 1
    while not hasattr(zeroconf, "loop") and zeroconf.get_service_info(SERVICE, name, _PROBE_MS):
        number += 1
        name = f"{instance}-{number}.{SERVICE}"
    return name


class Advert:
    """Rank 0 at *address*, shown on the LAN until it is closed; needs zeroconf."""

    def __init__(self, address: Address, dialect: Dialect) -> None:
        from zeroconf import ServiceInfo, Zeroconf  # noqa: PLC0415 - as above

        signed: Dict[str, str] = {}
        if dialect.label:
            signed = {_TXT: dialect.announce(0, address).decode()}
        label = f"-{dialect.label}" if dialect.label else ""
        self._zeroconf: Zeroconf = Zeroconf(interfaces=[address.host])
        try:
            info = ServiceInfo(
                SERVICE,
                _free_name(self._zeroconf, f"coord{label}"),
                addresses=[socket.inet_aton(address.host)],
                port=address.port,
                properties=signed,
                server=f"{_SERVER}{label}.local.",
            )
            self._zeroconf.register_service(info, allow_name_change=True)
        except BaseException:
            shut(self._zeroconf)
            raise

    def close(self) -> None:
        """Say goodbye and stop."""
        shut(self._zeroconf)


class NodeAdvert:
    """A node called *name* at *address*, shown on the LAN until it is closed.

    What goes wrong is for *noticed*: nobody in the group depends on being seen.
    """

    def __init__(self, name: str, address: Address, noticed: Callable[[str], None]) -> None:
        self._name, self._address, self._noticed = name, address, noticed
        self._zeroconf: Optional[Zeroconf] = None
        self._closed = False
        # Claiming a name takes a second, and nobody is to wait for it.
        self._showing = threading.Thread(target=self._show, name="rlx mdns", daemon=True)
        self._showing.start()

    def close(self) -> None:
        """Say goodbye and stop."""
        self._closed = True
        self._showing.join(_CLAIM_S)
        if self._zeroconf is not None:
            shut(self._zeroconf)

    def _show(self) -> None:
        if not available():
            self._noticed("RLX_ADVERTISE: the Python package zeroconf is not installed")
            return
        from zeroconf import ServiceInfo, Zeroconf  # noqa: PLC0415 - as above

        host, port = self._address.host, self._address.port
        try:
            packed = [socket.inet_aton(host)]
            server = f"{self._name}.local."
            info = ServiceInfo(
                NODE, f"{self._name}.{NODE}", addresses=packed, port=port, server=server
            )
            self._zeroconf = Zeroconf(interfaces=[host])
            if not self._closed:
                self._zeroconf.register_service(info, allow_name_change=True)
        except Exception as error:  # noqa: BLE001 - whatever zeroconf meets, the group goes on
            self._noticed(f"RLX_ADVERTISE: {self._name} is not shown: {error}")


def browse(dialect: Dialect, until: Until, host: Optional[str]) -> Address:
    """Return where rank 0 is; *host* is the own address to look from, all of them if None.

    Raises JoinTimeout where nobody shows itself, RefusedError where several do or without zeroconf.
    """
    if not available():
        raise RefusedError(
            "a worker of a star without DISCOVER_HOST looks for rank 0 by mDNS, which needs the "
            "Python package zeroconf; install it, or set DISCOVER_HOST"
        )
    from zeroconf import ServiceBrowser, Zeroconf  # noqa: PLC0415 - as above

    search = _Search(dialect)
    zeroconf = Zeroconf(interfaces=[host]) if host else Zeroconf()
    try:
        ServiceBrowser(zeroconf, SERVICE, handlers=[search.changed])
        found = search.result(zeroconf, until)
    finally:
        shut(zeroconf)
    if len(found) > 1:
        shown = ", ".join(f"{name} at {address}" for name, address in sorted(found.items()))
        raise RefusedError(f"several ranks 0 show themselves by mDNS: {shown}; set DISCOVER_HOST")
    if not found:
        raise until.missed({0: f"nobody showed itself by mDNS as {SERVICE}"})
    return next(iter(found.values()))


class _Search:
    """Names come from zeroconf's thread; they are looked up in ours."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._shown: Set[str] = set()
        self._names: Set[str] = set()
        self._news = threading.Condition()

    def changed(self, *, name: str, state_change: ServiceStateChange, **_more: Any) -> None:  # noqa: ANN401 - what zeroconf tells
        with self._news:
            if state_change.name == "Removed":
                self._shown.discard(name)
                return
            self._shown.add(name)
            self._names.add(name)
            self._news.notify()

    def result(self, zeroconf: Zeroconf, until: Until) -> Dict[str, Address]:
        """Return, by name, who is there a moment after the first; nobody at the deadline."""
        found: Dict[str, Address] = {}
        while not found and until.left:
            found = self._look(zeroconf, until.left)
        settled = time.monotonic() + _SETTLE_S
        while found and time.monotonic() < settled:
            found.update(self._look(zeroconf, settled - time.monotonic()))
        return found

    def _look(self, zeroconf: Zeroconf, seconds: float) -> Dict[str, Address]:
        with self._news:
            self._news.wait_for(lambda: self._names, seconds)
            names, self._names = self._names, set()
        found: Dict[str, Address] = {}
        for name in names:
            info = zeroconf.get_service_info(SERVICE, name, _RESOLVE_MS)
            if info is None:
                self._again(name)
            elif (place := self._place(info)) is not None:
                found[name] = place
        return found

    def _again(self, name: str) -> None:
        """Look up later a name that nobody answered for yet, unless it went meanwhile."""
        with self._news:
            if name in self._shown:
                self._names.add(name)

    def _place(self, info: ServiceInfo) -> Optional[Address]:
        if self._dialect.label:
            with contextlib.suppress(WireError):
                rank, address = self._dialect.read_announcement(
                    (info.properties or {}).get(_TXT.encode()) or b""
                )
                return address if rank == 0 else None
            return None
        hosts = [socket.inet_ntoa(each) for each in info.addresses if len(each) == 4]  # noqa: PLR2004 - IPv4
        return Address(hosts[0], info.port) if hosts and info.port else None
