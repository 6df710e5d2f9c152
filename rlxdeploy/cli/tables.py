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

# What there is of a group that has formed; the digest is the built-in node's alone.
_OF_A_GROUP = ("epoch", "digest")
NOTHING = "-"

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
    are left out, first those that the ranks of a group have in common.  Epoch and digest are shown
    where a rank has one.
    """
    if not status.ranks:
        return
    rows = [_cells(rank, proven=status.proven) for rank in status.ranks]
    widths = [max(map(len, column)) for column in zip(TITLES, *rows, strict=True)]
    shown = _fitting(_telling(rows), widths, width)
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


def _telling(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that are for this job: none of what only another's ranks could say."""
    bare = {
        one for one in map(TITLES.index, _OF_A_GROUP) if {row[one] for row in rows} == {NOTHING}
    }
    return [one for one in range(len(TITLES)) if one not in bare]


def _fitting(columns: Sequence[int], widths: Sequence[int], width: int | None) -> list[int]:
    """Return which of *columns* to show in *width*; those that nobody can do without always are."""
    shown = [*columns]
    for spare in map(TITLES.index, SPARE):
        if width is None or sum(widths[one] + GAP for one in shown) - GAP <= width:
            break
        shown = [one for one in shown if one != spare]
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
        rank.device or NOTHING,
        _state(rank),
        ("yes" if proven else "not proven") if rank.joined else "no",
        span(rank.uptime) if rank.uptime else NOTHING,
        str(rank.restarts),
        rank.epoch[:8] or NOTHING,
        rank.release[:SHORT] or NOTHING,
        rank.digest[:SHORT] or NOTHING,
    )


def _state(rank: RankStatus) -> str:
    ended = rank.state in ("exited", "failed", "inactive") and rank.exit_status is not None
    return f"{rank.state} (exit {rank.exit_status})" if ended else rank.state
