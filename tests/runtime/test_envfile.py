"""The environment file is read as systemd reads it, or refused."""

from typing import Dict, Tuple

import pytest

from rlxdeploy.runtime.envfile import EnvFileError, parse_env

FILES: Dict[str, Tuple[str, Dict[str, str]]] = {
    "nothing": ("", {}),
    "quoted": (
        'RANK="0"\nPEERS="10.0.0.1:29500,[fd00::5]:29500"\n',
        {"RANK": "0", "PEERS": "10.0.0.1:29500,[fd00::5]:29500"},
    ),
    "no newline at the end": ('A="1"', {"A": "1"}),
    "bare": ("A=1\nB=\n", {"A": "1", "B": ""}),
    "comments and blanks": ('# a\n\n  ; b\n \t\nA="1" \n', {"A": "1"}),
    "a hash in a value": ('A="x #y"\n', {"A": "x #y"}),
    "the four escapes": (r'A="\\ \" \$ \`"', {"A": '\\ " $ `'}),
    "a backslash before another character stays": (r'A="\n\x41"', {"A": r"\n\x41"}),
    "a backslash before a line end joins lines": ('A="a\\\nb"', {"A": "ab"}),
    "lines and tabs": ('A="one\n\ttwo\n# three"\nB="4"\n', {"A": "one\n\ttwo\n# three", "B": "4"}),
    "the last one counts": ('A="1"\nA="2"\n', {"A": "2"}),
}


@pytest.mark.parametrize(("text", "values"), FILES.values(), ids=FILES.keys())
def test_a_file_is_read_as_systemd_reads_it(text: str, values: Dict[str, str]) -> None:
    """Quotes, the four escapes, line ends and comments mean what they mean to systemd."""
    assert parse_env(text) == values


REFUSED = {
    "no assignment": ("A=1\nhello\n", 2),
    "no name": ('="1"\n', 1),
    "a blank before the sign": ('A ="1"\n', 1),
    "an open quote": ('# c\n\nA="1\nB="2"\n', 3),
    "text after the quote": ('A="1"x\n', 1),
    "single quotes": ("A='1'\n", 1),
    "an export": ("export A=1\n", 1),
}


@pytest.mark.parametrize(("text", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_be_read_in_two_ways_is_refused(text: str, line: int) -> None:
    """A line that is neither ours nor a comment is an error that names it."""
    with pytest.raises(EnvFileError, match=f"line {line}: ") as caught:
        parse_env(text)

    assert caught.value.line == line


def test_what_cannot_be_read_is_not_quoted() -> None:
    """The value of a broken line may be a secret, and the message goes where others read it."""
    with pytest.raises(EnvFileError, match="TOKEN=") as caught:
        parse_env("TOKEN=never shown\n")

    assert "never" not in str(caught.value)
