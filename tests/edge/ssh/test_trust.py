"""Making hosts known, one hop after the other."""

import stat
from contextlib import ExitStack

import pytest

from rlxdeploy.edge.ssh.trust import next_unknown, remember
from rlxdeploy.errors import Unreachable, Untrusted
from rlxdeploy.model.vocabulary import SshClient
from tests.edge.ssh.conftest import HOST, Site, soon
from tests.edge.ssh.server import serving
from tests.edge.ssh.sshd import make_key, public_line


@pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])
def test_a_way_is_trusted_hop_by_hop(site: Site, client: SshClient) -> None:
    """Each round shows the next key without logging in there, until the host opens."""
    inner_folder = site.folder / "inner"
    inner_folder.mkdir()
    with ExitStack() as stack:
        gate = stack.enter_context(serving(site.folder, site.authorized))
        inner = stack.enter_context(serving(inner_folder, site.authorized))
        site.configured(
            f"Host target\n  HostName 127.0.0.1\n  Port {inner.port}\n  ProxyJump gate\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
        )
        with site.hosts(client=client) as hosts:
            first = next_unknown(hosts, HOST, soon())
            assert first is not None
            assert (first.hop.alias, first.key.line) == ("gate", gate.host_key)
            assert gate.connections == []
            assert remember(hosts, first) == site.known
            second = next_unknown(hosts, HOST, soon())
            assert second is not None
            assert (second.hop.alias, second.key.line) == ("target", inner.host_key)
            assert inner.connections == []
            remember(hosts, second)
            assert next_unknown(hosts, HOST, soon()) is None
            hosts.open(HOST, soon()).close()
        assert site.known.read_text() == gate.known + inner.known
        assert stat.S_IMODE(site.known.stat().st_mode) == 0o600


@pytest.mark.parametrize("client", [SshClient.FABRIC, SshClient.OPENSSH])
def test_a_hop_that_leads_nowhere_is_named(site: Site, client: SshClient) -> None:
    """Whoever is known opens the way; that nobody listens at its end is the way's failure."""
    with serving(site.folder, site.authorized) as gate:
        site.trusting(gate).configured(
            "Host target\n  HostName 127.0.0.1\n  Port 1\n  ProxyJump gate\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n"
        )
        with site.hosts(client=client) as hosts, pytest.raises(Unreachable) as beyond:
            next_unknown(hosts, HOST, soon())
    assert "gate could not open the way" in beyond.value.why


def test_names_are_hashed_where_the_configuration_says_so(site: Site) -> None:
    """The line shows no address, an unfinished line before it stays whole, and we know the host."""
    site.known.write_text("# no newline at the end")
    with serving(site.folder, site.authorized) as server:
        site.to(server.port, "  HashKnownHosts yes\n")
        with site.hosts() as hosts:
            new = next_unknown(hosts, HOST, soon())
            assert new is not None
            remember(hosts, new)
            assert next_unknown(hosts, HOST, soon()) is None
    comment, line = site.known.read_text().splitlines()
    assert comment == "# no newline at the end"
    assert line.startswith("|1|")
    assert "127.0.0.1" not in line


def test_a_changed_key_is_not_offered_as_new(site: Site) -> None:
    """Who holds another key for the host is told both, and nothing is written."""
    with serving(site.folder, site.authorized) as server:
        site.to(server.port)
        known = f"[127.0.0.1]:{server.port} {public_line(make_key(site.folder / 'other'))}\n"
        site.known.write_text(known)
        with site.hosts() as hosts, pytest.raises(Untrusted, match="has changed"):
            next_unknown(hosts, HOST, soon())
    assert site.known.read_text() == known
