"""Positions in TOML texts, against tomllib's reading of the same text."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlxdeploy.model.locate import KeyPath, locate

BARE = re.compile(r"[A-Za-z0-9_-]+")
KEYS = st.text("ab0-_.[]#= é\"'\\", max_size=4)
PLAIN_TEXT = st.text("ab.[]#={},'\"\\é\n", max_size=12)
TRICKY = st.sampled_from(
    ["[x]\nkey = 1\n", "]", "}", ",", "# no comment", "a = [1]\n[[b]]\n", '"""', "'''", "\\"]
)
SCALARS = st.one_of(
    st.integers(-99, 99), st.booleans(), st.just(1.5), PLAIN_TEXT, TRICKY, PLAIN_TEXT.map(str.upper)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
BLANKS = st.sampled_from(["", " ", "\t", "  "])
GAPS = st.sampled_from(["", " ", "\n", "# [x]\n", "\n  # it's = {\n "])


class Writer:
    """Writes a document as TOML in one of the many ways there are."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def _choice(self, *options: str) -> str:
        return self._draw(st.sampled_from(options))

    def _blank(self) -> str:
        return self._draw(BLANKS)

    def key(self, key: str) -> str:
        ways = [json.dumps(key, ensure_ascii=False)]
        ways += [key] if BARE.fullmatch(key) else []
        ways += [f"'{key}'"] if "'" not in key else []
        ways += ['"' + "".join(f"\\u{ord(char):04x}" for char in key) + '"']
        return self._choice(*ways)

    def dotted(self, path: tuple[str, ...]) -> str:
        return f"{self._blank()}.{self._blank()}".join(map(self.key, path))

    def text(self, text: str) -> str:
        escaped = json.dumps(text, ensure_ascii=False)
        ways = [escaped, f'""{escaped}""', f'"""\n{escaped[1:-1]}"""']
        body = text.replace("\\", "\\\\").replace('"', '\\"')
        ways += [f'"""{body}"""', f'"""\\\n   {escaped[1:-1]}"""'] if not text[:1].isspace() else []
        if "'" not in text:
            ways += [f"'''\n{text}'''"] + ([f"'{text}'"] if "\n" not in text else [])
        return self._choice(*ways)

    def value(self, value: object) -> str:
        match value:
            case bool():
                return str(value).lower()
            case str():
                return self.text(value)
            case list():
                items = [f"{self._gap()}{self.value(one)}{self._gap()}" for one in value]
                closing = self._choice("", ",") if items else ""
                return f"[{','.join(items)}{closing}{self._gap()}]"
            case dict():
                pairs = [self.pair((key,), one) for key, one in value.items()]
                return f"{{{self._blank()}{f'{self._blank()},'.join(pairs)}{self._blank()}}}"
            case _:
                return str(value)

    def _gap(self) -> str:
        return self._draw(GAPS)

    def pair(self, path: tuple[str, ...], value: object) -> str:
        if isinstance(value, dict) and len(value) == 1 and self._draw(st.booleans()):
            ((key, inner),) = value.items()
            return self.pair((*path, key), inner)
        return (
            f"{self._blank()}{self.dotted(path)}{self._blank()}={self._blank()}{self.value(value)}"
        )

    def table(self, path: tuple[str, ...], table: dict[str, Any]) -> Iterator[str]:
        headed = {
            key
            for key, value in table.items()
            if (isinstance(value, dict) or self._is_table_array(value))
            and self._draw(st.booleans())
        }
        for key, value in table.items():
            if key not in headed:
                yield self.pair((key,), value)
                yield self._choice("", "# [c]", "  ")
        for key in headed:
            inner = (*path, key)
            if isinstance(table[key], dict):
                yield f"[{self._blank()}{self.dotted(inner)}{self._blank()}] # = ["
                yield from self.table(inner, table[key])
                continue
            for element in table[key]:
                yield f"[[{self._blank()}{self.dotted(inner)}]]"
                yield from self.table(inner, element)

    def _is_table_array(self, value: object) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    lines = Writer(draw).table((), draw(DOCUMENTS))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


def paths_of(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    if isinstance(value, list):
        pairs = enumerate(value)
    for step, inner in pairs:
        yield (*path, step)
        yield from paths_of(inner, (*path, step))


def key_at(text: str, line: int, column: int) -> str:
    """Return the key that tomllib reads where a key is said to stand."""
    rest = text.replace("\r\n", "\n").split("\n")[line - 1][column - 1 :]
    token = re.match(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""", rest)
    assert token is not None, rest
    return next(iter(tomllib.loads(f"{token[0]} = 0")))


@given(toml_texts())
@settings(max_examples=300, deadline=None)
def test_every_key_that_tomllib_reads_stands_where_it_is_said_to(text: str) -> None:
    """For every path of a document, and no other, the text at its position is that key."""
    document = tomllib.loads(text)
    places = locate(text)

    assert set(places) == set(paths_of(document))
    for path, (line, column) in places.items():
        if isinstance(path[-1], str):
            assert key_at(text, line, column) == path[-1]


@given(toml_texts())
@settings(max_examples=100, deadline=None)
def test_array_elements_stand_in_their_order(text: str) -> None:
    """The positions of an array's elements ascend."""
    places = locate(text)

    for path, position in places.items():
        if isinstance(path[-1], int) and path[-1] > 0:
            assert places[*path[:-1], path[-1] - 1] < position


HAND_WRITTEN = {
    "a header inside a string": ('a = """\n[x]\nb = 1\n"""\nc = 1', ("c",), (5, 1)),
    "the second element of an array of tables": (
        "[[node]]\naddr = 'a'\n[[node]]\naddr = 'b'",
        ("node", 1, "addr"),
        (4, 1),
    ),
    "a table under an array's last element": (
        "[[n]]\n[n.a]\nx = 1\n[[n]]\n[n.a]\nx = 2",
        ("n", 1, "a", "x"),
        (6, 1),
    ),
    "a dotted key": ('job . "env".A = "x"', ("job", "env", "A"), (1, 13)),
    "an element of a nested array": ("a = [[1, 2],\n [3]]", ("a", 1, 0), (2, 3)),
    "a key after an inline table": ("a = {b = 1}\nc = 2", ("c",), (2, 1)),
    "quotes that close a string of quotes": ('a = """""x"""""\nb = 1', ("b",), (2, 1)),
    "a date with a blank": ("a = [1979-05-27 07:32:00, 2]", ("a", 1), (1, 27)),
    "columns of wide characters": ("'é😀' = 1\n[t]\n'é😀'.b = 1", ("t", "é😀", "b"), (3, 6)),
}


@pytest.mark.parametrize(
    ("text", "path", "position"), HAND_WRITTEN.values(), ids=HAND_WRITTEN.keys()
)
def test_a_key_is_found_by_line_and_column(
    text: str, path: KeyPath, position: tuple[int, int]
) -> None:
    """Lines and columns count characters, from 1."""
    assert locate(text)[path] == position
