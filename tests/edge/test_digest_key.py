"""The key that secrets are digested with, beside the inventory."""

import stat
from pathlib import Path

import pytest

from rlxdeploy.edge.record import RecordError, digest_key, forget_record


def test_a_key_stays_from_run_to_run_and_is_one_jobs(tmp_path: Path) -> None:
    """It is random, read by its owner alone, and forgotten with the job."""
    inventory = tmp_path / "inventory.toml"

    first, other = digest_key(inventory, "one"), digest_key(inventory, "two")
    path = tmp_path / ".rlxdeploy" / "one.digest-key"

    assert (len(first), digest_key(inventory, "one")) == (32, first)
    assert first != other
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (tmp_path / ".rlxdeploy" / ".gitignore").read_text() == "*\n"
    forget_record(inventory, "one")
    assert digest_key(inventory, "one") != first
    assert digest_key(inventory, "two") == other


def test_half_a_key_is_no_key(tmp_path: Path) -> None:
    """The error names the file and the way out; no digest is made with less."""
    inventory = tmp_path / "inventory.toml"
    digest_key(inventory, "one")
    (tmp_path / ".rlxdeploy" / "one.digest-key").write_bytes(b"short")

    with pytest.raises(RecordError, match=r"one\.digest-key: 5 bytes are no key; remove it"):
        digest_key(inventory, "one")


def test_where_nothing_can_be_written_the_folder_is_named(tmp_path: Path) -> None:
    """A file in the folder's place is an error of the record, not a bug."""
    (tmp_path / ".rlxdeploy").write_text("")

    with pytest.raises(RecordError, match="digest-key"):
        digest_key(tmp_path / "inventory.toml", "one")
