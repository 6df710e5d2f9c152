"""The release id tells contents apart, and tells nobody what a secret is."""

import hashlib
from dataclasses import replace

import pytest

from rlxdeploy.model.files import HostFiles, RemoteFile
from rlxdeploy.model.secrets import has_secrets
from rlxdeploy.render.render import release_id
from tests.resolve.lab import load

KEY, OTHER = b"k" * 32, b"o" * 32
PLAIN = RemoteFile("env/0.env", b"PIN=1234", 0o600, "templates/rank.env.j2")
SECRET = replace(PLAIN, secret=True)


def id_of(file: RemoteFile, key: bytes = KEY, host: str = "a") -> str:
    return release_id({host: HostFiles(host, (file,))}, key)


@pytest.mark.parametrize("file", [PLAIN, SECRET], ids=["plain", "secret"])
def test_the_same_files_have_the_same_id_and_no_others(file: RemoteFile) -> None:
    """Content, path, mode and host all count; the time and the run do not."""
    others = (
        replace(file, content=b"PIN=1235"),
        replace(file, path="env/1.env"),
        replace(file, mode=0o640),
    )

    assert id_of(file) == id_of(replace(file))
    assert len({id_of(one) for one in (file, *others)} | {id_of(file, host="b")}) == 5


def test_a_secret_cannot_be_tried_out_against_the_id() -> None:
    """Under another key the same secret has another id; what is no secret needs no key."""
    assert id_of(SECRET, KEY) != id_of(SECRET, OTHER)
    assert id_of(PLAIN, KEY) == id_of(PLAIN, b"")
    unkeyed = hashlib.sha256(f"a\0env/0.env\0600\0{SECRET.digest}\n".encode()).hexdigest()
    assert not unkeyed.startswith(id_of(SECRET))


def test_a_secret_without_a_key_is_a_bug_of_ours() -> None:
    """Nothing is digested in the open by oversight."""
    with pytest.raises(ValueError, match=r"env/0\.env is a secret"):
        id_of(SECRET, b"")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[job]\nenv.A = "b"\n[[node]]\n', False),
        ('[job]\nenv.A = { from = "env:A" }\n[[node]]\n', True),
        ('[[node]]\nenv.A = { from = "env:A" }\n', True),
        ('[[node]]\naddr = "a:1"\nmanaged = false\nenv.A = { from = "env:A" }\n', False),
    ],
    ids=["none", "the job's", "a node's", "one that runs elsewhere"],
)
def test_an_inventory_with_secrets_is_known_by_its_text(text: str, found: bool) -> None:  # noqa: FBT001 - one column of a table
    """Only for such a one the controller keeps a key beside the inventory."""
    assert has_secrets(load(text).inventory) is found
