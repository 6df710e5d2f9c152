"""What the inventory says about SSH, over what the SSH configuration says."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from rlxdeploy.model.tables import Ssh
from rlxdeploy.model.vocabulary import HostKeys, SshClient

# Long enough for a host behind two bastions, short enough to wait for at a terminal.
_CONNECT_S = 10.0
# A connection is made in so many steps: connect, exchange keys, log in.
_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The `[ssh]` table, paths made absolute; "" and None leave it to the SSH configuration."""

    user: str = ""
    port: int | None = None
    config: str = ""
    identity: str = ""
    client: SshClient = SshClient.AUTO
    forks: int = 32
    connect_timeout: float | None = None
    host_keys: HostKeys = HostKeys.STRICT

    @classmethod
    def of(cls, ssh: Ssh, folder: Path) -> Self:
        """Return the overrides of an inventory that lies in *folder*."""
        written = "connect_timeout" in ssh.model_fields_set
        return cls(
            user=ssh.user or "",
            port=ssh.port,
            config=_path(ssh.config, folder),
            identity=_path(ssh.identity, folder),
            client=ssh.client,
            forks=ssh.forks,
            connect_timeout=ssh.connect_timeout if written else None,
            host_keys=ssh.host_keys,
        )

    def arguments(self, alias: str) -> tuple[str, ...]:
        """Return the options for ssh; a user or port that stands in *alias* itself wins."""
        arguments = [*self.for_jumps]
        if self.user and "@" not in alias:
            arguments += ["-l", self.user]
        if self.port and not (alias.startswith("ssh://") and urlsplit(alias).port):
            arguments += ["-p", str(self.port)]
        if self.identity:
            arguments += ["-i", self.identity]
        return tuple(arguments)

    @property
    def for_jumps(self) -> tuple[str, ...]:
        """The options that ssh hands on to the ssh of a jump host."""
        return ("-F", self.config) if self.config else ()

    def patience(self, configured: float | None) -> float:
        """Return the seconds one step of a connection may take: ours if written, else ssh's."""
        return self.connect_timeout or configured or _CONNECT_S

    def opening(self, configured: float | None = None) -> float:
        """Return the seconds that all steps of a connection may take together."""
        return _STEPS * self.patience(configured)


def _path(written: str | None, folder: Path) -> str:
    path = Path(written or "")
    # Of an account that is not there the path stays as it is: whoever opens it says what lacks.
    with suppress(RuntimeError):
        path = path.expanduser()
    return str(folder / path) if written else ""
