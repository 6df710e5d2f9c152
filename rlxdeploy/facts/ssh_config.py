"""What `ssh -G` says of one host, as a value; nothing of ssh_config itself is parsed here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_JUMP = re.compile(
    r"(?:(?P<user>.*)@)?(?:\[(?P<literal>[^]]+)\]|(?P<name>[^:@]+))(?::(?P<port>\d+))?"
)
_PATH_STARTS = ("/", "~", "%", "$")
# ssh -G writes an unset word as one of these.
_UNSET = ("none", "")


class ConfigError(ValueError):
    """The SSH configuration asks for something impossible; the message says what."""


@dataclass(frozen=True, slots=True)
class Jump:
    """One host of a ProxyJump; without user or port the jump host's own configuration decides."""

    host: str
    user: str = ""
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{user}{name}" + (f":{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True)
class Resolved:
    """One host as OpenSSH would reach it; *options* holds every key of `-G`, in lower case.

    Paths are as written there: tokens and `~` are expanded by whoever opens them.
    """

    alias: str
    hostname: str
    port: int
    user: str
    jumps: tuple[Jump, ...]
    proxy_command: str
    identity_files: tuple[str, ...]
    certificate_files: tuple[str, ...]
    known_hosts_files: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]

    def one(self, key: str, default: str = "") -> str:
        """Return the value of *key*, *default* where it is unset."""
        value = " ".join(self.options.get(key, ()))
        return default if value.lower() in _UNSET else value

    def says(self, key: str) -> bool:
        """Tell whether a yes-or-no key is on."""
        return self.one(key) in ("yes", "true")

    def listed(self, key: str) -> tuple[str, ...]:
        """Return a comma-separated list."""
        return tuple(filter(None, self.one(key).split(",")))

    @property
    def host_key_alias(self) -> str:
        return self.one("hostkeyalias")

    @property
    def uses_keys(self) -> bool:
        """Whether public keys may be offered at all; `unbound` and `host-bound` let them be too."""
        preferred = self.listed("preferredauthentications")
        is_off = self.one("pubkeyauthentication") in ("no", "false")
        return not is_off and (not preferred or "publickey" in preferred)

    @property
    def remembers_in(self) -> str:
        """The user's first known_hosts file, "" where the configuration has none."""
        files = _paths(self.options.get("userknownhostsfile", ()))
        return files[0] if files else ""

    def seconds(self, key: str) -> float | None:
        """Return a time in seconds, None where it is unset or zero."""
        value = self.one(key)
        return float(value) or None if value.isdigit() else None


def parse(alias: str, text: str) -> Resolved:
    """Read the answer of `ssh -G alias`; raise ConfigError where it lacks what every host has."""
    options: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        options.setdefault(key.lower(), []).append(value)
    try:
        hostname, port, user = (options[key][0] for key in ("hostname", "port", "user"))
    except KeyError as missing:
        raise ConfigError(f"`ssh -G` gave no {missing}") from missing
    jump = options.get("proxyjump", [""])[0]
    files = [*options.get("userknownhostsfile", ()), *options.get("globalknownhostsfile", ())]
    return Resolved(
        alias=alias,
        hostname=hostname,
        port=int(port),
        user=user,
        jumps=() if jump in _UNSET else parse_jumps(jump),
        proxy_command=_set(options.get("proxycommand", [""])[0]),
        identity_files=_each_set(options.get("identityfile", ())),
        certificate_files=_each_set(options.get("certificatefile", ())),
        known_hosts_files=tuple(path for value in files for path in _paths([value])),
        options={key: tuple(values) for key, values in options.items()},
    )


def parse_jumps(text: str) -> tuple[Jump, ...]:
    """Read a ProxyJump value, first hop first; `ssh://user@host:port` parts are taken too."""
    return tuple(_parse_jump(part) for part in text.split(","))


def _parse_jump(text: str) -> Jump:
    stripped = text.strip()
    is_uri = stripped.startswith("ssh://")
    found = _JUMP.fullmatch(stripped.removeprefix("ssh://").rstrip("/") if is_uri else stripped)
    if found is None:
        raise ConfigError(f"ProxyJump names {text!r}, which is no [user@]host[:port]")
    user = found["user"] or ""
    port = int(found["port"]) if found["port"] else None
    return Jump(found["literal"] or found["name"], unquote(user) if is_uri else user, port)


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """Replace `%x` tokens; what is no token of *tokens* stays, as after an expansion by `-G`."""
    return _TOKEN.sub(lambda found: tokens.get(found[1], found[0]), text)


def expand_variables(text: str, environment: Mapping[str, str]) -> str:
    """Replace `${NAME}`; raise ConfigError for one that is not set, as ssh does."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise ConfigError(f"{text!r} names the variable {found[1]}, which is not set")
        return environment[found[1]]

    return _VARIABLE.sub(value, text)


def _paths(values: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Split lists of paths; `-G` drops the quotes, so a word that begins no path continues one."""
    paths: list[str] = []
    for word in " ".join(values).split(" "):
        if paths and not word.startswith(_PATH_STARTS) and word not in _UNSET:
            paths[-1] += f" {word}"
        else:
            paths.append(word)
    return _each_set(paths)


def _set(value: str) -> str:
    return "" if value.lower() in _UNSET else value


def _each_set(values: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(value for value in values if value.lower() not in _UNSET)
