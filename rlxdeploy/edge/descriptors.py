"""How many descriptors this process may still open."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What a system without a limit of its own gives, and more than anybody here asks for.
_UNLIMITED = 1 << 20


@contextmanager
def descriptors(wanted: int, spare: int) -> Iterator[int]:
    """Give how many descriptors may be opened now, *wanted* at most and one at least.

    Where the process may lift its own soft limit it does, for as long as the body runs; *spare*
    are left to the rest of it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(list(Path("/dev/fd").iterdir())) + spare
    lifted = min(wanted + taken, _bounded(hard))
    if lifted > _bounded(soft):
        with suppress(ValueError, OSError):  # macOS names a limit that it does not give
            resource.setrlimit(resource.RLIMIT_NOFILE, (lifted, hard))
    now = _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    try:
        yield max(1, min(wanted, now - taken))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _bounded(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit
