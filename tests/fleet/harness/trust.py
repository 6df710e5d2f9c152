"""The controller's ~/.ssh: who it is, how it reaches each host and whose keys it trusts.

`config` includes `fleet.conf`, which is written anew with each change of the fleet; whatever a
test adds to `config` stays.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.fleet.harness.local import run

_PORT = 22


@dataclass(frozen=True, slots=True)
class Way:
    """How one host is reached by its name, and its key if the controller is to trust it."""

    name: str
    address: str
    ipv6: str
    port: int
    jump: str
    key: str | None

    def config(self) -> str:
        """Return the host's block of ssh_config."""
        lines = [f"Host {self.name}", f"HostName {self.address}", f"Port {self.port}", "User root"]
        return "\n  ".join([*lines, *([f"ProxyJump {self.jump}"] if self.jump else [])])

    def known(self) -> str:
        """Return the host's line of known_hosts; nothing where it is not trusted."""
        if self.key is None:
            return ""
        if self.port == _PORT:
            return f"{self.address},{self.ipv6} {self.key}"
        return f"[{self.address}]:{self.port} {self.key}"


class SshDirectory:
    """The files of a ~/.ssh, kept to match the hosts of the moment."""

    def __init__(self, home: Path) -> None:
        self._place = home / ".ssh"
        self._ways: dict[str, Way] = {}
        self._place.mkdir(mode=0o700)
        (self._place / "config").write_text("Include fleet.conf\n")
        self.public_key = new_key(self._place / "id_ed25519")
        self._write()

    def enter(self, *ways: Way) -> None:
        """Take hosts in, or what has changed about them."""
        self._ways |= {way.name: way for way in ways}
        self._write()

    def forget(self, name: str) -> None:
        """Know no more of a host."""
        del self._ways[name]
        self._write()

    def trust(self, name: str, key: str | None) -> None:
        """Expect this key of a host from now on; with None, none is known."""
        self.enter(replace(self._ways[name], key=key))

    def _write(self) -> None:
        ways = self._ways.values()
        (self._place / "fleet.conf").write_text("\n".join(f"{way.config()}\n" for way in ways))
        known = "".join(f"{line}\n" for way in ways if (line := way.known()))
        (self._place / "known_hosts").write_text(known)


def new_key(path: Path) -> str:
    """Write a new key pair without a passphrase, over any old one; return its public half."""
    path.unlink(missing_ok=True)
    run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)))
    return " ".join(path.with_name(f"{path.name}.pub").read_text().split()[:2])
