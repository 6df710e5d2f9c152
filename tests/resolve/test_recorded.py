"""The peer address rule over surveys that `probe --out` saved of real hosts.

`recorded/<case>.toml` names the survey, the public report whose network it has, the inventory, and
what has to come of them; adding a case is adding a file.
"""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.codec import load_survey
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Survey
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import load

FOLDER = Path(__file__).with_name("recorded")
CASES = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.toml")}


def recorded(name: str) -> Survey:
    return load_survey((FOLDER / name).read_text(encoding="utf-8"), name)


def compiled(case: dict[str, Any], survey: Survey) -> Resolution:
    return resolve(load(case["inventory"]), survey, Controller("python3", survey.names))


def outcome(case: dict[str, Any], survey: Survey) -> dict[str, list[str]]:
    """Return PEERS with the reason of each address, or the errors."""
    try:
        settled = compiled(case, survey)
    except CompileError as error:
        said = (f"{one.message}; {one.remedy}" for one in error.findings)
        return {"errors": list(dict.fromkeys(said))}
    return {
        "peers": list(settled.peers),
        "why": [seat.why["address"] for seat in settled.seats],
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_address_is_the_one_that_peers_can_dial(case: dict[str, Any]) -> None:
    """Choice and explanation, or the errors, are those beside the recorded survey."""
    expected = {key: case[key] for key in ("peers", "why", "errors") if key in case}

    assert expected
    assert outcome(case, recorded(case["survey"])) == expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_answered_first_makes_no_difference(case: dict[str, Any]) -> None:
    """Hosts, interfaces and addresses may come in any order; the choice stays from run to run."""
    survey = recorded(case["survey"])
    turned = {
        name: replace(
            facts,
            network=replace(
                facts.network,
                interfaces=tuple(
                    replace(one, addresses=one.addresses[::-1])
                    for one in facts.network.interfaces[::-1]
                ),
            ),
        )
        for name, facts in [*survey.hosts.items()][::-1]
    }
    again = replace(survey, hosts=turned)

    assert outcome(case, again) == outcome(case, survey)


def test_every_recording_is_part_of_a_case() -> None:
    """Each case names a public report and says what it proves; no survey lies about unread."""
    assert {case["survey"] for case in CASES.values()} == {
        one.name for one in FOLDER.glob("*.json")
    }
    assert all("#" in case["report"] and case["claim"].endswith(".") for case in CASES.values())
