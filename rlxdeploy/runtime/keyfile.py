"""The file with a job's key: read only where nobody else can read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rlxdeploy.runtime.errors import SettingsError
from rlxdeploy.runtime.wire.handshake import parse_key

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# What root may grant: reading, to a group of its choice.
_GRANTED = stat.S_IRGRP


def read_key(path: Path) -> bytes:
    """Return the key in the file; SettingsError where it is none or others may read it.

    As with the keys of PostgreSQL, root may let the rank's group read a file of root's own: so do
    the credentials of systemd come to a service that runs as a user.
    """
    try:
        with path.open(encoding="ascii") as file:
            if trouble := _exposed(os.fstat(file.fileno()), path):
                raise SettingsError("RLX_KEY_FILE", str(path), trouble)
            return parse_key(file.read())
    except (OSError, ValueError) as error:
        raise SettingsError(
            "RLX_KEY_FILE", str(path), f"a readable file with the key ({error})"
        ) from None


def _exposed(file: os.stat_result, path: Path) -> str:
    """Say what is wrong with who may read or change it; nothing if all is well."""
    granted = _GRANTED if file.st_uid == 0 else 0
    if not file.st_mode & _OTHERS & ~granted:
        return ""
    mode = stat.S_IMODE(file.st_mode)
    return f"a file that its owner alone can read, not one of mode {mode:04o} (chmod 600 {path})"
