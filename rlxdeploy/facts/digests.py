"""What of the job lies on a host: the mark of the last apply, the releases and our files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pydantic import BaseModel, TypeAdapter, ValidationError

from rlxdeploy.facts import rows
from rlxdeploy.facts.places import (
    SYSTEM_DATA,
    SYSTEM_DROP_INS,
    SYSTEM_UNITS,
    USER_DATA,
    USER_DROP_INS,
    USER_PLACES,
    USER_UNITS,
    tagged,
    with_privilege,
)
from rlxdeploy.facts.process import start_time
from rlxdeploy.facts.question import AnswerError, Answers, Question, fields, quoted, whole
from rlxdeploy.facts.tree import LOOK
from rlxdeploy.model.stray import How, Noted, Stray, strays
from rlxdeploy.model.survey import Deployed, FileSeen, JobSeen
from rlxdeploy.model.targets import Enquiry

SYSTEM, USER = "system files", "user files"


class _Note(BaseModel):
    """What the mark of an apply says of files (`model.note`)."""

    files: Mapping[str, tuple[str, int | None, str]]


_DEPLOYED = TypeAdapter(Deployed)
_DIGEST = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)")
# The store holds locks and half-written files besides.
_IN_STORE, _STORED = re.compile("/store/[^/]*$"), re.compile("/store/[0-9a-f]{64}$")
_TYPE_BITS = 0o170000
_LINK_BITS = 0o120000


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the job's files in either tree."""
    words = (SYSTEM_DATA, enquiry.job, SYSTEM_UNITS, *SYSTEM_DROP_INS)
    there = f"[ -d {SYSTEM_DATA} ] || exit 0\n"
    others = " ".join(f'"{folder}"' for folder in USER_DROP_INS)
    own = f'"{USER_DATA}" {quoted([enquiry.job])} "{USER_UNITS}" {others}'
    in_home = f"set -- {own}\n{LOOK}"
    return (
        Question(SYSTEM, there + with_privilege(LOOK, *words, sudo=enquiry.sudo), row=rows.ROOT),
        Question(USER, USER_PLACES + in_home, row=rows.HOME),
    )


def parse(answers: Answers) -> JobSeen:
    """Read both trees as one job; the mark with the higher generation says where it stands.

    Files of both trees are reported, so that what a change of launch left behind can be seen.
    Raises AnswerError where a mark is there and cannot be read: it might be another's; Unanswered
    where a tree is not known, since nobody may plan over what might lie there.
    """
    trees = [_tree(name, answers.required(name)) for name in (SYSTEM, USER)]
    first = max(trees, key=_precedence)
    files = {path: seen for tree in trees for path, seen in tree.files.items()}
    return JobSeen(
        deployed=first.deployed,
        current=first.current,
        releases=first.releases,
        files=files,
        locked_by=next((tree.locked_by for tree in trees if tree.locked_by), ""),
        kept=first.kept,
        unconfirmed=first.unconfirmed,
        shared=tuple(digest for tree in trees for digest in tree.shared),
        strays=tuple(stray for tree in trees for stray in tree.strays),
    )


def _precedence(tree: JobSeen) -> tuple[int, int]:
    deployed = tree.deployed
    return (deployed.generation if deployed else -1, len(tree.releases))


def _tree(name: str, text: str) -> JobSeen:
    said: dict[str, list[str]] = {}
    for tag, rest in _tagged(text):
        said.setdefault(tag, []).append(rest)
    current = said.get("current", [""])[0].rstrip("/").rpartition("/")[2]
    deployed, files = _deployed(name, said), _files(said)
    unconfirmed = next(iter(said.get("unconfirmed", [])), None)
    releases = (*_made(said), *(path.rpartition("/")[2] for path in said.get("release", [])))
    return JobSeen(
        deployed=deployed,
        current=current,
        releases=tuple(release for release in releases if not release.endswith(".tmp")),
        files=files,
        locked_by=_locked_by(said),
        kept={name: mark for name, mark in _kept(said) if name != current},
        unconfirmed=unconfirmed,
        shared=tuple(said.get("shared", [])),
        strays=tuple(_strays(said, deployed, current, files)) if unconfirmed is None else (),
    )


def _made(said: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the releases that come with a time, the one that was made last at the end."""
    timed = (line.partition(" ")[::2] for line in said.get("made", []))
    yield from (release for _, release in sorted((float(time), name) for time, name in timed))


def _tagged(text: str) -> Iterator[tuple[str, str]]:
    """Read `tag|text` lines, those of sha256sum as `sum`, and the paths of releases."""
    for line in text.split("\n"):
        if _DIGEST.match(line):
            yield "sum", line
        elif line.startswith("/"):
            yield "release", line
        else:
            yield from tagged(line)


def _strays(
    said: Mapping[str, list[str]],
    deployed: Deployed | None,
    current: str,
    files: Mapping[str, FileSeen],
) -> Iterator[Stray]:
    """Yield what is not as the mark says; none of its files is where `current` points elsewhere."""
    if deployed is not None and current != deployed.release:
        home = said["mark"][0].removesuffix("/deployment.json")
        yield Stray(f"{home}/current", How.SWITCHED)
        return
    yield from strays(_noted(said), files)


def _noted(said: Mapping[str, list[str]]) -> Mapping[str, Noted]:
    """Return what the mark says of the files; nothing where it is another rlxdeploy's."""
    try:
        mark = _Note.model_validate_json("\n".join(said.get("deployment", [])))
    except ValidationError:
        return {}
    return {path: Noted(*noted) for path, noted in mark.files.items()}


def _kept(said: Mapping[str, list[str]]) -> Iterator[tuple[str, Deployed]]:
    """Yield the marks of earlier releases; what cannot be read cannot be restored."""
    for line in said.get("kept", []):
        release, _, mark = line.partition("|")
        with suppress(ValidationError):
            yield release, _DEPLOYED.validate_json(mark)


def _deployed(name: str, said: Mapping[str, list[str]]) -> Deployed | None:
    if "deployment" not in said:
        return None
    try:
        return _DEPLOYED.validate_json("\n".join(said["deployment"]))
    except ValidationError as error:
        path, first = said["mark"][0], error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        why = f"{path} is no mark of ours: {field + ': ' if field else ''}{first['msg']}"
        raise AnswerError(
            name, why, "look at it, then move it away or apply with --adopt"
        ) from None


def _locked_by(said: Mapping[str, list[str]]) -> str:
    """Return who holds the lock, "" where its holder has ended and left it behind."""
    lock = fields("\n".join(said.get("lock", [])))
    here = said.get("boot", [""])[0]
    holder = next(iter(said.get("process", [])), None)
    if holder is None or (here and lock.get("boot") != here):
        return ""
    if holder and start_time(holder) != lock.get("start"):
        return ""
    return f"{lock.get('by') or 'somebody'}, pid {lock.get('pid', '')}"


def _files(said: Mapping[str, list[str]]) -> dict[str, FileSeen]:
    digests = dict(_sums(said.get("sum", [])))
    digests |= zip(said.get("link", []), said.get("target", []), strict=False)
    seen = {}
    for line in said.get("stat", []):
        mode, owner, size, path = line.split(" ", 3)
        if _IN_STORE.search(path) and not _STORED.search(path):
            continue
        bits = int(mode, 8) if mode.startswith("0") else int(mode, 16)
        kind = "link" if bits & _TYPE_BITS == _LINK_BITS else "file"
        digest = digests.get(path, "")
        seen[_tidy(path)] = FileSeen(digest, bits & 0o7777, owner, whole(size), kind)
    return seen


def _sums(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Read sha256sum's lines; it escapes odd names and says so with a backslash in front."""
    for line in lines:
        if found := _DIGEST.fullmatch(line):
            escaped, digest, path = found.groups()
            yield path.replace("\\\\", "\\") if escaped else path, digest


def _tidy(path: str) -> str:
    """Return *path* as it is spelled everywhere else: find keeps the slash it was given."""
    return re.sub(r"/{2,}", "/", path)
