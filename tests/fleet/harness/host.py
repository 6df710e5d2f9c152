"""A machine on the fleet's network, and all that can go wrong with it."""

import errno
from pathlib import Path
from typing import Literal

from tests.fleet.harness.local import run, usual_umask, wait_until
from tests.fleet.harness.machine import Machine, home
from tests.fleet.harness.network import BASTION_INNER, Network, Port
from tests.fleet.harness.spec import HostSpec
from tests.fleet.harness.trust import SshDirectory, Way, new_key

# root and ops have their keys and all rights, asks a password ("fleet") before sudo, nosudo none;
# fish and csh are as ops, with these as their login shells.
USERS = ("root", "ops", "asks", "nosudo", "fish", "csh")
BASTION = "bastion"
HEALED_S = 20.0

_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
_NOISE = r"""printf '\033[31mWelcome\033[0m\n{"devices": []}\n'"""
_SHELL_FILES = (".bashrc", ".cshrc", ".config/fish/config.fish")
_HANGING = "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 3600; done\n"
_LOCAL_SFTP = "#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n"


class Host(Machine):
    """A machine with its cables in a network and its key known to the controller."""

    def __init__(
        self, spec: HostSpec, port: Port, network: Network, ssh: SshDirectory, directory: Path
    ) -> None:
        super().__init__(spec, network.token, directory)
        self.port = port
        self._network = network
        self._ssh = ssh
        self._ports = (port, BASTION_INNER) if spec.name == BASTION else (port,)

    @property
    def address(self) -> str:
        """The host's own IPv4 address; behind the router the controller cannot dial it."""
        return self.port.ipv4

    @property
    def ipv6(self) -> str:
        """The host's own IPv6 address."""
        return self.port.ipv6

    def furnish(self, base: Path) -> None:
        """Make the disk, with the users' keys and a key of the host's own, and plug the cables."""
        with usual_umask():
            super().furnish(base)
            for user in USERS:
                self._give_key(user)
        self._plug()
        address, port = self.port.ssh
        jump = BASTION if self.port.place == "inner" else ""
        key = new_key(self.at(_HOST_KEY))
        self._ssh.enter(Way(self.name, address, self.ipv6, port, jump, key))

    def scrap(self) -> None:
        """Cut the power, take disk and cables away and have the controller forget the host."""
        super().scrap()
        self._network.unplug(self.name, self._ports)
        self._ssh.forget(self.name)

    def host_key(self) -> str:
        """Return the public key that sshd shows, as known_hosts writes it."""
        return " ".join(self.at(f"{_HOST_KEY}.pub").read_text().split()[:2])

    def new_host_key(self) -> None:
        """Have sshd show a new key, which the controller takes for an impostor's."""
        new_key(self.at(_HOST_KEY))
        self.restart_sshd()

    def trust(self) -> None:
        """Let the controller know the key that the host shows now."""
        self._ssh.trust(self.name, self.host_key())

    def distrust(self) -> None:
        """Let the controller know no key of this host."""
        self._ssh.trust(self.name, None)

    def power_cut(self) -> None:
        """Take the power away: nobody hears a word more from the host."""
        self.partition()
        self._cut()

    def power_on(self) -> None:
        """Switch on and wait until the host is up; it knows nothing of old connections."""
        self._network.unplug(self.name, self._ports)
        self._plug()
        self.start()
        self.await_up()

    def partition(self) -> None:
        """Pull the host's cables."""
        for port in self._ports:
            self._network.carrier(port, "down")

    def heal(self) -> None:
        """Put the host's cables back, and wait until the controller reaches it.

        Whoever asked for its hardware address in vain may be told "no route" for seconds more.
        """
        for port in self._ports:
            self._network.carrier(port, "up")
        wait_until(
            lambda: "" if self._network.reaches(self.port) else f"a way to {self.name}", HEALED_S
        )

    def firewall(
        self, action: Literal["DROP", "REJECT"], *, port: int = 0, source: str = ""
    ) -> None:
        """Drop or reject what comes in, from all or one address, to all or one TCP port."""
        scope = ("--source", source) if source else ("!", "--in-interface", "lo")
        for tables in _tables(source):
            for rule in _rules(action, port):
                self._in_network(tables, "--append", "INPUT", *scope, *rule)

    def open_firewall(self) -> None:
        """Let everything in again."""
        for tables in _tables(""):
            self._in_network(tables, "--flush", "INPUT")

    def fill_disk(self) -> None:
        """Leave not a byte of space on the host's disk; /run and /tmp are not on it."""
        with (self._disk / "filler").open("ab", buffering=0) as filler:
            try:
                while filler.write(bytes(1 << 16)):
                    pass
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise

    def free_disk(self) -> None:
        """Take back what `fill_disk` wrote."""
        (self._disk / "filler").unlink()

    def break_profile(self, user: str = "root") -> None:
        """Make *user*'s shell, whichever it is, print colours and JSON at every start."""
        for file in _SHELL_FILES:
            path = f"{home(user)}/{file}"
            old = self.at(path).read_text() if self.at(path).exists() else ""
            self.write(path, f"{_NOISE}\n{old}", user=user)

    def stand_in(self, program: str, script: str) -> None:
        """Put an executable *script* of this name first in every user's PATH."""
        self.write(f"/usr/local/bin/{program}", script, mode=0o755)

    def linger(self, user: str) -> None:
        """Let *user*'s manager live without a session, as loginctl does where there is a seat."""
        self.write(f"/var/lib/systemd/linger/{user}", "")
        self.exec(("systemctl", "restart", "systemd-logind"))

    def hang(self, program: str = "nvidia-smi") -> None:
        """Make a program that never answers and that a polite signal does not end."""
        self.stand_in(program, _HANGING)

    def dead_mount(self, path: str) -> None:
        """Mount a network filesystem at *path* whose server answers no more."""
        self.stand_in("fleet-sftp", _LOCAL_SFTP)
        sshfs = ("sshfs", "-o", "ssh_command=/usr/local/bin/fleet-sftp", "server:/", path)
        self.exec(("mkdir", "-p", path))
        self.exec(sshfs)
        self.exec(("pkill", "-STOP", "-x", "sftp-server"))

    def shift_clock(self, by: str) -> None:
        """Show all SSH sessions from now on a clock that is off, as faketime writes it: `+3d`."""
        library = next(self.root.glob("usr/lib/*/faketime/libfaketime.so.1"))
        preload = f"/{library.relative_to(self.root)}"
        self.write("/etc/environment", f'LD_PRELOAD="{preload}"\nFAKETIME="{by}"\n')

    def _plug(self) -> None:
        self._network.plug(self.name, self.port)
        if BASTION_INNER in self._ports:
            self._network.plug_inner(self.name)

    def _give_key(self, user: str) -> None:
        keys = f"{home(user)}/.ssh/authorized_keys"
        self.write(keys, f"{self._ssh.public_key}\n", mode=0o600, user=user)
        self.at(keys).parent.chmod(0o700)

    def _in_network(self, *argv: str) -> None:
        run(("ip", "netns", "exec", self.namespace, *argv))


def _tables(source: str) -> tuple[str, ...]:
    if not source:
        return "iptables", "ip6tables"
    return ("ip6tables",) if ":" in source else ("iptables",)


def _rules(action: str, port: int) -> list[tuple[str, ...]]:
    tcp = ("--protocol", "tcp", *(("--dport", str(port)) if port else ()))
    if action == "DROP":
        return [(*(tcp if port else ()), "--jump", "DROP")]
    # A reset, since a refusal by ICMP comes back over veth before connect() has let go of its
    # socket, and is lost.
    reset = (*tcp, "--jump", "REJECT", "--reject-with", "tcp-reset")
    return [reset] if port else [reset, ("--jump", "REJECT")]
