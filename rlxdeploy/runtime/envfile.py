r"""The environment file of a rank, read as systemd reads an `EnvironmentFile=`.

The deployer renders `NAME="value"` with `\ " $` and backtick escaped; comments, blank lines and
bare values without quotes, blanks or backslashes are read too.  What systemd would read in some
other way, or only warn about, is an error here, so that both launches start a rank with the same
environment.
"""

import re
from typing import Dict

_COMMENT = re.compile(r"[ \t]*(?:[#;][^\n]*)?(?:\n|\Z)")
_QUOTED = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"[ \t]*(?:\n|\Z)', re.DOTALL)
_BARE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([^\s\"'\\]*)[ \t]*(?:\n|\Z)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(r'\\(?:\n|(["\\$`]))')


class EnvFileError(ValueError):
    """A line that is no assignment; *line* counts from 1.

    Its value may be a secret, and the message is kept where others read: it shows the name alone.
    """

    def __init__(self, line: int, text: str) -> None:
        name, equals, _ = text.partition("=")
        got = repr(f"{name}=…") if equals and _NAME.fullmatch(name) else "something else"
        super().__init__(f'line {line}: expected NAME="value" or a comment, got {got}')
        self.line = line


def parse_env(text: str) -> Dict[str, str]:
    """Return the variables of an environment file; of a name set twice the last value counts.

    Raises EnvFileError for a line that is neither an assignment nor a comment.
    """
    values: Dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _QUOTED.match(text, at) or _BARE.match(text, at)
        if found:
            values[found.group(1)] = _ESCAPE.sub(r"\1", found.group(2))
        else:
            found = _COMMENT.match(text, at)
        if not found:
            raise EnvFileError(text.count("\n", 0, at) + 1, text[at:].partition("\n")[0])
        at = found.end()
    return values
