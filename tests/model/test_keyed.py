"""Digests under a key: what they tell of a content, and which files of a survey have them."""

import hashlib
from dataclasses import replace

from rlxdeploy.model.keyed import is_keyed, keyed, keyed_otherwise, shown, with_keyed_digests
from rlxdeploy.model.survey import FileSeen, Survey
from tests.plan.world import World, bare, tree

KEY, OTHER = b"k" * 32, b"o" * 32
PLAIN = hashlib.sha256(b"PIN=1234").hexdigest()
ENV, UNIT = f"{tree('process').current}/env/0.env", "/etc/systemd/system/rlx-t@.service"


def seen(digest: str) -> Survey:
    survey = bare(World())
    files = {path: FileSeen(digest, 0o600, "root", 8) for path in (ENV, UNIT)}
    facts = survey.hosts["a"]
    facts = replace(facts, job=replace(facts.job, files=files))
    return replace(survey, hosts={**survey.hosts, "a": facts})


def test_a_keyed_digest_tells_contents_apart_under_its_key_alone() -> None:
    """Nobody without the key can make it from a content; keying it again changes nothing."""
    one = keyed(PLAIN, KEY)

    assert one == keyed(PLAIN, KEY) == keyed(one, KEY)
    assert len({one, keyed(PLAIN, OTHER), keyed(PLAIN[::-1], KEY), PLAIN}) == 4
    assert PLAIN not in one
    assert (is_keyed(one), is_keyed(PLAIN)) == (True, False)
    assert shown(one, KEY) == shown(PLAIN, KEY) == f"secret:{one.rpartition(':')[2][:12]}"


def test_a_survey_keys_environment_files_and_nothing_else() -> None:
    """Only they hold secrets; of a file that nobody could read there is no digest to key."""
    safe = with_keyed_digests(seen(PLAIN), KEY).hosts["a"].job.files

    assert safe[ENV].digest == keyed(PLAIN, KEY)
    assert safe[UNIT].digest == PLAIN
    assert with_keyed_digests(seen(""), KEY) == seen("")


def test_a_survey_that_was_keyed_elsewhere_is_known() -> None:
    """Its digests stay what they are, and compare with none of ours."""
    theirs = with_keyed_digests(seen(PLAIN), OTHER)

    assert [*keyed_otherwise(theirs, KEY)] == ["a"]
    assert [*keyed_otherwise(seen(PLAIN), KEY)] == []
    assert with_keyed_digests(theirs, KEY) == theirs
