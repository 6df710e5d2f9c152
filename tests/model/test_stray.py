"""What is told from an apply's note of its files, and from the files as they are."""

import pytest

from rlxdeploy.model.files import HostFiles, RemoteFile
from rlxdeploy.model.host import Tree
from rlxdeploy.model.note import note
from rlxdeploy.model.stray import How, Noted, Stray, strays
from rlxdeploy.model.survey import FileSeen

HOME, UNITS = "/var/lib/rlx/t", "/etc/systemd/system"
ENV, UNIT = f"{HOME}/current/env/0.env", f"{UNITS}/rlx-t@.service"
STORED = "/var/lib/rlx/store/" + "c" * 64
NOTED = {
    ENV: Noted("a", 0o600),
    UNIT: Noted("b", 0o644),
    f"{HOME}/key": Noted("k", 0o600, "ml"),
    STORED: Noted("c" * 64),
}
SEEN = {
    ENV: FileSeen("a", 0o600, "root", 1),
    UNIT: FileSeen("b", 0o644, "root", 1),
    f"{HOME}/key": FileSeen("k", 0o600, "ml", 1),
    STORED: FileSeen("c" * 64, 0o755, "root", 1),
    f"{HOME}/deployment.json": FileSeen("d", 0o600, "root", 1),
    "/var/lib/rlx/store/" + "e" * 64: FileSeen("e" * 64, 0o644, "root", 1),
}
DROP_IN = f"{UNITS}/rlx-t@.service.d/override.conf"

# What is seen otherwise (None: not at all), and how that is told.
CASES = {
    "nothing": ({}, []),
    "another content": ({ENV: FileSeen("x", 0o600, "root", 1)}, [Stray(ENV, How.CHANGED)]),
    "a link to the same": (
        {ENV: FileSeen("a", 0o600, "root", 1, "link")},
        [Stray(ENV, How.CHANGED)],
    ),
    "other permissions": ({UNIT: FileSeen("b", 0o600, "root", 1)}, [Stray(UNIT, How.MODE)]),
    "another owner of the key": (
        {f"{HOME}/key": FileSeen("k", 0o600, "eve", 1)},
        [Stray(f"{HOME}/key", How.OWNER)],
    ),
    "another owner where nobody minds": ({UNIT: FileSeen("b", 0o644, "ann", 1)}, []),
    "a file that is gone": ({ENV: None}, [Stray(ENV, How.MISSING)]),
    "a runtime that is gone": ({STORED: None}, [Stray(STORED, How.MISSING)]),
    "a file among ours": (
        {f"{HOME}/current/env/9.env": FileSeen("x", 0o600, "root", 1)},
        [Stray(f"{HOME}/current/env/9.env", How.ADDED)],
    ),
    "a drop-in for all ranks": (
        {DROP_IN: FileSeen("x", 0o644, "root", 1)},
        [Stray(DROP_IN, How.DROP_IN)],
    ),
    "a drop-in for one rank, in a user's folder": (
        {"/home/a/.config/systemd/user/rlx-t@3.service.d/x.conf": FileSeen("x", 0o644, "a", 1)},
        [Stray("/home/a/.config/systemd/user/rlx-t@3.service.d/x.conf", How.DROP_IN)],
    ),
    "what the job itself wrote": ({f"{HOME}/current/out.txt": FileSeen("x", 0o644, "ml", 1)}, []),
}


@pytest.mark.parametrize(("changes", "told"), CASES.values(), ids=CASES.keys())
def test_what_is_not_as_noted_is_told(
    changes: dict[str, FileSeen | None], told: list[Stray]
) -> None:
    """Content, permissions and what is gone or beside; the shared store is nobody's drift."""
    seen = {path: one for path, one in {**SEEN, **changes}.items() if one is not None}

    assert list(strays(NOTED, seen)) == told


def test_without_a_note_nothing_is_called_changed() -> None:
    """A host that has nothing of ours can have a person's drop-in all the same."""
    seen = {**SEEN, DROP_IN: FileSeen("x", 0o644, "root", 1)}

    assert list(strays({}, seen)) == [Stray(DROP_IN, How.DROP_IN)]


def test_what_an_apply_notes_is_what_it_leaves() -> None:
    """Every file at its place, by its content even where plans know it by a key."""
    tree = Tree("t", "/var/lib/rlx", "/run/rlx", UNITS)
    env = RemoteFile("env/0.env", b"1", 0o600, "", secret=True, digest_key=b"k" * 32)
    unit, archive = RemoteFile(UNIT, b"2", 0o644, ""), RemoteFile("", b"3", 0o644, "")
    key = RemoteFile(tree.key, b"4", 0o600, "", owner="ml")
    noted = note(HostFiles("a", (env,), (unit,), (archive,), key), tree)
    seen = {
        ENV: FileSeen(env.sha256, 0o600, "root", 1),
        UNIT: FileSeen(unit.sha256, 0o644, "root", 1),
        tree.stored(archive.sha256): FileSeen(archive.sha256, 0o644, "root", 1),
        tree.key: FileSeen(key.sha256, 0o600, "ml", 1),
    }

    assert noted.keys() == seen.keys()
    assert not env.sha256.startswith("keyed")
    assert list(strays({path: Noted(*one) for path, one in noted.items()}, seen)) == []
