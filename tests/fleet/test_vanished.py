"""What the other ranks get when a host is gone for good, and when one only says nothing for long.

On three hosts stand four groups at once, one for each wire and topology: what happens to the host
of rank 1 happens to rank 1 of each.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

import rlxdeploy
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.vanishing import VICTIM

PACKAGE = Path(rlxdeploy.__file__).parent
PROGRAM = Path(__file__).with_name("vanishing.py")
HOME = "/opt/rlx"
JOIN_S = 60.0
PEER_TIMEOUT_S = 5
# From the error in a rank to the end of its process as it is seen here, on a busy machine.
ENDING_S = 5.0


class Group(NamedTuple):
    """One of the groups; *base* is the port of all its ranks."""

    wire: str
    topology: str
    base: int

    def __str__(self) -> str:
        return f"{self.wire}-{self.topology}"

    @property
    def blamed(self) -> list[int]:
        """Whom ranks 0 and 2 name: a worker of an `rlx` star has heard of rank 0 alone."""
        return [VICTIM, 0 if (self.wire, self.topology) == ("rlx", "star") else VICTIM]


GROUPS = [
    Group(wire, topology, 29500 + number)
    for number, (wire, topology) in enumerate(product(("rlx", "native"), ("mesh", "star")))
]


class Last(NamedTuple):
    """The last words of a rank, and when they came."""

    words: str
    at: float


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give a host of each release with the runtime and the program."""
    with fleet.lend(3) as hosts:
        for host in hosts:
            there = host.at(f"{HOME}/rlxdeploy")
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PACKAGE / "runtime", there / "runtime", ignore=ignored)
            shutil.copy(PACKAGE / "__init__.py", there)
            shutil.copy(PROGRAM, host.at(HOME))
        yield hosts


def be_rank(hosts: list[Host], group: Group, rank: int, deed: str, timeout: int) -> Last:
    """Be *rank* of *group* on its host, to the end."""
    variables = {
        "PYTHONPATH": HOME,
        "RANK": rank,
        "WORLD": len(hosts),
        "PEERS": ",".join(f"{host.address}:{group.base}" for host in hosts),
        "TOPOLOGY": group.topology,
        "RLX_WIRE": group.wire,
        "RLX_SECURITY": "none",
        "RLX_PEER_TIMEOUT": timeout,
        "RLX_JOIN_TIMEOUT": JOIN_S,
        # Twelve ranks share the machine: whoever spins keeps the others waiting.
        "RLX_SPIN_US": 0,
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    # What enters the host's namespaces for us would stop with a child that is stopped, for good.
    apart = ("sh", "-c", '"$@"; exit $?', "sh")
    argv = (*apart, "env", *words, "python3", f"{HOME}/vanishing.py", deed, mark(group, deed))
    done = hosts[rank].exec(argv, timeout=2 * JOIN_S, check=False)
    return Last(done.stdout.strip() or done.stderr, time.monotonic())


def mark(group: Group, deed: str) -> str:
    return f"{HOME}/{group}-{deed}"


def not_there(hosts: list[Host], deed: str) -> str:
    lacking = [
        f"{group} on {host.name}"
        for group, host in product(GROUPS, hosts)
        if not host.at(mark(group, deed)).exists()
    ]
    return ", ".join(lacking)


class Ranks:
    """All ranks of all groups, on their way."""

    def __init__(
        self, pool: ThreadPoolExecutor, hosts: list[Host], deeds: list[str], timeout: int
    ) -> None:
        self._last: dict[Group, list[Future[Last]]] = {
            group: [pool.submit(be_rank, hosts, group, rank, deed, timeout) for rank in range(3)]
            for group, deed in zip(GROUPS, deeds, strict=True)
        }

    def last(self, group: Group) -> list[Last]:
        return [each.result() for each in self._last[group]]


def lost_by(hosts: list[Host], deed: str, fate: Callable[[], None]) -> None:
    """Do *deed* everywhere, let *fate* strike, and demand that all name the lost one in time."""
    with ThreadPoolExecutor(3 * len(GROUPS)) as pool:
        ranks = Ranks(pool, hosts, [deed] * len(GROUPS), PEER_TIMEOUT_S)
        wait_until(partial(not_there, hosts, deed), JOIN_S)
        struck = time.monotonic()
        fate()
        for group in GROUPS:
            zero, _, two = ranks.last(group)
            assert [zero.words, two.words] == [str(rank) for rank in group.blamed], group
            assert max(zero.at, two.at) - struck < PEER_TIMEOUT_S + ENDING_S, group


def test_a_rank_that_says_nothing_for_long_is_not_lost(three: list[Host]) -> None:
    """Whether it computes or is stopped, its host answers for it: in the end all are done."""
    with ThreadPoolExecutor(3 * len(GROUPS)) as pool:
        ranks = Ranks(pool, three, ["compute", "stopped", "stopped", "compute"], 2)
        for group in GROUPS:
            assert [each.words for each in ranks.last(group)] == ["done"] * 3, group


def test_a_host_whose_link_goes_down_is_lost_in_time(three: list[Host]) -> None:
    """In the middle of collectives: data is under way that nobody answers for."""
    try:
        lost_by(three, "reduce_on", three[VICTIM].partition)
    finally:
        three[VICTIM].heal()


def test_a_host_whose_power_is_cut_is_lost_in_time(three: list[Host]) -> None:
    """While nobody says anything: the kernel asks, and nobody answers."""
    lost_by(three, "idle", three[VICTIM].power_cut)
