"""`doctor`: what should be mended on the hosts of a job, and how."""

from collections.abc import Iterator
from dataclasses import asdict

import typer

from rlxdeploy.app.doctor import doctor
from rlxdeploy.cli.options import (
    AskBecomePass,
    Exclude,
    Forks,
    InventoryArgument,
    InventoryOption,
    Json,
    Limit,
    chosen,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.tables import columns
from rlxdeploy.errors import Severity
from rlxdeploy.model.checkup import Checkup

app = typer.Typer()

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTICE: "dim"}
_TITLES = ("severity", "host", "check", "finding")


@app.command("doctor")
def doctor_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    limit: Limit = None,
    exclude: Exclude = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Look for what is wrong with the hosts, and say how to mend it; changes nothing.

    Looks at reachability, launch, sudo, lingering, systemd, Python and numpy, shell profiles,
    clocks, disks, ports, devices and MTUs.  Exits with 0 where nothing is worse than a warning,
    else with 1.
    """
    screen = Screen(as_json=as_json)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        found = doctor(chosen(inventory, option), lab, say, scope_of(limit, exclude))
    if as_json:
        screen.document(_document(found))
    for line, style in _lines(found):
        screen.tell(line, style)
    return 0 if found.sound else 1


def _document(found: Checkup) -> dict[str, object]:
    return {
        "job": found.job,
        "hosts": list(found.hosts),
        "findings": [asdict(one) for one in found.ailments],
        "exit": 0 if found.sound else 1,
    }


def _lines(found: Checkup) -> Iterator[tuple[str, str]]:
    """Yield a line a finding with its remedy below it, and one that sums it up."""
    cells = [(one.severity.value, one.host or "-", one.check, one.what) for one in found.ailments]
    title, *rows = columns((_TITLES, *cells))
    if rows:
        yield title, "bold"
    for one, row in zip(found.ailments, rows, strict=True):
        yield row, _STYLES[one.severity]
        if one.remedy:
            yield f"    mend: {one.remedy}", ""
    counts = {kind: found.count(kind) for kind in Severity}
    told = ", ".join(
        f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts.items() if count
    )
    hosts = f"{len(found.hosts)} host{'s' * (len(found.hosts) != 1)} asked"
    yield f"{found.job}: {hosts}, {told or 'nothing to mend'}", ""
