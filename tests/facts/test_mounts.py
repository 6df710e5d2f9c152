"""What a host's list of mounts says of the folders of a job."""

import subprocess
from pathlib import Path

import pytest

from rlxdeploy.facts import hardware
from rlxdeploy.model.targets import Enquiry
from tests.facts.recorded import FOLDER, Case, cases

MOUNTS = cases("mounts")


def asked(folder: str, mounts: Path) -> str:
    """Return the question about *folder* on a host with these *mounts*."""
    question = hardware.questions(Enquiry("demo", folders=(folder,)))[-1]
    assert "/proc/mounts" in question.script
    return question.script.replace("/proc/mounts", str(mounts))


@pytest.mark.parametrize("awk", ["awk", "busybox awk"])
@pytest.mark.parametrize("case", MOUNTS, ids=[case.name for case in MOUNTS])
def test_a_folder_on_a_network_is_known_from_the_mounts(case: Case, awk: str) -> None:
    """Such a folder is not touched; any other is measured, whatever is mounted beside it."""
    mounts = FOLDER / "mounts" / case.sidecar["answers"]["mounts"]["file"]
    parts = [f"({asked(folder, mounts)}) </dev/null" for folder in case.sidecar["network"]]
    script = "\n".join([f'awk() {{ command {awk} "$@"; }}', *parts])
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    told = [line for line in said.stdout.splitlines() if not line.startswith("df|/")]

    expected = [f"network|{kind}" if kind else "df|" for kind in case.sidecar["network"].values()]
    assert [line if line.startswith("network") else line[:3] for line in told] == expected
    assert said.stderr == ""
