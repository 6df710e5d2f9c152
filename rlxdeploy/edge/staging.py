"""What one host does before GO, as calls of the functions in `deeds/stage.sh`.

Nothing that runs is touched: a release gets a folder of its own, and any other file lies beside its
place until GO.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from rlxdeploy.edge.contents import Payload
from rlxdeploy.model.plan import HostPlan
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    StageRelease,
    StartRanks,
    Step,
    StoreFile,
)
from rlxdeploy.model.vocabulary import Launch

# What root makes is root's.
_ROOTS_OWN = Launch.SYSTEMD, "root"


def begun(part: HostPlan, payload: Payload) -> Iterator[str]:
    """Yield the calls that make room for all files, and lay the files in *payload*."""
    for step in part.stage:
        # The largest contents come first: before them any gap would be wide.
        if isinstance(step, StoreFile):
            payload.place(step.digest)
    for step in part.stage:
        if isinstance(step, StageRelease):
            yield from _begun(step, payload)
    yield from _prepare(part, payload)


def finished(part: HostPlan, payload: Payload) -> Iterator[str]:
    """Yield the calls that make the files: releases first, which tell what the store is to keep."""
    yield from payload.calls()
    releases = [step.release for step in part.stage if isinstance(step, StageRelease)]
    sent = [step.digest for step in part.stage if isinstance(step, StoreFile)]
    for release in releases:
        yield _call("finish", release)
    for digest in sent:
        yield f"store {digest} {payload.place(digest)}"
    if releases:
        for digest in payload.stored:
            if digest not in sent:
                yield f"in_store {digest}"


def _begun(release: StageRelease, payload: Payload) -> Iterator[str]:
    paths = [file.path for file in release.files]
    yield _call("begin", release.release, *_folders(paths))
    # Our own two folders are known.
    others = [path for path in paths if not path.startswith(("env/", "process/"))]
    if others:
        yield _call("list_released", *others)
    for file in release.files:
        payload.lay(file.path, file.mode, "", payload.content(file.digest))


def _folders(paths: Sequence[str]) -> list[str]:
    """Return the folders that *paths* are in, each behind the one that it is in."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return sorted(folders - {"."})


def _prepare(part: HostPlan, payload: Payload) -> Iterator[str]:
    paths = [path for step in part.go if (path := _path(part, step))]
    if paths:
        yield _call("prepare", *paths)
    for step in part.go:
        match step:
            case InstallFile():
                content = payload.content(step.digest) if step.digest else payload.key
                safe = _is_ours(part, step.path)
                owner = "" if (part.launch, step.owner) == _ROOTS_OWN else step.owner
                payload.lay(f"{step.path}.rlx-new", step.mode, owner, content, safe=safe)
            case MarkDeployment():
                mark = {**step.fields, "files": payload.note(part.tree)}
                text = (json.dumps(mark) + "\n").encode()
                payload.lay(f"{part.tree.deployment}.rlx-new", 0o600, "", text)
            case StartRanks() if part.launch == Launch.PROCESS:
                yield _call("need_folder", part.tree.run_home)
                yield _call("need_folder", part.tree.logs)


def _path(part: HostPlan, step: Step) -> str:
    """Return where *step* puts a file that is staged beside its place, "" for none."""
    match step:
        case InstallFile():
            return step.path
        case MarkDeployment():
            return part.tree.deployment
        case _:
            return ""


def _is_ours(part: HostPlan, path: str) -> bool:
    """Tell whether nobody but who carries out the plan can put anything in the way at *path*."""
    tree = part.tree
    return path.startswith((f"{tree.home}/", *([f"{tree.units}/"] if tree.units else [])))


def _call(*words: str) -> str:
    return shlex.join(words)
