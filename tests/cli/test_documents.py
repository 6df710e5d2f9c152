"""Every command as a program runs it: one JSON document, an exit code that says what it was."""

import json
import os
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
    """It is named in the document, with why."""
    line.desk.write(NOWHERE, "far.toml")
    code, document = line.failing(command, "far.toml")

    assert code == CODES.get(command, 4)
    if command != "validate":
        assert "nowhere" in json.dumps(document)
        assert "refused" in json.dumps(document)


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
        ("show", plan),
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
