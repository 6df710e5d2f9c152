"""The options several commands share, each written once."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.cli.screen import Screen
from rlxdeploy.errors import Finding, InventoryError, Place, RlxDeployError, UsageError
from rlxdeploy.model.scope import Scope, parse_terms

DEFAULT_INVENTORY = Path("inventory.toml")

InventoryArgument = Annotated[
    Path | None,
    typer.Argument(metavar="INVENTORY", help="The inventory; ./inventory.toml by default."),
]
InventoryOption = Annotated[
    Path | None, typer.Option("-i", "--inventory", help="The inventory, as an option.")
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, words for people on stderr.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ShowDiff = Annotated[
    bool | None,
    typer.Option(
        "--diff/--no-diff", help="Every file's text, or none; else that of changed files."
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="WHOM",
        help="These alone: host, node, gpu-*, rank:0-3, tag:x, @failed; with commas, repeatable.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="WHOM", help="All but these, written as for --limit."),
]
# For commands that are for the whole group: taken in to be refused with the reason.
Narrowed = Annotated[list[str] | None, typer.Option("--limit", "--exclude", hidden=True)]
MaxFail = Annotated[
    int,
    typer.Option("--max-fail", min=0, help="Hosts that may fail before anything is changed (0)."),
]
Forks = Annotated[int | None, typer.Option("--forks", min=1, help="Hosts worked on at once (32).")]
AskBecomePass = Annotated[
    bool,
    typer.Option("--ask-become-pass", "-K", help="Ask once for the password that sudo wants."),
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, help="Seconds until the command gives up (120).")
]
JoinTimeout = Annotated[
    float | None,
    typer.Option(
        "--join-timeout",
        "--timeout",
        min=0,
        help="Seconds the ranks have to join, over the file's.",
    ),
]
SkipUnreachable = Annotated[
    bool, typer.Option("--skip-unreachable", help="Leave out written hosts that do not answer.")
]
SurveyFile = Annotated[
    Path | None,
    typer.Option(
        "--survey", help="Compile from a saved survey, or workers' NodeCaps; no host is asked."
    ),
]
Templates = Annotated[
    Path | None,
    typer.Option("--templates", help="A folder whose templates go before ours, by file name."),
]
Adopt = Annotated[
    bool, typer.Option("--adopt", help="Take over hosts that another deployment holds.")
]
Promote = Annotated[
    list[str] | None,
    typer.Option(
        "--promote",
        metavar="ADDR",
        help="Give this standby the ranks of the node it stands by for; repeatable.",
    ),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]


class Declined(RlxDeployError):
    """The person was asked and said no."""


def scope_of(limit: list[str] | None, exclude: list[str] | None) -> Scope:
    """Return whom the command is for."""
    return Scope(parse_terms(limit or ()), parse_terms(exclude or ()))


def of_everybody(verb: str, narrowed: list[str] | None) -> None:
    """Raise UsageError where a command of the whole group is to be for some of it."""
    if narrowed:
        why = "a group forms with all of its ranks or not at all"
        raise UsageError(f"{verb} knows no --limit or --exclude: {why}")


def chosen(argument: Path | None, option: Path | None) -> Path:
    """Return the inventory to read; raises UsageError when two different ones are named.

    Raises InventoryError where none is named, and none lies in the folder.
    """
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"two inventories are named: {argument} and {option}; name one")
    named = argument or option
    if named is None and not DEFAULT_INVENTORY.exists():
        place, remedy = Place(str(DEFAULT_INVENTORY)), "name the inventory, as INVENTORY or with -i"
        raise InventoryError([Finding("there is no such file here", place, remedy=remedy)])
    return named or DEFAULT_INVENTORY


def confirm(screen: Screen, question: str, *, yes: bool) -> None:
    """Go on if *yes* was given or a person says so; raises UsageError where nobody can be asked."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is no terminal to ask on; look at what it says, then give --yes")
    screen.notes.out(f"{question} [y/N] ", end="", highlight=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Declined("nothing was changed")
