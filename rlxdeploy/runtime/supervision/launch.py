"""What a supervisor is told to run: one JSON file a rank, written by the deployer."""

import json
import os
import pwd
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, cast

from rlxdeploy.runtime.envfile import EnvFileError, parse_env

FORMAT = 1
RESTARTS = ("on-failure", "always", "no")
READIES = ("notify", "exec")

# What systemd gives a service: the same on every host, whatever a login shell would set up.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = (
    "LANG",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
)


class LaunchError(Exception):
    """The process file or the environment file cannot be used; the message names the file."""


@dataclass(frozen=True)
class Launch:
    """One rank's process; durations in seconds, *watchdog_s* None for no watchdog."""

    job: str
    rank: int
    argv: Tuple[str, ...]
    workdir: str
    env_file: str
    restart: str
    ready: str
    join_timeout: float
    restart_s: float
    start_limit_interval_s: float
    start_limit_burst: int
    restart_prevent: Tuple[int, ...]
    stop_timeout_s: float
    watchdog_s: Optional[float]
    supervisor_file: str
    log_file: str
    plan: str

    @property
    def start_timeout_s(self) -> Optional[float]:
        """Return how long the process may take to say READY; None where it need not."""
        return self.join_timeout + 30 if self.ready == "notify" else None


def read_launch(path: Path) -> Launch:
    """Return what the process file at *path* says; raises LaunchError for anything amiss."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LaunchError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise LaunchError(f"{path}: no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise LaunchError(f"{path}: not a process file of format {FORMAT}")
    missing = [field.name for field in fields(Launch) if field.name not in document]
    if missing:
        raise LaunchError(f"{path}: without {', '.join(missing)}")
    return _checked(path, document)


def _checked(path: Path, document: Mapping[str, Any]) -> Launch:
    values = {field.name: document[field.name] for field in fields(Launch)}
    wrong = [name for name, value in values.items() if not _fits(name, value)]
    if wrong:
        raise LaunchError(f"{path}: {wrong[0]} may not be {values[wrong[0]]!r}")
    values["argv"] = tuple(values["argv"])
    values["restart_prevent"] = tuple(values["restart_prevent"])
    return Launch(**values)


def _fits(name: str, value: object) -> bool:
    return _CHECKS.get(name, _is_text)(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_duration(value: object) -> bool:
    return type(value) in (int, float) and cast("float", value) >= 0


def _all_are(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in value)


# What may stand under each name; a text under every other.
_CHECKS: Dict[str, Callable[[object], bool]] = {
    "rank": _is_count,
    "argv": lambda value: bool(value) and _all_are(value, str),
    "restart": RESTARTS.__contains__,
    "ready": READIES.__contains__,
    "join_timeout": _is_duration,
    "restart_s": _is_duration,
    "start_limit_interval_s": _is_duration,
    "start_limit_burst": _is_count,
    "restart_prevent": lambda value: _all_are(value, int),
    "stop_timeout_s": _is_duration,
    "watchdog_s": lambda value: value is None or (_is_duration(value) and bool(value)),
}


def environment(launch: Launch, notify: str, own: Mapping[str, str]) -> Dict[str, str]:
    """Return the process's whole environment.

    That is a small base from the user database and from *own* (the supervisor's environment), the
    environment file over it, and last the notification socket and the watchdog.
    """
    user = pwd.getpwuid(os.getuid())
    base = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "PATH": PATH}
    base["SHELL"] = user.pw_shell or "/bin/sh"
    base.update({name: own[name] for name in _KEPT if name in own})
    base.update(_read_env(Path(launch.env_file)))
    base["NOTIFY_SOCKET"] = notify
    if launch.watchdog_s is not None:
        base["WATCHDOG_USEC"] = str(int(launch.watchdog_s * 1_000_000))
    return base


def _read_env(path: Path) -> Dict[str, str]:
    try:
        return parse_env(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LaunchError(f"{path}: {error.strerror}") from error
    except (EnvFileError, UnicodeDecodeError) as error:
        raise LaunchError(f"{path}: {error}") from error
