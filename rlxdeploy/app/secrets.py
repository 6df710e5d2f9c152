"""What keeps a job's secrets out of all that is shown and kept: the key their digests are under."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rlxdeploy.edge.record import digest_key
from rlxdeploy.edge.secrets import fetch_secrets
from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.keyed import keyed_otherwise, with_keyed_digests
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.secrets import has_secrets
from rlxdeploy.model.survey import Survey


def fetched(loaded: Loaded) -> Mapping[str, str]:
    """Return every secret by its `from`; raises InventoryError with all that cannot be had."""
    return fetch_secrets(loaded, os.environ)


def key_of(loaded: Loaded, survey: Survey) -> bytes:
    """Return the key for digests of environment files; b"" where none of them holds a secret.

    They may be in the inventory, or on a host still.  Raises RecordError where the key can be
    neither read nor made.
    """
    deployed = (facts.job.deployed for facts in survey.hosts.values())
    if not (has_secrets(loaded.inventory) or any(one.secrets for one in deployed if one)):
        return b""
    return digest_key(Path(loaded.path), loaded.job)


def private(loaded: Loaded, survey: Survey) -> tuple[Loaded, Survey]:
    """Return *survey* as it may be saved, and *loaded* with what cannot be compared therefore."""
    key = key_of(loaded, survey)
    if not key:
        return loaded, survey
    strange = tuple(keyed_otherwise(survey, key))
    notices = (*loaded.notices, *_notices(strange))
    return replace(loaded, notices=notices), with_keyed_digests(survey, key)


def looked_at(survey: Survey) -> Survey:
    """Return *survey* for whoever compares no content: digests are under a key of the moment."""
    return with_keyed_digests(survey, secrets.token_bytes(32))


def _notices(hosts: tuple[str, ...]) -> tuple[Finding, ...]:
    if not hosts:
        return ()
    what = (
        f"{', '.join(hosts)}: the survey was saved where another key digests secrets, so files"
        " with secrets count as changed"
    )
    return (Finding(what, severity=Severity.NOTICE),)
