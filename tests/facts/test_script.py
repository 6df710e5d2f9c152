"""The frame around the answers: what the shell writes, and what we read of it."""

import os
import subprocess
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.facts.host import questions
from rlxdeploy.facts.privilege import asks_for_root
from rlxdeploy.facts.question import Answer, Question
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.targets import Enquiry

MARKER = "0123456789abcdef" * 2
LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=1200)
TEXTS = st.lists(LINES, max_size=6).map("\n".join)

# Questions asked alone, in turn with others, or only where there is a program; what is said.
KINDS: dict[str, tuple[Question, Answer]] = {
    "alone": (Question("alone", "echo a; exit 3"), Answer("a\n", 3)),
    "in a row, ends early": (Question("early", "echo b; exit 4", row="x"), Answer("b\n", 4)),
    "in a row, no line break": (Question("bare", "printf d", row="x"), Answer("d", 0)),
    "in a row, in another's words": (
        Question("sly", "echo x@0; false", row="x"),
        Answer("x@0\n", 1),
    ),
    "in another row": (Question("other", "echo h", row="y"), Answer("h\n", 0)),
    "its program is there": (Question("there", "echo e", needs="cat"), Answer("e\n", 0)),
    "no such program": (Question("gone", "echo f", needs="no-such-program"), Answer("", 127)),
    "slow, no such program": (
        Question("driver", "echo g", slow=True, needs="no-such-program"),
        Answer("", 127),
    ),
}


def asked(count: int) -> list[Question]:
    return [Question(f"q{number}", "true") for number in range(count)]


def framed(number: int, answer: Answer, size: int = 400) -> list[bytes]:
    """Frame one answer as the script does, in pieces of *size* bytes."""
    lines = f"{answer.text}\n{MARKER}={answer.status}".encode().split(b"\n")
    framed = []
    for line in lines:
        *heads, last = [line[at : at + size] for at in range(0, len(line), size)] or [b""]
        framed += [b"%s %d+%s\n" % (MARKER.encode(), number, head) for head in heads]
        framed.append(b"%s %d-%s\n" % (MARKER.encode(), number, last))
    return framed


def gone(group: int, patience: float) -> bool:
    """Tell whether a group of processes ends in time, and its dead are reaped by whoever does."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@given(st.lists(TEXTS, max_size=4), st.integers(0, 255), st.data())
def test_answers_come_back_however_they_are_mixed_and_cut(
    texts: list[str], status: int, data: st.DataObject
) -> None:
    """Lines of several answers in any order of arrival, cut anywhere, give the answers whole."""
    answers = [Answer(text, status) for text in texts]
    queues = [framed(number, answer) for number, answer in enumerate(answers)]
    stream = f"\n{MARKER} begin\n".encode()
    while any(queues):
        stream += data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0)
    stream += f"\n{MARKER} end\n".encode()
    transcript = Transcript(asked(len(texts)), MARKER)

    size = data.draw(st.integers(1, 500))
    for at in range(0, len(stream), size):
        transcript.feed(stream[at : at + size])

    assert transcript.ended
    read = transcript.answers()
    assert [read.given[f"q{number}"] for number in range(len(texts))] == answers
    assert (read.unanswered, read.noise) == ((), "")


@given(st.binary(max_size=300))
def test_garbage_is_no_answer(noise: bytes) -> None:
    """Whatever a stranger writes, nothing is raised and nothing is taken for an answer."""
    transcript = Transcript(asked(2), MARKER)
    transcript.feed(noise + b"\n")

    assert not transcript.ended
    assert not transcript.answers().given


@given(st.binary(max_size=300))
def test_what_a_profile_prints_is_dropped_and_noticed(noise: bytes) -> None:
    """Bytes before the first marker change no answer; the host is noisy if they say anything."""
    transcript = Transcript(asked(1), MARKER)
    transcript.feed(noise + f"\n{MARKER} begin\n".encode())
    transcript.feed(b"".join(framed(0, Answer("yes"))))

    read = transcript.answers()
    assert read.given == {"q0": Answer("yes")}
    assert bool(read.noise) == any(line.strip() for line in noise.split(b"\n"))


def test_a_json_banner_and_colours_do_not_pass_for_an_answer() -> None:
    """A .bashrc that prints another program's JSON and an ANSI banner only makes a host noisy."""
    transcript = Transcript(asked(1), MARKER)
    transcript.feed(
        b'\x1b[31m*** welcome ***\x1b[0m\n{"devices": []}' + f"\n{MARKER} begin\n".encode()
    )
    transcript.feed(b"".join(framed(0, Answer("{}"))))

    assert transcript.answers().given == {"q0": Answer("{}")}
    assert transcript.answers().noise == "*** welcome ***"


def test_half_an_answer_is_none() -> None:
    """An answer whose last line never came is unanswered, by name; the others stand."""
    transcript = Transcript(asked(2), MARKER)
    transcript.feed(b"".join([*framed(0, Answer("whole")), *framed(1, Answer("half\nway"))[:-1]]))

    assert transcript.answers().given == {"q0": Answer("whole")}
    assert transcript.answers().unanswered == ("q1",)


def test_what_is_asked_again_keeps_the_answers_that_were_given() -> None:
    """A whole answer stands, half of one gives way; what a slow one has said so far goes on."""
    questions = [*asked(2), Question("slow", "true", slow=True)]
    halves = framed(1, Answer("half\nway"))[:-1], framed(2, Answer("driver\nsaid"))
    transcript = Transcript(questions, MARKER)
    transcript.feed(b"".join([*framed(0, Answer("first")), *halves[0], halves[1][0]]))
    transcript.feed(f"\n{MARKER} again\n".encode())
    transcript.feed(b"".join([*framed(0, Answer("second")), *framed(1, Answer("whole", 1))]))
    transcript.feed(b"".join(halves[1][1:]))

    assert transcript.answers().given == {
        "q0": Answer("first"),
        "q1": Answer("whole", 1),
        "slow": Answer("driver\nsaid"),
    }


def test_our_own_words_are_ascii() -> None:
    """Only then a host takes the script by blocks, see `edge.session.framed`."""
    enquiry = Enquiry("demo", folders=("~",), ports=(29500,), user="ml", bench=True, sudo=True)

    assert compose(questions(enquiry), MARKER, Patience()).isascii()


@pytest.mark.parametrize("sudo", [True, False])
def test_only_what_asks_as_root_is_given_a_password(sudo: bool) -> None:  # noqa: FBT001 - pytest's
    """The script tells, although the means stand in it once for all questions."""
    script = compose(questions(Enquiry("demo", ports=(29500,), sudo=sudo)), MARKER, Patience())

    assert script.count("rlx_find_root() {") == sudo
    assert asks_for_root(script) == ("root ?" in script) == sudo


@pytest.mark.parametrize("marker", ["", "short", "with blank in the middle!", "x" * 65])
def test_a_marker_that_could_be_guessed_or_break_the_script_is_refused(marker: str) -> None:
    """A marker is long, and letters and digits only."""
    with pytest.raises(ValueError, match="marker"):
        compose(asked(1), marker, Patience())


def test_every_kind_of_question_has_its_own_answer(shell: Sequence[str]) -> None:
    """Whichever questions share a process, each has its own text and exit status."""
    questions = [question for question, _ in KINDS.values()]
    script = compose(questions, MARKER, Patience())
    said = subprocess.run([*shell, "-c", script], capture_output=True, timeout=30, check=True)
    transcript = Transcript(questions, MARKER)
    transcript.feed(said.stdout)

    assert transcript.ended
    read = transcript.answers()
    assert read.given == {question.name: answer for question, answer in KINDS.values()}
    assert (read.unanswered, read.noise) == ((), "")


def test_a_script_that_nobody_listens_to_leaves_nothing_running(shell: Sequence[str]) -> None:
    """Its reader gone, it comes to its end, and the timer of its questions with it."""
    script = compose([Question("q", "sleep 0.3; echo a")], MARKER, Patience(quick=60, slow=60))
    asked = subprocess.Popen([*shell, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert asked.stdout is not None
    asked.stdout.close()

    assert asked.wait(30) == 0
    assert gone(asked.pid, 30), "of the 60 seconds that the timer would sleep"
