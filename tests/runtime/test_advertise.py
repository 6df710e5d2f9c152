"""Nodes that show themselves by mDNS to whoever looks for some."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

import pytest

from rlxdeploy.runtime.errors import SettingsError
from rlxdeploy.runtime.link.mdns import NODE, available, shut
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.settings import Settings
from tests.runtime.cluster import free_ports, free_udp_port, fresh_host, in_threads

pytestmark = pytest.mark.skipif(not available(), reason="this Python has no zeroconf")

WAIT_S = 15.0
Shown = Tuple[str, int]


class Looking:
    """Who is shown on one address now, as a browser there sees it."""

    def __init__(self, host: str) -> None:
        from zeroconf import ServiceBrowser, Zeroconf  # noqa: PLC0415 - skipped without it

        self.seen: Dict[str, Optional[Shown]] = {}
        self._news = threading.Condition()
        self._zeroconf = Zeroconf(interfaces=[host])
        self._browser = ServiceBrowser(self._zeroconf, NODE, handlers=[self._changed])

    def _changed(self, *, name: str, state_change: object, **_more: object) -> None:
        gone = "Removed" in str(state_change)
        info = None if gone else self._zeroconf.get_service_info(NODE, name, 3000)
        with self._news:
            if gone:
                self.seen.pop(name, None)
            else:
                address = info.parsed_addresses()[0] if info else ""
                self.seen[name] = (address, info.port or 0) if info else None
            self._news.notify_all()

    def wait_for(self, names: List[str]) -> Dict[str, Optional[Shown]]:
        """Return what is seen once exactly *names* are, or at the deadline."""
        deadline = time.monotonic() + WAIT_S
        with self._news:
            self._news.wait_for(
                lambda: sorted(self.seen) == names, max(0.0, deadline - time.monotonic())
            )
            return dict(self.seen)

    def close(self) -> None:
        self._browser.cancel()
        shut(self._zeroconf)


def written(host: str, ports: List[int]) -> Dict[str, str]:
    return {"PEERS": ",".join(f"{host}:{port}" for port in ports)}


def to_be_found(host: str, ports: List[int]) -> Dict[str, str]:
    ports[1] = ports[0] + 1
    return {
        "DISCOVER": "1",
        "DISC_PORT": str(free_udp_port()),
        "DATA_PORT": str(ports[0]),
        "RLX_BIND": host,
    }


@pytest.mark.parametrize("way", [written, to_be_found])
def test_a_group_is_shown_while_it_lives(way: Callable[[str, List[int]], Dict[str, str]]) -> None:
    """Every rank by job and number, at its own address and port; afterwards nobody is."""
    host = fresh_host()
    ports = free_ports(2, host)
    both = {"WORLD": "2", "RLX_JOB": "demo", "RLX_ADVERTISE": "1", **way(host, ports)}
    nodes = [Node.from_env({**both, "RANK": str(rank)}) for rank in (0, 1)]
    looking = Looking(host)
    try:
        groups = in_threads([node.connect for node in nodes])
        names = [f"demo-{rank}.{NODE}" for rank in (0, 1)]
        assert looking.wait_for(names) == {name: (host, port) for name, port in zip(names, ports)}
        in_threads([group.close for group in groups])
        assert looking.wait_for([]) == {}
    finally:
        looking.close()


def test_nobody_is_shown_unasked() -> None:
    """Without the variable, and with 0, not even zeroconf is loaded."""
    assert not Settings.from_env({}).advertise
    assert not Settings.from_env({"RLX_ADVERTISE": "0"}).advertise
    with pytest.raises(SettingsError, match="RLX_ADVERTISE"):
        Settings.from_env({"RLX_ADVERTISE": "maybe"})


def test_a_host_without_zeroconf_says_so_once_and_runs(tmp_path: Path) -> None:
    """To be seen is no condition for the group."""
    import subprocess  # noqa: PLC0415 - this test alone starts a process

    (tmp_path / "zeroconf.py").write_text("raise ImportError\n", encoding="ascii")
    root = str(Path(__file__).resolve().parents[2])
    ran = subprocess.run(
        [sys.executable, "-m", "rlxdeploy.runtime", "--once"],
        env={"PYTHONPATH": f"{tmp_path}:{root}", "RLX_ADVERTISE": "1", "RLX_JOB": "demo"},
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("zeroconf is not installed") == 1
