"""Public keys against what ssh-keygen makes and says of them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.facts.ssh_keys import (
    from_base64,
    from_private_file,
    from_public_file,
    is_encrypted,
)

SORTS = {
    "ed25519": (("-t", "ed25519"), True),
    "ecdsa": (("-t", "ecdsa"), True),
    "rsa": (("-t", "rsa", "-b", "2048"), True),
    "rsa in PEM": (("-t", "rsa", "-b", "2048", "-m", "PEM"), False),
}


@pytest.mark.parametrize("passphrase", ["", "secret"], ids=["open", "encrypted"])
@pytest.mark.parametrize(("options", "is_ours"), SORTS.values(), ids=SORTS.keys())
def test_keys_are_read_as_ssh_keygen_says(
    tmp_path: Path, options: tuple[str, ...], passphrase: str, *, is_ours: bool
) -> None:
    """Fingerprint, public part of the private file, and whether it wants a passphrase."""
    path = tmp_path / "key"
    command = ["ssh-keygen", "-q", *options, "-N", passphrase, "-f", str(path)]
    subprocess.run(command, check=True)
    said = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{path}.pub"], capture_output=True, text=True, check=True
    ).stdout
    public = from_public_file(Path(f"{path}.pub").read_bytes())

    assert public is not None
    assert public.fingerprint == said.split()[1]
    assert from_private_file(path.read_bytes()) == (public if is_ours else None)
    assert is_encrypted(path.read_bytes()) is bool(passphrase)
    assert from_public_file(path.read_bytes()) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_key_or_none(content: bytes) -> None:
    """Whatever stands in a file, reading it ends without an error."""
    armored = b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + content
    for text in (content, armored + b"\n-----END OPENSSH PRIVATE KEY-----"):
        from_public_file(text)
        from_private_file(text)
        is_encrypted(text)


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAC3NzaC1lZDI1NTE5", "!!"])
def test_half_a_key_is_an_error(text: str) -> None:
    """A blob that is cut short, or of another type than the line says, is refused."""
    with pytest.raises(ValueError, match="key"):
        from_base64("ssh-rsa", text)
