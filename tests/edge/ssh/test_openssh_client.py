"""The OpenSSH client behind the same sessions, and when it is taken."""

import base64
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rlxdeploy.edge.session import framed
from rlxdeploy.edge.ssh.known_hosts import KnownHosts
from rlxdeploy.edge.ssh.needs import reasons
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.route import resolve
from rlxdeploy.errors import HostError, Refused, Unreachable, Untrusted
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import HostKeys, SshClient
from tests.edge.ssh.conftest import HOST, Site, everything, soon
from tests.edge.ssh.server import Server, serving
from tests.edge.ssh.sshd import make_key, public_line

OPENSSH = {"client": SshClient.OPENSSH}


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    """Serve for one test, trusted and configured as `target`."""
    with serving(site.folder, site.authorized) as running:
        site.trusting(running).to(running.port)
        yield running


def test_sessions_go_through_one_master(site: Site, server: Server) -> None:
    """Payload, complaints and exit status pass, and a second session logs in no more."""
    payload = bytes(range(256)) * 4000
    with site.hosts(**OPENSSH) as hosts:
        with hosts.open(HOST, soon()) as session:
            script = f"echo hm >&2; head -c {len(payload)}; exit 3"
            session.send(framed(script) + payload, soon())
            assert everything(session) == payload
            assert session.complaints == "hm\n"
            assert session.close() == 3
        with hosts.open(HOST, soon()) as session:
            session.send(framed("echo again"), soon())
            assert everything(session) == b"again\n"
    assert server.connections == ["tester"]


def test_hosts_behind_a_bastion_share_its_master(site: Site) -> None:
    """Two hosts through one jump host log in there once."""
    inner_folder = site.folder / "inner"
    inner_folder.mkdir()
    with ExitStack() as stack:
        gate = stack.enter_context(serving(site.folder, site.authorized))
        inner = stack.enter_context(serving(inner_folder, site.authorized))
        site.trusting(gate, inner).configured(
            f"Host a b\n  HostName 127.0.0.1\n  Port {inner.port}\n  ProxyJump gate\n"
            "  ProxyUseFdpass yes\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
            "Host b\n  HostKeyAlias b\n"
        )
        site.known.write_text(f"{site.known.read_text()}b {inner.host_key}\n")
        with site.hosts(**OPENSSH) as hosts:
            for name in "ab":
                with hosts.open(Host(name, name), soon()) as session:
                    session.send(framed("echo in"), soon())
                    assert everything(session) == b"in\n"
        assert (gate.connections, inner.connections) == (["tester"], ["tester", "tester"])


def test_a_bastion_that_one_host_needs_openssh_behind_is_reached_by_openssh_alone(
    site: Site,
) -> None:
    """The plain host is expected first, and both come through one login; the choice says why."""
    inner_folder = site.folder / "inner"
    inner_folder.mkdir()
    (site.folder / "revoked").touch()
    with ExitStack() as stack:
        gate = stack.enter_context(serving(site.folder, site.authorized))
        inner = stack.enter_context(serving(inner_folder, site.authorized))
        site.trusting(gate, inner).configured(
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
            f"Host plain choosy far\n  HostName 127.0.0.1\n  Port {inner.port}\n"
            "Host plain choosy\n  ProxyJump gate\nHost plain\n  HostKeyAlias plain\n"
            f"Host choosy\n  HostKeyAlias choosy\n  RevokedHostKeys {site.folder}/revoked\n"
        )
        site.known.write_text(f"{site.known.read_text()}plain,choosy {inner.host_key}\n")
        names = ["gate", "plain", "choosy", "far"]
        with site.hosts() as hosts:
            hosts.expect(Host(name, name) for name in names)
            for name in names:
                with hosts.open(Host(name, name), soon()) as session:
                    session.send(framed("echo in"), soon())
                    assert everything(session) == b"in\n"
            assert hosts.by_openssh == {
                "gate": "with openssh (gate is shared with choosy, which needs it)",
                "plain": "with openssh (gate is shared with choosy, which needs it)",
                "choosy": "with openssh (choosy: revokedhostkeys)",
            }
        assert (gate.connections, inner.connections) == (["tester"], ["tester"] * 3)


def test_a_lost_master_is_not_worked_around(site: Site, server: Server) -> None:
    """A session whose master has died ends; the next one connects anew, by our rules."""
    with site.hosts(**OPENSSH) as hosts:
        with hosts.open(HOST, soon()) as session:
            session.send(framed("echo in; exec sleep 60"), soon())
            assert session.read(soon()) == b"in\n"
            link = hosts.link(HOST, hosts.route(HOST, soon()), soon())
            os.kill(link.process.pid, signal.SIGKILL)  # type: ignore[attr-defined]  # a MasterLink
            assert everything(session) == b""
            why = "the connection broke: the OpenSSH client ended without a word"
            assert session.complaints == why
        with hosts.open(HOST, soon()) as session:
            session.send(framed("echo again"), soon())
            assert everything(session) == b"again\n"
    assert server.connections == ["tester", "tester"]


def test_an_unknown_key_shows_its_fingerprint(site: Site, server: Server) -> None:
    """The same error as fabric's, and nobody logs in."""
    site.trusting()
    for client in (SshClient.OPENSSH, SshClient.FABRIC):
        with site.hosts(client=client) as hosts, pytest.raises(Untrusted) as untrusted:
            hosts.open(HOST, soon())
        assert "is unknown: ssh-ed25519 SHA256:" in untrusted.value.why
    assert server.connections == []


def test_a_changed_key_shows_both_fingerprints(site: Site, server: Server) -> None:
    """The same error as fabric's, with the place of the known line."""
    other = make_key(site.folder / "other")
    site.known.write_text(f"[127.0.0.1]:{server.port} {public_line(other)}\n")
    whys = []
    for client in (SshClient.OPENSSH, SshClient.FABRIC):
        with (
            site.hosts(client=client, host_keys=HostKeys.ACCEPT_NEW) as hosts,
            pytest.raises(Untrusted) as untrusted,
        ):
            hosts.open(HOST, soon())
        whys.append(untrusted.value.why)
    assert whys[0] == whys[1]
    assert whys[0].count("SHA256:") == 2
    assert f"{site.known}:1" in whys[0]


def test_who_is_not_let_in_learns_what_was_offered(site: Site, server: Server) -> None:
    """The keys that the real ssh offered stand in the error."""
    del server
    site.authorized.write_text(f"{public_line(make_key(site.folder / 'stranger'))}\n")
    with site.hosts(**OPENSSH) as hosts, pytest.raises(Refused) as refused:
        hosts.open(HOST, soon())
    assert "tester is not let in" in refused.value.why
    assert f"offered {site.key} ED25519 SHA256:" in refused.value.why


FAILURES = {
    "nobody listens": ("Host target\n  HostName 127.0.0.1\n  Port 1\n", "Connection refused"),
    "no such name": ("Host target\n  HostName none-such.invalid\n", "Name or service not known"),
    "a proxy that fails": (
        "Host target\n  ProxyCommand sh -c 'echo no way >&2; exit 1'\n",
        "its ProxyCommand gave up",
    ),
}


@pytest.mark.parametrize(("config", "why"), FAILURES.values(), ids=FAILURES.keys())
def test_a_host_out_of_reach_says_why(site: Site, config: str, why: str) -> None:
    """In ssh's words, as our class."""
    site.trusting().configured(config)
    with site.hosts(**OPENSSH) as hosts, pytest.raises(HostError) as failed:
        hosts.open(HOST, soon())
    assert isinstance(failed.value, Unreachable)
    assert why in failed.value.why


def test_a_host_certificate_is_taken_by_auto(site: Site) -> None:
    """A known authority is enough for a host that has never been met, and the choice says so."""
    authority = make_key(site.folder / "authority")
    make_key(site.folder / "server-host")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-h", "-I", "it", "-n", "target"]
    subprocess.run([*sign, str(site.folder / "server-host.pub")], check=True)
    with serving(site.folder, site.authorized) as server:
        site.to(server.port, "  HostKeyAlias target\n")
        site.known.write_text(f"@cert-authority target {public_line(authority)}\n")
        with site.hosts() as hosts:
            assert "a host certificate" in str(hosts.client_of(HOST, soon()))
            with hosts.open(HOST, soon()) as session:
                session.send(framed("echo in"), soon())
                assert everything(session) == b"in\n"


NEEDS = {
    "a plain host": ("", ()),
    "PKCS#11": ("PKCS11Provider /lib/x.so", ("pkcs11provider",)),
    "host-based": ("HostbasedAuthentication yes", ("hostbasedauthentication",)),
    "a certificate file": ("CertificateFile /c-cert.pub", ("a user certificate",)),
    "revoked keys": ("RevokedHostKeys /r", ("revokedhostkeys",)),
    "ciphers that fabric lacks": (
        "Ciphers chacha20-poly1305@openssh.com",
        ("ciphers chacha20-poly1305@openssh.com",),
    ),
    "key exchanges that fabric lacks": (
        "KexAlgorithms sntrup761x25519-sha512@openssh.com",
        ("kexalgorithms sntrup761x25519-sha512@openssh.com",),
    ),
    "a command that knows hosts": ("KnownHostsCommand /bin/k", ("knownhostscommand",)),
    "large RSA keys alone": ("RequiredRSASize 4096", ("requiredrsasize",)),
    "host keys from the DNS": ("VerifyHostKeyDNS yes", ("verifyhostkeydns",)),
    "an interface to leave by": ("BindInterface lo", ("bindinterface",)),
    "a descriptor from the command": (
        "ProxyCommand /bin/p\n  ProxyUseFdpass yes",
        ("proxyusefdpass",),
    ),
    "a token that only ssh can tell": ("IdentityFile /keys/%C", ("the token %C",)),
    "GSSAPI without a ticket": ("GSSAPIAuthentication yes", ()),
    "a security key": ("IdentityFile {folder}/sk", ("a security key",)),
}


def security_key(path: Path) -> None:
    """Write the public part of a key that lives in a token, which no machine can make."""
    kind = b"sk-ssh-ed25519@openssh.com"
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (kind, bytes(32), b"ssh:"))
    path.write_text(f"{kind.decode()} {base64.b64encode(blob).decode()}\n")


@pytest.mark.parametrize(("config", "expected"), NEEDS.values(), ids=NEEDS.keys())
def test_what_fabric_cannot_do_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, config: str, expected: tuple[str, ...]
) -> None:
    """Each thing that paramiko lacks is a reason, and nothing else is."""
    monkeypatch.setenv("KRB5CCNAME", str(site.folder / "none-such"))
    security_key(site.folder / "sk.pub")
    written = config.format(folder=site.folder)
    site.trusting().configured(f"Host target\n  {written}\n" if config else "")
    (hop,) = resolve("target", "target", Overrides(config=str(site.config)), soon())

    assert tuple(reasons(hop, KnownHosts())) == expected


def test_a_kerberos_ticket_is_a_reason_where_it_may_be_used(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With GSSAPI on and a ticket there, ssh would log in by it."""
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{site.key}")
    site.trusting().configured("Host target\n  GSSAPIAuthentication yes\n")
    (hop,) = resolve("target", "target", Overrides(config=str(site.config)), soon())

    assert tuple(reasons(hop, KnownHosts())) == (
        "gssapiauthentication, and there is a Kerberos ticket",
    )


def test_a_silent_server_costs_the_timeout(site: Site, tmp_path: Path) -> None:
    """No master is left behind where no answer comes."""
    del tmp_path
    site.trusting().configured("Host target\n  ProxyCommand sleep 60\n")
    began = time.monotonic()
    with site.hosts(connect_timeout=1.0, **OPENSSH) as hosts, pytest.raises(Unreachable):
        hosts.open(HOST, soon())
    assert time.monotonic() - began < 9
