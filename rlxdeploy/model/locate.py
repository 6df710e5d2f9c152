"""Where in a TOML text each key and each array element stands.

tomllib gives values without positions, so this walks the same text once more.  The text must be
one that tomllib accepts: nothing is checked here, and what tomllib would refuse leads nowhere
in particular.  A key's position is that of its last segment; an array element's is its first
character, or the key of its `[[header]]`.
"""

import re
import tomllib
from bisect import bisect_right

KeyPath = tuple[str | int, ...]
Position = tuple[int, int]

_TRIVIA = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")

# A run of quotes ends a multi-line string at its first three, and up to two more belong to it.
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\[\s\S])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'"
    r"|[^,\]}#\n]+"
)


def locate(text: str) -> dict[KeyPath, Position]:
    """Return the line and column, from 1, of every key and array element of a TOML text."""
    unix = text.replace("\r\n", "\n")
    starts = [0, *(match.end() for match in re.finditer("\n", unix))]
    return {
        path: ((line := bisect_right(starts, at)), at - starts[line - 1] + 1)
        for path, at in _Walk(unix).offsets().items()
    }


class _Walk:
    """One pass over the text; *_at* is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: dict[KeyPath, int] = {}
        self._sizes: dict[KeyPath, int] = {}

    def offsets(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._peek_past(_TRIVIA):
            table = self._header() if self._peek() == "[" else self._pair(table)
        return self._found

    def _header(self) -> KeyPath:
        """Read `[a.b]` or `[[a.b]]`; return the path of the table it opens."""
        is_array = self._text.startswith("[[", self._at)
        self._at += 1 + is_array
        *parents, (name, at) = self._dotted()
        self._at += 1 + is_array
        path: KeyPath = ()
        for parent, parent_at in parents:
            path = self._current((*path, parent), parent_at)
        path = (*path, name)
        if not is_array:
            self._found[path] = at
            return path
        self._found.setdefault(path, at)
        index = self._sizes.get(path, 0)
        self._sizes[path] = index + 1
        self._found[(*path, index)] = at
        return (*path, index)

    def _current(self, path: KeyPath, at: int) -> KeyPath:
        """Note a table named on the way; of an array of tables, its last element is meant."""
        self._found.setdefault(path, at)
        return (*path, self._sizes[path] - 1) if path in self._sizes else path

    def _pair(self, table: KeyPath) -> KeyPath:
        """Read `a.b = value` in *table*, which is returned."""
        path = table
        for name, at in self._dotted():
            path = (*path, name)
            self._found.setdefault(path, at)
        self._at += 1
        self._value(path)
        return table

    def _dotted(self) -> list[tuple[str, int]]:
        """Read a key; return its segments with their offsets, and stop at what follows."""
        segments = []
        while True:
            self._peek_past(_BLANKS)
            start = self._at
            raw = self._take(_KEY)
            segments.append((_unquoted(raw), start))
            if self._peek_past(_BLANKS) != ".":
                return segments
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        match self._peek_past(_BLANKS):
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case _:
                self._take(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._peek_past(_TRIVIA) != "]":
            if self._peek() == ",":
                self._at += 1
                continue
            self._found[(*path, index)] = self._at
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._peek_past(_TRIVIA) != "}":
            if self._peek() == ",":
                self._at += 1
            else:
                self._pair(path)
        self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _peek_past(self, skipped: re.Pattern[str]) -> str:
        self._take(skipped)
        return self._peek()

    def _take(self, token: re.Pattern[str]) -> str:
        match = token.match(self._text, self._at)
        if match is None:
            raise ValueError(f"no TOML at offset {self._at}")
        self._at = match.end()
        return match[0]


def _unquoted(raw: str) -> str:
    """Return the key that *raw* spells; escapes are tomllib's own business."""
    if raw[0] not in "\"'":
        return raw
    return next(iter(tomllib.loads(f"{raw} = 0")))
