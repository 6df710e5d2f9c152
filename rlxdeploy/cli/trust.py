"""`trust`: make the keys of hosts known, once a person has compared them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.app.trust import Added, Agree, Trust, overrides_of, trust
from rlxdeploy.cli.failure import exit_code_of, failures_document, worst
from rlxdeploy.cli.options import DEFAULT_INVENTORY, InventoryOption, Json, Yes, confirm
from rlxdeploy.cli.screen import Screen
from rlxdeploy.edge.ssh.trust import NewKey

app = typer.Typer()

Hosts = Annotated[
    list[str], typer.Argument(metavar="HOST…", help="SSH aliases, as an inventory writes them.")
]


@app.command("trust")
def trust_command(
    hosts: Hosts,
    *,
    inventory: InventoryOption = None,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Show the keys of hosts that nobody knows yet, and remember them in known_hosts."""
    screen = Screen(as_json=as_json)
    overrides = overrides_of(_inventory(inventory))
    names = tuple(dict.fromkeys(hosts))
    done = trust(names, overrides, _agree(screen, yes=yes), screen.progress)
    if as_json:
        screen.document(_document(done))
    _show(screen, done)
    return worst([exit_code_of(error) or 1 for error in done.failed.values()])


def _inventory(named: Path | None) -> Path | None:
    """Return the inventory whose `[ssh]` counts: the one named, or ./inventory.toml if it is."""
    return named or (DEFAULT_INVENTORY if DEFAULT_INVENTORY.exists() else None)


def _agree(screen: Screen, *, yes: bool) -> Agree:
    def agree(keys: Sequence[NewKey]) -> None:
        for new in keys:
            screen.people.out(f"{new.hop.alias} ({new.name}): {new.key}", highlight=False)
        question = "Is this its key?" if len(keys) == 1 else f"Are these the {len(keys)} keys?"
        confirm(screen, question, yes=yes)

    return agree


def _show(screen: Screen, done: Trust) -> None:
    for added in done.added:
        screen.people.out(f"{added.new.name}: remembered in {added.file}", highlight=False)
    for name in done.trusted:
        screen.people.out(f"{name}: trusted", highlight=False)
    for error in done.failed.values():
        screen.notes.out(f"error: {error}", highlight=False)


def _document(done: Trust) -> dict[str, object]:
    return {
        "trusted": done.trusted,
        "added": [_added(one) for one in done.added],
        "failed": failures_document(done.failed),
    }


def _added(added: Added) -> dict[str, str]:
    new = added.new
    return {
        "host": new.hop.alias,
        "name": new.name,
        "type": new.key.kind,
        "fingerprint": new.key.fingerprint,
        "file": str(added.file),
    }
