"""What of the controller's keys and files is told apart when a saved plan is carried out."""

import pytest

from rlxdeploy.render.sources import sources_of
from tests.render.kit import inputs

WRITTEN = """\
[job]
command = ["python3", "run.py"]
env.COLOUR = "red"
env.TOKEN = { from = "env:TOKEN" }
files = [{ source = "run.py", dest = "run.py" }]
[network]
data_port = 29500
[[node]]
addr = "10.0.0.1"
device = "cpu"
"""

CHANGES = {
    "a variable": ('"red"', '"blue"', {"inventory.toml: job.env.COLOUR"}),
    "where a secret comes from": ("env:TOKEN", "env:PIN", {"inventory.toml: job.env.TOKEN"}),
    "one word of the command": (
        '"run.py"]',
        '"run.py", "-v"]',
        {"inventory.toml: job.command"},
    ),
    "where a file goes": (
        'dest = "run.py"',
        'dest = "go.py"',
        {"inventory.toml: job.files[0].dest"},
    ),
    "a port": ("29500", "29600", {"inventory.toml: network.data_port"}),
    "a node's address": ("10.0.0.1", "10.0.0.2", {"inventory.toml: node[0].addr"}),
    "a node's device, unwritten": ('device = "cpu"', "", {"inventory.toml: node[0].device"}),
    "a remark": ("[network]", "# a remark\n[network]", set[str]()),
}


@pytest.mark.parametrize(("old", "new", "names"), CHANGES.values(), ids=CHANGES.keys())
def test_a_key_that_is_written_otherwise_is_told_by_its_name(
    old: str, new: str, names: set[str]
) -> None:
    """No other key is, and nothing is for what is no key."""
    was, now = (sources_of(inputs(text)) for text in (WRITTEN, WRITTEN.replace(old, new)))

    assert {name for name, _ in was.items() ^ now.items()} == names


def test_files_and_own_templates_are_told_by_their_names() -> None:
    """Our own templates are this rlxdeploy's, and no file of the person's."""
    files = sources_of(inputs(WRITTEN, overrides={"rank.env.j2": "own"}))
    other = sources_of(inputs(WRITTEN, overrides={"rank.env.j2": "another"}))

    assert "run.py" in files
    assert {name for name, _ in files.items() ^ other.items()} == {"template rank.env.j2"}
