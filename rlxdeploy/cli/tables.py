"""Tables that people read: plain columns, one line a rank, colour only where it says something."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from rlxdeploy.app.look import RankStatus, Status

_GOOD, _POOR, _BAD = "green", "yellow", "red"
_STATES = {"active": _GOOD, "activating": _POOR, "failed": _BAD, "missing": _BAD}
SHORT = 12
GAP = 2

TITLES = (
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
STATE = TITLES.index("state")

# In the order in which a narrow terminal does without them.
SPARE = ("epoch", "release", "digest", "restarts", "uptime", "device")


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield *rows* as lines in which the cells of a column begin at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width + GAP) for cell, width in zip(row, widths, strict=True))
        yield "".join(cells).rstrip()


def status_lines(status: Status, width: int | None = None) -> Iterator[Text]:
    """Yield a heading and one line a rank; nothing for no ranks.

    Widths follow the content, so nothing is cut; where that is more than *width*, whole columns
    are left out, first those that the ranks of a group have in common.
    """
    if not status.ranks:
        return
    rows = [_cells(rank, proven=status.proven) for rank in status.ranks]
    widths = [max(map(len, column)) for column in zip(TITLES, *rows, strict=True)]
    shown = _fitting(widths, width)
    yield _line([Text(TITLES[one]) for one in shown], [widths[one] for one in shown], "bold")
    for rank, cells in zip(status.ranks, rows, strict=True):
        styled = [Text(cell) for cell in cells]
        styled[STATE].stylize(_STATES.get(rank.state, ""))
        styled[STATE + 1].stylize(_GOOD if rank.joined else _POOR)
        yield _line([styled[one] for one in shown], [widths[one] for one in shown], "")


def span(seconds: float) -> str:
    """Return a duration as people say it: `12s`, `4m 03s`, `2h 10m`, `3d 04h`."""
    whole = int(seconds)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d {hours % 24:02}h"
    if hours:
        return f"{hours}h {minutes % 60:02}m"
    return f"{minutes}m {whole % 60:02}s" if minutes else f"{whole}s"


def _fitting(widths: Sequence[int], width: int | None) -> list[int]:
    """Return the columns to show in *width*; those that nobody can do without always are."""
    shown = list(range(len(TITLES)))
    for title in SPARE:
        if width is None or sum(widths[one] + GAP for one in shown) - GAP <= width:
            break
        shown.remove(TITLES.index(title))
    return shown


def _line(cells: Iterable[Text], widths: Sequence[int], style: str) -> Text:
    line = Text(style=style)
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell)
        line.append(" " * (width - len(cell) + GAP))
    line.rstrip()
    return line


def _cells(rank: RankStatus, *, proven: bool) -> tuple[str, ...]:
    return (
        str(rank.rank),
        rank.host,
        rank.device or "-",
        _state(rank),
        ("yes" if proven else "not proven") if rank.joined else "no",
        span(rank.uptime) if rank.uptime else "-",
        str(rank.restarts),
        rank.epoch[:8] or "-",
        rank.release[:SHORT] or "-",
        rank.digest[:SHORT] or "-",
    )


def _state(rank: RankStatus) -> str:
    ended = rank.state in ("exited", "failed", "inactive") and rank.exit_status is not None
    return f"{rank.state} (exit {rank.exit_status})" if ended else rank.state
