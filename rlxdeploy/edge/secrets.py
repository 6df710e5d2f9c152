"""The values of an inventory's secrets: from the environment of the controller, or from its files.

They are held in memory alone.  No message quotes a value, or any part of one.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rlxdeploy.edge.files import beside
from rlxdeploy.errors import Finding, InventoryError
from rlxdeploy.model.job import Secret
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.names import refused_character
from rlxdeploy.model.secrets import secrets_of

# As long as an entry of an environment may be (MAX_ARG_STRLEN); rendering counts the name, too.
LONGEST = 131_071
_LINE_ENDS = ("\r\n", "\n")


class Unfit(ValueError):
    """Why a secret cannot be had, and what to do about it."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


def fetch_secrets(loaded: Loaded, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the value of every secret of *loaded* by its `from`.

    A file is named from the inventory's folder, and one line end at its end is not part of the
    value.  Raises InventoryError with each secret that is not there, empty, or cannot reach a
    process, at the place of its `from`.
    """
    folder = Path(loaded.path).parent
    values: dict[str, str] = {}
    findings: list[Finding] = []
    for path, secret in secrets_of(loaded.inventory):
        try:
            values[secret.source] = _checked(_fetched(secret, environ, folder))
        except Unfit as error:
            what = f"{secret.source}: {error.why}"
            findings.append(loaded.finding((*path, "from"), what, error.remedy))
    if findings:
        raise InventoryError(findings)
    return values


def _fetched(secret: Secret, environ: Mapping[str, str], folder: Path) -> str:
    kind, _, name = secret.source.partition(":")
    if kind == "file":
        return _without_line_end(_text(name, folder))
    if name not in environ:
        raise Unfit("there is no such variable here", f"export {name}, then try again")
    return environ[name]


def _text(name: str, folder: Path) -> str:
    try:
        return _content(beside(folder, name)).decode()
    except FileNotFoundError:
        raise Unfit("there is no such file", f"a path is read from {folder}") from None
    except OSError as error:
        raise Unfit(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise Unfit("it is no UTF-8 text", "encode it, in base64 for example") from None


def _content(path: Path) -> bytes:
    """Return what is in a file, no more than is needed to see that it is too long."""
    # A pipe without a writer would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unfit("it is no regular file", "name a file that holds the value alone")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LONGEST + len(_LINE_ENDS[0]) + 1)
    finally:
        os.close(descriptor)


def _without_line_end(text: str) -> str:
    end = next((end for end in _LINE_ENDS if text.endswith(end)), "")
    return text.removesuffix(end)


def _checked(value: str) -> str:
    """Return *value* if an environment file can carry it."""
    if not value:
        raise Unfit("it is empty", "leave the variable out of env where it is not needed")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Unfit("it is no UTF-8 text", "encode it, in base64 for example") from None
    if size > LONGEST:
        raise Unfit(f"it is longer than Linux hands to a process ({LONGEST} bytes)")
    if refused := refused_character(value):
        what = f"the character U+{ord(refused):04X} in it does not survive"
        raise Unfit(what, "encode it, in base64 for example")
    return value
