"""Sessions by fabric, against a server in this process."""

import base64
import socket
import threading
import time

import pytest

from rlxdeploy.edge.session import SessionLost, framed
from rlxdeploy.errors import HostError, Refused, Unreachable, Untrusted
from rlxdeploy.facts.ssh_keys import from_public_file
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import HostKeys, SshClient
from tests.edge.ssh.conftest import HOST, Site, everything, soon
from tests.edge.ssh.relay import relay
from tests.edge.ssh.server import drop_it, serving
from tests.edge.ssh.sshd import listening, make_key, public_line


def test_a_payload_follows_the_script_byte_for_byte(site: Site) -> None:
    """Script and payload go in, output, complaints and exit status come out."""
    payload = bytes(range(256)) * 4000
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts, hosts.open(HOST, soon()) as session:
            script = f"echo hm >&2; head -c {len(payload)}; exit 3"
            session.send(framed(script) + payload, soon())

            assert everything(session) == payload
            assert session.complaints == "hm\n"
            assert session.close() == 3


def test_sessions_share_one_connection(site: Site) -> None:
    """Two sessions at once on one host log in once."""
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with (
            site.hosts() as hosts,
            hosts.open(HOST, soon()) as one,
            hosts.open(HOST, soon()) as two,
        ):
            for session in (one, two):
                session.send(framed("echo in"), soon())
            assert [everything(one), everything(two)] == [b"in\n", b"in\n"]
        assert server.connections == ["tester"]


def test_hosts_behind_a_bastion_share_its_connection(site: Site) -> None:
    """Eight hosts asked at once through one jump host log in there once."""
    names = [f"inner{number}" for number in range(8)]
    inner_folder = site.folder / "inner"
    inner_folder.mkdir()
    with (
        serving(site.folder, site.authorized) as gate,
        serving(inner_folder, site.authorized) as inner,
    ):
        inner_rule = "".join(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {inner.port}\n  HostKeyAlias {name}\n"
            for name in names
        )
        site.configured(
            f"{inner_rule}Host inner*\n  ProxyJump gate\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
        )
        site.known.write_text(gate.known + "".join(f"{name} {inner.host_key}\n" for name in names))
        answers: list[bytes] = []

        def ask(name: str) -> None:
            with hosts.open(Host(name, name), soon()) as session:
                session.send(framed("echo in"), soon())
                answers.append(everything(session))

        with site.hosts() as hosts:
            threads = [threading.Thread(target=ask, args=(name,)) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(20)
        assert answers == [b"in\n"] * 8
        assert gate.connections == ["tester"]
        assert len(inner.connections) == 8


def test_two_aliases_of_one_name_reach_their_own_servers(site: Site) -> None:
    """A ProxyCommand with `%n` leads each alias elsewhere; neither is given the other's link."""
    other = site.folder / "other"
    other.mkdir()
    with serving(site.folder, site.authorized) as one, serving(other, site.authorized) as two:
        way = f"{relay(site.folder)} 127.0.0.1 %n"
        site.configured(f"Host gpu-*\n  HostName localhost\n  ProxyCommand {way}\n")
        keys = (f"localhost {server.host_key}\n" for server in (one, two))
        site.known.write_text("".join(keys))
        with site.hosts() as hosts:
            for server in (one, two):
                alias = f"gpu-{server.port}"
                with hosts.open(Host(alias, alias), soon()) as session:
                    session.send(framed("echo in"), soon())
                    assert everything(session) == b"in\n"

        assert (one.connections, two.connections) == (["tester"], ["tester"])


def test_a_hung_command_costs_its_deadline(site: Site) -> None:
    """A read ends at its deadline, closing does not wait, and another session still works."""
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts:
            with hosts.open(HOST, soon()) as session:
                session.send(framed("echo in; exec sleep 60"), soon())
                began = time.monotonic()
                assert session.read(soon()) == b"in\n"
                with pytest.raises(TimeoutError):
                    session.read(soon(0.3))
                assert session.close() is None
                assert time.monotonic() - began < 30
            with hosts.open(HOST, soon()) as session:
                session.send(framed("echo again"), soon())
                assert everything(session) == b"again\n"


def test_who_reads_nothing_more_costs_the_deadline(site: Site) -> None:
    """A payload that the far end does not take is given up at the deadline."""
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts, hosts.open(HOST, soon()) as session:
            session.send(framed("exec sleep 60 </dev/null"), soon())
            with pytest.raises(TimeoutError):
                session.send(bytes(64 << 20), soon(1.0))


def test_output_does_not_hold_up_what_is_sent(site: Site) -> None:
    """A script that writes more than any window while we send is drained meanwhile."""
    payload = bytes(8 << 20)
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts, hosts.open(HOST, soon()) as session:
            session.send(framed("cat"), soon())
            session.send(payload, soon(30))
            arrived = b""
            while len(arrived) < len(payload):
                arrived += session.read(soon())
            assert arrived == payload


def test_a_connection_cut_midway_is_an_end_with_its_reason(site: Site) -> None:
    """After the cut a read gives the end, no exit status is made up, and sending says so."""
    with serving(site.folder, site.authorized, drop_it) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts, hosts.open(HOST, soon()) as session:
            assert everything(session) == b"begun\n"
            assert "the connection broke" in session.complaints
            with pytest.raises(SessionLost):
                session.send(b"more", soon())
            assert session.close() is None


def test_who_is_not_let_in_learns_what_was_offered(site: Site) -> None:
    """The user, each key with its fingerprint, and what the server takes stand in the error."""
    stranger = make_key(site.folder / "stranger")
    site.authorized.write_text(f"{public_line(stranger)}\n")
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port)
        with site.hosts() as hosts, pytest.raises(Refused) as refused:
            hosts.open(HOST, soon())
    assert "tester is not let in" in refused.value.why
    assert f"offered {site.key} SHA256:" in refused.value.why


def test_a_key_with_a_passphrase_is_passed_over(site: Site) -> None:
    """Nobody is asked: the error names the key and the agent as the way out."""
    locked = make_key(site.folder / "locked", passphrase="secret")  # noqa: S106  # a test's own
    with serving(site.folder, site.authorized) as server:
        site.authorized.write_text(f"{public_line(locked)}\n")
        site.trusting(server).to(server.port, f"  IdentityFile {locked}\n")
        with site.hosts() as hosts, pytest.raises(Refused) as refused:
            hosts.open(HOST, soon())
    assert f"{locked}: it wants a passphrase" in refused.value.why
    assert "ssh-add" in refused.value.remedy


def test_a_key_of_a_kind_that_fabric_cannot_use_is_passed_over(site: Site) -> None:
    """A token's key beside a plain one: the plain one is offered, and the error names both."""
    token = site.folder / "token"
    token.write_bytes(security_key())
    token.chmod(0o600)
    site.authorized.write_text(f"{public_line(make_key(site.folder / 'stranger'))}\n")
    with serving(site.folder, site.authorized) as server:
        site.trusting(server).to(server.port, f"  IdentityFile {token}\n")
        with site.hosts(client=SshClient.FABRIC) as hosts, pytest.raises(Refused) as refused:
            hosts.open(HOST, soon())
    assert f"offered {site.key} SHA256:" in refused.value.why
    assert f"passed over {token}: " in refused.value.why


def security_key() -> bytes:
    """Return the file of a key that lives in a token, as ssh-keygen writes it."""

    def string(text: bytes) -> bytes:
        return len(text).to_bytes(4, "big") + text

    kind = b"sk-ssh-ed25519@openssh.com"
    public = b"".join(map(string, (kind, bytes(32), b"ssh:")))
    head = b"openssh-key-v1\0" + b"".join(map(string, (b"none", b"none", b"")))
    body = head + (1).to_bytes(4, "big") + string(public) + string(bytes(8))
    name = b"OPENSSH PRIVATE KEY-----"
    return b"-----BEGIN " + name + b"\n" + base64.encodebytes(body) + b"-----END " + name + b"\n"


def test_an_unknown_key_shows_its_fingerprint(site: Site) -> None:
    """Nothing is sent to a stranger, and the way to trust it is named."""
    with serving(site.folder, site.authorized) as server:
        site.trusting().to(server.port)
        with site.hosts() as hosts, pytest.raises(Untrusted) as untrusted:
            hosts.open(HOST, soon())
        assert server.connections == []
    assert "is unknown: ssh-ed25519 SHA256:" in untrusted.value.why
    assert "rlxdeploy trust target" in untrusted.value.remedy


@pytest.mark.parametrize("host_keys", list(HostKeys))
def test_a_changed_key_is_never_accepted(site: Site, host_keys: HostKeys) -> None:
    """Both fingerprints and the known line's place are shown, accept-new or not."""
    other = make_key(site.folder / "other")
    with serving(site.folder, site.authorized) as server:
        site.to(server.port)
        site.known.write_text(f"# mine\n[127.0.0.1]:{server.port} {public_line(other)}\n")
        with site.hosts(host_keys=host_keys) as hosts, pytest.raises(Untrusted) as untrusted:
            hosts.open(HOST, soon())
        assert server.connections == []
    assert untrusted.value.why.count("SHA256:") == 2
    assert f"{site.known}:2" in untrusted.value.why


@pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])
def test_accept_new_remembers_whom_it_meets(site: Site, client: SshClient) -> None:
    """The first meeting is written down and noted, the second is none."""
    with serving(site.folder, site.authorized) as server:
        site.to(server.port)
        with site.hosts(host_keys=HostKeys.ACCEPT_NEW, client=client) as hosts:
            hosts.open(HOST, soon()).close()
            (noted,) = hosts.known.accepted
        assert site.known.read_text() == server.known
        public = from_public_file(server.host_key.encode())
        assert (noted.alias, noted.key, noted.file) == ("target", str(public), site.known)
        with site.hosts(host_keys=HostKeys.ACCEPT_NEW, client=client) as hosts:
            hosts.open(HOST, soon()).close()
            assert hosts.known.accepted == ()


@pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])
def test_a_key_that_cannot_be_remembered_is_not_accepted(site: Site, client: SshClient) -> None:
    """The next run would meet a stranger again."""
    site.known.mkdir()
    with serving(site.folder, site.authorized) as server:
        site.to(server.port)
        with (
            site.hosts(host_keys=HostKeys.ACCEPT_NEW, client=client) as hosts,
            pytest.raises(Unreachable, match="remember the host key"),
        ):
            hosts.open(HOST, soon())


def test_a_server_that_says_nothing_costs_the_timeout(site: Site) -> None:
    """A port that accepts and stays silent ends at connect_timeout."""
    held = []
    with listening(lambda connection: held.append(connection.dup())) as port:
        site.trusting().to(port)
        began = time.monotonic()
        with site.hosts(connect_timeout=0.5) as hosts, pytest.raises(Unreachable) as unreachable:
            hosts.open(HOST, soon())
        assert time.monotonic() - began < 10
    for connection in held:
        connection.close()
    assert "wait for the SSH banner" in unreachable.value.why


def test_a_server_that_sends_nonsense_is_out_of_reach(site: Site) -> None:
    """Algorithms that are no text: whatever is made of them, it is that host's failure alone."""
    held = []

    def babble(connection: socket.socket) -> None:
        held.append(connection.dup())
        held[-1].sendall(b"SSH-2.0-none\r\n" + packet(b"\x14" + bytes(19) + b"\x04" + b"\xff" * 4))

    with listening(babble) as port:
        site.trusting().to(port)
        with site.hosts() as hosts, pytest.raises(Unreachable) as unreachable:
            hosts.open(HOST, soon())
    for connection in held:
        connection.close()
    assert "exchange keys: it sent what nobody can read" in unreachable.value.why


def packet(payload: bytes) -> bytes:
    """Return *payload* as it goes over the wire before there are keys."""
    padding = bytes(8 + -(5 + len(payload)) % 8)
    size = 1 + len(payload) + len(padding)
    return size.to_bytes(4, "big") + bytes([len(padding)]) + payload + padding


FAILURES = {
    "nobody listens": ("Host target\n  HostName 127.0.0.1\n  Port {free}\n", "connection refused"),
    "no such name": ("Host target\n  HostName none-such.invalid\n", "does not resolve"),
    "a proxy that fails": (
        "Host target\n  ProxyCommand sh -c 'echo no way >&2; exit 1'\n",
        "its ProxyCommand gave up: no way",
    ),
    "a jump to itself": ("Host *\n  ProxyJump target\n", "jumphost loop via target"),
    "an odd word": ("Host target\n  Odd yes\n", "Bad configuration option: odd"),
}


@pytest.mark.parametrize(("config", "why"), FAILURES.values(), ids=FAILURES.keys())
def test_a_host_out_of_reach_says_why(site: Site, config: str, why: str) -> None:
    """Each way not to come through has its own words."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    site.trusting().configured(config.format(free=free))
    with site.hosts() as hosts, pytest.raises(HostError) as failed:
        hosts.open(HOST, soon())
    assert isinstance(failed.value, Unreachable)
    assert why in failed.value.why


def test_a_hop_that_fails_is_named(site: Site) -> None:
    """Who cannot be reached through a gate learns which of the two it was."""
    with serving(site.folder, site.authorized) as gate:
        site.trusting(gate).configured(
            "Host target\n  HostName 127.0.0.1\n  Port 1\n  ProxyJump gate\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
        )
        with site.hosts() as hosts, pytest.raises(Unreachable) as beyond:
            hosts.open(HOST, soon())
        site.trusting()
        with site.hosts() as hosts, pytest.raises(Untrusted) as before:
            hosts.open(HOST, soon())
    assert beyond.value.host == before.value.host == "target"
    assert "gate could not open the way" in beyond.value.why
    assert "connect to gate" in before.value.doing
