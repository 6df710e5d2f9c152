"""`resolve`, `render` and `probe`: what an inventory compiles to, with nothing changed."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.app.compile import Request
from rlxdeploy.app.export import (
    Probed,
    concrete,
    probe,
    render_tree,
    save,
    save_survey,
)
from rlxdeploy.app.survey import Extra
from rlxdeploy.cli.failure import failures_document, finding_document
from rlxdeploy.cli.options import (
    AskBecomePass,
    Exclude,
    Forks,
    InventoryArgument,
    InventoryOption,
    Json,
    Limit,
    SurveyFile,
    Templates,
    chosen,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.tables import columns
from rlxdeploy.model.survey import HostFacts

app = typer.Typer()

Out = Annotated[Path | None, typer.Option("--out", help="Write there instead of to stdout.")]
Folder = Annotated[Path, typer.Option("--out", help="The folder to write, new or empty.")]
SurveyOut = Annotated[
    Path | None, typer.Option("--out", help="Save the survey, for `plan --survey`.")
]
Bench = Annotated[
    bool, typer.Option("--bench", help="Measure processor, cards and disk; takes seconds.")
]


@app.command("resolve")
def resolve_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    survey: SurveyFile = None,
    forks: Forks = None,
    out: Out = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> None:
    """Write the inventory with every node, device and address settled."""
    screen = Screen(as_json=True)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        text = concrete(Request(chosen(inventory, option), survey), lab, say)
    if out is not None:
        save(text, out)
    if as_json:
        screen.document({"inventory": tomllib.loads(text)})
    elif out is None:
        typer.echo(text, nl=False)


@app.command("render")
def render_command(
    out: Folder,
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    survey: SurveyFile = None,
    templates: Templates = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> None:
    """Write every host's files as apply would put them there."""
    screen = Screen(as_json=as_json)
    request = Request(chosen(inventory, option), survey, templates)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        written = render_tree(request, out, lab, say)
    if as_json:
        screen.document({"folder": str(out), "files": [str(path) for path in written]})
    else:
        screen.results.out("\n".join(map(str, written)), highlight=False)


@app.command("probe")
def probe_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    out: SurveyOut = None,
    bench: Bench = False,
    limit: Limit = None,
    exclude: Exclude = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Ask the machines what they are; with --json, upstream's NodeCaps of each."""
    screen = Screen(as_json=as_json)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        extra = Extra(bench=bench, scope=scope_of(limit, exclude))
        probed = probe(chosen(inventory, option), lab, say, extra)
    if out is not None:
        save_survey(probed.survey, out)
    if as_json:
        screen.document(_document(probed))
    else:
        for line in _hosts(probed, bench=bench):
            screen.results.out(line, highlight=False)
    if bench:
        screen.notes.out("notice: the speeds are kept for plan and apply", highlight=False)
    for notice in (*probed.notices, *probed.unmeasured):
        screen.notes.out(f"{notice.severity}: {notice}", highlight=False)
    for error in probed.failed.values():
        screen.tell(f"error: {error}", "red", failed=True)
    return 4 if probed.failed else 0


def _document(probed: Probed) -> dict[str, object]:
    hosts = {name: json.loads(said.line()) for name, said in probed.workers.items()}
    notices = [finding_document(one) for one in (*probed.notices, *probed.unmeasured)]
    return {"hosts": hosts, "failed": failures_document(probed.survey.errors), "notices": notices}


def _hosts(probed: Probed, *, bench: bool) -> Iterator[str]:
    """Yield a heading and one line a host, uncut: a pipe has no width, and a device a long name."""
    titles = ("host", "system", "cores", "RAM", "devices", "python", "numpy", "launch")
    facts = {name: probed.survey.hosts[name] for name in probed.workers}
    rows = [(name, *_cells(one), *_speeds(one)) for name, one in facts.items()]
    shown = [(*titles, "GFLOP/s", "disk MB/s"), *rows]
    return columns(shown if bench else [row[: len(titles)] for row in shown])


def _speeds(facts: HostFacts) -> tuple[str, ...]:
    speeds = (facts.hardware.gflops, facts.hardware.io_mbps)
    return tuple(f"{speed:.0f}" if speed else "not measured" for speed in speeds)


def _cells(facts: HostFacts) -> tuple[str, ...]:
    platform, hardware = facts.platform, facts.hardware
    devices = ", ".join(
        f"{one.device} {one.name}" + (f" ({ill})" if (ill := one.error or one.trouble) else "")
        for one in hardware.devices
    )
    return (
        f"{platform.os} {platform.arch}",
        str(hardware.cores),
        f"{hardware.ram_total / 1e9:.0f} GB",
        devices,
        platform.python_version or "none",
        platform.numpy or "none",
        ", ".join(platform.launches) or "none",
    )
