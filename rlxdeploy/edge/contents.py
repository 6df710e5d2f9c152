"""What goes to a host behind its script: contents, and the calls that make files of them.

The script takes the payload whole into a file, so that no reader ahead of time can swallow the line
that says GO.  Then it cuts the pieces out.  To start a process costs a host a millisecond, so there
are two kinds of content:

texts   together at the end, behind a marker, with a separator behind each: one process reads all of
        them, and the shell itself writes every one
others  one after the other, each once: one process each, where one begins at a multiple of its size
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from rlxdeploy.model.files import HostFiles
from rlxdeploy.model.host import Tree
from rlxdeploy.model.note import Note, note

# A shell splits at it, so no text may hold it.
SEPARATOR = b"\x1e"

# Shells lose NUL, some trip over other controls, and none is made for large values.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST_TEXT = 64 << 10

# So much of nothing may go over the wire to have a content begin at a multiple of its size.
_WIDEST_GAP = 32 << 10


@dataclass(frozen=True, slots=True)
class _Laid:
    """A file to be: *path* is absolute, or relative to the release that is being staged."""

    path: str
    mode: int
    owner: str
    content: bytes

    @property
    def manner(self) -> str:
        return f"{self.mode:o} {shlex.quote(self.owner)}"


class Payload:
    """Contents in the order in which they are first asked for, and the files made of them."""

    def __init__(self, files: HostFiles | None, marker: str) -> None:
        every = (*files.released, *files.installed, *files.stored) if files else ()
        self._contents = {file.digest: file.content for file in every}
        self._files = files
        self._marker = marker
        self._places: dict[str, str] = {}
        self._others = bytearray()
        self._texts: list[_Laid] = []
        self._puts: list[str] = []

    def content(self, digest: str) -> bytes:
        """Return the content that a plan names; raises KeyError."""
        return self._contents[digest]

    @property
    def stored(self) -> tuple[str, ...]:
        """The digests of the files that a release of the host needs in its store."""
        return tuple(file.digest for file in self._files.stored) if self._files else ()

    @property
    def key(self) -> bytes:
        """The content of the job's key; raises KeyError where there is none."""
        if self._files is None or self._files.key is None:
            raise KeyError("the job's key")
        return self._files.key.content

    def note(self, tree: Tree) -> Note:
        """Return what the mark of an apply says of the files that it leaves."""
        return note(self._files, tree) if self._files else {}

    def place(self, digest: str) -> str:
        """Return `offset bytes` of a content that is cut out by a process; raises KeyError."""
        if digest not in self._places:
            self._places[digest] = self._add(self._contents[digest])
        return self._places[digest]

    def lay(self, path: str, mode: int, owner: str, content: bytes, *, safe: bool = True) -> None:
        """Have a file; where others may write it is not *safe* to open it a second time."""
        file = _Laid(path, mode, owner, content)
        if safe and len(content) <= _LONGEST_TEXT and not _NO_TEXT.search(content):
            self._texts.append(file)
        else:
            self._puts.append(f"put {shlex.quote(path)} {file.manner} {self._add(content)}")

    def calls(self) -> Iterator[str]:
        """Yield the calls that make all files that were laid."""
        for manner, files in self._by_manner().items():
            yield f"lay {manner} {shlex.join(file.path for file in files)}"
        if self._texts:
            yield "fill"
        yield from self._puts

    @property
    def texts(self) -> bytes:
        """The end of the payload, in the order of `calls`; nothing where there is no payload."""
        if not self._texts and not self._others:
            return b""
        files = (file for files in self._by_manner().values() for file in files)
        return b"".join(
            one + SEPARATOR for one in (self._marker.encode(), *(file.content for file in files))
        )

    @property
    def whole(self) -> bytes:
        """All that follows the script."""
        return bytes(self._others) + self.texts

    @property
    def sizes(self) -> tuple[str, str]:
        """The bytes of the whole, and of the texts at its end."""
        texts = len(self.texts)
        return str(len(self._others) + texts), str(texts)

    def _by_manner(self) -> dict[str, list[_Laid]]:
        groups: dict[str, list[_Laid]] = {}
        for file in self._texts:
            groups.setdefault(file.manner, []).append(file)
        return groups

    def _add(self, content: bytes) -> str:
        if content:
            gap = -len(self._others) % len(content)
            self._others += bytes(gap if gap <= _WIDEST_GAP else 0)
        place = f"{len(self._others)} {len(content)}"
        self._others += content
        return place
