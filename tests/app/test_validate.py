"""Validating files, and loading one to work with."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlxdeploy.app.validate import load, load_to_compile, validate
from rlxdeploy.errors import InventoryError, Severity
from rlxdeploy.model.vocabulary import Wire

ROOT = Path(__file__).resolve().parents[2]
WORKED = sorted((ROOT / "inventories").glob("*.toml"))


@pytest.mark.parametrize("path", WORKED, ids=lambda path: path.name)
def test_a_worked_example_passes_without_a_warning(path: Path) -> None:
    """What we show is what we mean, its files included."""
    (report,) = validate([path])

    assert report.passed
    assert {finding.severity for finding in report.findings} <= {Severity.NOTICE}


@pytest.mark.parametrize("name", ["local", "star", "command"])
def test_a_worked_example_for_this_machine_compiles(name: str) -> None:
    """Nothing in it waits to be built."""
    assert load_to_compile(ROOT / "inventories" / f"{name}.toml").job == name


def test_a_public_cluster_file_is_good_for_use() -> None:
    """It writes no wire, and gets one that is protected; what has no effect for us is told."""
    path = ROOT / "inventories" / "cluster.toml"
    (report,) = validate([path])

    assert load_to_compile(path).inventory.job.effective_wire is Wire.NATIVE
    assert "placement" in {finding.key for finding in report.findings}
    assert {"model", "seq"} <= {finding.key for finding in report.without_effect}


def test_each_of_many_files_has_its_own_report(tmp_path: Path) -> None:
    """One bad file hides nothing of the others, and a missing one is an error."""
    bad = tmp_path / "bad.toml"
    bad.write_text("[[node]]\nrank = 5\n")

    reports = validate([WORKED[0], bad, tmp_path / "absent.toml"])

    assert [report.passed for report in reports] == [True, False, False]
    assert f"{bad}:2:1: node[0].rank" in str(reports[1].findings[-1])


def test_a_contradiction_stops_loading_with_all_that_was_found(tmp_path: Path) -> None:
    """A use case gets a sound inventory or every reason why there is none."""
    path = tmp_path / "a.toml"
    path.write_text("[job]\nexpect = 3\n[[node]]\nrank = 5\n")

    with pytest.raises(InventoryError) as caught:
        load(path)

    errors = [one for one in caught.value.findings if one.severity is Severity.ERROR]
    assert [finding.key for finding in errors] == ["job.expect", "node[0].rank"]


def test_validating_loads_only_what_reading_takes() -> None:
    """What takes long to load is for those who compile, reach hosts or draw."""
    code = (
        "from pathlib import Path; from rlxdeploy.app.validate import validate;"
        f"assert validate([Path({str(WORKED[0])!r})])[0].passed;"
        "import sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"numpy", "fabric", "zeroconf", "jinja2", "rich"} & set(done.stdout.split())
