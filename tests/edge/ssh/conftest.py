"""What the SSH tests have in common: a folder of keys and a configuration over it."""

import time
from pathlib import Path

import pytest

from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.hosts import SshHosts
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.model.host import Host
from tests.edge.ssh.server import Server
from tests.edge.ssh.sshd import make_key, public_line

HOST = Host("target", "target")


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def everything(session: Session, seconds: float = 10.0) -> bytes:
    deadline, pieces = soon(seconds), []
    while piece := session.read(deadline):
        pieces.append(piece)
    return b"".join(pieces)


class Site:
    """A folder with one key, the file of keys that servers let in, and an SSH configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = make_key(folder / "key")
        self.authorized = folder / "authorized"
        self.authorized.write_text(f"{public_line(self.key)}\n")
        self.known = folder / "known"
        self.config = folder / "config"

    def trusting(self, *servers: Server) -> "Site":
        self.known.write_text("".join(server.known for server in servers))
        return self

    def configured(self, text: str) -> "Site":
        tail = f"Host *\n  UserKnownHostsFile {self.known}\n  GlobalKnownHostsFile none\n"
        self.config.write_text(f"{text}\n{tail}  IdentityFile {self.key}\n  User tester\n")
        return self

    def to(self, port: int, more: str = "") -> "Site":
        return self.configured(f"Host target\n  HostName 127.0.0.1\n  Port {port}\n{more}")

    def hosts(self, **overrides: object) -> SshHosts:
        return SshHosts(Overrides(config=str(self.config), **overrides))  # type: ignore[arg-type]  # a test's own words


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a site of its own, without the agent of whoever runs the tests."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return Site(tmp_path)
