"""The preflight's listeners and calls, over real sockets and a real Python."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rlxdeploy.edge import peerprobe
from rlxdeploy.edge.holders import holders_of
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.preflight import PreflightLimits, preflighting
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.host import Host
from rlxdeploy.model.preflight import Found, How, Link, Post, Posted, Trial
from rlxdeploy.model.resolution import Endpoint
from rlxdeploy.model.targets import Enquiry
from tests.edge.deployment import SHELLS
from tests.runtime.cluster import free_ports, fresh_host

# Deadlines that only what is silent reaches.
BRIEF = PreflightLimits(dial=1.5, answer=1.5)
PATIENCE_S = 30.0


def opener(*shell: str) -> OpenSession:
    return lambda host, _deadline: LocalSession(host, shell or ("/bin/sh",))


@pytest.fixture
def address() -> str:
    return fresh_host()


def posts(address: str, *ranks: int) -> tuple[Post, ...]:
    ports = free_ports(len(ranks), address)
    return tuple(
        Post(rank, Endpoint(address, port)) for rank, port in zip(ranks, ports, strict=True)
    )


def trial(name: str, *few: Post) -> Trial:
    return Trial(Host(name), sys.executable, few)


def link(dialler: int, listener: int, to: Endpoint, *, ours: bool = True) -> Link:
    return Link(dialler, listener, "x", "y", to, ours=ours)


def held(
    trials: Mapping[str, Trial],
    calls: Mapping[str, tuple[Link, ...]],
    opens: OpenSession | None = None,
    limits: PreflightLimits = BRIEF,
) -> tuple[Mapping[str, Posted], Mapping[Link, Found]]:
    with preflighting(trials, opens or opener(), limits) as hosts:
        return hosts.listen().required(), hosts.call(calls)


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_who_listens_proves_to_be_the_rank_that_is_meant(
    address: str, shell: tuple[str, ...]
) -> None:
    """Each host serves all its ranks, and the listener of another rank is a stranger."""
    zero, one, two = posts(address, 0, 1, 2)
    trials = {"a": trial("a", zero, one), "b": trial("b", two)}
    right = (link(2, 0, zero.at), link(2, 1, one.at))
    wrong = link(1, 0, one.at)
    posted, found = held(trials, {"b": right, "a": (wrong,)}, opener(*shell))

    assert posted == {"a": Posted(), "b": Posted()}
    assert [found[one] for one in right] == [Found(How.ANSWERED)] * 2
    assert found[wrong] == Found(How.STRANGER, "it is rank 1 of this job")


def test_ipv6_is_dialled_too() -> None:
    """An address of either family is listened on exactly."""
    (post,) = posts("::1", 0)
    to_it = link(1, 0, post.at)
    _, found = held({"a": trial("a", post), "b": trial("b")}, {"b": (to_it,)})

    assert found == {to_it: Found(How.ANSWERED)}


@contextmanager
def stranger(address: str, talk: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """Listen at *address* and *talk* to who comes."""
    with closing(socket.create_server((address, 0))) as server:

        def serve() -> None:
            guest, _ = server.accept()
            with guest:
                talk(guest)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Endpoint(address, server.getsockname()[1])
        thread.join(PATIENCE_S)


def polite(guest: socket.socket) -> None:
    guest.recv(100)
    guest.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def mute(guest: socket.socket) -> None:
    while guest.recv(100):
        pass


def curt(guest: socket.socket) -> None:
    guest.recv(100)


def echo(guest: socket.socket) -> None:
    guest.sendall(guest.recv(100))


STRANGERS = {
    "a web server": (polite, "it said 'HTTP/1.1 400 Bad Request"),
    "one that says nothing": (mute, "it took the connection and said nothing"),
    "one that hangs up": (curt, "it took the connection and said nothing"),
    "an echo": (echo, "it said 'RLX-PREFLIGHT "),
}


@pytest.mark.parametrize(("talk", "detail"), STRANGERS.values(), ids=STRANGERS)
def test_somebody_else_at_the_address_is_a_stranger(
    address: str, talk: Callable[[socket.socket], None], detail: str
) -> None:
    """Whoever does not know this run's token has not answered, and what it said is told."""
    with stranger(address, talk) as at:
        to_it = link(1, 0, at)
        _, found = held({"b": trial("b")}, {"b": (to_it,)})

    assert found[to_it].how is How.STRANGER
    assert detail in found[to_it].detail


def test_a_rank_elsewhere_need_not_prove_anything(address: str) -> None:
    """To be connected is all that is asked of whom we cannot listen for."""
    with stranger(address, mute) as at:
        to_it = link(1, 0, at, ours=False)
        _, found = held({"b": trial("b")}, {"b": (to_it,)})

    assert found == {to_it: Found(How.ANSWERED)}


def test_a_port_without_a_listener_refuses(address: str) -> None:
    """The kind says it all."""
    (port,) = free_ports(1, address)
    to_it = link(1, 0, Endpoint(address, port))
    _, found = held({"b": trial("b")}, {"b": (to_it,)})

    assert found == {to_it: Found(How.REFUSED)}


def test_a_full_queue_is_silence(address: str) -> None:
    """A connection that nobody completes ends at the deadline, and holds no other call up."""
    with socket.create_server((address, 0), backlog=0) as full, socket.socket() as first:
        first.connect(full.getsockname())
        (post,) = posts(address, 0)
        late, well = link(1, 2, Endpoint(address, full.getsockname()[1])), link(1, 0, post.at)
        _, found = held({"a": trial("a", post), "b": trial("b")}, {"b": (late, well)})

    assert found == {late: Found(How.SILENT), well: Found(How.ANSWERED)}


def test_a_place_that_cannot_be_had_is_told_with_its_rank(address: str) -> None:
    """A taken port, an address of somebody else, and those where it works; all on one host."""
    (free,) = posts(address, 0)
    with socket.create_server((address, 0)) as other:
        busy = Post(1, Endpoint(address, other.getsockname()[1]))
        # 192.0.2.0/24 is for documentation: no machine has it.
        afar = Post(2, Endpoint("192.0.2.1", 29500))
        posted, _ = held({"a": trial("a", free, busy, afar)}, {})
        holders = holders_of(Host("a"), Enquiry("j", ports=(busy.at.port,)), opener())

    assert posted["a"].failed == {
        1: Found(How.TAKEN),
        2: Found(How.DEAF, "Cannot assign requested address"),
    }
    (holder,) = holders
    assert (holder.pid, holder.blocks(address, busy.at.port)) == (os.getpid(), True)


def test_who_holds_a_port_is_nobody_where_the_host_does_not_say() -> None:
    """A host that has gone meanwhile costs the name of the holder, and nothing else."""

    def refuses(host: Host, _deadline: float) -> LocalSession:
        raise Unreachable(host.name, "connect", "refused")

    assert holders_of(Host("a"), Enquiry("j", ports=(1,)), refuses) == ()


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_host_without_python_is_bare(address: str, tmp_path: Path) -> None:
    """Neither the job's interpreter nor python3 is there: nothing is proven, nothing fails."""
    # Every host has it: long scripts come by it.
    program(tmp_path, "dd", 'exec /bin/dd "$@"')
    (post,) = posts(address, 0)
    lacking = {"a": Trial(Host("a"), "/nowhere/python3", (post,))}
    without = opener("/usr/bin/env", "-i", f"PATH={tmp_path}", "/bin/sh")
    posted, found = held(lacking, {}, without)

    assert posted == {"a": Posted(bare="it has no python3, so nobody listens or dials there")}
    assert found == {}


def test_a_python_that_does_not_run_says_why(address: str, tmp_path: Path) -> None:
    """Its last words on stderr are the reason."""
    (post,) = posts(address, 0)
    broken = program(tmp_path, "python3", "echo 'libpython3.6.so: cannot open' >&2; exit 127")
    posted, _ = held({"a": Trial(Host("a"), broken, (post,))}, {})

    assert posted["a"].bare == "its Python is of no use: libpython3.6.so: cannot open"


def test_a_host_that_dies_before_it_dials_has_not_answered(address: str, tmp_path: Path) -> None:
    """What it did not say is left out; the others' answers stand."""
    (post,) = posts(address, 0)
    mortal = program(tmp_path, "python3", f'echo $$ >{tmp_path}/pid; exec "{sys.executable}" "$@"')
    trials = {"a": trial("a", post), "b": Trial(Host("b"), mortal, ()), "c": trial("c")}
    from_b, from_c = link(1, 0, post.at), link(2, 0, post.at)
    with preflighting(trials, opener(), BRIEF) as hosts:
        assert [*hosts.listen().done.values()] == [Posted()] * 3
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        found = hosts.call({"b": (from_b,), "c": (from_c,)})

    assert found == {from_c: Found(How.ANSWERED)}


def test_a_host_that_cannot_be_reached_is_a_value() -> None:
    """Its reason comes with the others' outcomes."""

    def opens(host: Host, _deadline: float) -> LocalSession:
        if host.name == "b":
            raise Unreachable("b", "connect", "no route")
        return LocalSession(host)

    with preflighting({"a": trial("a"), "b": trial("b")}, opens, BRIEF) as hosts:
        outcomes = hosts.listen()

    assert outcomes.done == {"a": Posted()}
    assert outcomes.failed["b"].why == "no route"


def is_free(at: Endpoint) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((at.address, at.port)) != 0


def may_listen(at: Endpoint) -> bool:
    """Tell whether a plain socket gets the place; what waits for a minute would be in its way."""
    with socket.socket() as rank:
        try:
            rank.bind((at.address, at.port))
        except OSError:
            return False
        rank.listen()
        return True


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_the_port_is_free_at_once_for_a_rank(address: str) -> None:
    """After calls were answered, somebody without SO_REUSEADDR can bind it."""
    (post,) = posts(address, 0)
    to_it = link(1, 0, post.at)
    _, found = held({"a": trial("a", post), "b": trial("b")}, {"b": (to_it,)})
    assert found == {to_it: Found(How.ANSWERED)}
    until(lambda: may_listen(post.at))


def interrupted(at: Post) -> None:
    with preflighting({"a": trial("a", at)}, opener(), BRIEF) as hosts:
        hosts.listen()
        assert not is_free(at.at)
        raise KeyboardInterrupt


def test_an_interrupt_leaves_no_listener(address: str) -> None:
    """Whatever ends the block ends the probes on all hosts."""
    (post,) = posts(address, 0)
    with pytest.raises(KeyboardInterrupt):
        interrupted(post)

    until(lambda: is_free(post.at))


def test_a_listener_outlives_the_turns_of_all_hosts() -> None:
    """Where they take turns, each turn may be as slow as the deadlines let it be."""
    limits = PreflightLimits(at_once=4, opening=10.0, start=20.0)
    one, three = (limits.life(hosts) for hosts in (4, 9))
    assert three - one == int(2 * (30.0 + 2 * limits.calling))


ALONE = """\
import sys, time
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.preflight import PreflightLimits, preflighting
from rlxdeploy.model.host import Host
from rlxdeploy.model.preflight import Post, Trial
from rlxdeploy.model.resolution import Endpoint
at = Endpoint(sys.argv[1], int(sys.argv[2]))
trials = {"a": Trial(Host("a"), sys.executable, (Post(0, at),))}
opens = lambda host, _: LocalSession(host)
with preflighting(trials, opens, PreflightLimits()) as hosts:
    hosts.listen()
    print("up", flush=True)
    time.sleep(600)
"""


def test_a_killed_controller_leaves_no_listener(address: str) -> None:
    """It ends with the descriptor that its orders come by."""
    (post,) = posts(address, 0)
    argv = [sys.executable, "-c", ALONE, address, str(post.at.port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == "up\n"
        assert not is_free(post.at)
        controller.send_signal(signal.SIGKILL)
        controller.wait(PATIENCE_S)

    until(lambda: is_free(post.at))


def test_a_listener_that_nobody_ends_ends_itself(address: str) -> None:
    """A connection that is dead and was never closed holds no port for long."""
    (post,) = posts(address, 0)
    orders = {"marker": "m", "token": "t", "posts": [(0, address, post.at.port)], "life_s": 1}
    argv = ["sh", "-c", 'exec 3<&0; exec "$@" </dev/null', "sh"]
    argv += [sys.executable, "-I", peerprobe.__file__]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        probe.stdin.write(json.dumps(orders).encode() + b"\n")
        probe.stdin.flush()
        assert [probe.stdout.readline(), probe.stdout.readline()] == [b"\n", b"m ready {}\n"]

        assert probe.wait(PATIENCE_S) == -signal.SIGALRM
    assert is_free(post.at)


def test_the_probe_is_for_old_pythons() -> None:
    """Its grammar is that of Python 3.6, and it needs nothing but the standard library."""
    text = Path(peerprobe.__file__).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))

    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
    assert "__future__" not in imported
