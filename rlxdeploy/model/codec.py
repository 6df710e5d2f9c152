"""The survey as JSON, saved and loaded again without a difference."""

import json
from functools import cache

from pydantic import TypeAdapter, ValidationError

from rlxdeploy.errors import Finding, InventoryError, Place
from rlxdeploy.model.survey import FORMAT_VERSION, Survey

_AGAIN = "take the survey again with this rlxdeploy"


@cache
def _surveys() -> TypeAdapter[Survey]:
    # Made when needed: it takes milliseconds, which most commands need not spend.
    return TypeAdapter(Survey)


def dump_survey(survey: Survey) -> str:
    """Return *survey* as a JSON document, `format_version` first, with a final newline."""
    document = {"format_version": survey.format_version}
    document |= _surveys().dump_python(survey, mode="json")
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def load_survey(text: str, file: str) -> Survey:
    """Read what `dump_survey` wrote; *file* is where *text* comes from.

    Raises InventoryError where it is no survey, or one of another format version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _no_survey(file, f"this is no JSON: {error}") from None
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int:
        raise _no_survey(file, "this is no survey: it has no format_version")
    if version != FORMAT_VERSION:
        raise _no_survey(file, f"survey format {version}, and only {FORMAT_VERSION} is known here")
    try:
        return _surveys().validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_survey(file, f"not a whole survey: {where}: {first['msg']}") from None


def _no_survey(file: str, what: str) -> InventoryError:
    return InventoryError([Finding(what, Place(file), remedy=_AGAIN)])
