"""From an exception to what a person or a program reads, and to the exit code."""

import json
import sys
from typing import Any

from rlxdeploy.errors import Finding, HostError, InventoryError, Place, RlxDeployError, Stale

FORMAT_VERSION = 1
INTERRUPTED = 130
TERMINATED = 143

# Several failures at once leave with the first of these that one of them has.
PRECEDENCE = (64, 5, 6, 4, 1, 3)


class Terminated(BaseException):
    """SIGTERM arrived; raised in the main thread so that clean-up runs as it does for Ctrl-C."""


def exit_code_of(error: BaseException) -> int | None:
    """Return the exit code of *error*, or None for a bug of ours that has to show its trace."""
    if isinstance(error, BaseExceptionGroup):
        codes = [exit_code_of(one) for one in error.exceptions]
        return None if None in codes else worst([code for code in codes if code is not None])
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Terminated):
        return TERMINATED
    if isinstance(error, BrokenPipeError):
        return 1
    return error.exit_code if isinstance(error, RlxDeployError) else None


def worst(codes: list[int]) -> int:
    """Return the code that counts where several failures meet; 0 for none."""
    return next((code for code in PRECEDENCE if code in codes), max(codes, default=0))


def report_failure(error: BaseException, *, as_json: bool) -> int:
    """Print *error* where it belongs and return its exit code."""
    code = exit_code_of(error) or 1
    if isinstance(error, BrokenPipeError):
        _leave_no_traceback_at_exit()
        return code
    if as_json:
        document = {"format_version": FORMAT_VERSION, "error": {**_document(error), "exit": code}}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    for line in _lines(error):
        sys.stderr.write(line + "\n")
    return code


def report_usage(error: Exception, *, as_json: bool) -> None:
    """Print what is wrong with the command line, and how it is meant."""
    show: Any = getattr(error, "show", None)
    if as_json:
        document = {
            "format_version": FORMAT_VERSION,
            "error": {"kind": "UsageError", "message": str(error), "exit": 64},
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    if show is not None:
        show(file=sys.stderr)


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


def _document(error: BaseException) -> dict[str, object]:
    base: dict[str, object] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, BaseExceptionGroup):
        base["errors"] = [_document(one) for one in error.exceptions]
    if isinstance(error, HostError):
        base |= {"host": error.host, "doing": error.doing, "why": error.why, "remedy": error.remedy}
    if isinstance(error, Stale):
        base["moved"] = list(error.moved)
    if isinstance(error, InventoryError):
        base["findings"] = [finding_document(finding) for finding in error.findings]
    return base


def _lines(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [
            error.message + ":",
            *(f"  {line}" for one in error.exceptions for line in _lines(one)),
        ]
    if isinstance(error, InventoryError):
        return [f"{finding.severity}: {finding}" for finding in error.findings]
    if isinstance(error, KeyboardInterrupt | Terminated):
        return ["interrupted" if isinstance(error, KeyboardInterrupt) else "terminated"]
    return [f"error: {error}"]


def _leave_no_traceback_at_exit() -> None:
    # The reader of a pipe has gone (`… | head`); the interpreter must not complain at exit either.
    sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: PTH123, SIM115 - held to the end
