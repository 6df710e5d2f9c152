"""Whole groups in one process: a thread for each rank, over memory or over real sockets."""

import itertools
import os
import random
import socket
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, TypeVar, Union

from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.exchange import Exchange
from rlxdeploy.runtime.link.memory import Hub
from rlxdeploy.runtime.node import Node

PATIENCE_S = 30.0
T = TypeVar("T")
_RANDOM = random.Random(os.getpid())  # noqa: S311 - only to keep two test runs apart
_COUNTER = itertools.count(_RANDOM.randrange(1 << 20))


class Kind(NamedTuple):
    """What a group's links are made of."""

    name: str
    topology: str
    host: Optional[str] = None
    wire: str = "rlx"


def soon_s() -> float:
    """Return how long "within a second" is: longer where more wants to run than there are cores.

    Still less than any timeout after which something would happen by itself.
    """
    return 1.0 if os.getloadavg()[0] < (os.cpu_count() or 1) else 6.0


def fresh_host() -> str:
    """Return a loopback address no other test uses at the moment."""
    number = next(_COUNTER)
    return f"127.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 254 + 1}"


def free_ports(count: int, host: str) -> List[int]:
    """Return ports of *host* that are free, outside the range the kernel dials from."""
    found: List[int] = []
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while len(found) < count:
        port = _RANDOM.randrange(20000, 32000)
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        found += [port] if port not in found else []
    return found


def free_udp_port() -> int:
    """Return a UDP port that nobody has on any address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def peers_on(host: str, world: int) -> List[str]:
    """Return free addresses for *world* ranks on *host*."""
    shown = f"[{host}]" if ":" in host else host
    return [f"{shown}:{port}" for port in free_ports(world, host)]


def dial(host: str, port: int) -> socket.socket:
    """Connect as soon as somebody listens."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port), PATIENCE_S)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"nobody listens at {host} port {port}"
            time.sleep(0.005)


def environment(
    rank: int, peers: Sequence[str], topology: str = "mesh", **more: str
) -> Dict[str, str]:
    """Return the variables of one rank of as many as there are *peers*."""
    return {
        "RANK": str(rank),
        "WORLD": str(len(peers)),
        "PEERS": ",".join(peers),
        "TOPOLOGY": topology,
        "RLX_JOIN_TIMEOUT": str(PATIENCE_S),
        # Threads that spin hold the interpreter's lock.
        "RLX_SPIN_US": "0",
        **more,
    }


def in_threads(deeds: Sequence[Callable[[], Any]]) -> List[Any]:
    """Carry out all *deeds* at once; return their results, or raise the first failure."""
    results: List[Any] = [None] * len(deeds)
    failures: List[BaseException] = []

    def work(index: int) -> None:
        try:
            results[index] = deeds[index]()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "a rank did not return"
    if failures:
        raise failures[0]
    return results


def outcome(deed: Callable[[], T]) -> Callable[[], Union[T, Exception]]:
    """Return a deed whose exception is its result."""

    def work() -> Union[T, Exception]:
        try:
            return deed()
        except Exception as error:  # noqa: BLE001 - it is what the test looks at
            return error

    return work


class Cluster:
    """The groups of all ranks."""

    def __init__(self, groups: Sequence[ProcessGroup]) -> None:
        self.groups = list(groups)

    def run(self, deed: Callable[[ProcessGroup], Any]) -> List[Any]:
        """Return what *deed* gives on every rank."""
        return in_threads([partial(deed, group) for group in self.groups])

    def outcomes(self, deed: Callable[[ProcessGroup], Any]) -> List[Any]:
        """Return what *deed* gives or raises on every rank."""
        return in_threads([outcome(partial(deed, group)) for group in self.groups])

    def close(self) -> None:
        in_threads([group.close for group in self.groups])


def start(kind: Kind, world: int, limits: Optional[Limits] = None, **more: str) -> Cluster:
    """Let *world* ranks join."""
    if kind.host is None:
        hub = Hub(world, star=kind.topology == "star")
        return Cluster([ProcessGroup(Exchange(links), timeout=PATIENCE_S) for links in hub.links()])
    host = fresh_host() if kind.host == "127" else kind.host
    peers = peers_on(host, world)
    nodes = [
        Node.from_env(
            environment(rank, peers, kind.topology, RLX_WIRE=kind.wire, **more), limits=limits
        )
        for rank in range(world)
    ]
    return Cluster(in_threads([node.timeout(PATIENCE_S).connect for node in nodes]))


MEMORY_MESH = Kind("memory-mesh", "mesh")
MEMORY_STAR = Kind("memory-star", "star")
TCP_MESH = Kind("tcp4-mesh", "mesh", "127")
TCP_STAR = Kind("tcp4-star", "star", "127")
TCP6_MESH = Kind("tcp6-mesh", "mesh", "::1")
TCP6_STAR = Kind("tcp6-star", "star", "::1")
NATIVE_MESH = Kind("native-mesh", "mesh", "127", "native")
NATIVE_STAR = Kind("native-star", "star", "127", "native")
NATIVE6_MESH = Kind("native6-mesh", "mesh", "::1", "native")
NATIVE6_STAR = Kind("native6-star", "star", "::1", "native")
KINDS = (
    MEMORY_MESH,
    MEMORY_STAR,
    TCP_MESH,
    TCP_STAR,
    TCP6_MESH,
    TCP6_STAR,
    NATIVE_MESH,
    NATIVE_STAR,
    NATIVE6_MESH,
    NATIVE6_STAR,
)
