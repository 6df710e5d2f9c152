"""Rendering of small inventories with the shipped templates, for the tests."""

from collections.abc import Mapping
from pathlib import Path

from rlxdeploy.edge.files import shipped
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.survey import HostFacts
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.render import render
from rlxdeploy.render.templates import RANK_ENV, UNIT
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import CONTROLLER, load, machine, survey

ARCHIVE = b"the runtime"
GOLDEN = Path(__file__).parent / "golden"


def our_templates() -> Mapping[str, str]:
    """Return the templates as they are shipped."""
    return {
        name: shipped(f"templates/{name}").read_text(encoding="utf-8") for name in (RANK_ENV, UNIT)
    }


def inputs(text: str, **more: Mapping[str, str]) -> Inputs:
    """Return what rendering the inventory *text* takes."""
    return Inputs(
        load(text),
        ARCHIVE,
        our_templates(),
        sources={"run.py": b"run {{ ranks }}\n"},
        digest_key=b"k" * 32,
        key="",
        **more,
    )


def rendered(
    text: str, *machines: HostFacts, generation: int = 1, **more: Mapping[str, str]
) -> RemoteFiles:
    """Return the files of the inventory *text* on *machines*, by default the controller."""
    given = inputs(text, **more)
    group = resolve(given.loaded, survey(*(machines or (machine(),))), CONTROLLER)
    return render(group, given, generation)


def contents(files: RemoteFiles, host: str = "local") -> dict[str, str]:
    """Return the text of each file of one host but the shared ones, by path."""
    found = files.hosts[host]
    return {one.path: one.content.decode() for one in (*found.released, *found.installed)}
