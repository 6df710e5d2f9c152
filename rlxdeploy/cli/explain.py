"""`explain`: where each value of a rank or a host comes from."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from rlxdeploy.app.compile import Request
from rlxdeploy.app.explain import explain
from rlxdeploy.app.explained import Explained, Value
from rlxdeploy.cli.failure import finding_document
from rlxdeploy.cli.options import (
    AskBecomePass,
    Forks,
    InventoryOption,
    Json,
    Promote,
    SkipUnreachable,
    SurveyFile,
    Templates,
    chosen,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen

app = typer.Typer()

What = Annotated[
    str, typer.Argument(metavar="RANK|HOST", help="A rank's number, or a host's or node's name.")
]


@app.command("explain")
def explain_command(
    what: What,
    *,
    inventory: InventoryOption = None,
    survey: SurveyFile = None,
    templates: Templates = None,
    skip_unreachable: SkipUnreachable = False,
    promote: Promote = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> None:
    """Say which line, probe or rule gave each value of a rank or a host."""
    screen = Screen(as_json=as_json)
    promoted = tuple(promote or ())
    request = Request(chosen(None, inventory), survey, templates, skip_unreachable, promoted)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        explained = explain(what, request, lab, say)
    if as_json:
        screen.document(_document(explained))
    else:
        _show(screen, explained)


def _document(explained: Explained) -> dict[str, object]:
    return {
        "subject": explained.subject,
        "values": [asdict(one) for one in explained.values],
        "environment": [asdict(one) for one in explained.environment],
        "notices": [finding_document(one) for one in explained.notices],
    }


def _show(screen: Screen, explained: Explained) -> None:
    screen.results.print(Text(explained.subject, style="bold"))
    _show_values(screen, explained.values)
    if explained.environment:
        screen.results.print(Text("environment", style="bold"))
    _show_values(screen, explained.environment)
    for notice in explained.notices:
        screen.results.print(Text(f"{notice.severity}: {notice}", style="yellow"))


def _show_values(screen: Screen, values: Sequence[Value]) -> None:
    """Print each value on a line of its own, since PEERS can be long, and its reason below."""
    width = max((len(one.name) for one in values), default=0)
    for one in values:
        screen.results.print(Text(f"  {one.name:{width}}  {one.value}"))
        screen.results.print(Text(f"  {'':{width}}  {one.why}", style="dim"))
