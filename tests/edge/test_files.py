"""Files on the controller."""

import stat
from pathlib import Path

import pytest

from rlxdeploy.edge.files import FileError, read_text, shipped, write_atomically


def test_what_is_shipped_is_found() -> None:
    """The schema is there in a checkout as in an installation."""
    assert shipped("schemas/inventory.schema.json").is_file()


def test_what_is_not_shipped_is_an_error_that_says_where_it_was_sought() -> None:
    """A broken installation shows itself."""
    with pytest.raises(FileError, match=r"templates/nothing\.j2 is not in .*_data or .*reinstall"):
        shipped("templates/nothing.j2")


def test_a_byte_order_mark_is_told_from_the_text(tmp_path: Path) -> None:
    """Line ends stay as they are."""
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\n")

    text = read_text(path)

    assert (text.content, text.had_bom) == ("a\r\n", True)


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    """The new file has its content and mode, and nothing is left beside it."""
    path = tmp_path / "a"
    path.write_text("old")

    write_atomically(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"open", mode=0o644)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    """A failure leaves the old file and no other."""
    path = tmp_path / "folder"
    path.mkdir()
    (path / "kept").touch()

    with pytest.raises(FileError, match="folder: it cannot be written"):
        write_atomically(path, b"new")

    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileError, match="cannot be written"):
        write_atomically(tmp_path / "absent" / "a", b"new")


def test_a_symbolic_link_is_not_written_through(tmp_path: Path) -> None:
    """A link in place of the target is refused, and its target is untouched."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)

    with pytest.raises(FileError, match="symbolic link"):
        write_atomically(link, b"new")

    assert target.read_text() == "old"
