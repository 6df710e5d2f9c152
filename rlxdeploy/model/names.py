"""Names parsed once, at the border: what passes may go into a path or a unit without a look."""

import re
from typing import Annotated

from pydantic import AfterValidator

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")

# `<data>/store` stands beside the jobs' folders.
RESERVED_JOBS = frozenset({"store"})


def _slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise ValueError("use lower-case letters, digits and inner hyphens, 63 at most")
    return text


def _job(text: str) -> str:
    if text in RESERVED_JOBS:
        raise ValueError(f"{text!r} is the name of a folder beside the jobs; choose another")
    return _slug(text)


JobName = Annotated[str, AfterValidator(_job)]

# What a person reads for a machine: an SSH alias as written, or `local` for the controller.
HostName = str
