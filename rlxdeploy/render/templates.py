"""Texts from templates: a name that is not there is an error, never an empty place."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from jinja2 import DictLoader, Environment, StrictUndefined, Template, TemplateError

from rlxdeploy.errors import CompileError, Finding, Place
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.quoting import env_value
from rlxdeploy.render.variables import number

RANK_ENV = "rank.env.j2"
UNIT = "rlx@.service.j2"


class TemplateFailed(CompileError):
    """A template cannot be filled in; the message may quote what it was given."""


def environment_of(texts: Mapping[str, str]) -> Environment:
    """Return what fills *texts* in; the same for the same, since each is parsed once in it."""
    return _environment(tuple(texts.items()))


@lru_cache(maxsize=4)
def _environment(texts: tuple[tuple[str, str], ...]) -> Environment:
    environment = Environment(
        loader=DictLoader(dict(texts)),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - environment and unit files, no HTML
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"env": _quoted, "number": number}
    return environment


class Templates:
    """The templates of one compile, the person's before ours."""

    def __init__(self, inputs: Inputs) -> None:
        self._overrides = inputs.overrides
        self._environment = environment_of({**inputs.templates, **inputs.overrides})

    def origin(self, name: str) -> str:
        """Return what a plan calls the template."""
        return f"your {name}" if name in self._overrides else f"templates/{name}"

    def render(self, name: str, context: Mapping[str, object]) -> bytes:
        """Return the template *name* filled in; raises TemplateFailed with its line."""
        return _filled(lambda: self._environment.get_template(name), name, context)

    def fill(self, text: bytes, name: str, context: Mapping[str, object]) -> bytes:
        """Return *text*, which is the file *name*, filled in; raises CompileError with its line."""
        return _filled(lambda: self._environment.from_string(text.decode()), name, context)


def _filled(parsed: Callable[[], Template], name: str, context: Mapping[str, object]) -> bytes:
    try:
        return parsed().render(context).encode()
    except (TemplateError, ValueError, TypeError) as error:
        line = getattr(error, "lineno", None) or _line_of(error, name)
        place = Place(name, line, 1 if line else 0)
        raise TemplateFailed([Finding(str(error), place)]) from error


def _quoted(value: object) -> str:
    return env_value(str(value))


def _line_of(error: BaseException, name: str) -> int:
    """Return the line in the template that was being filled in, 0 if none is known."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in ("<template>", name):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
