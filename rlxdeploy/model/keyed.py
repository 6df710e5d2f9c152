"""Digests under a key, for files that may hold secrets.

Whoever has the digest of a file with a short secret in it can try likely secrets against it; under
a key that only the controller has, nobody can.  Two keyed digests of one key are equal exactly
where the contents are.
"""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace

from rlxdeploy.model.survey import FileSeen, HostFacts, Survey

# What people see of a secret content begins so.
UNREADABLE = "secret:"
_MARK = "keyed"
_ID_DIGITS = 8
_SHOWN_DIGITS = 12

# The files of a release in which secrets stand: every rank's environment.
_ENVIRONMENT = "/current/env/"


def keyed(digest: str, key: bytes) -> str:
    """Return what stands for the sha256 *digest* under *key*; one that is keyed stays as it is."""
    return digest if is_keyed(digest) else f"{_MARK}:{key_id(key)}:{_under(key, digest)}"


def is_keyed(digest: str) -> bool:
    """Tell whether *digest* is one under a key."""
    return digest.startswith(f"{_MARK}:")


def key_id(key: bytes) -> str:
    """Return the name of *key*, from which nobody learns it."""
    return _under(key, "which key is this?")[:_ID_DIGITS]


def shown(digest: str, key: bytes) -> str:
    """Return what people see of the secret content with this *digest*, keyed already or not."""
    return f"{UNREADABLE}{keyed(digest, key).rpartition(':')[2][:_SHOWN_DIGITS]}"


def shown_value(value: str, key: bytes) -> str:
    """Return what people see in place of a secret *value*."""
    return shown(hashlib.sha256(value.encode()).hexdigest(), key)


def with_keyed_digests(survey: Survey, key: bytes) -> Survey:
    """Return *survey* with every digest of a rank's environment file under *key*."""
    hosts = {name: _keyed_host(facts, key) for name, facts in survey.hosts.items()}
    return replace(survey, hosts=hosts)


def keyed_otherwise(survey: Survey, key: bytes) -> Iterator[str]:
    """Yield the hosts of which *survey* has digests under another key than *key*."""
    ours = f"{_MARK}:{key_id(key)}:"
    for name, facts in survey.hosts.items():
        digests = [seen.digest for seen in facts.job.files.values()]
        if any(is_keyed(one) and not one.startswith(ours) for one in digests):
            yield name


def _keyed_host(facts: HostFacts, key: bytes) -> HostFacts:
    files = {
        path: _keyed_file(seen, key) if _ENVIRONMENT in path else seen
        for path, seen in facts.job.files.items()
    }
    return replace(facts, job=replace(facts.job, files=files))


def _keyed_file(seen: FileSeen, key: bytes) -> FileSeen:
    return replace(seen, digest=keyed(seen.digest, key)) if seen.digest else seen


def _under(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
