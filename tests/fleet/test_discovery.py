"""Ranks that find one another on a real LAN: by broadcast, through a NAT, with avahi beside."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import rlxdeploy
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

PACKAGE = Path(rlxdeploy.__file__).parent
HOME = "/opt/rlx"
STAR = {"TOPOLOGY": "star"}
JOIN_S = 60.0
ADVERT = """<?xml version="1.0"?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name>a second responder</name><service>
<type>_rlx-coord._udp</type><port>{port}</port>
</service></service-group>
"""


@pytest.fixture(scope="module")
def lan(fleet: Fleet) -> Iterator[list[Host]]:
    """Give a host of each release and one behind the router, with the runtime on all."""
    with fleet.lend(3, HostSpec(place="nat")) as hosts:
        for host in hosts:
            there = host.at(f"{HOME}/rlxdeploy")
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PACKAGE / "runtime", there / "runtime", ignore=ignored)
            shutil.copy(PACKAGE / "__init__.py", there)
        yield hosts


def rank(
    host: Host, number: int, world: int, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Be one rank on *host*: join, check the group, leave."""
    variables = {
        "PYTHONPATH": HOME,
        "RANK": str(number),
        "WORLD": str(world),
        "RLX_SECURITY": "none",
        "RLX_JOIN_TIMEOUT": str(JOIN_S),
        **env,
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    argv = ("env", *words, "python3", "-m", "rlxdeploy.runtime", "--once")
    return host.exec(argv, timeout=2 * JOIN_S, check=False)


def started(
    pool: ThreadPoolExecutor, hosts: list[Host], env: Mapping[str, str]
) -> list[Future[subprocess.CompletedProcess[str]]]:
    world = len(hosts)
    return [pool.submit(rank, host, number, world, env) for number, host in enumerate(hosts)]


def assert_joined(hosts: list[Host], env: Mapping[str, str]) -> None:
    """Let a rank on each of *hosts* join, and see that every one did."""
    with ThreadPoolExecutor() as pool:
        for number, future in enumerate(started(pool, hosts, env)):
            done = future.result()
            assert done.returncode == 0, done.stderr
            assert f"joined as rank {number} of {len(hosts)}" in done.stderr


def test_a_mesh_forms_by_broadcast_over_the_bridge(lan: list[Host]) -> None:
    """Three hosts of three releases know no address, and find one another."""
    assert_joined(lan[:3], {"DISCOVER": "1"})


def test_a_job_with_a_key_finds_its_own_beside_another(lan: list[Host]) -> None:
    """Two jobs on one LAN and one port announce themselves at once; each finds its own ranks."""
    for host, key in zip(lan[:2], ("5a", "5a"), strict=True):
        host.write("/root/key", key * 32, mode=0o600)
    env = {"DISCOVER": "1", "RLX_WIRE": "native", "RLX_SECURITY": "psk", "RLX_JOB": "ours"}
    other = {**env, "RLX_JOB": "theirs", "DATA_PORT": "29700", "RLX_KEY_FILE": "/root/key"}
    with ThreadPoolExecutor() as pool:
        theirs = started(pool, lan[:2], other)
        assert_joined(lan[:2], {**env, "RLX_KEY_FILE": "/root/key"})
        assert [each.result().returncode for each in theirs] == [0, 0]


def test_a_worker_behind_a_router_finds_rank_0(lan: list[Host]) -> None:
    """It asks through address translation, and its connection comes from the router's address."""
    root, _, worker, behind = lan
    assert_joined([root, worker, behind], {**STAR, "DISCOVER": "1", "DISCOVER_HOST": root.address})


def test_a_star_forms_by_mdns_and_avahi_sees_it(lan: list[Host]) -> None:
    """Workers browse for rank 0; meanwhile avahi, on the same hosts, resolves it too."""
    for host in lan[:2]:
        host.exec(("systemctl", "start", "avahi-daemon"))
    ask = (
        *("busctl", "call", "org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server"),
        *("ResolveService", "iisssiu", "--", "-1", "-1"),
        *("coord", "_rlx-coord._udp", "local", "-1", "0"),
    )
    with ThreadPoolExecutor() as pool:
        root = pool.submit(rank, lan[0], 0, 3, {**STAR, "DISCOVER": "1"})
        seen: list[str] = []

        def unseen() -> str:
            seen[:] = lan[1].exec(ask, check=False).stdout.split()
            return "" if seen else "an answer to avahi"

        wait_until(unseen, JOIN_S)
        workers = [
            pool.submit(rank, lan[number], number, 3, {**STAR, "DISCOVER": "1"})
            for number in (1, 2)
        ]
        results = [each.result() for each in (root, *workers)]
    assert [done.returncode for done in results] == [0, 0, 0], [done.stderr for done in results]
    assert f'"{lan[0].address}"' in seen
    assert '"rlx-coord.local"' in seen
    assert "29500" in seen


def test_a_rank_0_that_avahi_announces_is_found(lan: list[Host]) -> None:
    """A worker takes whatever responder names rank 0 on the LAN, not only ours."""
    root, worker = lan[1:3]
    root.write("/etc/avahi/services/rlx.service", ADVERT.format(port=29510))
    root.exec(("systemctl", "restart", "avahi-daemon"))
    written = {**STAR, "PEERS": f"{root.address}:29510"}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(rank, root, 0, 2, written)
        second = pool.submit(rank, worker, 1, 2, {**STAR, "DISCOVER": "1"})
        results = [first.result(), second.result()]
    assert [done.returncode for done in results] == [0, 0], [done.stderr for done in results]
