"""The way to a host: every hop as `ssh -G` sees it, from the controller to the host itself.

A jump host is resolved as ssh resolves it: by a further ssh with `-F`, its own user and port, and
`-J` for the hops before it, so that its own ProxyJump counts only where ssh lets it count.
"""

import getpass
import ipaddress
import os
import pwd
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.errors import Unreachable
from rlxdeploy.facts.ssh_config import ConfigError, Jump, Resolved, expand, expand_variables, parse

_DOING = "read the SSH configuration"
# A longer chain is a loop that grows a hop each time round.
_MOST_HOPS = 16


@dataclass(frozen=True)
class Hop:
    """One machine on the way; *arguments* are the options that resolve it, less `-J`."""

    arguments: tuple[str, ...]
    resolved: Resolved
    proxy_jump: str = ""

    @property
    def alias(self) -> str:
        return self.resolved.alias

    @cached_property
    def tokens(self) -> Mapping[str, str]:
        """The `%` tokens of ssh_config(5); %C is missing, what goes into it varies by version."""
        resolved = self.resolved
        name = socket.gethostname()
        host = bare_name(resolved.alias)
        return {
            "%": "%",
            "h": resolved.hostname,
            "n": host,
            "p": str(resolved.port),
            "r": resolved.user,
            "u": getpass.getuser(),
            "i": str(os.getuid()),
            "d": _home(),
            "l": name,
            "L": name.partition(".")[0],
            "k": resolved.host_key_alias or host,
            "j": self.proxy_jump,
        }

    def path(self, written: str) -> Path:
        """Return the file that a path of the configuration means.

        Raises ConfigError for a variable that is not set or an account that is not there; `resolve`
        has seen to it that the paths of keys and known hosts have neither.
        """
        if written not in self._paths:
            self._paths[written] = self._path(written)
        return self._paths[written]

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {}

    def _path(self, written: str) -> Path:
        path = expand_variables(expand(written, self.tokens), os.environ)
        if path == "~" or path.startswith("~/"):
            return Path(_home() + path[1:])
        try:
            return Path(path).expanduser()
        except RuntimeError as error:
            raise ConfigError(f"{written!r} names an account that is not there") from error

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """What two hops have in common if one link serves both: server, login and keys."""
        resolved = self.resolved
        return (
            resolved.hostname,
            resolved.port,
            resolved.user,
            resolved.host_key_alias,
            # As it will run: `%n` takes two aliases of one name to two servers.
            expand(resolved.proxy_command, self.tokens),
            resolved.known_hosts_files,
            resolved.certificate_files,
            resolved.identity_files,
            resolved.one("identitiesonly"),
            resolved.one("identityagent", "SSH_AUTH_SOCK"),
        )


Route = tuple[Hop, ...]


def identity(route: Route) -> tuple[object, ...]:
    """Return what two routes have in common if one link serves both."""
    return tuple(hop.identity for hop in route)


def _home() -> str:
    """Return the account's home, as ssh takes it: whatever HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return str(Path.home())


def bare_name(alias: str) -> str:
    """Return the host of `host`, `user@host` or `ssh://user@host:port`."""
    is_uri = alias.startswith("ssh://")
    name = alias.removeprefix("ssh://").rstrip("/").rpartition("@")[2]
    if not is_uri:
        return name
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def resolve(host: str, alias: str, overrides: Overrides, deadline: float) -> Route:
    """Return the hops to *alias*, the host itself last.

    Raises Unreachable, with *host* for its name, where the configuration cannot be read, leads
    through a host to itself, or names what ssh would take for an option.
    """
    if overrides.identity:
        _require(host, overrides.identity)
    return _Resolver(host, overrides, deadline).route(alias, overrides.arguments(alias))


def _require(host: str, identity: str) -> None:
    """Raise Unreachable where the inventory's *identity* is no file: ssh would offer other keys."""
    try:
        Path(identity).stat()
    except OSError as error:
        why = f"{identity}, which [ssh] names as the identity: {error.strerror}"
        raise Unreachable(host, _DOING, why) from error


def _may_be_dialled(hostname: str) -> bool:
    if ":" not in hostname:
        return "@" not in hostname
    try:
        return bool(ipaddress.ip_address(hostname))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Resolver:
    host: str
    overrides: Overrides
    deadline: float

    def route(
        self, alias: str, arguments: tuple[str, ...], before: str = "", depth: int = 1
    ) -> Route:
        resolved = self._ask(alias, (*arguments, *(("-J", before) if before else ())))
        if not resolved.jumps:
            return (self._hop(arguments, resolved),)
        *firsts, last = resolved.jumps
        if depth > _MOST_HOPS or self._is_itself(resolved, last):
            remedy = f"give {last.host} its own `ProxyJump none`, before the rule for all hosts"
            raise Unreachable(self.host, _DOING, f"{alias} jumps through itself", remedy)
        way = ",".join(map(str, firsts))
        through = self.route(last.host, self._jump_arguments(last), way, depth + 1)
        return (*through, self._hop(arguments, resolved, ",".join(map(str, resolved.jumps))))

    def _hop(self, arguments: tuple[str, ...], resolved: Resolved, jumps: str = "") -> Hop:
        """Return the hop, all paths that others open tried: `-G` expands only some of them."""
        hop = Hop(arguments, resolved, jumps)
        try:
            for written in (*resolved.identity_files, *resolved.known_hosts_files):
                hop.path(written)
        except ConfigError as error:
            raise self._wrong(str(error)) from error
        return hop

    def _jump_arguments(self, jump: Jump) -> tuple[str, ...]:
        arguments = [*self.overrides.for_jumps]
        if jump.user:
            arguments += ["-l", jump.user]
        if jump.port:
            arguments += ["-p", str(jump.port)]
        return tuple(arguments)

    @staticmethod
    def _is_itself(resolved: Resolved, jump: Jump) -> bool:
        same_user = jump.user in ("", resolved.user)
        return (
            jump.host == bare_name(resolved.alias)
            and same_user
            and (jump.port or 22) == resolved.port
        )

    def _ask(self, alias: str, arguments: tuple[str, ...]) -> Resolved:
        if alias.startswith("-"):
            raise self._wrong(f"{alias!r} would be an option of ssh, not a host")
        left = max(self.deadline - time.monotonic(), 0.01)
        try:
            answer = subprocess.run(  # noqa: S603  # an argument vector; "--" ends the options
                ["ssh", "-T", "-G", *arguments, "--", alias],  # noqa: S607  # the user's own ssh
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=left,
                start_new_session=True,
            )
            resolved = parse(alias, answer.stdout.decode(errors="surrogateescape"))
        except FileNotFoundError as error:
            why = "there is no `ssh` on this machine"
            raise self._wrong(why, "install the OpenSSH client") from error
        except subprocess.TimeoutExpired as error:
            raise self._wrong("`ssh -G` gave no answer in time; does a Match exec hang?") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            raise self._wrong(said or f"`ssh -G` exited {error.returncode}") from error
        except ConfigError as error:
            raise self._wrong(str(error)) from error
        if not _may_be_dialled(resolved.hostname):
            remedy = "a port goes into the SSH configuration, or ssh://[user@]host:port"
            raise self._wrong(f"{resolved.hostname!r} is neither a name nor an address", remedy)
        return resolved

    def _wrong(self, why: str, remedy: str = "") -> Unreachable:
        return Unreachable(self.host, _DOING, why, remedy)
