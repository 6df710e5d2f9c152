"""Tables that people read: plain columns, one line a rank, colour only where it says something."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from rlxdeploy.app.look import RankStatus, Status
from rlxdeploy.model.plan import Plan

_GOOD, _POOR, _BAD = "green", "yellow", "red"
_STATES = {"active": _GOOD, "activating": _POOR, "failed": _BAD, "missing": _BAD}
_ACTIONS = {"start": _GOOD, "restart": _POOR, "stop": _BAD}
SHORT = 12


def plain(titles: Sequence[str], right: Sequence[str] = ()) -> Table:
    """Return an empty table without lines; the columns in *right* are aligned there."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", no_wrap=True)
    return table


def rank_table(plan: Plan) -> Table:
    """Return who is which rank, where, on what, and what happens to it."""
    table = plain(("rank", "node", "host", "device", "address", "launch", "action"), ("rank",))
    for row in plan.ranks:
        action = Text(
            row.action, style=_ACTIONS.get(row.action.split()[0], "") if row.action else ""
        )
        table.add_row(
            str(row.rank), row.node, row.host, row.device, row.address, row.launch, action
        )
    return table


def status_table(status: Status) -> Table:
    """Return how each rank is."""
    titles = (
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
    )
    table = plain(titles, ("rank", "restarts"))
    for rank in status.ranks:
        table.add_row(*_cells(rank))
    return table


def span(seconds: float) -> str:
    """Return a duration as people say it: `12s`, `4m 03s`, `2h 10m`, `3d 04h`."""
    whole = int(seconds)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d {hours % 24:02}h"
    if hours:
        return f"{hours}h {minutes % 60:02}m"
    return f"{minutes}m {whole % 60:02}s" if minutes else f"{whole}s"


def _cells(rank: RankStatus) -> tuple[str | Text, ...]:
    return (
        str(rank.rank),
        rank.host,
        rank.device,
        Text(_state(rank), style=_STATES.get(rank.state, "")),
        Text("yes", style=_GOOD) if rank.joined else Text("no", style=_POOR),
        span(rank.uptime) if rank.uptime else "",
        str(rank.restarts),
        rank.epoch[:8],
        rank.release[:SHORT],
        rank.digest[:SHORT],
    )


def _state(rank: RankStatus) -> str:
    ended = rank.state in ("failed", "inactive") and rank.exit_status is not None
    return f"{rank.state} (exit {rank.exit_status})" if ended else rank.state
