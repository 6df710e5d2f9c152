"""From an exception to what a person or a program reads, and to the exit code."""

import errno
import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from shutil import get_terminal_size
from typing import Any

from rlxdeploy.cli.document import write_document
from rlxdeploy.cli.fold import folded
from rlxdeploy.errors import (
    Finding,
    HostError,
    InventoryError,
    Overtaken,
    Place,
    RlxDeployError,
    Stale,
    Unsurveyed,
)

FORMAT_VERSION = 1
INTERRUPTED = 130
TERMINATED = 143

# Several failures at once leave with the first of these that one of them has.
PRECEDENCE = (64, 5, 6, 4, 1, 3)


# What a stream says that cannot take the output; files of ours have their own errors.
_OUTPUT_LOST = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Form(Enum):
    """What stdout carries: words, one JSON document, or one a line."""

    WORDS = "words"
    DOCUMENT = "document"
    LINES = "lines"


class Interrupted(BaseException):
    """Ctrl-C arrived, and everything has been cleaned up."""


class Terminated(BaseException):
    """SIGTERM arrived; raised in the main thread so that clean-up runs as it does for Ctrl-C."""


def wanted_form(arguments: Sequence[str]) -> Form:
    """Return what stdout shall carry, read off a command line that may not even parse."""
    if "--json" not in arguments:
        return Form.WORDS
    return Form.LINES if {"-f", "--follow", "--watch"} & {*arguments} else Form.DOCUMENT


def exit_code_of(error: BaseException) -> int | None:
    """Return the exit code of *error*, or None for a bug of ours that has to show its trace."""
    if isinstance(error, BaseExceptionGroup):
        codes = [exit_code_of(one) for one in error.exceptions]
        return None if None in codes else worst([code for code in codes if code is not None])
    if isinstance(error, Interrupted):
        return INTERRUPTED
    if isinstance(error, Terminated):
        return TERMINATED
    if _no_output(error):
        return 1
    return error.exit_code if isinstance(error, RlxDeployError) else None


def worst(codes: list[int]) -> int:
    """Return the code that counts where several failures meet; 0 for none."""
    return next((code for code in PRECEDENCE if code in codes), max(codes, default=0))


def report_failure(error: BaseException, form: Form) -> int:
    """Print *error* where it belongs and return its exit code."""
    code = exit_code_of(error) or 1
    if _no_output(error):
        _leave_no_traceback_at_exit()
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: the output cannot be written: {error}\n")
        return code
    _write_document({**failure_document(error), "exit": code}, form)
    width = get_terminal_size().columns if sys.stderr.isatty() else None
    for line in _lines(error):
        sys.stderr.write("\n".join(folded(line, width)) + "\n")
    return code


def report_bug(error: BaseException, form: Form) -> None:
    """Keep the promise of a document; the trace that follows is for whoever mends us."""
    _write_document({"kind": type(error).__name__, "message": str(error), "exit": 1}, form)


def report_usage(error: Exception, form: Form) -> None:
    """Print what is wrong with the command line, and how it is meant."""
    # The parser's own class; typer gives it no public name.
    usage: Any = error
    message = usage.format_message()
    _write_document({"kind": "UsageError", "message": message, "exit": 64}, form)
    if message:
        usage.show(file=sys.stderr)
    elif form is Form.WORDS:
        # No command at all: the parser shows the help.
        usage.show()


def finding_document(finding: Finding) -> dict[str, object]:
    """Return a finding as JSON shows it; line and column 0 where it has no place."""
    place = finding.place or Place("")
    return {
        "severity": finding.severity.value,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "key": finding.key,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def failures_document(failed: Mapping[str, HostError]) -> dict[str, object]:
    """Return hosts' failures as JSON shows them, by host name."""
    return {host: failure_document(error) for host, error in failed.items()}


def failure_document(error: BaseException) -> dict[str, object]:
    """Return a failure as JSON shows it: its kind, the whole message, and what it consists of."""
    kind = error.kind if isinstance(error, Unsurveyed) else type(error).__name__
    base: dict[str, object] = {"kind": kind, "message": str(error)}
    if isinstance(error, BaseExceptionGroup):
        base["errors"] = [failure_document(one) for one in error.exceptions]
    if isinstance(error, HostError):
        base |= {"host": error.host, "doing": error.doing, "why": error.why, "remedy": error.remedy}
    if isinstance(error, Stale | Overtaken):
        base["moved"] = list(error.moved)
    if isinstance(error, InventoryError):
        base["findings"] = [finding_document(finding) for finding in error.findings]
    return base


def _write_document(error: dict[str, object], form: Form) -> None:
    document = {"format_version": FORMAT_VERSION, "error": error}
    if form is Form.LINES:
        sys.stdout.write(json.dumps(document) + "\n")
    elif form is Form.DOCUMENT:
        write_document(json.dumps(document, indent=2) + "\n")


def _no_output(error: BaseException) -> bool:
    """Tell whether *error* is that of stdout; a failing write names no file."""
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    return isinstance(error, BrokenPipeError) or error.errno in _OUTPUT_LOST


def _lines(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [
            error.message + ":",
            *(f"  {line}" for one in error.exceptions for line in _lines(one)),
        ]
    if isinstance(error, InventoryError):
        return [f"{finding.severity}: {finding}" for finding in error.findings]
    if isinstance(error, Interrupted | Terminated):
        return [str(error)]
    return [f"error: {error}"]


def _leave_no_traceback_at_exit() -> None:
    # The reader of a pipe has gone (`… | head`); the interpreter must not complain at exit either.
    sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: PTH123, SIM115 - held to the end
