"""What a check-up finds on surveyed hosts, rule by rule, and what it leaves alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rlxdeploy.errors import Severity
from rlxdeploy.model.checkup import Checkup
from rlxdeploy.model.survey import PREFLIGHT, Device, HostFacts, PortHolder, Survey
from rlxdeploy.resolve.checkup.examine import examine
from rlxdeploy.resolve.checkup.patient import Asked
from tests.resolve.lab import HOSTS, load, machine, survey, three

NOW = Asked(1000.0, 1003.0)
MIB = 1 << 20
ANY = "0.0.0.0"  # noqa: S104 - as a host tells it
JOB = '[job]\nwire = "rlx"\nsecurity = "none"\n'
ONE = '[[node]]\nssh = "a"\n'
PAIR = f'{ONE}[[node]]\nssh = "b"\n'

T4 = Device("cuda", "Tesla T4", 16 << 30, ident="0")
LOST = Device("cuda", "NVIDIA GPU", available=False, error="Driver/library version mismatch")


def host(*devices: Device, **changes: Any) -> HostFacts:  # noqa: ANN401 - as `machine`
    """Return host a as it is when nothing ails it, but for *changes* to its platform."""
    facts = machine("a", "10.0.0.1/24", *devices, **{"clock": 1001.0, "sudo": True, **changes})
    roomy = {"/var/lib/rlx": 9 << 30, "~/.local/share/rlx": 9 << 30, "~": 9 << 30}
    return replace(facts, hardware=replace(facts.hardware, disk_free=roomy))


def with_room(folder: str, free: int) -> HostFacts:
    facts = host()
    room = {**facts.hardware.disk_free, folder: free}
    return replace(facts, hardware=replace(facts.hardware, disk_free=room))


def held(
    address: str, port: int, rank: int | None = None, command: str = "python3 old.py"
) -> HostFacts:
    holder = PortHolder(address, port, 7, command, "old.service", rank)
    return replace(host(), holders=(holder,))


def found(text: str, *hosts: HostFacts, asked: Asked = NOW) -> Checkup:
    return examine(load(JOB + text), survey(*hosts), asked)


def lines(seen: Checkup) -> list[str]:
    return [f"{one.severity} {one.host} {one.check}: {one.what}" for one in seen.ailments]


PROCESS = ("process",)
USER = ("systemd-user", "process")
OLD = {"systemd": "241", "launches": PROCESS}
NO_SUDO = {"sudo": False, "launches": PROCESS}
SESSIONS = {**NO_SUDO, "user_manager": "in-sessions"}

# What is written below `[job]`, the host, and the begin of each line that is found.
CASES: dict[str, tuple[str, HostFacts, list[str]]] = {
    "a sound host": (ONE, host(), []),
    "root needs no sudo": (ONE, host(uid=0, user="root", sudo=False), []),
    "a profile that prints": (
        ONE,
        host(noise="Welcome"),
        ["warning a profile: the shell profile of ml prints at each command: 'Welcome'"],
    ),
    "a clock an hour ahead": (
        ONE,
        host(clock=4603.0),
        ["warning a clock: its clock is 1.0 h ahead of the controller's"],
    ),
    "a clock days behind": (
        ONE,
        host(clock=1000.0 - 3 * 86400),
        ["warning a clock: its clock is 3.0 d behind the controller's"],
    ),
    "a second more or less": (ONE, host(clock=1004.0), []),
    "the second's fraction cut off": (ONE, host(clock=998.0), []),
    "a clock that was not told": (ONE, host(clock=0.0), []),
    "sudo that asks, process launch left": (
        ONE,
        host(**NO_SUDO),
        ["warning a sudo: sudo asks ml for a password, or refuses"],
    ),
    "sudo that asks, user units left": (
        ONE,
        host(sudo=False, launches=USER),
        ["notice a sudo: sudo asks ml for a password, or refuses"],
    ),
    "sudo that asks, the system's units written": (
        f'launch = "systemd"\n{ONE}',
        host(**NO_SUDO),
        [
            "error a launch: systemd does not start a rank on a: there work process",
            "error a sudo: sudo asks ml for a password, or refuses",
        ],
    ),
    "sudo that asks, demanded": (
        f'{ONE}[ssh]\nbecome = "sudo"\n',
        host(**NO_SUDO),
        ["error a sudo: sudo -n does not make ml root on a"],
    ),
    "sudo that nobody wants": (f'{ONE}[ssh]\nbecome = "none"\n', host(**NO_SUDO), []),
    "process launch as written": (f'launch = "process"\n{ONE}', host(**NO_SUDO), []),
    "a manager that ends with the session, written": (
        f'launch = "systemd-user"\n{ONE}',
        host(**SESSIONS),
        ["error a launch: systemd-user does not start a rank on a: there work process"],
    ),
    "a manager that ends with the session": (
        f'{ONE}[ssh]\nbecome = "none"\n',
        host(**SESSIONS),
        ["notice a launch: on a process launch is taken"],
    ),
    "an old systemd": (
        ONE,
        host(**OLD),
        ["warning a systemd: systemd 241 is older than 245, and lacks what our units need"],
    ),
    "an old systemd that is wanted": (
        f'launch = "systemd-user"\n{ONE}',
        host(**OLD),
        [
            "error a launch: systemd-user does not start a rank on a: there work process",
            "error a systemd: systemd 241 is older than 245",
        ],
    ),
    "no systemd": (
        ONE,
        host(init="busybox", systemd="", launches=PROCESS),
        ["warning a systemd: its init is busybox, no systemd"],
    ),
    "no account of that name": (
        f'user = "ghost"\n{ONE}',
        host(),
        ["error a account: a has no account 'ghost'"],
    ),
    "an account without the GPU's groups": (
        f'{ONE}device = "rocm"\n',
        host(Device("rocm", "MI210", 64 << 30)),
        ["warning a account: ml on a is in neither video nor render"],
    ),
    "no numpy for the built-in node": (
        ONE,
        host(numpy=""),
        ["error a python: python3 on a (Python 3.11.2) has no numpy, which the runtime needs"],
    ),
    "no numpy for a program of one's own": (f'command = ["/bin/true"]\n{ONE}', host(numpy=""), []),
    "an old python": (
        ONE,
        host(python_version="3.8.10"),
        ["error a python: python3 on a is Python 3.8.10; the runtime needs 3.9"],
    ),
    "no python": (
        ONE,
        host(python="", python_version="", numpy="", programs={"python3": ""}),
        ["error a python: 'python3' is not on a; searched /usr/local/bin:/usr/bin"],
    ),
    "a command that is nowhere": (
        f'command = ["trainer"]\n{ONE}',
        host(programs={"python3": "/usr/bin/python3", "trainer": ""}),
        ["error a command: 'trainer' is not on a; searched /usr/local/bin:/usr/bin"],
    ),
    "an answer that did not come": (
        ONE,
        replace(host(), unanswered=("nvidia-smi",)),
        ["warning a survey: a did not say in time: nvidia-smi"],
    ),
    "a full disk below the system's tree": (
        ONE,
        with_room("/var/lib/rlx", 3 * MIB),
        ["error a disk: /var/lib/rlx has 3 MiB left"],
    ),
    "little room in a folder of the job": (
        ONE,
        with_room("/ckpt", 60 * MIB),
        ["warning a disk: /ckpt has 60 MiB left"],
    ),
    "a full disk below a tree that is not used": (ONE, with_room("~/.local/share/rlx", 0), []),
    "a full disk below the user's tree": (
        f'launch = "process"\n{ONE}',
        with_room("~/.local/share/rlx", 0),
        ["error a disk: ~/.local/share/rlx has 0 MiB left"],
    ),
    "a stranger on the rank's port": (
        ONE,
        held(ANY, 29500),
        ["error a port: port 29500 (0.0.0.0) is held by pid 7 (python3 old.py) of unit old"],
    ),
    "a stranger on the second rank's port": (
        f"{ONE}slots = 2\n",
        held("::", 29501),
        ["error a port: port 29501 (::) is held by pid 7"],
    ),
    "a stranger on the master's port": (
        ONE,
        held("10.0.0.1", 29400),
        ["warning a port: port 29400 (10.0.0.1) is held by pid 7"],
    ),
    "our own rank on its port": (ONE, held(ANY, 29500, rank=0), []),
    "a preflight on the rank's port": (
        ONE,
        held(ANY, 29500, command=f"python3 -I - {PREFLIGHT} t: apply"),
        [],
    ),
    "a stranger on another port": (ONE, held(ANY, 29501), []),
    "a broken card, and nothing else written": (
        ONE,
        host(LOST),
        ["error a device: the host's GPU is in an error state (cuda 'NVIDIA GPU': Driver/library"],
    ),
    "a broken card on a host of the processor": (
        f'{ONE}device = "cpu"\n',
        host(LOST),
        ["warning a device: cuda 'NVIDIA GPU' cannot be used: Driver/library version mismatch"],
    ),
    "a card that its driver warns of": (
        ONE,
        host(replace(T4, trouble="infoROM is corrupted at gpu 0000:0B:00.0")),
        ["warning a device: cuda 'Tesla T4' may fail: infoROM is corrupted at gpu 0000:0B:00.0"],
    ),
    "a broken card beside a good one": (
        ONE,
        host(T4, LOST),
        ["warning a device: cuda 'NVIDIA GPU' cannot be used: Driver/library version mismatch"],
    ),
    "a card that is not there": (
        f'{ONE}device = "cuda"\n',
        host(),
        ["error a device: the host has no usable cuda device (it reports cpu)"],
    ),
}


@pytest.mark.parametrize(("text", "facts", "expected"), CASES.values(), ids=CASES.keys())
def test_each_ailment_is_told_and_nothing_else(
    text: str, facts: HostFacts, expected: list[str]
) -> None:
    """Each case yields just these findings; only an error makes the hosts unsound."""
    seen = found(text, facts)
    told = lines(seen)

    assert len(told) == len(expected), told
    for line, begin in zip(told, expected, strict=True):
        assert line.startswith(begin)
    assert seen.sound == (not any(line.startswith("error") for line in expected))


def test_every_error_and_warning_says_what_to_do() -> None:
    """No finding of the table leaves a person alone, but for a launch that was written."""
    bare = [
        (name, ailment.check)
        for name, (text, facts, _) in CASES.items()
        for ailment in found(text, facts).ailments
        if not ailment.remedy and ailment.check not in ("launch", "account", "survey")
    ]

    assert bare == []


PAIRED: dict[str, tuple[Callable[[HostFacts, HostFacts], Survey], list[str]]] = {
    "alike": (survey, []),
    "a listener on loopback is in nobody's way": (
        lambda _, b: survey(held("127.0.0.1", 29500), b),
        [],
    ),
    "shorter frames on one": (
        lambda a, b: survey(a, framed(b, 1400)),
        ["warning b mtu: eth0 has MTU 1400 in 10.0.0.0/24, a (eth0) has 1500"],
    ),
    "jumbo frames on one": (
        lambda a, b: survey(framed(a, 9000), b),
        ["warning b mtu: eth0 has MTU 1500 in 10.0.0.0/24, a (eth0) has 9000"],
    ),
    "other frames in another subnet": (
        lambda a, _: survey(a, framed(machine("b", "10.9.0.2/24", clock=1001.0), 9000)),
        [],
    ),
    "a host that does not answer": (
        lambda a, _: survey(a, failed={"b": "connect to b:22: refused"}),
        ["error b reach: connect to b:22: refused"],
    ),
    "a stranger that refuses us": (
        lambda a, b: survey(a, b, failed={"10.0.0.9": "log in: permission denied"}),
        ["warning 10.0.0.9 reach: log in: permission denied"],
    ),
}


def framed(facts: HostFacts, mtu: int) -> HostFacts:
    """Return a machine whose cables take frames of *mtu*; loopback has its own."""
    faces = (one if one.kind else replace(one, mtu=mtu) for one in facts.network.interfaces)
    return replace(facts, network=replace(facts.network, interfaces=tuple(faces)))


@pytest.mark.parametrize(("seen", "expected"), PAIRED.values(), ids=PAIRED.keys())
def test_hosts_are_compared_with_one_another(
    seen: Callable[[HostFacts, HostFacts], Survey], expected: list[str]
) -> None:
    """Frames are compared within a subnet, and who was not reached is told with its reason."""
    both = host(), machine("b", "10.0.0.2/24", clock=1001.0)
    told = lines(examine(load(JOB + PAIR), seen(*both), NOW))

    assert len(told) == len(expected), told
    for line, begin in zip(told, expected, strict=True):
        assert line.startswith(begin)


def test_the_odd_one_of_three_is_named() -> None:
    """What most have is taken for right, and the one that differs is told once for all subnets."""
    odd = framed(three(clock=1001.0)[0], 9000)
    told = lines(examine(load(HOSTS), survey(odd, *three(clock=1001.0)[1:]), NOW))

    assert told == ["warning a mtu: eth0 has MTU 9000 in 10.0.0.0/24, b (eth0) has 1500"]


def test_a_stars_worker_listens_nowhere() -> None:
    """Only rank 0's ports matter in a star."""
    text = f'topology = "star"\n{PAIR}'
    holder = PortHolder(ANY, 29500, 7, "python3 old.py")
    first, second = host(), machine("b", "10.0.0.2/24", clock=1001.0)

    assert lines(found(text, first, replace(second, holders=(holder,)))) == []
    assert len(found(text, replace(first, holders=(holder,)), second).ailments) == 1


def test_a_machine_under_two_names_is_looked_at_once() -> None:
    """Two nodes of one host, written with two aliases: one machine is asked, with one ailment."""
    first = host(noise="hello")
    second = replace(first, host=replace(first.host, name="b"))

    seen = found(PAIR, first, second)

    assert [one.host for one in seen.ailments if one.check == "profile"] == ["a"]
    assert seen.hosts == ("a",)


def test_the_worst_comes_first() -> None:
    """Errors before warnings before notices, whichever host they are of."""
    seen = examine(
        load(JOB + PAIR),
        survey(
            host(noise="hello", sudo=False, launches=USER),
            machine("b", "10.0.0.2/24", clock=1001.0, numpy=""),
        ),
        NOW,
    )

    assert [one.severity for one in seen.ailments] == [
        Severity.ERROR,
        Severity.WARNING,
        Severity.NOTICE,
    ]
    assert (seen.count(Severity.ERROR), seen.sound, seen.hosts) == (1, False, ("a", "b"))
