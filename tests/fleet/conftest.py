"""The fixtures of the fleet tests, and what sets them apart from all others."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.harness.fleet import Fleet, Lend, running_fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.needs import unmet_need

HERE = Path(__file__).parent
TEST_S = 120.0
# Begun first, so that no long file is what everybody waits for at the end; longest first.
LONG = (
    *("test_rollback_alone", "test_rollback", "test_ssh_parity", "test_deploy_users"),
    *("test_discover", "test_cut"),
    *("test_inventories", "test_deploy", "test_become", "test_mdns", "test_preflight"),
    *("test_deploy_refused", "test_drift", "test_roles", "test_deploy_key", "test_fleet_faults"),
    *("test_runtime_on_hosts", "test_fleet_itself", "test_vanished", "test_doctor"),
)


def _turn(item: pytest.Item) -> int:
    return LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this directory, and time them without the hosts' boots before them."""
    items.sort(key=_turn)
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.fleet)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_S, func_only=True))


@pytest.fixture(scope="session")
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Give the run's fleet, without hosts at first; skip where none can stand."""
    if need := unmet_need():
        if os.environ.get("FLEET") == "required":
            pytest.fail(need)
        pytest.skip(need)
    terminal = request.config.get_terminal_writer()
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.line(f"\n{line}")

    with running_fleet(say) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def six(fleet: Fleet) -> Iterator[list[Host]]:
    """Give six hosts, two of each release, for the tests of one file to share and leave intact."""
    with fleet.lend(6) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def lingering(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release, where the manager of `nosudo` lives without a session."""
    with fleet.lend(3) as hosts:
        for host in hosts:
            host.linger("nosudo")
        yield hosts


@pytest.fixture
def hosts(fleet: Fleet) -> Iterator[Lend]:
    """Give a function that boots hosts for this one test, as `Fleet.hosts` does."""
    with ExitStack() as stack:
        yield lambda *wanted: stack.enter_context(fleet.lend(*wanted))
