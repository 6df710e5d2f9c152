"""How each host should be: files with content, mode and owner, and the release they make up."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rlxdeploy.model.keyed import keyed


@dataclass(frozen=True)
class RemoteFile:
    """One file; *path* is absolute, or relative to the release's folder.

    *source* says where the content comes from, for a person: a template, a file, a key.  The
    content of a *secret* file is never shown or saved, and people see *shown* in its place, nothing
    without that.  *restarts* are the ranks that have to start again when it changes.  It belongs to
    *owner*, or to whoever carries the plan out.  Where there is a *digest_key*, plans, records and
    surveys know the content by its digest under that key.
    """

    path: str
    content: bytes = field(repr=False)
    mode: int
    source: str
    secret: bool = False
    restarts: tuple[int, ...] = ()
    owner: str = ""
    digest_key: bytes = field(default=b"", repr=False)
    shown: bytes | None = None

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of the content in hex, or what stands for it under the key."""
        return keyed(self.sha256, self.digest_key) if self.digest_key else self.sha256

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 of the content, in hex: that of a secret is not for others."""
        return _sha256(self.content)

    @property
    def public(self) -> bytes | None:
        """The content as people may see it; None where they may see nothing of it."""
        return self.shown if self.secret else self.content


# The runtime archive goes to every host, and is a thousand times as long as all else there.
@lru_cache(maxsize=16)
def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The files of one host: *released* under `releases/<id>/`, *installed* at absolute paths.

    *stored* are content-addressed and shared between jobs (the runtime archive).  *key* is the
    job's, if its ranks prove themselves by one.  It is of no release and no plan names its content,
    not even by a digest: so a plan that was made before the key was is still good.
    """

    host: str
    released: tuple[RemoteFile, ...]
    installed: tuple[RemoteFile, ...] = ()
    stored: tuple[RemoteFile, ...] = ()
    key: RemoteFile | None = None


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """Every host's files under one release id; *plan* is RLX_PLAN, *generation* went into it."""

    hosts: Mapping[str, HostFiles]
    release: str
    plan: str
    generation: int
    notices: tuple[str, ...] = field(default_factory=tuple)
