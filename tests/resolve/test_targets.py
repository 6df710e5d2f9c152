"""The machines to ask follow from the nodes, with all that the job has to know of them."""

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.host import Host
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.resolve.controller import names_to_look_up
from rlxdeploy.resolve.targets import targets
from tests.resolve.lab import load


def test_nodes_without_ssh_are_one_machine() -> None:
    """The controller is asked once, for every port its ranks can come to have."""
    found = targets(
        load(
            '[job]\ncommand = ["train"]\nworkdir = "/srv"\n'
            '[[node]]\nslots = 2\nckpt_dir = "/m"\n[[node]]\naddr = "127.0.0.1:4000"\n'
        ),
        "/opt/python",
    ).targets

    assert [(one.host, one.nodes) for one in found] == [(Host("local"), (0, 1))]
    assert found[0].enquiry == Enquiry(
        job="lab",
        programs=("/opt/python", "train"),
        ports=(29500, 29501, 4000, 29400),
        folders=("/m", "/srv"),
        python="/opt/python",
    )


def test_each_alias_is_a_machine_and_unmanaged_nodes_are_not_asked() -> None:
    """Hosts come in the order of the file, with the interpreter written for them."""
    found = targets(
        load(
            '[job]\ncommand = ["python3", "t.py"]\nuser = "ml"\n'
            '[[node]]\nssh = "a"\n[[node]]\nssh = "b"\npython = "/venv/bin/python"\n'
            '[[node]]\nssh = "a"\n[[node]]\naddr = "10.0.0.9:1"\nmanaged = false\n'
        )
    ).targets

    assert [(one.host.ssh, one.nodes) for one in found] == [("a", (0, 2)), ("b", (1,))]
    assert [one.enquiry.programs for one in found] == [("python3",), ("/venv/bin/python",)]
    assert found[0].enquiry.user == "ml"
    assert str(found[1].place) == "inventory.toml:7:1"


def test_without_a_folder_written_the_home_is_asked_for_its_space() -> None:
    """Upstream's capabilities always tell of a disk."""
    (found,) = targets(load("[[node]]\n")).targets

    assert found.enquiry.folders == ("~",)


def test_an_alias_that_reads_like_the_controller_is_refused() -> None:
    """No host may be called what the controller is called."""
    with pytest.raises(CompileError, match="'local' is what the controller is called"):
        targets(load('[[node]]\nssh = "local"\n'))


def test_names_in_addresses_are_looked_up_by_the_caller() -> None:
    """Each host name is named once; numbers and localhost need no look-up."""
    text = "".join(
        f'[[node]]\naddr = "{addr}"\n' for addr in ("a.lan:1", "10.0.0.1", "a.lan", "localhost:2")
    )

    assert names_to_look_up(load(text)) == ("a.lan",)
