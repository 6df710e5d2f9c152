"""The command `rlxdeploy`: arguments to use case to exit code.

Commands live in the modules of `COMMANDS` and are imported when they are asked for, so that
`validate` pays for neither numpy nor SSH.  The README lists the exit codes.
"""

import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from rlxdeploy import __version__
from rlxdeploy.cli.document import SIGNALS, expect_document
from rlxdeploy.cli.failure import (
    Interrupted,
    Terminated,
    exit_code_of,
    report_bug,
    report_failure,
    report_usage,
    wanted_form,
)
from rlxdeploy.cli.screen import Color, Screen

# In the order in which `--help` lists them.
COMMANDS: Mapping[str, str] = {
    "validate": "validate",
    "plan": "plan",
    "apply": "apply",
    "show": "plan",
    "status": "look",
    "logs": "look",
    "wait": "look",
    "stop": "change",
    "restart": "change",
    "destroy": "change",
    "rollback": "rollback",
    "unlock": "unlock",
    "resolve": "compile",
    "render": "compile",
    "probe": "compile",
    "explain": "explain",
    "doctor": "doctor",
    "trust": "trust",
    "schema": "validate",
}

# What the parser raises for a bad command line; typer gives its base no public name.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
USAGE_EXIT = 64

# Python looks for garbage at every 700th new object: a tenth of the time that it takes to load
# modules, which make none.
_FEW_COLLECTIONS = 200_000
_Handler = Callable[[int, FrameType | None], None] | signal.Handlers


class LazyGroup(TyperGroup):
    """A group that imports the module of a command when the command is looked up."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - typer's vendored Context has no public name
        """Return the names `--help` lists."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - as above
        """Return the command *cmd_name*, or None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"rlxdeploy.cli.{COMMANDS[cmd_name]}")
        found: Any = typer.main.get_command(module.app)
        # typer makes a module's only command the module's whole program.
        return getattr(found, "commands", {cmd_name: found})[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as above
        """Look the command up; raises the parser's error for none, naming the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            # typer would compare with the commands that are loaded, and here none is.
            near = get_close_matches(args[0], COMMANDS, 1)
            nearest: Any = error
            nearest.message += f" Did you mean {near[0]!r}?" if near else ""
            raise

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as above
        """Run the command; raises Interrupted, for typer would turn Ctrl-C into a mere code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(str(error) or "interrupted") from error


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="From one inventory.toml to a running group of ranks on machines you own.",
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the shape of a typer callback
    if wanted:
        typer.echo(f"rlxdeploy {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
]
When = Annotated[
    Color, typer.Option("--color", help="When to colour what is shown; may stand anywhere.")
]


@app.callback()
def _root(
    *,
    version: Version = False,  # noqa: ARG001 - handled by its callback
    color: When = Color.AUTO,
) -> None:
    """From one inventory.toml to a running group of ranks on machines you own."""
    Screen.color = color


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(_FEW_COLLECTIONS)
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        # A terminal or log that knows no en dash shows a question mark in its place.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    code = run(sys.argv[1:])
    _handle_both(_leave)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # All is closed that has to be.  To take a thousand modules apart costs a tenth of a second.
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; nothing but a bug of ours escapes."""
    form = wanted_form(arguments)
    expect_document()
    try:
        line = with_color_first(arguments)
        code: int = app(args=line, standalone_mode=False, prog_name="rlxdeploy") or 0
        # What does not fit is told here, while it still can be, and not by the interpreter's end.
        sys.stdout.flush()
    except UsageError as error:
        report_usage(error, form)
        return USAGE_EXIT
    except (KeyboardInterrupt, typer.Abort):
        with _undisturbed():
            return report_failure(Interrupted("interrupted"), form)
    except (Interrupted, Terminated) as error:
        with _undisturbed():
            return report_failure(error, form)
    except Exception as error:
        if exit_code_of(error) is None:
            report_bug(error, form)
            raise
        return report_failure(error, form)
    return code


def with_color_first(arguments: list[str]) -> list[str]:
    """Return *arguments* with every `--color` before the command, which is where it is read."""
    first, rest = [], list[str]()
    waiting = iter(arguments)
    for one in waiting:
        if one == "--color":
            first += [one, *itertools.islice(waiting, 1)]
        else:
            (first if one.startswith("--color=") else rest).append(one)
    return [*first, *rest]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Have the last words whole, however often somebody presses Ctrl-C."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _handle_both(handler: _Handler) -> None:
    for one in SIGNALS:
        signal.signal(one, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    # All has been said; threads that still wait for hosts are waited for no longer.
    os._exit(128 + number)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated("terminated")
