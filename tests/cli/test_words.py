"""What a person reads: durations, folded lines, tables, and which exit code counts."""

import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer

from rlxdeploy.app.look import RankStatus, Status
from rlxdeploy.cli.failure import Form, exit_code_of, wanted_form, worst
from rlxdeploy.cli.fold import folded
from rlxdeploy.cli.main import app
from rlxdeploy.cli.resume import going_on, terms
from rlxdeploy.cli.tables import span, status_lines
from rlxdeploy.errors import (
    HostError,
    Locked,
    Overtaken,
    RlxDeployError,
    Stale,
    Unreachable,
    UsageError,
)
from rlxdeploy.model.scope import Scope

SPANS = {
    0.4: "0s",
    12.0: "12s",
    243.0: "4m 03s",
    7_800.0: "2h 10m",
    273_600.0: "3d 04h",
}


@pytest.mark.parametrize(("seconds", "said"), SPANS.items())
def test_a_duration_is_said_in_its_two_biggest_units(seconds: float, said: str) -> None:
    """Nobody counts 273,600 seconds."""
    assert span(seconds) == said


FOLDS = {
    "what fits": ("  short", 10, ["  short"]),
    "words": ("  one two three", 11, ["  one two", "      three"]),
    "no terminal": ("one two three", None, ["one two three"]),
    "a quoted line": ("      +one two three", 11, ["      +one two three"]),
    "a word that fits nowhere": ("see /a/very/long/path", 12, ["see /a/very/long/path"]),
    "columns": ("a    b    c", 8, ["a    b", "    c"]),
    "nothing": ("", 10, [""]),
}


@pytest.mark.parametrize(("text", "width", "lines"), FOLDS.values(), ids=FOLDS.keys())
def test_a_line_breaks_between_words(text: str, width: int | None, lines: list[str]) -> None:
    """What follows stands further in; what was quoted or fits nowhere stays whole."""
    assert folded(text, width) == lines


def rank(number: int, state: str = "active", code: int | None = None) -> RankStatus:
    return RankStatus(
        rank=number,
        host="a-host",
        device="cuda:0",
        address="10.0.0.1:29500",
        state=state,
        joined=state == "active",
        status="",
        uptime=75.0,
        restarts=0,
        epoch="e" * 32,
        release="r" * 12,
        digest="d" * 64,
        pid=7,
        exit_status=code,
    )


STATUS = Status("demo", 2, (rank(0), rank(1, "failed", 9)), {})


def test_a_status_has_a_line_a_rank() -> None:
    """Long ids are cut to what tells them apart, and an exit code is told."""
    heading, first, second = (line.plain for line in status_lines(STATUS))

    assert heading.split()[:4] == ["rank", "host", "device", "state"]
    assert first.split()[-3:] == ["e" * 8, "r" * 12, "d" * 12]
    assert "failed (exit 9)" in second
    assert "1m 15s" in first


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (200, []),
        (100, ["epoch"]),
        (80, ["epoch", "release"]),
        (10, ["epoch", "release", "digest", "restarts", "uptime", "device"]),
    ],
)
def test_a_narrow_terminal_does_without_whole_columns(width: int, left_out: list[str]) -> None:
    """No value is cut in two, and no line is longer than the terminal while that can be."""
    lines = [line.plain for line in status_lines(STATUS, width)]
    whole = next(status_lines(STATUS)).plain.split()

    assert lines[0].split() == [title for title in whole if title not in left_out]
    assert width == 10 or max(map(len, lines)) <= width


def test_a_status_has_no_column_of_what_no_rank_has() -> None:
    """A program of a person's own has no digest, and an epoch only while it runs."""
    program = replace(STATUS, ranks=tuple(replace(one, digest="") for one in STATUS.ranks))
    own = replace(STATUS, ranks=tuple(replace(one, epoch="", digest="") for one in STATUS.ranks))
    mixed = replace(STATUS, ranks=(STATUS.ranks[0], own.ranks[1]))

    assert next(status_lines(program)).plain.split()[-2:] == ["epoch", "release"]
    assert next(status_lines(own)).plain.split()[-2:] == ["restarts", "release"]
    assert next(status_lines(own, 10)).plain.split() == ["rank", "host", "state", "joined"]
    assert next(status_lines(mixed)).plain == next(status_lines(STATUS)).plain


CODES = {
    "a host's failure": (HostError("a", "stage", "no"), 1),
    "an unreachable host": (Unreachable("a", "connect", "no"), 4),
    "a lock": (Locked("a", "lock", "held"), 5),
    "a stale plan": (Stale(["a file"]), 6),
    "a plan that was overtaken": (Overtaken("a", "stage", "release r2 stands there now"), 6),
    "a lock on one, overtaken on another": (
        ExceptionGroup("2", [Overtaken("a", "", ""), Locked("b", "", "")]),
        5,
    ),
    "a bad command line": (UsageError("no"), 64),
    "several": (ExceptionGroup("2", [Unreachable("a", "", ""), HostError("b", "", "")]), 4),
    "a lock among others": (ExceptionGroup("2", [HostError("b", "", ""), Locked("a", "", "")]), 5),
    "a bug": (ValueError("no"), None),
    "a bug among others": (ExceptionGroup("2", [HostError("b", "", ""), ValueError("x")]), None),
    "a reader that left": (BrokenPipeError(32, "Broken pipe"), 1),
    "output on a full disk": (OSError(28, "No space left on device"), 1),
    "a file on a full disk": (OSError(28, "No space left on device", "a"), None),
}


@pytest.mark.parametrize(("error", "code"), CODES.values(), ids=CODES.keys())
def test_the_class_of_an_error_is_its_exit_code(error: Exception, code: int | None) -> None:
    """A bug of ours has none: it shows its trace."""
    assert exit_code_of(error) == code


@pytest.mark.parametrize(
    ("codes", "code"),
    [([], 0), ([0, 0], 0), ([3, 1], 1), ([1, 4], 4), ([4, 6, 5], 5), ([3, 64], 64), ([0, 3], 3)],
)
def test_of_several_failures_the_first_in_the_list_counts(codes: list[int], code: int) -> None:
    """64 before 5, 6, 4, 1 and 3."""
    assert worst(codes) == code


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("plan", Form.WORDS),
        ("plan --json", Form.DOCUMENT),
        ("logs --json -f", Form.LINES),
        ("status --watch --json", Form.LINES),
        ("logs -f", Form.WORDS),
    ],
)
def test_the_form_is_read_off_the_command_line(line: str, form: Form) -> None:
    """Also off one that does not parse, for its error has to be JSON too."""
    assert wanted_form(line.split()) is form


def test_every_error_of_ours_has_an_exit_code() -> None:
    """The base has 1, and no class hides it."""
    assert exit_code_of(RlxDeployError("no")) == 1


# What an apply can be given, in another order than its help has, and as it is told again.
GIVEN = """apply --promote a --promote b --templates '$T' --adopt --skip-unreachable --max-fail 2
    --timeout 90 --no-preflight -K --forks 4 -y --no-diff --json lab"""
TOLD = """apply lab --templates '$T' --join-timeout 90 --adopt --skip-unreachable --max-fail 2
    --promote a --promote b --forks 4 --yes --no-diff --no-preflight --ask-become-pass --json"""
RESUMED = {
    "nothing but the inventory": ("apply 'my lab.toml'", "apply 'my lab.toml'"),
    "the inventory as an option": ("stop -i lab", "stop lab"),
    "one that begins with a dash": ("stop --yes -- -lab", "stop --yes -- -lab"),
    "some hosts": (
        "apply lab --limit 'gpu-*,mac' --limit a --exclude=rank:0",
        "apply lab --limit 'gpu-*,mac' --limit a --exclude rank:0",
    ),
    "all that an apply can be given": (GIVEN, " ".join(TOLD.split())),
    "a default that is given": ("apply lab --max-fail=0", "apply lab --max-fail 0"),
    "half a second": ("restart lab --timeout 0.5", "restart lab --join-timeout 0.5"),
    "a destroy": (
        "destroy -K lab --adopt --exclude mac --max-fail 1",
        "destroy lab --exclude mac --adopt --max-fail 1 --ask-become-pass",
    ),
    "a rollback": ("rollback -y -i 'my lab.toml'", "rollback -i 'my lab.toml' --yes"),
    "a rollback to a release": (
        "rollback 0a1b --forks 2 --timeout 5 -i lab",
        "rollback 0a1b -i lab --join-timeout 5 --forks 2",
    ),
}


def parsed(line: str) -> typer.Context:
    """Return what the parser makes of the words of a command line after `rlxdeploy`."""
    verb, *rest = shlex.split(line)
    root: Any = typer.main.get_command(app)
    context: typer.Context = root.get_command(None, verb).make_context(f"rlxdeploy {verb}", rest)
    return context


@pytest.mark.parametrize(("line", "wanted"), RESUMED.values(), ids=RESUMED.keys())
def test_what_is_to_be_typed_after_an_interrupt_means_the_same(line: str, wanted: str) -> None:
    """Every option is as it was given, and survives a shell: the parser makes the same of it."""
    context = parsed(line)
    path = context.params.get("inventory") or context.params["option"]
    named = {"option": path} if line.startswith("rollback") else {"inventory": path, "option": None}
    typed = going_on(context, **named)

    assert typed == f"rlxdeploy {wanted}"
    assert parsed(typed.removeprefix("rlxdeploy ")).params == context.params | named


def test_what_has_been_settled_since_is_named() -> None:
    """A rollback names its release: once hosts have gone back, the one before is another."""
    context = parsed("rollback -i lab")
    limited = parsed("apply lab --limit @failed -y")

    assert going_on(context, release="0a1b") == "rlxdeploy rollback 0a1b -i lab"
    typed = going_on(limited, **terms(Scope(("gpu-a", "mac"))))
    assert typed == "rlxdeploy apply lab --limit gpu-a --limit mac --yes"
