"""Measured times as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple


class Case(NamedTuple):
    """One collective on arrays of *size* bytes a rank."""

    op: str
    dtype: str
    size: int


class Timing(NamedTuple):
    """What a case took with each peer, in seconds, one figure a round."""

    case: Case
    seconds: Mapping[str, Sequence[float]]


class Done(NamedTuple):
    """A run: what it is, what its cases took, and what bare sockets did in it.

    The first contender of a timing is set against the others.
    """

    title: str
    about: str
    timings: Sequence[Timing]
    limit: Mapping[str, Any]


def section(machine: str, command: str, done: Iterable[Done]) -> str:
    """Return all tables, with what made them."""
    how = (
        f"Measured by `{command}` on {machine}, over loopback unless a table says otherwise. "
        "Times are medians in microseconds; a ratio below 1 means that the first one is faster."
    )
    parts = [how]
    for title, about, timings, limit in done:
        parts += [f"### {title}", f"{about}\n\n{_limit(limit)}" if about else _limit(limit)]
        parts.append(_table(timings))
    return "\n\n".join(parts)


def _limit(limit: Mapping[str, Any]) -> str:
    return (
        f"The bare socket in this run: {limit['gbytes']:.1f} GB/s one way, "
        f"{limit['exchange_us']:.1f} µs to exchange 40 bytes; load average {limit['load']:.1f}."
    )


def _table(timings: Sequence[Timing]) -> str:
    first, *others = timings[0].seconds
    heads = ["collective", "bytes", first, *others, *(f"{first} / {peer}" for peer in others)]
    lines = [_row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    for case, seconds in timings:
        middle = {peer: median(rounds) for peer, rounds in seconds.items() if rounds}
        cells = [f"{case.op} {case.dtype}".strip(), _size(case.size)]
        cells += [_micro(middle.get(peer)) for peer in (first, *others)]
        cells += [_ratio(middle[first], middle.get(peer)) for peer in others]
        lines.append(_row(cells))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _size(size: int) -> str:
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def _micro(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:.0f}"  # noqa: PLR2004 - three digits


def _ratio(ours: float, theirs: float | None) -> str:
    return "-" if theirs is None else f"{ours / theirs:.2f}"
