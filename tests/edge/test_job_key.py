"""The key of a job beside its inventory: made once, and nobody else's to read."""

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlxdeploy.edge.jobkey import forget_key, make_key, read_key
from rlxdeploy.edge.record import RecordError


def test_a_key_is_made_once_and_is_one_jobs(tmp_path: Path) -> None:
    """It has 256 random bits, is read by its owner alone, and goes only when it is told to."""
    inventory = tmp_path / "inventory.toml"

    assert read_key(inventory, "one") == ""
    assert not (tmp_path / ".rlxdeploy").exists()
    first, other = make_key(inventory, "one"), make_key(inventory, "two")
    path = tmp_path / ".rlxdeploy" / "one.key"

    assert re.fullmatch("[0-9a-f]{64}", first)
    assert first != other
    assert (make_key(inventory, "one"), read_key(inventory, "one")) == (first, first)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {one.name for one in path.parent.iterdir()} == {".gitignore", "one.key", "two.key"}
    forget_key(inventory, "one")
    assert read_key(inventory, "one") == ""
    assert make_key(inventory, "one") != first
    assert read_key(inventory, "two") == other


def test_two_that_make_a_key_at_once_have_the_same(tmp_path: Path) -> None:
    """Whoever is second takes what the first has made, whole."""
    with ThreadPoolExecutor(8) as pool:
        keys = pool.map(lambda _: make_key(tmp_path / "inventory.toml", "one"), range(32))

    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"ab" * 31, b"xy" * 32, b"\xff" * 32, b"AB" * 32],
    ids=["nothing", "a part", "no hex", "no text", "another hand"],
)
def test_what_is_no_key_is_never_replaced_nor_shown(tmp_path: Path, content: bytes) -> None:
    """The error names the file and both ways out, and nothing that stood in it."""
    inventory = tmp_path / "inventory.toml"
    path = tmp_path / ".rlxdeploy" / "one.key"
    path.parent.mkdir()
    path.write_bytes(content)

    for take in (read_key, make_key):
        with pytest.raises(RecordError, match=r"one\.key: .*; put that back, or remove") as caught:
            take(inventory, "one")
        assert not content or content.decode(errors="replace") not in str(caught.value)
    assert path.read_bytes() == content


def test_where_no_key_can_be_made_the_file_is_named(tmp_path: Path) -> None:
    """A file in the folder's place is an error of the record, not a bug."""
    (tmp_path / ".rlxdeploy").write_text("")

    assert read_key(tmp_path / "inventory.toml", "one") == ""
    with pytest.raises(RecordError, match="rlxdeploy"):
        make_key(tmp_path / "inventory.toml", "one")
