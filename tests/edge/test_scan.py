"""The scan against real listeners on loopback, where every address answers at once."""

import errno
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from ipaddress import ip_network
from pathlib import Path

import pytest

from rlxdeploy.edge.descriptors import descriptors
from rlxdeploy.edge.scan import Progress, ScanLimits, scan
from rlxdeploy.facts.sweep import Pace, Sweep, sweep
from rlxdeploy.model.survey import Network

NOWHERE = Network(())

# A process whose kernel knows no IPv6: a filter answers socket(AF_INET6) as such a kernel does.
WITHOUT_IPV6 = """
import ctypes, errno, platform, struct, sys
from ipaddress import ip_network
from rlxdeploy.edge.scan import scan
from rlxdeploy.facts.sweep import sweep
from rlxdeploy.model.survey import Network

# Load the call's number; is it socket()? Load its first argument; is it AF_INET6? Refuse or allow.
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
program = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 10),
           (0x06, 0, 0, 0x50000 | errno.EAFNOSUPPORT), (0x06, 0, 0, 0x7FFF0000)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
loaded = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(filters)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
assert libc.prctl(22, 2, loaded, 0, 0) == 0, ctypes.get_errno()  # the filter
found = scan(sweep(ip_network("fd00::/124"), Network(())))
print(found.tried, found.found, {errno.errorcode[one]: n for one, n in found.failed.items()})
"""
ALIVE = ("127.0.0.1", "127.0.0.77", "127.0.0.254")


@pytest.fixture
def port() -> Iterator[int]:
    """Give a port on which three addresses of 127.0.0.0/24 answer."""
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server((ALIVE[0], 0)))
        number: int = first.getsockname()[1]
        for address in ALIVE[1:]:
            stack.enter_context(socket.create_server((address, number)))
        yield number


def of(subnet: str) -> Sweep:
    return sweep(ip_network(subnet), NOWHERE)


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_whoever_answers_is_found(port: int) -> None:
    """Three of 254 accept, in address order with the port; the others refuse, and are counted."""
    before = open_descriptors()

    found = scan(of("127.0.0.0/24"), (port,))

    assert list(found.found.items()) == [(address, (port,)) for address in ALIVE]
    assert (found.tried, found.total, found.interrupted) == (254, 254, False)
    assert found.failed == {errno.ECONNREFUSED: 251}
    assert open_descriptors() == before


def test_each_port_that_answers_is_named(port: int) -> None:
    """With several ports, one that answers is enough, and all that do are told."""
    with socket.create_server((ALIVE[1], 0)) as second:
        other = second.getsockname()[1]
        found = scan(of("127.0.0.0/25"), (port, other))

    both = tuple(sorted((port, other)))
    assert found.found == {ALIVE[0]: (port,), ALIVE[1]: both}


def test_ipv6_is_scanned_alike() -> None:
    """The one address of a /128 is tried."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        number = server.getsockname()[1]
        assert scan(of("::1/128"), (number,)).found == {"::1": (number,)}


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the filter knows two processors"
)
def test_a_machine_without_ipv6_says_so() -> None:
    """Each address is counted as not tried, and no error of the system's comes through."""
    done = subprocess.run(
        (sys.executable, "-c", WITHOUT_IPV6), capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("15 {} {'EAFNOSUPPORT': 15}\n", "")


def test_few_descriptors_only_make_it_slower(port: int) -> None:
    """No more connects are in flight than the limit says, and nobody is missed."""
    most = 0

    def watch(_: Progress) -> None:
        nonlocal most
        most = max(most, open_descriptors())

    before = open_descriptors()
    found = scan(of("127.0.0.0/24"), (port,), ScanLimits(at_once=3), tell=watch)

    assert tuple(found.found) == ALIVE
    assert most <= before + 3 + 2  # the selector's own, and the listing's


def test_a_process_out_of_descriptors_waits_for_its_own(port: int) -> None:
    """A limit that is lower than believed is found out, and the scan goes on with what it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = max(map(int, os.listdir("/dev/fd"))) + 8  # noqa: PTH208 - numbers, not paths
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, low if os.geteuid() else hard))
    try:
        found = scan(of("127.0.0.0/24"), (port,), ScanLimits(at_once=4096))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == low
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert tuple(found.found) == ALIVE


def test_a_process_without_any_descriptor_says_so(port: int) -> None:
    """Nobody can be tried, which is counted and raises nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = max(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - numbers, not paths
    # The selector and the listing of the limit need two of their own.
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 3, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

        def fill(_: Progress) -> None:
            with suppress(OSError):
                while True:
                    stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))

        # No spare is left, and the limit stays where it is.
        found = scan(of("127.0.0.0/29"), (port,), ScanLimits(at_once=1, spare=0), tell=fill)

    assert (found.found, found.tried) == ({}, 6)
    assert found.failed == {errno.EMFILE: 6}


def test_the_soft_limit_is_lifted_for_the_scan_alone() -> None:
    """Where the hard limit lets it, there is room for all that is wanted, and it is put back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[0]), before[1]))
    try:
        with descriptors(300, 8) as room:
            assert room == 300
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(256, before[0])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_estimate_is_said_before_anything_is_tried(port: int) -> None:
    """The first word has nothing done and the time it takes; the last has all done and no time."""
    said: list[Progress] = []

    scan(
        Sweep(4, on_link=of("127.0.0.0/28").routed), (port,), ScanLimits(pace=Pace(7)), said.append
    )

    assert (said[0].done, said[0].total, said[0].found) == (0, 14, 0)
    assert said[0].left == pytest.approx(2.3, abs=0.05)
    assert (said[-1].done, said[-1].found, said[-1].left) == (14, 1, 0.0)


def test_own_links_are_paced(port: int) -> None:
    """Fourteen neighbours at seven a second take the better part of two seconds, nobody missed."""
    found = scan(Sweep(4, on_link=of("127.0.0.0/28").routed), (port,), ScanLimits(pace=Pace(7)))

    assert found.seconds == pytest.approx(2.0, abs=0.5)
    assert tuple(found.found) == ALIVE[:1]


def test_stop_gives_what_was_found_so_far(port: int) -> None:
    """A scan that is stopped says so and keeps what it has."""
    stop = threading.Event()

    def watch(now: Progress) -> None:
        if now.found:
            stop.set()

    slow = ScanLimits(pace=Pace(1))
    found = scan(Sweep(4, on_link=of("127.0.0.0/24").routed), (port,), slow, watch, stop)

    assert found.interrupted
    assert tuple(found.found) == ALIVE[:1]
    assert found.tried < found.total == 254


def test_ctrl_c_gives_what_was_found_so_far(port: int) -> None:
    """SIGINT ends the scan as a stop does; nothing is raised and nothing stays open."""
    before = open_descriptors()

    pressed = threading.Event()

    def interrupt(now: Progress) -> None:
        if now.found and not pressed.is_set():
            pressed.set()
            signal.raise_signal(signal.SIGINT)

    slow = ScanLimits(pace=Pace(1))
    found = scan(Sweep(4, on_link=of("127.0.0.0/24").routed), (port,), slow, interrupt)

    assert found.interrupted
    assert tuple(found.found) == ALIVE[:1]
    assert open_descriptors() == before


@pytest.mark.quiet
def test_a_16_takes_seconds_and_no_memory(port: int) -> None:
    """65,534 addresses are tried and answered by the machine itself, in a bounded flight."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    found = scan(of("127.0.0.0/16"), (port,))

    assert (found.tried, tuple(found.found)) == (65534, ALIVE)
    assert found.seconds < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 16 << 10
