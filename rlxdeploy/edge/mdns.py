"""Multicast DNS with zeroconf: ask on chosen interfaces who is there.

Each interface has a Zeroconf of its own, so that every answer is known by the link it came in on.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface
from typing import Self

from zeroconf import IPVersion, ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

from rlxdeploy.facts.mdns import SERVICES, Announced
from rlxdeploy.model.survey import Interface

# IP_MULTICAST_ALL of Linux, for which Python has no name.
_MULTICAST_ALL = 49


@dataclass(frozen=True, slots=True)
class Browsed:
    """The *answers*, and of each interface that could not be asked on the reason, by name."""

    answers: tuple[Announced, ...]
    failed: Mapping[str, str]


def browse(
    interfaces: Sequence[Interface], seconds: float, stop: threading.Event | None = None
) -> Browsed:
    """Ask for all `SERVICES` on *interfaces* and listen for so long; Ctrl-C and *stop* end early.

    An instance is told once for each interface on which it was heard; without addresses, where it
    did not say them by then.
    """
    stop = stop or threading.Event()
    listeners: list[_Listener] = []
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        for one in interfaces:
            try:
                zeroconf = stack.enter_context(_zeroconf(one))
            except OSError as error:
                failed[one.name] = error.strerror or str(error)
            else:
                listeners.append(stack.enter_context(_Listener(zeroconf, one, seconds)))
        try:
            stop.wait(seconds if listeners else 0.0)
        except KeyboardInterrupt:
            stop.set()
        return Browsed(tuple(answer for one in listeners for answer in one.answers()), failed)


class _Listener:
    """The instances heard on one interface; each is asked for its details as soon as it is."""

    def __init__(self, zeroconf: Zeroconf, interface: Interface, seconds: float) -> None:
        self._zeroconf, self._interface, self._seconds = zeroconf, interface, seconds
        self._heard: dict[tuple[str, str], ServiceInfo] = {}
        self._asked: list[Future[bool]] = []

    def answers(self) -> Iterator[Announced]:
        """Yield all that was heard by now; the records of an instance come one by one."""
        for info in tuple(self._heard.values()):
            info.load_from_cache(self._zeroconf)
            instance = info.name.removesuffix(f".{info.type}")
            addresses = tuple(info.parsed_addresses())
            yield Announced(info.type, instance, addresses, info.port or 0, self._interface.name)

    def _note(
        self, *, zeroconf: Zeroconf, service_type: str, name: str, state_change: object
    ) -> None:
        del zeroconf
        named = service_type, name
        if state_change is ServiceStateChange.Removed or named in self._heard:
            return
        self._heard[named] = info = ServiceInfo(*named)
        # A responder sends address and port along with the name; one that does not is asked for
        # them, and all of them at the same time.
        asking = info.async_request(self._zeroconf, self._seconds * 1000)
        loop = self._zeroconf.loop
        assert loop is not None  # noqa: S101 - it has called us
        self._asked.append(asyncio.run_coroutine_threadsafe(asking, loop))

    def __enter__(self) -> Self:
        self._browser = ServiceBrowser(self._zeroconf, list(SERVICES), handlers=[self._note])
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.cancel()
        for one in self._asked:
            one.cancel()


@contextmanager
def _zeroconf(interface: Interface) -> Iterator[Zeroconf]:
    addresses = [str(ip_interface(text).ip) for text in interface.addresses]
    both = any(ip_address(text).version == 6 for text in addresses)  # noqa: PLR2004 - IPv6
    zeroconf = Zeroconf(addresses, ip_version=IPVersion.All if both else IPVersion.V4Only)
    try:
        _hear_only(interface.name, zeroconf)
        yield zeroconf
    finally:
        zeroconf.close()


def _hear_only(interface: str, zeroconf: Zeroconf) -> None:
    """Keep from *zeroconf* what comes in on other links; Linux hands it to every socket else.

    Kernels before 5.7 bind a socket to an interface for root alone; others are spared the IPv4 of
    other links even there.
    """
    if sys.platform != "linux":
        return
    for reader in zeroconf.engine.readers:
        reader.sock.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)
        with suppress(PermissionError):
            reader.sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_BINDTODEVICE, f"{interface}\0".encode()
            )
