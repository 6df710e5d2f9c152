r"""How a value gets through an environment file and a unit file unchanged.

systemd (man systemd.exec, EnvironmentFile=) takes a double-quoted value with `\ " $` and backtick
escaped, line feeds included.  In `ExecStart=` a double-quoted word knows C escapes, `%%` and `$$`
(man systemd.service, COMMAND LINES; man systemd.unit, SPECIFIERS).
"""

import re

from rlxdeploy.model.names import refused_character

# Linux refuses to start a program with a longer NAME=value (E2BIG; MAX_ARG_STRLEN less the NUL).
LONGEST_ENTRY = 131_071

_IN_ENV = re.compile(r'[\\"$`]')
_IN_WORD = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t", "%": "%%"}


class Unquotable(ValueError):
    """A value that no file of ours can carry to the process unchanged."""


def env_value(value: str) -> str:
    """Return *value* quoted for an environment file; raise Unquotable where none can carry it."""
    return '"' + _IN_ENV.sub(r"\\\g<0>", _checked(value)) + '"'


def check_entry(name: str, value: str) -> None:
    """Raise Unquotable if `name=value` cannot be an entry of a process's environment."""
    size = len(f"{name}={_checked(value)}".encode())
    if size > LONGEST_ENTRY:
        raise Unquotable(f"{size} bytes are more than Linux hands to a process ({LONGEST_ENTRY})")


def exec_line(argv: tuple[str, ...]) -> str:
    """Return *argv* as the value of `ExecStart=`, each word taken literally.

    *argv[0]* is an absolute path: systemd expands no variable in it, so its `$` stays single.
    Raises Unquotable for a word that no unit can carry.
    """
    program, *arguments = argv
    return " ".join([_word(program), *(_word(word).replace("$", "$$") for word in arguments)])


def unit_value(text: str) -> str:
    """Return *text*, one line, as the value of a setting in which systemd expands specifiers."""
    if "\n" in text or text != text.strip() or text.endswith("\\"):
        raise Unquotable(f"{text!r} does not survive as a line of a unit")
    return _checked(text).replace("%", "%%")


def _word(text: str) -> str:
    return '"' + "".join(_IN_WORD.get(char, char) for char in _checked(text)) + '"'


def _checked(text: str) -> str:
    if refused := refused_character(text):
        raise Unquotable(f"the character U+{ord(refused):04X} does not survive")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unquotable("it is no valid Unicode text") from None
    return text
