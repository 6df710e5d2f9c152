"""The datagrams of discovery: captured texts both ways, and what a stranger may send."""

from __future__ import annotations

from typing import Callable, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.roster import SILENT_S, Whereabouts
from rlxdeploy.runtime.wire.beacon import MAX_DATAGRAM, Dialect, OfJob, Plain, Sighting
from tests.runtime.golden import DATAGRAMS

KEY = bytes(range(32))
HERE = Address("10.77.0.1", 29500)
THERE = Address("10.77.0.2", 29501)
DIALECTS: Dict[str, Dialect] = {
    "plain": Plain(),
    "signed": OfJob("a job", 3, KEY),
    "unsigned": OfJob("a job", 3, b""),
}


def test_captured_texts_are_what_we_say_and_understand() -> None:
    """The three texts of the rlx wire, byte for byte, in both directions."""
    plain = Plain()
    disc, query, port = (
        DATAGRAMS[name].encode() for name in ("mesh_discovery", "star_query", "star_answer")
    )

    assert plain.announce(0, HERE) == disc
    assert plain.read_announcement(disc) == Sighting(0, HERE)
    assert plain.query("nonce") == query
    assert plain.answer(query, 29500) == port
    assert plain.read_answer(port, "nonce") == 29500


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (b"RLXDISC 7 [fd77::1]:29507 and more", Sighting(7, Address("fd77::1", 29507))),
        (b"  RLXDISC\t4294967295\n10.0.0.1:1 ", Sighting(4294967295, Address("10.0.0.1", 1))),
    ],
)
def test_blanks_and_later_words_do_not_matter(said: bytes, means: Sighting) -> None:
    """Fields are separated by any blanks, and words after the last are passed over."""
    assert Plain().read_announcement(said) == means


def test_whatever_begins_with_a_question_is_answered() -> None:
    """Trailing bytes are passed over, in a question and in an answer; lower case is neither."""
    assert Plain().answer(b"RLXQ\xff\0 please", 5) == b"RLXPORT 5"
    assert Plain().read_answer(b"RLXPORT 5 thank you", "") == 5
    with pytest.raises(WireError):
        Plain().answer(b"rlxq", 5)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_understands_itself(dialect: Dialect) -> None:
    """What one rank says another reads, and it fits a datagram."""
    announced = dialect.announce(2, THERE)
    asked = dialect.query("f" * 32)
    answered = dialect.answer(asked, 29500)

    assert dialect.read_announcement(announced) == Sighting(2, THERE)
    assert dialect.read_answer(answered, "f" * 32) == 29500
    assert max(map(len, (announced, asked, answered))) <= MAX_DATAGRAM


OTHERS: Dict[str, Dialect] = {
    "plain": Plain(),
    "job": OfJob("another job", 3, KEY),
    "world": OfJob("a job", 4, KEY),
    "key": OfJob("a job", 3, KEY[::-1]),
    "no-key": OfJob("a job", 3, b""),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_others_say_is_not_understood(other: Dialect) -> None:
    """Another job, world or key, or no key at all: neither believed nor answered."""
    ours = DIALECTS["signed"]
    hearing: Dict[str, Callable[[], object]] = {
        "disc": lambda: ours.read_announcement(other.announce(1, HERE)),
        "query": lambda: ours.answer(other.query("n"), 1),
        "port": lambda: ours.read_answer(other.answer(other.query("n"), 1), "n"),
    }
    for hear in hearing.values():
        with pytest.raises(WireError):
            hear()


def test_an_answer_to_an_old_question_is_refused() -> None:
    """What was recorded from an earlier question is signed, and worth nothing."""
    signed = DIALECTS["signed"]
    recorded = signed.answer(signed.query("old"), 29500)

    with pytest.raises(WireError, match="another question"):
        signed.read_answer(recorded, "new")


def test_one_message_does_not_pass_for_another() -> None:
    """A signed announcement is no answer, and the other way round."""
    signed = DIALECTS["signed"]
    with pytest.raises(WireError):
        signed.read_announcement(signed.answer(signed.query("1"), 29500))
    with pytest.raises(WireError):
        signed.read_answer(signed.announce(29500, HERE), str(HERE))


REFUSED = {
    "rank": b"RLXDISC -1 10.0.0.1:5",
    "big-rank": b"RLXDISC 4294967296 10.0.0.1:5",
    "name": b"RLXDISC 1 host.example:5",
    "port": b"RLXDISC 1 10.0.0.1:65536",
    "no-port": b"RLXDISC 1 10.0.0.1",
    "short": b"RLXDISC 1",
    "case": b"rlxdisc 1 10.0.0.1:5",
    "joined": b"RLXDISC1 10.0.0.1:5 x",
    "digits": "RLXDISC \u0661 10.0.0.1:5".encode(),
    "empty": b"",
}


@pytest.mark.parametrize("said", REFUSED.values(), ids=REFUSED)
def test_what_is_no_announcement_is_refused(said: bytes) -> None:
    """No rank, no numeric address or no text: a WireError, and no name is looked up."""
    with pytest.raises(WireError):
        Plain().read_announcement(said)


@given(
    said=st.one_of(
        st.binary(max_size=80),
        st.tuples(st.sampled_from(sorted(DATAGRAMS.values())), st.binary(max_size=12)).map(
            lambda pair: pair[0].encode() + pair[1]
        ),
    ),
    dialect=st.sampled_from(sorted(DIALECTS)),
)
def test_garbage_is_understood_or_a_wire_error(said: bytes, dialect: str) -> None:
    """No datagram makes a reader raise anything else."""
    ours = DIALECTS[dialect]
    readers: Dict[str, Callable[[], object]] = {
        "disc": lambda: ours.read_announcement(said),
        "query": lambda: ours.answer(said, 1),
        "port": lambda: ours.read_answer(said, "n"),
    }
    for read in readers.values():
        try:
            read()
        except WireError:
            continue


class TestWhereabouts:
    """Who is where, as far as announcements tell."""

    def test_it_is_complete_when_every_rank_was_heard(self) -> None:
        """The own rank needs no announcement; addresses come in the order of ranks."""
        found = Whereabouts(0, 3, HERE)
        assert list(found.missing) == [1, 2]
        assert [found.heard(rank, THERE, 1.0) for rank in (2, 1)] == [None, None]
        assert list(found.missing) == []
        assert found.addresses == (HERE, THERE, THERE)

    def test_a_rank_claimed_twice_keeps_the_first_and_says_so_once(self) -> None:
        """While the first is heard the second does not count, but is named with it."""
        found = Whereabouts(0, 2, HERE)
        assert found.heard(1, THERE, 1.0) is None
        second = Address("10.77.0.9", 29501)
        said = found.heard(1, second, 1.5)
        assert said == f"rank 1 is claimed twice: by {THERE}, which counts, and by {second}"
        assert found.heard(1, second, 1.6) is None
        assert found.addresses[1] == THERE
        assert f"{second} too" in found.doubts()

    def test_the_own_rank_is_never_given_away(self) -> None:
        """Somebody else with this rank is named, however long this one has been silent."""
        found = Whereabouts(0, 2, HERE)
        assert "rank 0 is claimed twice" in (found.heard(0, THERE, 1e6) or "")
        found.heard(1, THERE, 1e6)
        assert found.addresses[0] == HERE

    def test_a_rank_that_fell_silent_may_have_moved(self) -> None:
        """A restart elsewhere is taken up once the old place says nothing any more."""
        found = Whereabouts(0, 2, HERE)
        found.heard(1, THERE, 1.0)
        moved = Address("10.77.0.9", 29501)
        assert "has moved" in (found.heard(1, moved, 1.5 + SILENT_S) or "")
        assert found.addresses[1] == moved

    def test_a_rank_outside_the_world_is_named(self) -> None:
        """It is of another group, or of this one with another WORLD."""
        found = Whereabouts(0, 2, HERE)
        assert found.heard(5, THERE, 1.0) == f"{THERE} says that it is rank 5 of a world of 2"
        assert found.missing == (1,)
