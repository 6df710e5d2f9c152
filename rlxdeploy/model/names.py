"""Names parsed once, at the border: what passes may go into a path or a unit without a look."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from rlxdeploy.model.variables import OURS, check_ours

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SLUG_LIMIT = 63
_LAST_OF_PLANE = 0xFFFE
_NONCHARACTERS = frozenset(map(chr, range(0xFDD0, 0xFDF0)))

# `<data>/store` stands beside the jobs' folders.
RESERVED_JOBS = frozenset({"store"})


def _slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValueError("use lower-case letters, digits and inner hyphens, 63 at most")
    return text


def check_job_name(text: str) -> str:
    """Return *text* if a job may be called so; raise ValueError if not."""
    if text in RESERVED_JOBS:
        raise ValueError(f"{text!r} is the name of a folder beside the jobs; choose another")
    return _slug(text)


def slugified(text: str) -> str:
    """Return the job name that *text* comes to: lower case, other characters made hyphens.

    Raises ValueError if nothing that may name a job is left.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_SLUG_LIMIT].rstrip("-")
    if not slug:
        raise ValueError(f"{text!r} yields no job name; write name in [job]")
    return check_job_name(slug)


def refused_character(text: str) -> str:
    r"""Return the first character that no line of a unit may carry, or "".

    LF and TAB pass; other controls and Unicode noncharacters do not: systemd drops the whole unit
    for one of them.
    """
    if text.isascii() and text.isprintable():
        return ""
    for char in text:
        if char not in "\n\t" and (unicodedata.category(char) == "Cc" or _is_noncharacter(char)):
            return char
    return ""


def _is_noncharacter(char: str) -> bool:
    return char in _NONCHARACTERS or ord(char) & _LAST_OF_PLANE == _LAST_OF_PLANE


def _content(text: str) -> str:
    if refused := refused_character(text):
        raise ValueError(f"the character U+{ord(refused):04X} does not survive a unit file")
    return text


def _line(text: str) -> str:
    if not text:
        raise ValueError("it is empty")
    if any(char in "\n\t" for char in text):
        raise ValueError("it must be one line without tabs")
    return _content(text)


def _relative(text: str) -> str:
    path = PurePosixPath(_line(text))
    if path.is_absolute() or ".." in path.parts or str(path) != text or text == ".":
        raise ValueError("write a plain relative path, without .. or a closing slash")
    return text


def _absolute(text: str) -> str:
    path = PurePosixPath(_line(text))
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError("write an absolute path, without ..")
    return text


def _ssh_word(text: str) -> str:
    if text.startswith("-") or any(char.isspace() for char in _line(text)):
        raise ValueError("it goes on ssh's command line: no blanks, and no hyphen in front")
    return text


def _matching(pattern: str, wish: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(wish)
        return text

    return check


def _env_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError("a variable's name has letters, digits and underscores only")
    return check_ours(text)


def parse_layers(text: str) -> tuple[int, int]:
    """Return the bounds of a half-open range `a:b`; raise ValueError if it is none."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError(f"bad layers {text!r}: write first:end, half open, as in '0:16'")
    return int(match[1]), int(match[2])


def _layers(text: str) -> str:
    parse_layers(text)
    return text


def _pattern(regex: str) -> object:
    return Field(json_schema_extra={"pattern": regex})


Slug = Annotated[str, AfterValidator(_slug), _pattern(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
JobName = Annotated[
    str, AfterValidator(check_job_name), _pattern(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
]
Text = Annotated[str, AfterValidator(_line), _pattern(r"^[^\n\t\r]+$")]
Content = Annotated[str, AfterValidator(_content)]
RelativePath = Annotated[str, AfterValidator(_relative), _pattern(r"^[^/]")]
AbsolutePath = Annotated[str, AfterValidator(_absolute), _pattern(r"^/")]
FileMode = Annotated[
    str,
    AfterValidator(_matching(r"0?[0-7]{3}", 'write an octal string such as "0640"')),
    _pattern(r"^0?[0-7]{3}$"),
]
UserName = Annotated[
    str,
    AfterValidator(_matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}\$?", "that is no account name")),
    _pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}\$?$"),
]
InterfaceName = Annotated[
    str,
    AfterValidator(_matching(r"[^\s/:]{1,15}", "that is no interface name")),
    _pattern(r"^[^\s/:]{1,15}$"),
]
SecretSource = Annotated[
    str,
    AfterValidator(
        _matching(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+", 'write "env:NAME" or "file:PATH"')
    ),
    _pattern(r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$"),
]
SshHost = Annotated[str, AfterValidator(_ssh_word), _pattern(r"^[^-\s]\S*$")]
LayerRange = Annotated[str, AfterValidator(_layers), _pattern(r"^\s*[0-9]+\s*:\s*[0-9]+\s*$")]
EnvName = Annotated[
    str,
    AfterValidator(_env_name),
    Field(
        json_schema_extra={"pattern": r"^[A-Za-z_][A-Za-z0-9_]*$", "not": {"enum": sorted(OURS)}}
    ),
]

# What a person reads for a machine: an SSH alias as written, or `local` for the controller.
HostName = str
