"""The options several commands share, each written once."""

from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.errors import UsageError

DEFAULT_INVENTORY = Path("inventory.toml")

InventoryArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[INVENTORY]", help="The inventory; ./inventory.toml by default."),
]
InventoryOption = Annotated[
    Path | None, typer.Option("-i", "--inventory", help="The inventory, as an option.")
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, words for people on stderr.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ShowDiff = Annotated[bool, typer.Option("--diff/--no-diff", help="Show what changes in each file.")]
Forks = Annotated[int | None, typer.Option("--forks", min=1, help="Hosts worked on at once (32).")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, help="Seconds until the command gives up.")
]
JoinTimeout = Annotated[
    float | None,
    typer.Option("--join-timeout", min=0, help="Seconds the ranks have to join, over the file's."),
]
SurveyFile = Annotated[
    Path | None,
    typer.Option("--survey", help="Compile from a saved survey; no host is asked."),
]
Templates = Annotated[
    Path | None,
    typer.Option("--templates", help="A folder whose templates go before ours, by file name."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]


def chosen(argument: Path | None, option: Path | None) -> Path:
    """Return the inventory to read; raises UsageError when two different ones are named."""
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"two inventories are named: {argument} and {option}; name one")
    return argument or option or DEFAULT_INVENTORY
