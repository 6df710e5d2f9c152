"""Who is tried again, and who is not: only a server that hangs up before it says who it is."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from rlxdeploy.edge.session import framed
from rlxdeploy.errors import HostError
from rlxdeploy.model.vocabulary import SshClient
from tests.edge.ssh.conftest import HOST, Site, everything, soon
from tests.edge.ssh.relay import relay
from tests.edge.ssh.server import serving
from tests.edge.ssh.sshd import listening, make_key, public_line

CLIENTS = pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])


@contextmanager
def door(port: int, *turned_away: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Give a way to *port* that hangs up, with a word, on as many as there are words for.

    Beside it stand the words of all who came, b"" for those let through.
    """
    came: list[bytes] = []
    inside: list[threading.Thread] = []

    def open_to(connection: socket.socket) -> None:
        word = turned_away[len(came)] if len(came) < len(turned_away) else b""
        came.append(word)
        if word:
            with suppress(ConnectionError):
                connection.sendall(word)
            return
        inside.append(threading.Thread(target=splice, args=(connection.dup(), port)))
        inside[-1].start()

    with listening(open_to) as way:
        yield way, came
    for thread in inside:
        thread.join(10)


def splice(client: socket.socket, port: int) -> None:
    """Join *client* to a local port until either hangs up."""
    with client, socket.create_connection(("127.0.0.1", port)) as server:

        def pump(source: socket.socket, sink: socket.socket) -> None:
            with suppress(OSError):
                while piece := source.recv(65536):
                    sink.sendall(piece)
                sink.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=pump, args=(server, client))
        back.start()
        pump(client, server)
        back.join(10)


TARGET = "Host target\n  HostName 127.0.0.1\n"
WAYS = {
    "directly": f"{TARGET}  Port {{door}}\n",
    "by a jump host": f"{TARGET}  Port {{door}}\n  ProxyJump gate\n",
    "by a command": f"{TARGET}  ProxyCommand {{relay}} 127.0.0.1 {{door}}\n",
    "by an ssh": f"{TARGET}  ProxyCommand ssh -F {{config}} -W [%h]:{{door}} gate\n",
    "by an ssh itself turned away": (
        f"{TARGET}  ProxyCommand ssh -F {{config}} -W [%h]:{{port}} far\n"
    ),
}


@CLIENTS
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_who_is_turned_away_before_the_banner_comes_again(
    site: Site, client: SshClient, way: str
) -> None:
    """What MaxStartups does to a connection costs a moment, not the host, whatever the way."""
    with (
        serving(site.folder, site.authorized) as server,
        door(server.port, b"Exceeded MaxStartups\r\n") as (port, came),
    ):
        names = {"door": port, "port": server.port, "config": site.config}
        others = (
            f"Host gate\n  Hostname 127.0.0.1\n  Port {server.port}\n"
            f"Host far\n  HostName 127.0.0.1\n  Port {port}\nHost *\n  HostKeyAlias it\n"
        )
        site.configured(way.format(relay=relay(site.folder), **names) + others)
        site.known.write_text(f"it {server.host_key}\n")
        with site.hosts(client=client) as hosts, hosts.open(HOST, soon()) as session:
            session.send(framed("echo in"), soon())
            assert everything(session) == b"in\n"
    assert [bool(word) for word in came] == [True, False]


@CLIENTS
def test_who_hangs_up_after_the_banner_is_not_asked_again(site: Site, client: SshClient) -> None:
    """It has had its say: coming again would be a second attempt at the same."""
    with door(0, *[b"SSH-2.0-none\r\n"] * 9) as (port, came):
        site.trusting().to(port)
        with site.hosts(client=client) as hosts, pytest.raises(HostError):
            hosts.open(HOST, soon())
    assert len(came) == 1


@CLIENTS
def test_a_refused_login_is_not_tried_again(site: Site, client: SshClient) -> None:
    """One connection and no more, so that nobody's account is locked."""
    site.authorized.write_text(f"{public_line(make_key(site.folder / 'stranger'))}\n")
    with (
        serving(site.folder, site.authorized) as server,
        door(server.port) as (port, came),
    ):
        site.to(port, "  HostKeyAlias it\n")
        site.known.write_text(f"it {server.host_key}\n")
        with site.hosts(client=client) as hosts, pytest.raises(HostError, match="is not let in"):
            hosts.open(HOST, soon())
    assert len(came) == 1


COMMANDS = {
    "a command that fails": ("sh -c 'echo >>{tries}; echo no way >&2; exit 1'", "no way"),
    "an ssh that is not let in": (
        "sh -c 'echo >>{tries}; exec ssh -o BatchMode=yes -F {config} -W [%h]:{port} gate'",
        "tester@127.0.0.1: Permission denied",
    ),
}


@CLIENTS
@pytest.mark.parametrize(("command", "why"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_proxy_command_that_fails_is_run_once(
    site: Site, client: SshClient, command: str, why: str
) -> None:
    """Its words are the reason, and are not taken for the host's own."""
    site.authorized.write_text(f"{public_line(make_key(site.folder / 'stranger'))}\n")
    tries = site.folder / "tries"
    with serving(site.folder, site.authorized) as server:
        words = command.format(tries=tries, config=site.config, port=server.port)
        site.trusting(server).configured(
            f"{TARGET}  ProxyCommand {words}\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {server.port}\n"
        )
        with site.hosts(client=client) as hosts, pytest.raises(HostError) as failed:
            hosts.open(HOST, soon())
    assert "its ProxyCommand gave up" in failed.value.why
    assert why in failed.value.why
    assert tries.read_text() == "\n"
