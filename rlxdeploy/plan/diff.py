"""How the files of one host will differ, as a person reads it."""

import difflib
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlxdeploy.model.files import HostFiles, RemoteFile
from rlxdeploy.model.host import Tree
from rlxdeploy.model.keyed import is_keyed, shown
from rlxdeploy.model.plan import Change, FileChange
from rlxdeploy.model.survey import FileSeen

# More text than a person reads; the digests stand for it.
_LONGEST_DIFF = 64 << 10
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Eyes:
    """What may be shown: *known* contents by digest, and the key under which secrets are digested.

    Two keyed digests are equal exactly where the contents are; without the key nobody can try
    likely contents against them.
    """

    known: Mapping[str, bytes]
    secret: bytes

    def name(self, digest: str, *, secret: bool) -> str:
        """Return what stands for a content."""
        return shown(digest, self.secret) if secret or is_keyed(digest) else digest[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file of a plan at its place on the host."""

    path: str
    file: RemoteFile
    stored: bool = False

    def differs(self, seen: FileSeen | None) -> bool:
        """Tell whether the host has it otherwise, or not at all."""
        if seen is None or seen.kind != "file" or seen.digest != self.file.digest:
            return True
        if self.file.owner and seen.owner != self.file.owner:
            return True
        # A stored file is shared: its mode is the store's business.
        return not self.stored and seen.mode != self.file.mode


def wanted_files(files: HostFiles, tree: Tree) -> tuple[Wanted, ...]:
    """Return every file of a host at its absolute path, released ones through `current`."""
    return (
        *(Wanted(f"{tree.current}/{one.path}", one) for one in files.released),
        *(Wanted(one.path, one) for one in files.installed),
        *((Wanted(files.key.path, files.key),) if files.key else ()),
        *(Wanted(tree.stored(one.digest), one, stored=True) for one in files.stored),
    )


def file_changes(
    wanted: tuple[Wanted, ...], seen: Mapping[str, FileSeen], tree: Tree, eyes: Eyes
) -> Iterator[FileChange]:
    """Yield what becomes of each file that will differ."""
    for one in wanted:
        was = seen.get(one.path)
        if one.differs(was):
            yield _change(one, was, eyes)
    paths = {one.path for one in wanted}
    for path in sorted(set(ours(seen, tree)) - paths):
        yield removal(path, seen[path], eyes)


def ours(seen: Mapping[str, FileSeen], tree: Tree) -> Iterator[str]:
    """Yield the paths that only rlxdeploy writes: the store is shared, and the mark stays."""
    for path in seen:
        released = path.startswith(f"{tree.current}/")
        own = released or path == tree.key or is_unit(path, tree)
        if own or _is_elsewhere(path, tree):
            yield path


def is_unit(path: str, tree: Tree) -> bool:
    """Tell whether *path* is a unit or a drop-in of this job."""
    return bool(tree.units) and path.startswith(f"{tree.units}/rlx-{tree.job}@")


def _is_elsewhere(path: str, tree: Tree) -> bool:
    """Tell whether *path* is a file of the job's in a folder of the person's.

    A host is asked about the system's tree and the user's; both have these names in them.
    """
    inside = (f"/rlx/{tree.job}/", "/rlx/store/", f"/rlx-{tree.job}@")
    return not any(part in path for part in inside)


def removal(path: str, seen: FileSeen, eyes: Eyes) -> FileChange:
    """Return the change of a file that will not be there."""
    before = eyes.name(seen.digest, secret=True)
    return FileChange(path, Change.REMOVED, before=before, size=seen.size)


def _change(one: Wanted, was: FileSeen | None, eyes: Eyes) -> FileChange:
    file = one.file
    return FileChange(
        path=one.path,
        change=Change.CREATED if was is None else Change.CHANGED,
        source=file.source,
        before="" if was is None else eyes.name(was.digest, secret=file.secret),
        after=eyes.name(file.digest, secret=file.secret),
        size=len(file.content),
        diff=_diff(one, was, eyes),
    )


def _diff(one: Wanted, was: FileSeen | None, eyes: Eyes) -> str:
    """Return unified text; digests for a secret, for no text, and for what we do not know."""
    lines = [] if was is None or one.stored else [*_modes(one, was)]
    if was is not None and was.digest == one.file.digest:
        return "".join(lines)
    before = b"" if was is None else eyes.known.get(was.digest)
    old, new = _text(before), _text(one.file.public)
    name = posixpath.relpath(one.path, "/")
    if old is None or new is None:
        was_named = "" if was is None else eyes.name(was.digest, secret=one.file.secret)
        now_named = eyes.name(one.file.digest, secret=one.file.secret)
        lines += [f"-{was_named}\n"] if was_named else []
        lines += [f"+{now_named} ({len(one.file.content)} bytes)\n"]
        return "".join(lines)
    origin = "/dev/null" if was is None else f"a/{name}"
    unified = difflib.unified_diff(old, new, origin, f"b/{name}")
    return "".join([*lines, *map(_whole_line, unified)])


def _modes(one: Wanted, was: FileSeen) -> Iterator[str]:
    if was.mode != one.file.mode:
        yield from (f"old mode {was.mode:04o}\n", f"new mode {one.file.mode:04o}\n")
    if one.file.owner and was.owner != one.file.owner:
        yield from (f"old owner {was.owner}\n", f"new owner {one.file.owner}\n")


def _text(content: bytes | None) -> list[str] | None:
    if content is None or len(content) > _LONGEST_DIFF or b"\0" in content:
        return None
    try:
        return content.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


def _whole_line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
