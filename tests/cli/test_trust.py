"""`trust` on the command line: fingerprints, the question, known_hosts, and the documents."""

from collections.abc import Iterator

import pytest

from tests.cli.desk import Desk
from tests.cli.test_command_line import on_a_terminal
from tests.edge.ssh.conftest import Site
from tests.edge.ssh.conftest import site as site  # noqa: PLC0414 - the fixture, under its name
from tests.edge.ssh.server import Server, serving
from tests.edge.ssh.sshd import make_key, public_line

INVENTORY = '[ssh]\nconfig = "ssh_config"\n[[node]]\nssh = "target"\n'


@pytest.fixture
def server(desk: Desk, site: Site) -> Iterator[Server]:
    """A server that the inventory's SSH configuration calls `target`, and nobody knows."""
    with serving(site.folder, site.authorized) as server:
        site.to(server.port)
        (desk.lab / "ssh_config").write_text(site.config.read_text())
        desk.write(INVENTORY)
        yield server


def test_a_new_key_is_shown_and_remembered(desk: Desk, site: Site, server: Server) -> None:
    """With --yes nobody is asked, the document says what was added, and twice adds nothing."""
    done = desk.good("trust", "target", "--yes", "--json")
    again = desk.good("trust", "target", "--json")

    (added,) = done.document["added"]
    assert (added["host"], added["type"]) == ("target", "ssh-ed25519")
    assert (added["name"], added["file"]) == (f"[127.0.0.1]:{server.port}", str(site.known))
    assert f"target ([127.0.0.1]:{server.port}): ssh-ed25519 {added['fingerprint']}" in done.err
    assert site.known.read_text() == server.known
    assert (again.document["trusted"], again.document["added"]) == (["target"], [])


def test_what_a_host_says_no_to_is_in_the_document(desk: Desk, site: Site, server: Server) -> None:
    """Of a plan, live and from a saved survey: a wrong login has its own kind and a remedy."""
    site.trusting(server)
    site.authorized.write_text(f"{public_line(make_key(site.folder / 'stranger'))}\n")
    live = desk.run("plan", "--json")
    desk.run("probe", "--out", "survey.json")
    saved = desk.run("plan", "--survey", "survey.json", "--json")

    for done in (live, saved):
        (error,) = done.document["error"]["errors"]
        assert (done.code, error["kind"], error["host"]) == (4, "Refused", "target")
        assert "tester is not let in" in error["why"]
        assert "ssh -o BatchMode=yes" in error["remedy"]
        assert error["remedy"] not in error["why"]


def test_without_a_terminal_nothing_is_taken_for_a_yes(
    desk: Desk, site: Site, server: Server
) -> None:
    """The fingerprint is shown, and the command line is said to lack an answer."""
    done = desk.run("trust", "target")

    assert done.code == 64
    assert "ssh-ed25519 SHA256:" in done.out
    assert "give --yes" in done.err
    assert not site.known.exists()
    assert server.connections == []


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked(desk: Desk, site: Site, server: Server, answer: str, code: int) -> None:
    """Only a yes has the key remembered."""
    found, shown = on_a_terminal(desk, "trust", "target", answer=answer)

    assert found == code, shown
    assert "Is this its key? [y/N]" in shown
    assert site.known.exists() is (code == 0)
    assert server.connections == []


def test_a_changed_key_is_never_replaced(desk: Desk, site: Site, server: Server) -> None:
    """Both fingerprints are shown, the exit is that of an unreachable host, and the file stays."""
    known = f"[127.0.0.1]:{server.port} {public_line(make_key(site.folder / 'other'))}\n"
    site.known.write_text(known)

    done = desk.run("trust", "target", "--yes", "--json")

    failed = done.document["failed"]["target"]
    assert (done.code, failed["kind"]) == (4, "Untrusted")
    assert failed["why"].count("SHA256:") == 2
    assert site.known.read_text() == known
