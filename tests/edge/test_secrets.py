"""Secrets fetched on the controller: what counts as one, and what is said of what does not."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rlxdeploy.edge.inventory import read_inventory
from rlxdeploy.edge.secrets import LONGEST, fetch_secrets
from rlxdeploy.errors import InventoryError
from rlxdeploy.model.secrets import variables_of

VALUES = {
    "a line end is no part of it": (b"hunter2\n", "hunter2"),
    "one of Windows neither": (b"hunter2\r\n", "hunter2"),
    "only the last one": (b"hunter2\n\n", "hunter2\n"),
    "none is needed": (b"hunter2", "hunter2"),
    "blanks are part of it": (b" two words \t\n", " two words \t"),
    "several lines": (b"-----BEGIN\nkey\n-----END\n", "-----BEGIN\nkey\n-----END"),
    "what quoting would change": (
        b"a\\b\"c $HOME `id` 'x' #y %h\n",
        "a\\b\"c $HOME `id` 'x' #y %h",
    ),
    "any letters": ("pässwörd\n".encode(), "pässwörd"),
    "as long as can be": (b"x" * LONGEST + b"\n", "x" * LONGEST),
}


def fetched(folder: Path, source: str, environ: Mapping[str, str] | None = None) -> str:
    path = folder / "inventory.toml"
    path.write_text(f"[job.env]\nTOKEN = {{ from = '{source}' }}\n[[node]]\n", encoding="utf-8")
    return fetch_secrets(read_inventory(path), environ or {})[source]


def refusal(folder: Path, source: str, environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(InventoryError) as caught:
        fetched(folder, source, environ)
    (finding,) = caught.value.findings
    assert str(finding.place) == f"{folder}/inventory.toml:2:11"
    assert finding.key == "job.env.TOKEN.from"
    return f"{finding.message}; {finding.remedy}"


@pytest.mark.parametrize(("content", "value"), VALUES.values(), ids=VALUES.keys())
def test_a_file_holds_the_value_byte_for_byte(tmp_path: Path, content: bytes, value: str) -> None:
    """All but one line end at its end, however the path is written."""
    (tmp_path / "token").write_bytes(content)

    assert fetched(tmp_path, "file:token") == value
    assert fetched(tmp_path, f"file:{tmp_path}/token") == value


def test_a_variable_holds_the_value_as_it_is(tmp_path: Path) -> None:
    """Nothing is taken off it; its name is known, so that no child inherits it."""
    assert fetched(tmp_path, "env:TOKEN", {"TOKEN": "hunter2\n"}) == "hunter2\n"
    assert variables_of(read_inventory(tmp_path / "inventory.toml").inventory) == {"TOKEN"}


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` means the home of whoever runs the command, as in a shell."""
    (tmp_path / "token").write_text("hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert fetched(tmp_path, "file:~/token") == "hunter2"


FILES = {
    "nothing": (b"", "it is empty; leave the variable out of env"),
    "a line end alone": (b"\n", "it is empty; leave the variable out of env"),
    "a NUL": (b"hunter2\0\n", "the character U+0000 in it does not survive; encode it, in base64"),
    "a carriage return": (b"hunter2\r\nx", "the character U+000D in it does not survive"),
    "no text": (b"hunter2\xff\xfe", "it is no UTF-8 text; encode it, in base64"),
    "too much": (b"x" * (LONGEST + 1), f"longer than Linux hands to a process ({LONGEST} bytes)"),
}


@pytest.mark.parametrize(("content", "said"), FILES.values(), ids=FILES.keys())
def test_a_file_that_holds_no_secret_is_refused_at_its_place(
    tmp_path: Path, content: bytes, said: str
) -> None:
    """With what is wrong and what to do, and with nothing of what is in it."""
    (tmp_path / "token").write_bytes(content)
    told = refusal(tmp_path, "file:token")

    assert told.startswith("file:token: ")
    assert said in told
    assert "hunter2" not in told


def test_what_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    """A relative path is read from the inventory's folder, which the message names."""
    told = refusal(tmp_path, "file:secrets/token")

    assert told == f"file:secrets/token: there is no such file; a path is read from {tmp_path}"
    told = refusal(tmp_path, "env:TOKEN", {"TOKENS": "x"})
    assert told == "env:TOKEN: there is no such variable here; export TOKEN, then try again"
    assert "nobody here has that home" in refusal(tmp_path, "file:~no-such-user/token")


def test_a_variable_of_other_bytes_is_refused(tmp_path: Path) -> None:
    """Python holds bytes that are no UTF-8 as lone surrogates."""
    value = os.fsdecode(b"hunter2\xff")

    assert "it is no UTF-8 text" in refusal(tmp_path, "env:TOKEN", {"TOKEN": value})
    assert "it is empty" in refusal(tmp_path, "env:TOKEN", {"TOKEN": ""})


def test_nothing_is_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to and a device without end are no files of a value."""
    os.mkfifo(tmp_path / "pipe")

    for source in ("file:pipe", "file:/dev/zero", "file:."):
        assert "it is no regular file" in refusal(tmp_path, source)


def test_every_secret_that_cannot_be_had_is_found_at_once(tmp_path: Path) -> None:
    """Nobody mends them one by one; what a rank elsewhere is given is not asked for."""
    path = tmp_path / "inventory.toml"
    path.write_text(
        '[job.env]\nA = { from = "env:A" }\nB = "plain"\n'
        '[[node]]\nenv.C = { from = "file:c" }\n'
        '[[node]]\naddr = "10.0.0.5:1"\nmanaged = false\nenv.D = { from = "env:D" }\n',
        encoding="utf-8",
    )
    with pytest.raises(InventoryError) as caught:
        fetch_secrets(read_inventory(path), {})

    assert [one.key for one in caught.value.findings] == ["job.env.A.from", "node[0].env.C.from"]
