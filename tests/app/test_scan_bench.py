"""The benchmark of the scan compares two scanners that did the same."""

import subprocess
import sys

import pytest

from bench.__main__ import carried_out
from bench.scan import Sample, check, said

UP = frozenset({"10.77.0.11", "10.77.0.12"})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"10.77.0.11"}, "nmap, run 2: missed 10.77.0.12, found besides nobody"),
        (UP | {"10.77.0.9"}, "nmap, run 2: missed nobody, found besides 10.77.0.9"),
    ],
)
def test_a_run_that_found_others_ends_the_benchmark(found: set[str], why: str) -> None:
    """Times of a scanner that misses a host are worth nothing; the run and the host are named."""
    with pytest.raises(RuntimeError, match=why):
        check("nmap", [Sample(1.5, UP), Sample(1.4, frozenset(found))], UP)


def test_runs_that_found_the_same_hosts_count() -> None:
    """Nothing is said of them."""
    check("nmap", [Sample(1.5, UP)] * 20, UP)


def test_a_scanner_that_fails_is_named_with_its_last_words() -> None:
    """A line for a person, and no trace of ours."""
    words = "import sys; print('1.0'); sys.exit('a line\\nno route')"
    ran = subprocess.run((sys.executable, "-c", words), capture_output=True, text=True, check=False)

    text, failed = carried_out("scan", lambda: said("rlxdeploy", ran))

    assert text == ""
    assert failed == ["scan: rlxdeploy ended with exit 1 and said: no route"]
    assert carried_out("scan", lambda: "a table") == ("a table", [])
