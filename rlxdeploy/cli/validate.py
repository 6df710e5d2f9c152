"""`validate` and `schema`: what is wrong with an inventory, and what one may say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.app.schema import schema_text
from rlxdeploy.app.validate import Report, validate
from rlxdeploy.cli.failure import finding_document
from rlxdeploy.cli.options import DEFAULT_INVENTORY, InventoryOption, Json, Verbose
from rlxdeploy.cli.screen import Screen
from rlxdeploy.errors import Finding

app = typer.Typer()

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="INVENTORY", help="The inventories; ./inventory.toml by default."),
]


@app.command("validate")
def validate_command(
    files: Files = None,
    *,
    inventory: InventoryOption = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> int:
    """Check inventories; every finding of every file, with its place."""
    named = [*(files or []), *([inventory] if inventory else [])] or [DEFAULT_INVENTORY]
    reports = validate(named)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.document({"files": [_document(report, verbose=verbose) for report in reports]})
    for report in reports:
        _show(screen, report, verbose=verbose)
    return 0 if all(report.passed for report in reports) else 1


@app.command("schema")
def schema_command(
    *,
    inventory: InventoryOption = None,  # noqa: ARG001 - every command takes it; all have one schema
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of an inventory, for `#:schema` and editors."""
    if as_json:
        Screen(as_json=True).document({"schema": json.loads(schema_text())})
    else:
        typer.echo(schema_text(), nl=False)


def _show(screen: Screen, report: Report, *, verbose: bool) -> None:
    for finding in _said(report, verbose=verbose):
        screen.people.out(f"{finding.severity}: {finding}", highlight=False)
    if report.passed:
        screen.people.out(f"{report.path}: valid", highlight=False)


def _said(report: Report, *, verbose: bool) -> Sequence[Finding]:
    return (*report.findings, *(report.without_effect if verbose else ()))


def _document(report: Report, *, verbose: bool) -> dict[str, object]:
    return {
        "path": str(report.path),
        "valid": report.passed,
        "findings": [finding_document(one) for one in _said(report, verbose=verbose)],
    }
