"""What a host has made of its image, read off the layer of its disk that lies above it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def written(base: Path, upper: Path, below: str) -> Iterator[str]:
    """Tell of all below the absolute path *below* that is not as in *base*, one thing a line.

    Of a file the line has the content too: whatever was written, changed or only touched lies in
    *upper*, and the thousands of others need not be looked at.
    """
    for folder, folders, files in os.walk(upper / below.lstrip("/")):
        for path in (Path(folder, name) for name in sorted((*folders, *files))):
            place = path.relative_to(upper)
            about = _about(path.lstat())
            if stat.S_ISDIR(path.lstat().st_mode) and _is_so(base / place, about):
                continue
            yield f"{about} /{place}{_content(path)}"


def _about(status: os.stat_result) -> str:
    return f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"


def _is_so(path: Path, about: str) -> bool:
    return path.is_dir() and _about(path.lstat()) == about


def _content(path: Path) -> str:
    if path.is_symlink():
        return f" -> {path.readlink()}"
    if path.is_file():
        return f" {hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
    return ""
