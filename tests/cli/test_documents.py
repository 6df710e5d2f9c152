"""Every command as a program runs it: one JSON document, an exit code that says what it was."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlxdeploy.cli.main import COMMANDS, run
from tests.cli.desk import Desk

# Of a host that refuses connections: nobody listens on that port.
NOWHERE = """\
[ssh]
config = "ssh_config"
connect_timeout = 2
[[node]]
ssh = "nowhere"
"""
SSH_CONFIG = "Host nowhere\n  HostName 127.0.0.1\n  Port 1\n"

# What a command needs besides the inventory.
NEEDS = {
    "render": ("--out", "out"),
    "explain": ("0",),
    "trust": ("nowhere",),
    "wait": ("--timeout", "0"),
    **dict.fromkeys(("apply", "destroy", "rollback", "unlock"), ("--yes",)),
}
# These read no inventory.
ALONE = {"show", "schema"}


class Line:
    """The command line in this process, where every run starts as quickly as a function."""

    def __init__(self, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
        self.desk, self.capsys = desk, capsys

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the one document on stdout; its version comes first."""
        self.capsys.readouterr()
        code = run([*arguments, "--json"])
        out, err = self.capsys.readouterr()
        document: dict[str, Any] = json.loads(out)
        assert next(iter(document)) == "format_version", arguments
        assert "Traceback" not in err
        if code and "error" not in document:
            assert document.get("exit", code) == code, arguments
        return code, document

    def failing(self, command: str, inventory: str) -> tuple[int, dict[str, Any]]:
        """Run *command* on *inventory*, and see that words for people are on stderr."""
        return self.run(command, *NEEDS.get(command, ()), "-i", inventory)


@pytest.fixture
def line(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    """Give the command line at a desk of the test's own."""
    for name in (*os.environ.keys() - {"PATH", "HOME"}, *desk.environ):
        if name in desk.environ:
            monkeypatch.setenv(name, desk.environ[name])
        elif name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(desk.lab)
    (desk.lab / "ssh_config").write_text(SSH_CONFIG)
    return Line(desk, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_there_is_not_is_64(line: Line, command: str) -> None:
    """Every command refuses it, with a document."""
    code, document = line.run(command, "--no-such-option")

    assert (code, document["error"]["kind"], document["error"]["exit"]) == (64, "UsageError", 64)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ALONE])
def test_a_missing_inventory_is_1(line: Line, command: str) -> None:
    """The document names the file; nothing else is read in its place."""
    code, document = line.failing(command, "absent.toml")

    assert code == 1
    assert "absent.toml" in json.dumps(document)
    assert "there is no such file" in json.dumps(document)


@pytest.mark.parametrize("command", ["status", "rollback"])
def test_where_no_inventory_lies_in_the_folder_one_is_to_be_named(line: Line, command: str) -> None:
    """The message says how, whether the command takes it as an argument or not."""
    code, document = line.run(command)
    (finding,) = document["error"]["findings"]

    assert (code, finding["file"]) == (1, "inventory.toml")
    assert "name the inventory" in finding["remedy"]


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ALONE])
def test_a_bad_inventory_is_1_with_its_findings(line: Line, command: str) -> None:
    """Each finding has its place, wherever the document has it."""
    line.desk.write("[job]\nnmae = 'x'\n[[node]]\nssh = 'a'\n", "bad.toml")
    code, document = line.failing(command, "bad.toml")
    finding = next(iter((document.get("error") or document["files"][0])["findings"]))

    assert code == 1
    assert (finding["file"], finding["line"], finding["column"]) == ("bad.toml", 2, 1)
    assert "nmae" in finding["message"] + finding["key"]


# A wait ends at its deadline, a doctor has found what is wrong, and validate asks no host.
CODES = {"validate": 0, "wait": 1, "doctor": 1}


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ALONE])
def test_a_host_that_does_not_answer_is_4(line: Line, command: str) -> None:
    """Its failure is one value in every document: kind, host, what was done, why, and a remedy."""
    line.desk.write(NOWHERE, "far.toml")
    code, document = line.failing(command, "far.toml")

    assert code == CODES.get(command, 4)
    if command == "doctor":
        (finding,) = document["findings"]
        assert (finding["host"], finding["check"]) == ("nowhere", "reach")
        assert "refused" in finding["what"]
    elif command != "validate":
        (failure,) = failures(document)
        assert (failure["host"], failure["kind"]) == ("nowhere", "Unreachable")
        assert failure["doing"]
        assert "refused" in failure["why"]
        assert failure["message"].startswith("nowhere: ")
        assert "remedy" in failure


def test_only_those_are_asked_that_are_meant(line: Line) -> None:
    """A host that does not answer is no failure of a command that is not for it."""
    line.desk.pair(node=f'[[node]]\nssh = "nowhere"\n{NOWHERE.partition("[[node]]")[0]}')
    _, checked = line.run("doctor", "--limit", "local")
    freed, unlocked = line.run("unlock", "--exclude", "nowhere")
    _, waited = line.run("wait", "--limit", "local", "--timeout", "0")
    code, everybody = line.run("unlock")

    assert checked["hosts"] == ["local"]
    assert (freed, unlocked["asked"], unlocked["unasked"]) == (0, ["local"], {})
    assert waited["failed"] == {}
    assert (code, everybody["unasked"].keys()) == (4, {"nowhere"})
    for command in ("restart", "rollback"):
        code, refused = line.run(command, "--limit", "local")
        assert code == 64
        assert "with all of its ranks or not at all" in refused["error"]["message"]


def test_a_finished_program_rests_until_it_is_asked_for(line: Line) -> None:
    """A second apply starts nothing, a restart does; and after a stop, apply does too."""
    line.desk.pair(job='command = ["true"]')
    began = [line.run("apply", "--yes"), line.run("wait", "--finished")]
    first = line.desk.records()
    rests, second = line.run("apply", "--yes")[1], line.run("plan")[1]
    joins, status = line.run("wait")

    assert [code for code, _ in began] == [0, 0]
    assert (rests["changed"], second["changes"], line.desk.records()) == (False, False, first)
    assert "`restart` runs it again" in json.dumps(second["notices"])
    assert (joins, {one["state"] for one in status["ranks"]}) == (1, {"exited"})

    assert line.run("restart")[0] == 0
    again = line.desk.records()
    assert not {one["since"] for one in again.values()} & {one["since"] for one in first.values()}
    assert line.run("wait", "--finished")[0] == 0
    assert line.run("stop")[1]["changed"]
    assert {one["active"] for one in line.desk.records().values()} == {"inactive"}
    assert line.run("apply", "--yes")[1]["changed"]


def failures(document: object) -> Iterator[dict[str, Any]]:
    """Yield whatever in a document is the failure of a host, wherever it stands."""
    if isinstance(document, dict) and "why" in document:
        yield document
    elif isinstance(document, dict | list):
        for one in document.values() if isinstance(document, dict) else document:
            yield from failures(one)


def test_every_command_succeeds_with_a_document(line: Line, tmp_path: Path) -> None:
    """From a first look to the last trace."""
    line.desk.pair()
    out, plan = str(tmp_path / "rendered"), str(tmp_path / "plan.json")
    steps = [
        ("validate", "inventory.toml"),
        ("schema",),
        ("probe",),
        ("resolve",),
        ("render", "--out", out),
        ("plan", "--out", plan),
        ("show", plan, "--no-diff"),
        ("apply", plan, "--yes"),
        ("status",),
        ("wait",),
        ("logs", "-n", "1"),
        ("explain", "0"),
        ("doctor",),
        ("restart",),
        ("unlock", "--yes"),
        ("stop",),
        ("apply", "--yes"),
        ("rollback", "--yes"),
        ("destroy", "--yes"),
    ]
    codes = {step[0]: line.run(*step)[0] for step in steps}

    # Host keys are another test's: there is no host here to know.
    assert codes.keys() == COMMANDS.keys() - {"trust"}
    assert {command for command, code in codes.items() if code} == set()
