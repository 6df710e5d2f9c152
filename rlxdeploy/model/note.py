"""What an apply notes on a host of the files it leaves there (`model.stray` compares)."""

from collections.abc import Mapping

from rlxdeploy.model.files import HostFiles, RemoteFile
from rlxdeploy.model.host import Tree

# Digest, mode and owner, as JSON has them; no mode where it may be any.
Note = Mapping[str, tuple[str, int | None, str]]


def note(files: HostFiles, tree: Tree) -> Note:
    """Return every file of a host by its absolute path, released ones through `current`.

    The digests are those of the contents themselves: this is for the host alone.
    """
    noted = {f"{tree.current}/{one.path}": _noted(one) for one in files.released}
    noted |= {one.path: _noted(one) for one in files.installed}
    for one in files.stored:
        noted[tree.stored(one.digest)] = (one.sha256, None, "")
    if files.key:
        noted[files.key.path] = _noted(files.key)
    return noted


def _noted(file: RemoteFile) -> tuple[str, int | None, str]:
    return file.sha256, file.mode, file.owner
