"""Inventory and survey settle into one group, every choice with its reason."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from rlxdeploy.errors import CompileError, Severity, Unreachable, Unsurveyed, Untrusted
from rlxdeploy.model.silence import Silence
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import CONTROLLER, HOSTS, load, machine, settle, survey, three


def test_the_local_demo_is_four_ranks_on_loopback() -> None:
    """Slots of one local node become ranks on consecutive ports of one loopback address."""
    group = settle('[job]\nlaunch = "process"\n[[node]]\ndevice = "cpu"\nslots = 4\n')

    assert group.world == 4
    assert group.peers == tuple(f"127.0.0.1:{port}" for port in range(29500, 29504))
    assert [(seat.local_rank, seat.local_world, seat.node_rank) for seat in group.seats] == [
        (position, 4, 0) for position in range(4)
    ]
    assert {seat.host for seat in group.seats} == {"local"}
    assert str(group.master) == "127.0.0.1:29400"
    assert group.job == "lab"


def test_the_built_in_node_runs_with_the_interpreter_that_runs_us() -> None:
    """On the controller, without python written, the known interpreter is taken and said so."""
    (seat,) = settle("[[node]]\n").seats

    assert seat.argv == (CONTROLLER.interpreter, "-m", "rlxdeploy.runtime")
    assert seat.why["python"] == "unwritten: on the controller, what runs rlxdeploy"


def test_a_saved_survey_compiles_alike_on_another_controller() -> None:
    """The interpreter is the one that was surveyed, whatever runs rlxdeploy now."""
    elsewhere = settle("[[node]]\n", controller=Controller("/elsewhere/python"))

    assert elsewhere == settle("[[node]]\n")


def test_hosts_that_share_one_subnet_are_dialled_there() -> None:
    """Without an address written, the shared subnet gives them, and the default port."""
    group = settle(HOSTS, *three())

    assert group.peers == ("10.0.0.1:29500", "10.0.0.2:29500", "10.0.0.3:29500")
    assert [seat.node_rank for seat in group.seats] == [0, 1, 2]
    assert group.seats[0].why == {
        "rank": "in the order of the file",
        "node": "inventory.toml:4:3",
        "host": "inventory.toml:5:1: node[0].ssh",
        "device": "the host reports no other usable device",
        "address": "on eth0 of a, in 10.0.0.0/24, the one subnet that all 3 machines share",
        "port": "the default of network.data_port",
        "python": "unwritten: the default",
        "command": "the default of job.command",
    }


def test_in_a_star_only_rank_0_has_an_endpoint() -> None:
    """A worker's address is neither chosen nor checked, and two may have the same."""
    text = HOSTS.replace("[job]", '[job]\ntopology = "star"')
    text = text.replace('ssh = "b"', 'ssh = "b"\naddr = "192.168.0.9:1"')
    text = text.replace('ssh = "c"', 'ssh = "c"\naddr = "192.168.0.9:1"')

    group = settle(text, *three())

    assert group.peers == ("10.0.0.1:29500",)
    assert [seat.peer is None for seat in group.seats] == [False, True, True]


def test_a_standby_holds_files_and_a_draining_node_nothing() -> None:
    """Neither counts in WORLD; the standby's host stays one of the group's hosts."""
    text = HOSTS.replace('ssh = "b"', 'ssh = "b"\nrole = "standby"').replace(
        'ssh = "c"', 'ssh = "c"\nrole = "draining"'
    )

    group = settle(text, *three())

    assert [seat.host for seat in group.seats] == ["a"]
    assert list(group.hosts) == ["a", "b"]


def test_an_unmanaged_node_has_a_rank_and_nothing_else() -> None:
    """It is in PEERS, is not asked, and nothing is placed on it."""
    text = HOSTS + '[[node]]\naddr = "10.0.0.9:4000"\nmanaged = false\nname = "old"\n'

    group = settle(text, *three())

    assert group.peers[3] == "10.0.0.9:4000"
    assert not group.seats[3].managed
    assert list(group.hosts) == ["a", "b", "c"]
    assert group.on("old") == ()


def test_an_unmanaged_rank_on_loopback_shares_the_controllers_machine() -> None:
    """A foreign process beside ours counts as on this machine, so loopback stays allowed."""
    text = '[[node]]\n[[node]]\naddr = "127.0.0.1:29501"\nmanaged = false\n'

    group = settle(text)

    assert group.peers == ("127.0.0.1:29500", "127.0.0.1:29501")
    assert [seat.local_world for seat in group.seats] == [2, 2]


def test_two_names_of_one_machine_are_planned_once() -> None:
    """Same machine-id, boot-id and MAC: one host has both nodes, on consecutive ports."""
    first = machine("a", "10.0.0.1/24")
    again = replace(first, host=replace(first.host, name="b", ssh="b"))

    group = settle(HOSTS, first, again, machine("c", "10.0.0.3/24"))

    assert group.peers == ("10.0.0.1:29500", "10.0.0.1:29501", "10.0.0.3:29500")
    assert list(group.hosts) == ["a", "c"]
    assert group.merged == {"b": "a"}
    assert "b is a under another name" in " ".join(map(str, group.notices))


def test_a_copied_machine_id_alone_does_not_merge() -> None:
    """Machines cloned from one image stay two, with a notice."""
    first, second, third = three(machine_id="cloned")

    group = settle(HOSTS, first, second, third)

    assert list(group.hosts) == ["a", "b", "c"]
    assert "a and b have one machine-id" in " ".join(map(str, group.notices))


def test_a_written_host_that_does_not_answer_stops_everything() -> None:
    """Every silent host is an Unreachable in one group, which exits with 4."""
    with pytest.raises(ExceptionGroup, match="1 of 3 hosts failed") as caught:
        resolve(load(HOSTS), survey(*three()[:2], failed={"c": "timed out"}), CONTROLLER)

    (failure,) = caught.value.exceptions
    assert isinstance(failure, Unreachable)
    assert str(failure) == "c: survey: timed out"


MAY_BE_SILENT = {"min_nodes is met": 0, "one may be": 1, "all may be": inf}


@pytest.mark.parametrize("most", MAY_BE_SILENT.values(), ids=MAY_BE_SILENT.keys())
def test_a_silent_host_may_be_left_out(most: float) -> None:
    """min_nodes or the request makes the group smaller, with a warning at the node."""
    text = HOSTS if most else HOSTS.replace("[job]", "[job]\nmin_nodes = 2")
    seen = survey(*three()[:2], failed={"c": "timed out"})

    group = resolve(load(text), seen, CONTROLLER, max_silent=most)

    assert group.world == 2
    assert "c is left out: timed out" in [
        one.message for one in group.notices if one.severity is Severity.WARNING
    ]


def test_one_silent_host_more_than_may_be_stops_everything() -> None:
    """All are named, each with what it was and its remedy, and all count as not reached."""
    silent = {
        "b": Silence("Unreachable", "timed out"),
        "c": Silence("Untrusted", "its key has changed", "ask its owner"),
        "d": Silence("Refused", "root is not let in", "offer another key"),
    }
    seen = survey(*three()[:1], failed={name: str(one) for name, one in silent.items()})
    four = load(HOSTS + '[[node]]\nssh = "d"\n')
    with pytest.raises(ExceptionGroup, match="3 of 4 hosts failed") as caught:
        resolve(four, replace(seen, silent=silent), CONTROLLER, max_silent=1)

    failed = [one for one in caught.value.exceptions if isinstance(one, Unreachable)]
    assert [type(one) for one in failed] == [Unreachable, Untrusted, Unsurveyed]
    assert [str(one) for one in failed] == [
        "b: survey: timed out",
        "c: survey: its key has changed (ask its owner)",
        "d: survey: root is not let in (offer another key)",
    ]
    assert [one.remedy for one in failed] == ["", "ask its owner", "offer another key"]


def test_a_deployed_rank_keeps_its_number_when_a_host_comes_in_between() -> None:
    """A new node in the middle of the file takes the new number, and nobody moves."""
    a, b, c = three()
    a, c = (replace(one, job=machine(ranks=[rank]).job) for one, rank in ((a, 0), (c, 1)))

    group = settle(HOSTS, a, b, c)

    assert [seat.host for seat in group.seats] == ["a", "c", "b"]
    assert [seat.why["rank"] for seat in group.seats] == [
        "as deployed: deployment.json on a",
        "as deployed: deployment.json on c",
        "in the order of the file",
    ]


def test_who_moves_into_a_hole_is_told() -> None:
    """When rank 0's host leaves, the highest rank takes its number, and a notice says so."""
    text = HOSTS.replace('[[node]]\nssh = "a"\n', "")
    _, b, c = three()
    b, c = (replace(one, job=machine(ranks=[rank]).job) for one, rank in ((b, 1), (c, 2)))

    group = settle(text, b, c)

    assert [seat.host for seat in group.seats] == ["c", "b"]
    assert "rank 2 of c becomes rank 0" in " ".join(map(str, group.notices))


def test_one_machine_with_a_hole_ends_as_a_second_plan_would() -> None:
    """Numbers within a host always ascend in the file's order, whoever held which."""
    text = '[[node]]\nslots = 3\ndevice = "cpu"\n'

    group = settle(text, machine(ranks=[0, 2, 3]))

    assert [(seat.slot, seat.rank) for seat in group.seats] == [(0, 0), (1, 1), (2, 2)]


LAUNCHES = {
    "root on systemd": (
        {"user": "root", "home": "/root"},
        ("systemd", "root", "/var/lib/rlx/lab", "/run/rlx/lab/0.state"),
    ),
    "a user's manager": (
        {"launches": ("systemd-user", "process")},
        ("systemd-user", "ml", "/home/ml/.local/share/rlx/lab", "/run/user/1000/rlx/lab/0.state"),
    ),
    "a bare process without a runtime folder": (
        {"launches": ("process",), "runtime_dir": ""},
        (
            "process",
            "ml",
            "/home/ml/.local/share/rlx/lab",
            "/home/ml/.local/share/rlx/lab/run/0.state",
        ),
    ),
}


@pytest.mark.parametrize(("changes", "expected"), LAUNCHES.values(), ids=LAUNCHES.keys())
def test_auto_takes_the_first_launch_that_works(
    changes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """The launch, the owner of the environment and the folders follow from the host, and why."""
    placed = settle("[[node]]\n", machine(**changes)).hosts["local"]
    found = (placed.launch, placed.owner, placed.tree.home, placed.tree.state_file(0))

    assert found == expected
    assert placed.why["launch"].startswith("auto: the first that works on local")


COMMANDS = {
    "python is the node's own": (["python3", "t.py"], (CONTROLLER.interpreter, "t.py")),
    "a bare name is looked up": (["train", "-v"], ("/usr/bin/train", "-v")),
    "an absolute path stays": (["/srv/run"], ("/srv/run",)),
    "a relative path counts from the working directory": (
        ["./run.sh"],
        ("/home/ml/.local/share/rlx/lab/current/run.sh",),
    ),
}


@pytest.mark.parametrize(("command", "argv"), COMMANDS.values(), ids=COMMANDS.keys())
def test_the_program_becomes_an_absolute_path(command: list[str], argv: tuple[str, ...]) -> None:
    """argv[0] is settled on the host, and all other words stay as written."""
    programs = {"train": "/usr/bin/train", CONTROLLER.interpreter: CONTROLLER.interpreter}
    facts = machine(programs=programs, launches=("process",))

    assert settle(f"[job]\ncommand = {command}\n[[node]]\n", facts).seats[0].argv == argv


def test_a_program_of_its_own_needs_no_python() -> None:
    """Under systemd a host without any is fine; a supervisor is written in it."""
    text = '[job]\ncommand = ["/srv/run"]\n[[node]]\n'
    without: dict[str, Any] = {"programs": {CONTROLLER.interpreter: ""}, "python": ""}

    seat = settle(text, machine(launches=("systemd",), **without)).seats[0]
    assert (seat.python, seat.argv) == ("", ("/srv/run",))
    with pytest.raises(CompileError, match="is not on local"):
        settle(text, machine(launches=("process",), **without))


def test_layers_of_a_manual_placement_reach_the_rank() -> None:
    """Policy manual gives each rank the layers of its node, in one spelling."""
    text = '[placement]\npolicy = "manual"\n[[node]]\nlayers = " 0 : 16"\nmax_ram_gb = 44\n'

    share = settle(text).seats[0].share

    assert (share.layers, share.max_ram_gb, share.precision) == ("0:16", 44.0, "bf16")


def test_a_root_without_a_user_written_is_warned() -> None:
    """Running the ranks as root is said once for all hosts."""
    group = settle(HOSTS, *three(user="root"))

    warnings = [str(one) for one in group.notices if one.severity is Severity.WARNING]
    assert any("the ranks run as root (on a, b, c)" in one for one in warnings)
