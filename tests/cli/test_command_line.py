"""The command line as a whole: streams, exit codes, JSON, terminals."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.desk import COMMAND, PATIENCE_S, Desk, until

COMMANDS = (
    "validate",
    "plan",
    "apply",
    "status",
    "logs",
    "wait",
    "stop",
    "restart",
    "destroy",
    "resolve",
    "render",
    "probe",
    "doctor",
    "explain",
    "rollback",
    "trust",
    "unlock",
)
NEEDS = {"render": ("--out", "out"), "explain": ("0",), "trust": ("nowhere",)}

USAGE = {
    "no such command": ("nonsense",),
    "no such option": ("plan", "--jsn"),
    "two inventories": ("plan", "one.toml", "two.toml"),
    "two inventories, one as an option": ("plan", "one.toml", "-i", "two.toml"),
    "no number": ("wait", "--timeout", "soon"),
    "a missing option": ("render",),
    "no terminal to ask on": ("apply",),
}


def on_a_terminal(desk: Desk, *arguments: str, answer: str = "", **environ: str) -> tuple[int, str]:
    """Run the command on a terminal; return its exit code and all that it wrote there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=desk.lab,
        env={**desk.environ, "TERM": "xterm", **environ},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    while piece := _read(ours):
        shown += piece
    os.close(ours)
    return process.wait(PATIENCE_S), shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how Linux says that the other side of a terminal is closed
        return b""


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE.keys())
def test_a_bad_command_line_is_64(desk: Desk, arguments: tuple[str, ...]) -> None:
    """Usage errors have an exit code of their own, words on stderr, and one document."""
    desk.pair()
    done = desk.run(*arguments, "--json")
    error = done.document["error"]

    assert (done.code, error["exit"], error["kind"]) == (64, 64, "UsageError")
    assert f"rror: {error['message']}" in done.err
    assert "Traceback" not in done.err


def test_a_misspelt_command_is_told_the_nearest(desk: Desk) -> None:
    """As for a key of the inventory, one line says what was meant."""
    done = desk.run("aply")

    assert done.code == 64
    assert "No such command 'aply'. Did you mean 'apply'?" in done.err


def test_no_command_at_all_shows_the_help(desk: Desk) -> None:
    """Whoever types the bare name learns the commands, yet a script sees a usage error."""
    bare = desk.run()

    assert bare.code == 64
    assert all(command in bare.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_inventory_that_is_not_there_is_an_error(desk: Desk, command: str) -> None:
    """Nothing falls back to a local run or to another file; JSON has the finding."""
    desk.pair()
    more = NEEDS.get(command, ())

    # Started as a person starts it: what it imports, it has to import by itself.
    done = desk.run_cold(command, "-i", "absent.toml", "--json", *more)

    assert done.code == 1
    assert "absent.toml: there is no such file" in done.err
    assert "there is no such file" in json.dumps(done.document)
    assert not (desk.lab / ".rlxdeploy").exists()


READING = {
    "validate": "files",
    "plan": "hosts",
    "apply": "hosts",
    "status": "ranks",
    "logs": "lines",
    "wait": "ranks",
    "resolve": "inventory",
    "probe": "hosts",
    "doctor": "findings",
}


@pytest.mark.parametrize(("command", "key"), READING.items(), ids=READING.keys())
def test_json_is_one_document_and_words_go_to_stderr(group: Desk, command: str, key: str) -> None:
    """A program reads stdout whole; the version comes first."""
    done = group.good(command, "--json")

    assert key in done.document
    assert next(iter(done.document)) == "format_version"


def test_the_default_inventory_is_found_where_one_stands(group: Desk) -> None:
    """Without a name it is ./inventory.toml; an argument and -i name the same."""
    bare, named, option = (
        group.good("resolve", *more).out
        for more in ((), ("inventory.toml",), ("-i", "inventory.toml"))
    )

    assert bare == named == option
    assert f'addr = "{group.host}:29500"' in bare


def test_what_resolve_writes_resolves_to_the_same(group: Desk) -> None:
    """The concrete inventory is an inventory; it plans no change for what runs."""
    out = group.lab / "concrete.toml"
    group.good("resolve", "--out", out)

    assert group.good("resolve", out).out.splitlines()[1:] == out.read_text().splitlines()[1:]


def test_a_saved_survey_plans_with_no_host_asked(group: Desk) -> None:
    """`probe --out` and `plan --survey` give the plan that asking gives."""
    survey = group.lab / "survey.json"
    group.good("probe", "--out", survey)

    saved = group.good("plan", "--survey", survey, "--json").document
    asked = group.good("plan", "--json").document

    assert saved["ranks"] == asked["ranks"]
    assert "survey" not in group.good("plan", "--survey", survey).err


def test_render_writes_what_apply_put_on_the_host(group: Desk) -> None:
    """The tree per host has the deployed bytes; a folder with something in it is refused."""
    out = group.folder / "rendered"
    written = group.good("render", "--out", out, "--json").document["files"]
    shown = Path("local", *group.data.parts[1:], "rlx/demo/current/env/0.env")

    assert str(out / shown) in written
    deployed = (group.data / "rlx/demo/current/env/0.env").read_text()
    differing = {
        line.partition("=")[0]
        for line in set((out / shown).read_text().splitlines()) ^ set(deployed.splitlines())
    }
    assert differing <= {"RLX_PLAN"}
    again = group.run("render", "--out", out)
    assert (again.code, "Traceback" in again.err) == (1, False)
    assert str(out) in again.err


def test_status_shows_a_line_a_rank(group: Desk) -> None:
    """Everything that tells one rank from another, and one line that sums up."""
    shown = group.good("status").out.splitlines()

    assert shown[0].split() == [
        "rank",
        "host",
        "device",
        "state",
        "joined",
        "uptime",
        "restarts",
        "epoch",
        "release",
        "digest",
    ]
    assert [line.split()[0] for line in shown[1:3]] == ["0", "1"]
    assert shown[3] == "demo: 2 of 2 ranks joined, digests equal"


def test_logs_show_the_rank_before_each_line(group: Desk) -> None:
    """All ranks in order, or one; as JSON, lines with their rank."""
    lines = group.good("logs").out.splitlines()
    one = group.good("logs", "--rank", "1", "-n", "1").out.splitlines()
    document = group.good("logs", "--rank", "0", "--json").document

    assert any(line.startswith("rank 0 | ") and "joined as rank 0 of 2" in line for line in lines)
    assert len(one) == 1
    assert "rank 1 | " in one[0]
    assert {line["rank"] for line in document["lines"]} == {0}


@pytest.mark.parametrize("command", [("logs", "-f"), ("status", "--watch")], ids=" ".join)
def test_a_stream_is_ndjson_and_ends_with_an_interrupt(
    group: Desk, command: tuple[str, ...]
) -> None:
    """Each line is a document with its version; Ctrl-C is 130, and the last line says so."""
    process = group.start(*command, "--json")
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    process.send_signal(2)
    out, err = process.communicate(timeout=PATIENCE_S)

    assert next(iter(first)) == "format_version"
    assert json.loads(out.splitlines()[-1])["error"]["exit"] == 130
    assert process.returncode == 130
    assert "Traceback" not in err


def test_following_shows_what_comes(desk: Desk) -> None:
    """A line that a rank prints later arrives."""
    desk.write(
        f"""\
[job]
name = "demo"
launch = "process"
ready = "exec"
command = ["sh", "-c", "while :; do echo tick; sleep 0.2; done"]
[[node]]
addr = "{desk.host}:29500"
device = "cpu"
"""
    )
    desk.start("apply", "--yes")
    until(lambda: all(desk.pids().values()) and desk.pids())

    process = desk.start("logs", "-f", "-n", "0")
    assert process.stdout is not None
    assert process.stdout.readline() == "rank 0 | tick\n"


def test_a_terminal_is_asked_and_may_say_no(desk: Desk) -> None:
    """The plan comes first, then the question; no is no, and nothing is done."""
    desk.pair()
    before = set(desk.files())

    code, shown = on_a_terminal(desk, "apply", answer="n\n")

    assert code == 1
    assert shown.index("2 ranks in a mesh") < shown.index("Carry this out? [y/N]")
    assert "nothing was changed" in shown
    assert set(desk.files()) == before


def test_colour_is_for_terminals_that_want_it(group: Desk) -> None:
    """A terminal gets colour, NO_COLOR and a pipe get none."""
    _, coloured = on_a_terminal(group, "status")
    _, plain = on_a_terminal(group, "status", NO_COLOR="1")

    assert "\x1b[32m" in coloured
    assert "\x1b[32m" not in plain
    assert "\x1b" not in group.good("status").out


COLOURED = {
    "never, before the command": (("--color", "never", "status"), {}, False),
    "never, behind it": (("status", "--color=never"), {}, False),
    "always, against NO_COLOR": (("status", "--color", "always"), {"NO_COLOR": "1"}, True),
    "auto": (("status", "--color", "auto"), {}, True),
}


@pytest.mark.parametrize(("arguments", "environ", "coloured"), COLOURED.values(), ids=COLOURED)
def test_colour_is_as_asked_for(
    group: Desk, arguments: tuple[str, ...], environ: dict[str, str], *, coloured: bool
) -> None:
    """The option may stand anywhere, and goes before what the environment says."""
    _, shown = on_a_terminal(group, *arguments, **environ)

    assert ("\x1b[32m" in shown) == coloured


def test_colour_in_a_pipe_leaves_lines_whole(group: Desk) -> None:
    """Asked for, colour is in a pipe too; no column is left out and no line is broken there."""
    plain = group.good("status").out.splitlines()
    coloured = group.good("status", "--color", "always", COLUMNS="40").out

    assert "\x1b[32m" in coloured
    assert len(coloured.splitlines()) == len(plain)
    assert "digest" in coloured


ODD_TERMINALS = {
    "the C locale": {"LANG": "C", "LC_ALL": "C"},
    "ASCII only": {"PYTHONIOENCODING": "ascii"},
    "no home": {"HOME": "/nonexistent"},
    "no terminal type": {"TERM": "dumb", "FORCE_COLOR": "1"},
    "a narrow one": {"COLUMNS": "20"},
}


@pytest.mark.parametrize("environ", ODD_TERMINALS.values(), ids=ODD_TERMINALS.keys())
def test_no_terminal_is_too_odd(desk: Desk, environ: dict[str, str]) -> None:
    """The plan is readable wherever it is printed."""
    desk.pair()
    done = desk.good("plan", **environ)

    assert "1 host to change" in done.out
    assert f"{desk.host}:29500" in done.out


@pytest.mark.parametrize("command", [("plan",), ("plan", "--json"), ("schema",), ("logs", "-f")])
def test_a_reader_that_leaves_is_no_crash(group: Desk, command: tuple[str, ...]) -> None:
    """`rlxdeploy … | head -1` ends without a trace."""
    process = group.start(*command)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    if command[0] == "logs":
        process.send_signal(2)
    err = process.stderr.read()
    process.wait(PATIENCE_S)

    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
@pytest.mark.parametrize("command", [("plan",), ("plan", "--json"), ("schema",), ("validate",)])
def test_output_that_fits_nowhere_is_an_error(group: Desk, command: tuple[str, ...]) -> None:
    """A full disk behind stdout is said on stderr, and the exit code is not 0."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, *command],
            cwd=group.lab,
            env=group.environ,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert "the output cannot be written: [Errno 28]" in done.stderr
    assert "Traceback" not in done.stderr
