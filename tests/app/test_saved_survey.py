"""A saved survey holds all that a compile asks of the world."""

from pathlib import Path

import pytest

from rlxdeploy.app.compile import Request, compile_job
from rlxdeploy.app.export import probe, save_survey
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import nobody
from rlxdeploy.errors import CompileError
from rlxdeploy.model.survey import Survey
from tests.resolve.lab import machine

TEXT = """\
[job]
launch = "process"
wire = "rlx"
security = "none"
[[node]]
addr = "rank-0.invalid:4000"
"""


def saved(folder: Path, **names: tuple[str, ...]) -> Request:
    """Return the request to compile from a survey of the controller with these look-ups."""
    looked_up = {name.replace("_", "-") + ".invalid": found for name, found in names.items()}
    save_survey(Survey({"local": machine()}, {}, looked_up), folder / "lab.json")
    (folder / "inventory.toml").write_text(TEXT, encoding="utf-8")
    return Request(folder / "inventory.toml", folder / "lab.json")


def test_a_name_has_the_address_that_was_looked_up_for_the_survey(tmp_path: Path) -> None:
    """What a name means here and now makes no difference."""
    with Lab() as lab:
        compiled = compile_job(saved(tmp_path, rank_0=("127.0.0.7",)), lab, nobody)

    assert compiled.resolution.peers == ("127.0.0.7:4000",)


def test_a_name_that_the_survey_does_not_know_is_not_looked_up(tmp_path: Path) -> None:
    """The error says that the survey has to be repeated."""
    with Lab() as lab, pytest.raises(CompileError, match="has to be repeated"):
        compile_job(saved(tmp_path), lab, nobody)


def test_a_probe_holds_the_look_ups_and_the_free_space(tmp_path: Path) -> None:
    """A name without an address is there too, and the home's space where no folder is written."""
    path = saved(tmp_path).inventory
    with Lab() as lab:
        probed = probe(path, lab, nobody)

    assert probed.survey.names == {"rank-0.invalid": ()}
    assert probed.workers["local"].disk_free > 0
    assert probed.workers["local"].addr == "rank-0.invalid:4000"
