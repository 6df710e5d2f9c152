"""Names and texts at the border."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from rlxdeploy.model import names
from rlxdeploy.model.variables import OURS

ACCEPTED: dict[str, tuple[Any, list[str]]] = {
    "slug": (names.Slug, ["a", "0", "gpu-a", "store", "a" * 63]),
    "job": (names.JobName, ["a", "stores", "train-2"]),
    "text": (names.Text, ["a b", "é", " ", "~/x"]),
    "content": (names.Content, ["", "a\nb\tc", "a\\b\"c $HOME 50%h 'x' #y", "😀"]),
    "relative path": (names.RelativePath, ["a", "a/b c", ".hidden", "..a"]),
    "absolute path": (names.AbsolutePath, ["/", "/srv/a b"]),
    "mode": (names.FileMode, ["0640", "755"]),
    "account": (names.UserName, ["ml", "_www", "John.Doe", "machine$"]),
    "interface": (names.InterfaceName, ["eth0", "br-1234", "wlp0s20f3"]),
    "secret": (names.SecretSource, ["env:A_1", "file:a b/c", "file:/etc/x"]),
    "ssh host": (names.SshHost, ["gpu-a", "me@gpu-a", "ssh://me@gpu-a:22", "fd00::5"]),
    "layers": (names.LayerRange, ["0:16", " 4 : 4 "]),
    "variable": (names.EnvName, ["A", "_a1", "RLX_SPIN_US", "RLX_CUDA_UNIFIED"]),
}
REFUSED: dict[str, tuple[Any, list[str]]] = {
    "slug": (names.Slug, ["", "A", "-a", "a-", "a_b", "a.b", "a/b", "a\n", "é", "a" * 64]),
    "job": (names.JobName, ["store", "..", ""]),
    "text": (names.Text, ["", "a\nb", "a\tb", "a\0"]),
    "content": (
        names.Content,
        ["\0", "\r", "\x1b", "\x7f", "\x85", "\ufdd0", "\uffff", "\U0010fffe"],
    ),
    "relative path": (names.RelativePath, ["", ".", "..", "a/../b", "/a", "a/", "a//b", "./a"]),
    "absolute path": (names.AbsolutePath, ["", "a", "~/a", "/a/../b"]),
    "mode": (names.FileMode, ["", "4755", "0888", "rw", "0o640"]),
    "account": (names.UserName, ["", "-a", "a b", "a:b", "a" * 33]),
    "interface": (names.InterfaceName, ["", "a b", "a/b", "a" * 16]),
    "secret": (names.SecretSource, ["", "env:", "env:1A", "file:", "file:a\n", "vault:x"]),
    "ssh host": (names.SshHost, ["", "-o", "a b", "a\n"]),
    "layers": (names.LayerRange, ["", "1", "2:1", "a:b", "-1:2", "0..2"]),
    "variable": (names.EnvName, ["", "1A", "A B", "A=B", *sorted(OURS)]),
}


@pytest.mark.parametrize(("kind", "texts"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_good_name_passes_unchanged(kind: Any, texts: list[str]) -> None:  # noqa: ANN401 - an annotated type
    """What passes is what was written."""
    for text in texts:
        assert TypeAdapter(kind).validate_python(text) == text


@pytest.mark.parametrize(("kind", "texts"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_name_is_refused(kind: Any, texts: list[str]) -> None:  # noqa: ANN401 - an annotated type
    """Nothing that could escape its place, a unit or a command line gets in."""
    for text in texts:
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(text)


def test_the_variables_of_an_environment_file_are_ours() -> None:
    """No inventory can override what a rank is told about its group."""
    told = "RANK WORLD PEERS TOPOLOGY HEAP_MB DEVICE CKPT_DIR PRECISION KV_CACHE RNG_SEED LAYERS"
    torchrun = "MASTER_ADDR MASTER_PORT WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK"
    ours = "RLX_JOB RLX_PLAN RLX_WIRE RLX_BIND PYTHONPATH CUDA_VISIBLE_DEVICES MAX_RAM_GB ROLE"

    assert set(f"{told} {torchrun} {ours}".split()) <= OURS
