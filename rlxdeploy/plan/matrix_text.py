"""A preflight's matrix as lines a person reads; big ones are told by who fails alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rlxdeploy.model.preflight import Blocked, How, Link, Matrix, Tried
from rlxdeploy.plan.epoch import named
from rlxdeploy.plan.text import Line, Tone

# As many columns as an ordinary terminal has room for.
_GRID = 8
_LINES = 12

_CELLS = {How.ANSWERED: "ok", How.STRANGER: "stranger", How.TAKEN: "in use", How.DEAF: "deaf"}

_HINTS = {
    How.REFUSED: "its listener was up: a firewall rejects it, or the address leads elsewhere",
    How.SILENT: "a firewall drops it, or no way leads there",
    How.NO_ROUTE: "no way leads there, or a firewall says so",
    How.STRANGER: "another machine, a forward or a proxy has that address",
}


def matrix_lines(matrix: Matrix) -> Iterator[Line]:
    """Yield what a preflight found: a sentence, and all that did not answer."""
    yield Line(_summary(matrix), Tone.PLAIN if matrix.ok else Tone.REMOVED)
    open_ends = [one for one in matrix.tried if one.found.how is not How.ANSWERED]
    if matrix.why_not or not (open_ends or matrix.blocked):
        return
    yield from _grid(matrix)
    lines = [*map(_blocked, matrix.blocked), *_failures(open_ends), *_rest(open_ends)]
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield Line(f"  and {len(lines) - _LINES} more; --json has them all", Tone.NOTICE)


def _summary(matrix: Matrix) -> str:
    if matrix.why_not:
        return f"preflight: nothing to try: {matrix.why_not}"
    answered, total = matrix.count(How.ANSWERED), len(matrix.tried)
    of = f"{answered}" if answered == total else f"{answered} of {total}"
    links = "link" if total == 1 else "links"
    open_ends = [
        f"{count} {how}" for how in (How.UNPROVEN, How.SPARED) if (count := matrix.count(how))
    ]
    told = f", {', '.join(open_ends)}" if open_ends else ""
    if matrix.untried:
        told += f"; a sample of {total + matrix.untried:,}"
    return f"preflight: {of} {links} answered in {matrix.seconds:.1f} s{told}"


def _grid(matrix: Matrix) -> Iterator[Line]:
    """Yield who dials along the rows and who is dialled along the columns, where there is room."""
    links = [one.link for one in matrix.tried]
    rows, columns = sorted({one.dialler for one in links}), sorted({one.listener for one in links})
    if len(columns) > _GRID or len(rows) > _GRID:
        return
    cells = {(one.link.dialler, one.link.listener): _cell(one.found.how) for one in matrix.tried}
    table = [["", *(f"to {rank}" for rank in columns)]]
    table += [[f"rank {row}", *(cells.get((row, to), "-") for to in columns)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield Line(f"  {'  '.join(padded).rstrip()}", Tone.PLAIN if number else Tone.QUIET)


def _cell(how: How) -> str:
    return _CELLS.get(how, how.value)


def _blocked(one: Blocked) -> Line:
    detail, taken = one.found.detail, one.found.how is How.TAKEN
    told = f" {detail if taken else f'({detail})'}" if detail else ""
    remedy = f"; {one.remedy}" if one.remedy else ""
    where = f"rank {one.rank} on {one.host} at {one.at}"
    return Line(f"  {where}: {one.found.how}{told}{remedy}", Tone.REMOVED)


def _failures(tried: Iterable[Tried]) -> Iterator[Line]:
    """Yield the links that failed, the alike together; those to a rank that is deaf are told."""
    told = {How.TAKEN, How.DEAF}
    for (how, detail), links in _alike(
        one for one in tried if one.found.how.bad and one.found.how not in told
    ).items():
        why = f"{how} ({detail})" if detail else f"{how}"
        hint = f"; {_HINTS[how]}" if how in _HINTS else ""
        for ends in _together(links):
            yield Line(f"  {ends}: {why}{hint}", Tone.REMOVED)


def _rest(tried: Iterable[Tried]) -> Iterator[Line]:
    """Yield the links that nobody could or would dial, all with one reason together."""
    for (how, detail), links in _alike(one for one in tried if not one.found.how.bad).items():
        diallers, listeners = {one.dialler for one in links}, {one.listener for one in links}
        yield Line(f"  {named(diallers)} to {named(listeners)}: {how}: {detail}", Tone.NOTICE)


def _alike(tried: Iterable[Tried]) -> Mapping[tuple[How, str], list[Link]]:
    found: dict[tuple[How, str], list[Link]] = {}
    for one in tried:
        found.setdefault((one.found.how, one.found.detail), []).append(one.link)
    return found


def _together(links: Sequence[Link]) -> list[str]:
    """Return both ends of *links* in the fewest words: by who is dialled, or by who dials."""
    called: dict[int, list[Link]] = {}
    calling: dict[int, list[Link]] = {}
    for link in links:
        called.setdefault(link.listener, []).append(link)
        calling.setdefault(link.dialler, []).append(link)
    if len(called) <= len(calling):
        return [f"{_diallers(few)} to {_listener(few[0])}" for few in called.values()]
    return [f"{_dialler(few[0])} to {_listeners(few)}" for few in calling.values()]


def _diallers(links: Sequence[Link]) -> str:
    return _dialler(links[0]) if len(links) == 1 else named({one.dialler for one in links})


def _listeners(links: Sequence[Link]) -> str:
    return _listener(links[0]) if len(links) == 1 else named({one.listener for one in links})


def _dialler(link: Link) -> str:
    return f"rank {link.dialler} on {link.source}"


def _listener(link: Link) -> str:
    return f"rank {link.listener} on {link.target} at {link.to}"
