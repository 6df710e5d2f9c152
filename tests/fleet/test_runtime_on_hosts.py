"""The runtime's own tests and examples, on the oldest and the newest Python and numpy a host has.

`make hosts-runtime` runs all of them there; among the other tests are those that depend most on
either: what goes over the wire, and what numpy makes of it.
"""

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rlxdeploy
from tests import examples
from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec
from tests.fleet.harness.tools import host_pytest

PACKAGE = Path(rlxdeploy.__file__).parent
TESTS = Path(__file__).parent.parent
HOME = "/opt/suite"
TOOLS = "/opt/pytest"
VERSIONS = "import platform as p, numpy as n; print(p.python_version() + ', numpy', n.__version__)"

# Bytes of both wires, and all collectives in memory on the one and over TCP on the other.
CORE = (
    *("tests/runtime/test_frame.py", "tests/runtime/native/test_header.py"),
    *("tests/runtime/test_conformance.py", "tests/runtime/test_collectives.py"),
    *("tests/runtime/test_golden.py", "-k"),
    "not conformance and not test_collectives or memory-mesh-3 or native-star-3",
)
CORE_S, WHOLE_S = 120.0, 1800.0


@pytest.fixture(scope="module")
def oldest_and_newest(fleet: Fleet) -> Iterator[list[Host]]:
    """Give a Debian 11 and a Debian 13 with the runtime, its tests and pytest on both."""
    tools = host_pytest(print)
    with fleet.lend(HostSpec(release="bullseye"), HostSpec(release="trixie")) as hosts:
        for host in hosts:
            shutil.copytree(tools, host.at(TOOLS))
            _carry(host.at(HOME))
        yield hosts


def _carry(there: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    for source, name in ((PACKAGE, "rlxdeploy"), (TESTS, "tests")):
        shutil.copytree(source / "runtime", there / name / "runtime", ignore=ignored)
        shutil.copy(source / "__init__.py", there / name)
    shutil.copy(TESTS / "conftest.py", there / "tests")
    # The same rules as at home: warnings are errors there, too.
    shutil.copy(TESTS.parent / "pyproject.toml", there)


def suite(host: Host, *options: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run pytest in the carried tests on *host*."""
    python = ("env", "-C", HOME, f"PYTHONPATH={HOME}:{TOOLS}", "python3", "-m", "pytest", "-q")
    return host.exec((*python, "-p", "no:cacheprovider", *options), timeout=seconds, check=False)


def passed_on(hosts: list[Host], *options: str, seconds: float) -> None:
    """Demand that the tests pass on all *hosts* at once, and that there were some."""
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda host: suite(host, *options, seconds=seconds), hosts))
    failed = ""
    for host, each in zip(hosts, done, strict=True):
        versions = host.exec(("python3", "-c", VERSIONS)).stdout.strip()
        last = each.stdout.strip().rpartition("\n")[2]
        print(f"{host.spec.release}, Python {versions}: {last}")  # noqa: T201 - the result
        if each.returncode:
            failed += f"{host.spec.release}: {each.stdout[-8000:]}{each.stderr}"
    assert not failed, failed


def test_the_wires_and_the_arithmetic_hold_on_the_oldest_and_newest_host(
    oldest_and_newest: list[Host],
) -> None:
    """Golden bytes and conformance pass under Python 3.9, numpy 1.19 and under 3.13, numpy 2."""
    passed_on(oldest_and_newest, *CORE, seconds=CORE_S)


def applied(fleet: Fleet, hosts: list[Host], name: str) -> Desk:
    """Run an example with two ranks a host, as its README says; see what it finds out."""
    desk = Desk(fleet, name)
    shutil.copytree(examples.FOLDER / name, desk.folder, dirs_exist_ok=True)
    inventory = desk.folder / "inventory.toml"
    head, _, _ = inventory.read_text().partition("[[node]]")
    nodes = [f'[[node]]\nssh = "{host.name}"\nslots = 2\n' for host in hosts]
    inventory.write_text(head.replace('launch = "process"\n', "") + "\n".join(nodes))

    said = desk.run("apply", "--yes").stdout
    assert said.count("  systemd  ") == 2 * len(hosts)
    finished = desk.json("wait", "--finished")
    said = desk.run("logs").stdout
    assert [rank["exit_status"] for rank in finished["ranks"]] == [0] * 2 * len(hosts), said
    examples.DEMANDS[name](said, 2 * len(hosts))
    return desk


def test_a_program_that_has_finished_is_left_to_rest(
    fleet: Fleet, oldest_and_newest: list[Host]
) -> None:
    """Data-parallel SGD ends with the same bits on both; a second apply starts nothing."""
    desk = applied(fleet, oldest_and_newest, "sgd")
    assert desk.json("apply", "--yes")["changed"] is False
    desk.run("destroy", "--yes")


@pytest.mark.parametrize("name", [name for name in examples.DEMANDS if name != "sgd"])
def test_an_example_finds_out_on_hosts_what_it_does_at_home(
    fleet: Fleet, oldest_and_newest: list[Host], name: str
) -> None:
    """A straggler is left out of its rounds alone, and a pipeline computes the whole network."""
    applied(fleet, oldest_and_newest, name).run("destroy", "--yes")


@pytest.mark.soak
@pytest.mark.timeout(WHOLE_S + 60, func_only=True)
def test_all_of_the_runtimes_tests_pass_on_the_oldest_and_newest_host(
    oldest_and_newest: list[Host],
) -> None:
    """The whole suite, processes, sockets and discovery included, needs nothing newer."""
    passed_on(oldest_and_newest, "-m", "not soak", "tests/runtime", seconds=WHOLE_S)
