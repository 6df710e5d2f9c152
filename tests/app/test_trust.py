"""Keys become known once they were agreed to, hop by hop."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from rlxdeploy.app.say import Say, nobody
from rlxdeploy.app.trust import overrides_of, trust
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.trust import NewKey
from rlxdeploy.errors import Untrusted
from tests.edge.ssh.conftest import Site
from tests.edge.ssh.conftest import site as site  # noqa: PLC0414 - the fixture, under its name
from tests.edge.ssh.server import Server, serving
from tests.edge.ssh.sshd import make_key, public_line

INNER = ("one", "two")


def silence() -> AbstractContextManager[Say]:
    """Show no progress."""
    return nullcontext(nobody)


class Asked(list[list[str]]):
    """Agrees to everything, and remembers the aliases of each round."""

    def __call__(self, keys: Sequence[NewKey]) -> None:
        self.append([new.hop.alias for new in keys])


@contextmanager
def behind_a_gate(site: Site) -> Iterator[tuple[Server, Server]]:
    """Give a jump host and, behind it, one server under two names."""
    folder = site.folder / "inner"
    folder.mkdir()
    with serving(site.folder, site.authorized) as gate, serving(folder, site.authorized) as inner:
        inside = "".join(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {inner.port}\n  HostKeyAlias {name}\n"
            "  ProxyJump gate\n"
            for name in INNER
        )
        site.configured(f"{inside}Host gate\n  HostName 127.0.0.1\n  Port {gate.port}\n")
        yield gate, inner


def over(site: Site) -> Overrides:
    return Overrides(config=str(site.config))


def test_a_hop_that_hosts_share_is_agreed_to_once(site: Site) -> None:
    """The first round is the gate's, the second that of the hosts behind it."""
    asked = Asked()
    with behind_a_gate(site) as (gate, inner):
        done = trust(INNER, over(site), asked, silence)
        again = trust(INNER, over(site), asked, silence)

    assert asked == [["gate"], ["one", "two"]]
    assert (done.trusted, done.failed) == ([*INNER], {})
    assert [added.new.hop.alias for added in done.added] == ["gate", *INNER]
    known = f"{gate.known}one {inner.host_key}\ntwo {inner.host_key}\n"
    assert site.known.read_text() == known
    assert (again.trusted, again.added) == ([*INNER], [])


def test_who_does_not_agree_leaves_everything_as_it_was(site: Site) -> None:
    """Nothing is remembered of a round that was declined, and nobody logged in."""

    def decline(_keys: Sequence[NewKey]) -> None:
        raise Untrusted("gate", "trust", "that is not its key")

    with behind_a_gate(site) as (gate, _), pytest.raises(Untrusted):
        trust(INNER, over(site), decline, silence)

    assert not site.known.exists()
    assert gate.connections == []


def test_one_hosts_failure_is_no_others(site: Site) -> None:
    """A changed key is never replaced, an unreachable host is told, and the third is trusted."""
    asked = Asked()
    with serving(site.folder, site.authorized) as server:
        other = public_line(make_key(site.folder / "other"))
        site.configured(
            f"Host target changed\n  HostName 127.0.0.1\n  Port {server.port}\n"
            "Host target\n  HostKeyAlias target\nHost changed\n  HostKeyAlias changed\n"
            "Host gone\n  HostName 127.0.0.1\n  Port 1\n"
        )
        site.known.write_text(f"changed {other}\n")
        done = trust(("changed", "gone", "target"), over(site), asked, silence)

    assert (asked, done.trusted) == ([["target"]], ["target"])
    assert {name: type(error).__name__ for name, error in done.failed.items()} == {
        "changed": "Untrusted",
        "gone": "Unreachable",
    }
    assert "has changed" in done.failed["changed"].why
    assert site.known.read_text() == f"changed {other}\ntarget {server.host_key}\n"


def test_a_key_that_is_not_found_where_it_was_put_ends_it(site: Site) -> None:
    """Somebody else empties known_hosts meanwhile: that is told, not asked about for ever."""
    rounds = []

    def agree(keys: Sequence[NewKey]) -> None:
        rounds.append([new.hop.alias for new in keys])
        site.known.unlink(missing_ok=True)

    with behind_a_gate(site):
        done = trust(INNER, over(site), agree, silence)

    assert rounds == [["gate"], [*INNER]]
    assert {*done.failed} == {*INNER}
    assert f"its key stands in {site.known} now and is not found" in done.failed["one"].why


def test_the_inventory_says_which_configuration_counts(tmp_path: Path) -> None:
    """Its [ssh] table is taken, its paths counted from its own folder."""
    path = tmp_path / "inventory.toml"
    path.write_text('[ssh]\nconfig = "lab.conf"\nport = 2222\n[[node]]\nssh = "a"\n')

    found = overrides_of(path)

    assert (found.config, found.port) == (str(tmp_path / "lab.conf"), 2222)
    assert overrides_of(None) == Overrides()
