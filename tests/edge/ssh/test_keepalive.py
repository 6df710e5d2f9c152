"""Hosts that say nothing: those that are busy, and those that are gone."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rlxdeploy.edge.session import SessionLost, framed
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import SshClient
from tests.edge.ssh.conftest import HOST, Site, everything, soon
from tests.edge.ssh.server import Server, fall_silent, serving

CLIENTS = (SshClient.FABRIC, SshClient.OPENSSH)


@contextmanager
def silent(site: Site) -> Iterator[Server]:
    """Serve somebody who falls silent after a word, until the block ends."""
    over = threading.Event()
    with serving(site.folder, site.authorized, fall_silent(over)) as server:
        try:
            yield server
        finally:
            over.set()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_silent_host_is_given_up_and_a_busy_one_is_not(site: Site, client: SshClient) -> None:
    """Unanswered keepalives end a session long before its deadline; answered ones never do."""
    folder = site.folder / "busy"
    folder.mkdir()
    with serving(folder, site.authorized) as busy, silent(site) as gone:
        site.trusting(gone, busy).configured(
            f"Host target\n  HostName 127.0.0.1\n  Port {gone.port}\n  ServerAliveCountMax 2\n"
            f"Host busy\n  HostName 127.0.0.1\n  Port {busy.port}\n"
            "Host *\n  ServerAliveInterval 1\n"
        )
        with (
            site.hosts(client=client) as hosts,
            hosts.open(Host("busy", "busy"), soon()) as quiet,
            hosts.open(HOST, soon()) as session,
        ):
            quiet.send(framed("sleep 5; echo still here"), soon())
            assert everything(session, 30) == b"begun\n"
            assert session.complaints == "the connection broke: no answer to 2 keepalives in 2 s"
            heard = everything(quiet, 30)
            assert (heard, quiet.complaints) == (b"still here\n", "")


def test_a_host_that_takes_nothing_in_is_given_up(site: Site) -> None:
    """Keepalives that cannot even be sent count as unanswered, and sending says why it ended."""
    with silent(site) as gone:
        alive = "  ServerAliveInterval 1\n  ServerAliveCountMax 1\n"
        site.trusting(gone).to(gone.port, alive)
        with (
            site.hosts(client=SshClient.FABRIC) as hosts,
            hosts.open(HOST, soon()) as session,
            pytest.raises(SessionLost, match=r"target: send: .*no answer to a keepalive in 1 s"),
        ):
            session.send(bytes(64 << 20), soon(30))


@pytest.mark.parametrize(("written", "expected"), [("yes", 1), ("no", 0)])
def test_the_kernel_keeps_alive_as_configured(site: Site, written: str, expected: int) -> None:
    """TCPKeepAlive sets the socket's own keepalive, or leaves it alone."""
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port, f"  TCPKeepAlive {written}\n")
        with site.hosts(client=SshClient.FABRIC) as hosts:
            link = hosts.link(HOST, hosts.route(HOST, soon()), soon())
            line = link.line.socket  # type: ignore[attr-defined]  # a FabricLink
            assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == expected
