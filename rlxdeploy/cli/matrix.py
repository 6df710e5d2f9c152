"""A preflight on the screen and as JSON."""

from rlxdeploy.cli.screen import Screen
from rlxdeploy.model.preflight import Blocked, Matrix, Tried
from rlxdeploy.plan.matrix_text import matrix_lines
from rlxdeploy.plan.text import Tone

_STYLES = {Tone.REMOVED: "red", Tone.NOTICE: "yellow", Tone.QUIET: "dim"}


def show_matrix(screen: Screen, matrix: Matrix) -> None:
    """Print what a preflight found, on stderr where it failed."""
    for line in matrix_lines(matrix):
        screen.tell(line.text, _STYLES.get(line.tone, ""), failed=not matrix.ok)


def matrix_document(matrix: Matrix | None) -> dict[str, object] | None:
    """Return every link that was looked at as JSON shows it, None where there was no preflight."""
    if matrix is None:
        return None
    return {
        "ok": matrix.ok,
        "not_needed": matrix.why_not,
        "seconds": round(matrix.seconds, 3),
        "untried": matrix.untried,
        "links": [_link(one) for one in matrix.tried],
        "blocked": [_blocked(one) for one in matrix.blocked],
    }


def _link(one: Tried) -> dict[str, object]:
    link = one.link
    return {
        "from": link.dialler,
        "from_host": link.source,
        "to": link.listener,
        "to_host": link.target,
        "address": str(link.to),
        "how": one.found.how.value,
        "detail": one.found.detail,
    }


def _blocked(one: Blocked) -> dict[str, object]:
    return {
        "rank": one.rank,
        "host": one.host,
        "address": str(one.at),
        "how": one.found.how.value,
        "detail": one.found.detail,
        "remedy": one.remedy,
    }
