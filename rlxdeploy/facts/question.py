"""A fact is a question, which a host's shell answers, and a pure parser of the answer."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """A piece of POSIX shell whose stdout is the answer; *name* is what a person reads.

    It runs in a subshell with LC_ALL=C, stdin from /dev/null and stderr dropped, in dash, busybox
    ash and bash alike.  A *slow* one talks to a driver and gets the longer deadline.  Where a host
    has not the program *needs*, nothing is run and the exit status is that of a shell, 127.  Those
    of one *row* are asked in turn by one process: what hangs costs its own answer and those behind
    it, see `facts.rows`.  A *plain* one may run in the asking shell itself: it ends without `exit`
    and leaves options and variables of others alone.
    """

    name: str
    script: str
    slow: bool = False
    needs: str = ""
    row: str = ""
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the question wrote to stdout, and the exit status of its last command."""

    text: str
    status: int = 0


class AnswerError(Exception):
    """An answer that decisions rest on is not what it should be."""

    def __init__(self, question: str, why: str, remedy: str = "") -> None:
        super().__init__(f"{question}: {why}")
        self.question, self.why, self.remedy = question, why, remedy


class Unanswered(AnswerError):
    """A question that decisions rest on missed its deadline; asking again may help."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One host's answers by question; *unanswered* are those that missed their deadline.

    *noise* is the first thing that a login profile printed before them.
    """

    given: Mapping[str, Answer]
    unanswered: tuple[str, ...] = ()
    noise: str = ""

    def text(self, name: str) -> str:
        """Return the answer's text, empty where there is none."""
        answer = self.given.get(name)
        return answer.text if answer else ""

    def required(self, name: str) -> str:
        """Return the answer's text; raise Unanswered where the host did not give one."""
        if name not in self.given:
            raise Unanswered(name, "the host did not answer in time")
        return self.given[name].text


def legible(what: str, parse: Callable[[], T]) -> T:
    """Return what *parse* makes of the answers about *what*.

    Raises AnswerError too where they are not as any tool is known to write them: that is the one
    host's failure, and the others go on.
    """
    try:
        return parse()
    except (ValueError, LookupError) as error:
        why = f"the answer cannot be read ({type(error).__name__}: {error})"
        raise AnswerError(what, why) from error


def fields(text: str) -> dict[str, str]:
    """Read `key=value` lines; the last of a key wins, lines without `=` are passed over."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value for key, equals, value in pairs if equals}


def whole(text: str, otherwise: int = 0) -> int:
    """Return *text* as a whole number, or *otherwise* where it is none."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else otherwise


def quoted(words: Iterable[str]) -> str:
    """Return *words* for a shell, each as one literal word."""
    return " ".join(map(shlex.quote, words))
