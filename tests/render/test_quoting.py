"""Values reach the process byte for byte, or are refused with the reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.model.names import refused_character
from rlxdeploy.render.quoting import (
    LONGEST_ENTRY,
    Unquotable,
    check_entry,
    env_value,
    exec_line,
    unit_value,
)
from rlxdeploy.runtime.envfile import parse_env

ALLOWED = st.text(st.characters(exclude_categories=["Cs"])).filter(
    lambda text: not refused_character(text)
)


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True), ALLOWED))
def test_quoting_and_reading_is_the_identity(values: dict[str, str]) -> None:
    """Whatever may stand in an environment comes back from the file as it went in."""
    text = "".join(f"{name}={env_value(value)}\n" for name, value in values.items())

    assert parse_env(text) == values


QUOTED = {
    "plain": ("0", '"0"'),
    "nothing": ("", '""'),
    "the shell's own": (
        "a\\b\"c $HOME 50%h 'x' #y `id`",
        r'"a\\b\"c \$HOME 50%h '
        r"""'x' #y \`id\`" """.strip(),
    ),
    "two lines": ("one\n\ttwo", '"one\n\ttwo"'),
}


@pytest.mark.parametrize(("value", "quoted"), QUOTED.values(), ids=QUOTED.keys())
def test_four_characters_are_escaped_in_an_environment(value: str, quoted: str) -> None:
    r"""Backslash, quote, dollar and backtick get a backslash, all else stays."""
    assert env_value(value) == quoted


REFUSED = ["\0", "\r", "\x1b", "\x7f", "\x85", "\ufdd0", "\ufffe", "\U0010ffff", "\ud800"]


@pytest.mark.parametrize("char", REFUSED, ids=lambda char: f"U+{ord(char):04X}")
def test_what_systemd_would_drop_is_refused(char: str) -> None:
    """Controls, noncharacters and lone surrogates are refused in values and in arguments."""
    with pytest.raises(Unquotable):
        env_value(f"a{char}b")
    with pytest.raises(Unquotable):
        exec_line(("/bin/true", f"a{char}b"))


def test_an_entry_as_long_as_linux_takes_passes_and_no_longer_one() -> None:
    """The limit counts the name, the sign and the value in bytes."""
    check_entry("A", "x" * (LONGEST_ENTRY - 2))

    with pytest.raises(Unquotable, match="131072 bytes"):
        check_entry("A", "é" + "x" * (LONGEST_ENTRY - 3))


COMMANDS = {
    "percent and dollar": (
        ("/bin/a", "50%h", "$HOME", "a${B}"),
        '"/bin/a" "50%%h" "$$HOME" "a$${B}"',
    ),
    "quotes and backslashes": (("/bin/a", 'say "x"', "c:\\d"), r'"/bin/a" "say \"x\"" "c:\\d"'),
    "a blank and an empty word": (("/opt/my py", "", "a b"), '"/opt/my py" "" "a b"'),
    "lines and tabs": (("/bin/a", "1\n2\t3"), r'"/bin/a" "1\n2\t3"'),
    "a lone semicolon": (("/bin/a", ";", "b"), '"/bin/a" ";" "b"'),
    "a dollar in the program": (("/opt/$a%/b",), '"/opt/$a%%/b"'),
}


@pytest.mark.parametrize(("argv", "line"), COMMANDS.values(), ids=COMMANDS.keys())
def test_arguments_are_literal(argv: tuple[str, ...], line: str) -> None:
    """No argument is split, expanded or read as a specifier."""
    assert exec_line(argv) == line


@pytest.mark.parametrize("text", ["a\nb", " a", "a ", "a\\"])
def test_a_path_that_a_unit_line_would_change_is_refused(text: str) -> None:
    """Line ends, outer blanks and a joining backslash cannot stand in a setting."""
    with pytest.raises(Unquotable):
        unit_value(text)
