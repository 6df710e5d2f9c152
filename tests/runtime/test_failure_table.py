"""Never hanging: what every other rank gets, event by event, all ranks being processes.

A rank's process exits or is killed, `abort()`, `close()`, an exception, and a rank that finishes:
    test_whoever_works_with_a_rank_that_ends_is_told
A host vanishes:
    tests/fleet/test_vanished.py, by a link that goes down and by a power cut
A rank hangs:
    test_whoever_works_with_a_rank_that_hangs_is_told_at_the_deadline
A rank never comes:
    test_a_rank_that_never_comes_is_named_with_the_address_dialled_and_what_came_of_it
Two processes with one rank; another world, plan or version:
    test_who_does_not_belong_is_refused_on_both_ends_and_the_group_forms_without_it,
    test_a_second_process_with_a_rank_is_refused_and_the_group_forms_without_it
A port scanner, half-open and slow clients during the join:
    tests/runtime/test_strangers.py
Port in use:
    tests/runtime/test_builtin.py, test_a_taken_port_is_78_and_names_the_holder
A link lost during formation; exit codes:
    tests/runtime/test_builtin.py
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Callable, ContextManager, Dict, Iterator, NamedTuple, Sequence

import pytest

from rlxdeploy.runtime.wire.handshake import VERSION
from tests.runtime.cluster import environment, fresh_host, peers_on, soon_s
from tests.runtime.deeds import LATE_S
from tests.runtime.template import Forked, Outcome, Template

VICTIM = 1
GREETING = b"SSH-2.0-OpenSSH_9.2\r\n"


class Shape(NamedTuple):
    """Which wire, and who has links to whom."""

    wire: str
    topology: str

    @property
    def names_all_alike(self) -> bool:
        """Whether a worker of a star hears of more than rank 0: the `rlx` wire has no words."""
        return self.wire == "native" or self.topology == "mesh"


SHAPES = [Shape(*each) for each in product(("rlx", "native"), ("mesh", "star"))]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids="-".join)


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    template = Template()
    yield template
    template.close()


@pytest.fixture
def ranks(template: Template) -> Iterator[Template]:
    """Give what forks ranks; none is left after the test."""
    yield template
    template.clear()


class Group:
    """Ranks that share a list of peers."""

    def __init__(
        self, ranks: Template, shape: Shape, peers: Sequence[str], **limits: float
    ) -> None:
        self._ranks, self._shape, self.peers, self._limits = ranks, shape, list(peers), limits

    def start(self, rank: int, then: str = "close", version: int = VERSION, **more: str) -> Forked:
        """Start *rank*, which works with the others for a while and *then* does something."""
        own = {"RLX_WIRE": self._shape.wire, "RLX_PLAN": "plan", **more}
        order = {
            "env": environment(rank, self.peers, self._shape.topology, **own),
            "limits": self._limits,
            "version": version,
            "then": then,
        }
        return self._ranks.fork(order)


def told(rank: Forked) -> Outcome:
    """Wait for the end of *rank* and return how it says it ended."""
    outcome = rank.end()
    assert outcome is not None, rank.lines
    return outcome


class Ending(NamedTuple):
    """What the victim does, and what the `native` wire lets the others say of it."""

    then: str
    why: str = ""


ENDINGS = {
    "is killed": Ending("go on"),
    "exits": Ending("end"),
    "raises": Ending("fail", "it left the group: KeyError: 'planted'"),
    "aborts": Ending("abort", "it left the group: it was aborted"),
    "finishes": Ending("close", "it finished and left the group"),
}
# What the kernel tells of a connection that ends without a word.
WORDLESS = ("it closed the connection", "it reset the connection")


@every_shape
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_whoever_works_with_a_rank_that_ends_is_told(
    ranks: Template, shape: Shape, ending: Ending
) -> None:
    """Within a second all raise PeerLost with rank, address, call and reason.

    All name the same rank, except that a worker of an `rlx` star names rank 0, its only link.
    """
    group = Group(ranks, shape, peers_on(fresh_host(), 3))
    zero, victim, two = [group.start(n, ending.then if n == VICTIM else "go on") for n in range(3)]
    if not ending.why and ending.then == "go on":
        for each in (zero, victim, two):
            each.says("joined")
        victim.signal(signal.SIGKILL)
    victim.end()
    began = time.monotonic()
    said = {0: told(zero), 2: told(two)}

    assert time.monotonic() - began < soon_s()
    for rank, outcome in said.items():
        blamed = VICTIM if shape.names_all_alike or rank == 0 else 0
        assert outcome.error == "PeerLost", outcome
        assert (outcome.values["rank"], outcome.values["op"]) == (blamed, "all_reduce")
        assert f"lost rank {blamed} (127." in outcome.text
        if shape.topology == "mesh" or blamed == 0:
            assert outcome.values["address"] == group.peers[blamed]
        expected = ending.why if shape.wire == "native" and ending.why else WORDLESS
        assert outcome.values["why"].startswith(expected), outcome


@every_shape
def test_whoever_works_with_a_rank_that_hangs_is_told_at_the_deadline(
    ranks: Template, shape: Shape
) -> None:
    """All raise CollectiveTimeout with the call and whom it lacked.

    On the `native` wire that is the rank that hangs; on the other, whom each waited for.
    """
    # On a busy machine the others take their time to say whom they wait for, or to be late too.
    patience = {"farewell_s": 1.0, "lost_pause_s": 1.0}
    group = Group(ranks, shape, peers_on(fresh_host(), 3), **patience)
    others = "go on for a second"
    zero, _, two = [group.start(n, "stop" if n == VICTIM else others) for n in range(3)]
    said = [told(zero), told(two)]

    for outcome in said:
        assert outcome.error == "CollectiveTimeout", outcome
        assert (outcome.values["op"], outcome.values["seconds"]) == ("all_reduce", LATE_S)
    missing = [outcome.values["missing"] for outcome in said]
    if shape.wire == "native":
        assert missing == [[VICTIM], [VICTIM]]
    else:
        assert missing == ([[2], [VICTIM]] if shape.topology == "mesh" else [[VICTIM], [0]])


@contextmanager
def nobody() -> Iterator[str]:
    """Give an address at which nobody listens."""
    yield peers_on(fresh_host(), 1)[0]


@contextmanager
def nowhere() -> Iterator[str]:
    """Give an address to which no connection leads: loopback's own broadcast address."""
    yield "127.255.255.255:29500"


@contextmanager
def deaf() -> Iterator[str]:
    """Give an address whose host drops who dials, as a firewall does: the queue is full."""
    host = fresh_host()
    with socket.create_server((host, 0), backlog=0) as server, ExitStack() as guests:
        guests.enter_context(socket.create_connection(server.getsockname()))
        yield f"{host}:{server.getsockname()[1]}"


@contextmanager
def greeter() -> Iterator[str]:
    """Give an address at which another service answers."""
    host, over = fresh_host(), threading.Event()
    with socket.create_server((host, 0)) as server, ExitStack() as guests:
        server.settimeout(0.05)

        def greet() -> None:
            while not over.is_set():
                try:
                    guest, _ = server.accept()
                except OSError:
                    continue
                guests.enter_context(guest).sendall(GREETING)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield f"{host}:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


# Who is at the address of a rank that never comes, and what is said of it.
FATES: Dict[str, Callable[[], ContextManager[str]]] = {
    "connection refused": nobody,
    "no route to the network": nowhere,
    "it does not answer": deaf,
    "it does not speak the {wire} wire (it sent {sent})": greeter,
}
# As much of the greeting as each wire takes for a header.
SENT = {"rlx": GREETING[:13], "native": GREETING[:8]}


@pytest.mark.parametrize("wire", ["rlx", "native"])
def test_a_rank_that_never_comes_is_named_with_the_address_dialled_and_what_came_of_it(
    ranks: Template, wire: str
) -> None:
    """Refused, no route, no answer and a stranger's answer are told apart, each beside its rank."""
    own = peers_on(fresh_host(), 1)
    with ExitStack() as stack:
        others = [stack.enter_context(place()) for place in FATES.values()]
        # Ranks of the `rlx` wire dial the higher ones, those of the other the lower ones.
        peers = own + others if wire == "rlx" else others + own
        rank = peers.index(own[0])
        # Each is dialled once: at the deadline no second try is under way.
        group = Group(ranks, Shape(wire, "mesh"), peers, dial_s=0.3, redial_min_s=60)
        outcome = told(group.start(rank, RLX_JOIN_TIMEOUT="2"))

    assert (outcome.error, outcome.values["exit_code"]) == ("JoinTimeout", 75), outcome
    assert outcome.values["missing"] == {
        str(peers.index(address)): f"dialled {address}: {said}".format(
            wire=wire, sent=SENT[wire].hex()
        )
        for address, said in zip(others, FATES)
    }
    assert "within 2 s; still missing ranks " in outcome.text


class Foreign(NamedTuple):
    """How a process that says it is rank 1 differs; both ends show *here* and *there*."""

    what: str
    here: str
    there: str
    world: int = 2
    version: int = VERSION
    plan: str = "plan"


FOREIGN = [
    Foreign("world", "2", "3", world=3),
    # The plan is a digest of all that ranks must have alike, everybody's address included.
    Foreign("plan", "'plan'", "'old'", plan="old"),
    Foreign("wire version", str(VERSION), str(VERSION + 1), version=VERSION + 1),
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda foreign: foreign.what)
def test_who_does_not_belong_is_refused_on_both_ends_and_the_group_forms_without_it(
    ranks: Template, foreign: Foreign
) -> None:
    """Both say what they have and what the other has; the right rank 1 is let in afterwards."""
    peers = peers_on(fresh_host(), 3)
    shape = Shape("native", "mesh")
    group = Group(ranks, shape, peers[:2])
    zero = group.start(0)
    stranger = Group(ranks, shape, peers[: foreign.world], refused_s=0.3).start(
        1, version=foreign.version, RLX_PLAN=foreign.plan, RLX_JOIN_TIMEOUT="2"
    )
    refused = told(stranger)

    assert (refused.error, refused.values["exit_code"]) == ("IdentityMismatch", 78), refused
    assert refused.text.endswith(f"{foreign.what} here is {foreign.there}, there {foreign.here}")
    one = group.start(1)
    assert [told(rank).error for rank in (zero, one)] == ["", ""]
    noticed = f"{foreign.what} here is {foreign.here}, there {foreign.there}"
    assert any(noticed in line for line in zero.lines), zero.lines


@pytest.mark.parametrize(
    ("wire", "error", "words"),
    [
        # Whoever dials has joined there as soon as somebody listens.
        ("rlx", "PeerLost", "lost rank 0"),
        ("native", "HandshakeRefused", "rank 1 is here already"),
    ],
)
def test_a_second_process_with_a_rank_is_refused_and_the_group_forms_without_it(
    ranks: Template, wire: str, error: str, words: str
) -> None:
    """The first one stays; both ends say so, and where it is, as far as the wire has words."""
    group = Group(ranks, Shape(wire, "star"), peers_on(fresh_host(), 3), refused_s=0.3)
    zero, one = group.start(0), group.start(1)
    zero.says("joining: still missing rank 2 of 3")
    refused = told(group.start(1))
    two = group.start(2)

    assert (refused.error, words in refused.text) == (error, True), refused
    assert [told(rank).error for rank in (zero, one, two)] == ["", "", ""]
    assert any("rank 1 is here already" in line for line in zero.lines), zero.lines
