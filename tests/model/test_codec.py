"""The saved survey: what is written is read back, and nothing else is taken for it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.errors import InventoryError, Unreachable
from rlxdeploy.model.codec import dump_survey, load_survey
from rlxdeploy.model.silence import Silence
from rlxdeploy.model.survey import Device, Hardware, HostFacts, JobSeen, Platform, RankSeen, Survey

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SIZES = st.dictionaries(TEXT, st.integers(0), max_size=2)
RANKS = st.builds(RankSeen, node=st.dictionaries(TEXT, JSON, max_size=2), since=FLOATS)
FACTS = st.builds(
    HostFacts,
    hardware=st.builds(
        Hardware,
        disk_free=SIZES,
        devices=st.lists(st.builds(Device, gflops=FLOATS), max_size=2).map(tuple),
        gflops=FLOATS,
        io_mbps=FLOATS,
    ),
    platform=st.builds(Platform, clock=FLOATS),
    job=st.builds(JobSeen, deployed=st.none(), ranks=st.lists(RANKS, max_size=2).map(tuple)),
)
SURVEYS = st.builds(
    Survey,
    hosts=st.dictionaries(TEXT, FACTS, max_size=2),
    failed=st.dictionaries(TEXT, TEXT, max_size=2),
    silent=st.dictionaries(TEXT, st.builds(Silence, TEXT, TEXT, TEXT), max_size=2),
    names=st.dictionaries(TEXT, st.lists(TEXT, max_size=2).map(tuple), max_size=2),
    format_version=st.just(1),
)


@given(SURVEYS)
def test_a_survey_reads_back_as_it_was(survey: Survey) -> None:
    """Saving and loading changes no value, and the version stands first."""
    text = dump_survey(survey)

    assert load_survey(text, "lab.json") == survey
    assert text.splitlines()[1] == '  "format_version": 1,'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "this is no JSON"),
        ("[]", "no format_version"),
        ('{"format_version": true}', "no format_version"),
        ('{"format_version": 2, "hosts": {}}', "survey format 2, and only 1 is known here"),
        ('{"format_version": 1}', "not a whole survey: hosts: Field required"),
        ('{"format_version": 1, "hosts": {"a": {}}}', "not a whole survey: hosts.a.host: "),
    ],
    ids=["empty", "list", "no number", "newer", "lacking", "deep"],
)
def test_what_is_no_survey_of_ours_is_refused_by_name(text: str, why: str) -> None:
    """The error names the file, what is wrong and what to do."""
    with pytest.raises(InventoryError) as caught:
        load_survey(text, "lab.json")

    assert str(caught.value).startswith("lab.json: ")
    assert why in str(caught.value)
    assert "take the survey again" in str(caught.value)


def test_a_survey_of_an_older_rlxdeploy_still_tells_who_failed() -> None:
    """It has the words alone; one of them counts as not reached then."""
    document = {"format_version": 1, "hosts": {}, "failed": {"a": "no"}, "untrusted": ["a"]}
    error = load_survey(json.dumps(document), "lab.json").error_of("a")

    assert (type(error), str(error)) == (Unreachable, "a: survey: no")


def test_a_saved_survey_is_plain_to_read() -> None:
    """It is indented JSON with its letters as they are."""
    text = dump_survey(Survey({}, {"gerät": "stumm"}))

    assert json.loads(text) == {
        "format_version": 1,
        "hosts": {},
        "failed": {"gerät": "stumm"},
        "names": {},
        "found": [],
        "notices": [],
        "silent": {},
        "recalled": [],
    }
    assert "gerät" in text
