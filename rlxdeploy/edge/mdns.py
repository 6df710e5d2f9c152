"""Multicast DNS with zeroconf: ask on chosen interfaces who is there."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address, ip_interface

from zeroconf import IPVersion, ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

from rlxdeploy.errors import HostError
from rlxdeploy.facts.mdns import SERVICES, Announced
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Interface

DOING = "browse by mDNS"

# A responder sends address and port along with its name; one that does not is asked for them.
_DETAILS_MS = 300
_LOOK_EVERY_S = 0.1

Named = tuple[str, str]


def browse(
    host: Host,
    interfaces: Sequence[Interface],
    seconds: float,
    stop: threading.Event | None = None,
) -> tuple[Announced, ...]:
    """Ask for all `SERVICES` on *interfaces* and listen for so long; Ctrl-C and *stop* end early.

    Raises HostError, with *host* for the machine we run on, where it cannot be asked there.
    """
    stop = stop or threading.Event()
    names: queue.SimpleQueue[Named] = queue.SimpleQueue()
    heard: dict[Named, ServiceInfo] = {}

    def note(*, zeroconf: Zeroconf, service_type: str, name: str, state_change: object) -> None:
        del zeroconf
        if state_change is not ServiceStateChange.Removed:
            names.put((service_type, name))

    with _zeroconf(host, interfaces) as zeroconf:
        browser = ServiceBrowser(zeroconf, list(SERVICES), handlers=[note])
        try:
            _listen(zeroconf, names, heard, time.monotonic() + seconds, stop)
        except KeyboardInterrupt:
            stop.set()
        finally:
            browser.cancel()
        return tuple(_announced(info, zeroconf) for info in heard.values())


@contextmanager
def _zeroconf(host: Host, interfaces: Sequence[Interface]) -> Iterator[Zeroconf]:
    addresses = [str(ip_interface(text).ip) for one in interfaces for text in one.addresses]
    both = any(ip_address(text).version == 6 for text in addresses)  # noqa: PLR2004 - IPv6
    try:
        zeroconf = Zeroconf(addresses, ip_version=IPVersion.All if both else IPVersion.V4Only)
    except OSError as error:
        raise HostError(host.name, DOING, str(error)) from error
    try:
        yield zeroconf
    finally:
        zeroconf.close()


def _listen(
    zeroconf: Zeroconf,
    names: queue.SimpleQueue[Named],
    heard: dict[Named, ServiceInfo],
    deadline: float,
    stop: threading.Event,
) -> None:
    """Note every instance, and ask those that came without port or address for them."""
    while (left := deadline - time.monotonic()) > 0 and not stop.is_set():
        try:
            named = names.get(timeout=min(left, _LOOK_EVERY_S))
        except queue.Empty:
            continue
        if named not in heard:
            heard[named] = ServiceInfo(*named)
            heard[named].request(zeroconf, min(_DETAILS_MS, left * 1000))


def _announced(info: ServiceInfo, zeroconf: Zeroconf) -> Announced:
    """Return all that was heard of one instance by now; its records come one by one."""
    info.load_from_cache(zeroconf)
    instance = info.name.removesuffix(f".{info.type}")
    return Announced(info.type, instance, tuple(info.parsed_addresses()), info.port or 0)
