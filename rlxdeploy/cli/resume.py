"""The command line that goes on after an interrupt, made of the one that was given."""

import shlex
from collections.abc import Iterator
from typing import Any

import typer

from rlxdeploy.model.scope import Scope

_GIVEN = "COMMANDLINE"


def going_on(context: typer.Context, **settled: object) -> str:
    """Return what to type to go on with the command of *context*, for a shell.

    Every argument and option is as it was given, but for those *settled* since, by the names of the
    command's parameters; None leaves one out.
    """
    given = {
        name: value
        for name, value in context.params.items()
        if getattr(context.get_parameter_source(name), "name", "") == _GIVEN
    }
    values = given | settled
    arguments, options = list[str](), list[str]()
    for one in context.command.params:
        words = arguments if one.param_type_name == "argument" else options
        words += _words(one, values.get(one.name or ""))
    if any(word.startswith("-") for word in arguments):
        return shlex.join((*context.command_path.split(), *options, "--", *arguments))
    return shlex.join((*context.command_path.split(), *arguments, *options))


def terms(scope: Scope) -> dict[str, object]:
    """Return *scope* as `going_on` takes it."""
    return {"limit": scope.limit, "exclude": scope.exclude}


def _words(parameter: Any, value: object) -> Iterator[str]:  # noqa: ANN401 - typer gives its class no public name
    """Yield how *value* is written on a command line."""
    if value is None or value == "":
        return
    if isinstance(value, bool):
        yield (parameter.opts if value else parameter.secondary_opts)[0]
        return
    for one in value if isinstance(value, list | tuple) else (value,):
        if parameter.param_type_name != "argument":
            yield parameter.opts[0]
        yield f"{one:.15g}" if isinstance(one, float) else str(one)
