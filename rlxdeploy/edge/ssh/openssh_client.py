"""Connections by the OpenSSH client, for what paramiko lacks: one master process a link.

A session, and the way to the next hop, go through the master's socket.  Should the master be gone,
ssh would quietly connect by itself, without our options: ProxyCommand `false` keeps it from that.
"""

import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from rlxdeploy.edge.local import ChildSession
from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.dial import Line, dial_command
from rlxdeploy.edge.ssh.failure import Broken
from rlxdeploy.edge.ssh.openssh_log import accepted_key, why_it_ended, why_it_failed
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Keepalive, Terms
from rlxdeploy.model.host import Host

_LOOK_S = 0.02
_LAST_WORDS_S = 1.0
# sshd counts a login as begun for a moment after it says yes; then it tells its other keys.
_IS_OPENSSH, _SIGN, _SIGN_S = "remote software version OpenSSH", "hostkeys-00@openssh.com", 1.0
# The exit status of an ssh that fails; other statuses are the command's.
_SSH_ITSELF = 255
_NEVER_ASK = {"SSH_ASKPASS_REQUIRE": "never"}


@dataclass(frozen=True, slots=True)
class MasterLink:
    """A running master for *hop*, listening at *socket*."""

    hop: Hop
    socket: Path
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    keepalive: Keepalive

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None and self.socket.exists()

    @property
    def said(self) -> str:
        """What the master has written to its log so far."""
        if self.log.closed:
            return ""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode(errors="replace")

    def why_it_ended(self) -> str:
        """Wait for a master that is about to end and return its reason, "" if it lives on."""
        try:
            self.process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            return ""
        return why_it_ended(self.said, self.keepalive)

    def through(self, *options: str) -> list[str]:
        """Return the ssh that goes through this master, or fails."""
        alone = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes"]
        return ["ssh", "-F", "none", "-S", str(self.socket), *alone, "-T", *options, "--", "master"]

    def session(self, host: Host, command: str, deadline: float) -> Session:
        """Start *command* in a child ssh of its own."""
        del deadline
        return MasterSession(host, self, command)

    def line_to(self, hop: Hop, deadline: float) -> Line:
        """Return a line to the SSH port of *hop*, through this master."""
        del deadline
        return dial_command(shlex.join(self.through("-W", _peer(hop))))

    def close(self) -> None:
        """End the master; whatever runs over this link ends with it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(_LAST_WORDS_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(_LAST_WORDS_S)
        self.log.close()


class MasterSession(ChildSession):
    """`Session` through the master of *link*."""

    def __init__(self, host: Host, link: MasterLink, command: str) -> None:
        super().__init__(host, [*link.through(), command])
        self._link = link

    @property
    def complaints(self) -> str:
        """The tail of stderr so far, and why the connection broke if it did."""
        said = super().complaints
        if not self.has_failed(_SSH_ITSELF):
            return said
        why = self._link.why_it_ended()
        return f"{said}the connection broke: {why}" if why else said


@dataclass(slots=True)
class OpenSshClient:
    """Opens links by the `ssh` of this machine, under *terms*."""

    terms: Terms
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    def connect(self, hop: Hop, before: MasterLink | None, deadline: float) -> MasterLink:
        """Return a link to *hop*, through *before* if given; raise ConnectFailure or OSError."""
        deadline = min(deadline, time.monotonic() + self.terms.opening(hop))
        link = self._master(hop, before)
        try:
            self._await(link, before, deadline)
            if key := accepted_key(link.said):
                self.terms.known.note(hop, key, hop.path(hop.resolved.remembers_in))
        except BaseException:
            link.close()
            raise
        return link

    def _master(self, hop: Hop, before: MasterLink | None) -> MasterLink:
        socket = self._new_socket()
        log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the link
        try:
            process = subprocess.Popen(  # noqa: S603  # an argument vector; "--" ends the options
                self.argv(hop, before, socket),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **_NEVER_ASK},
            )
        except OSError:
            log.close()
            raise
        return MasterLink(hop, socket, process, log, self.terms.keepalive(hop))

    def argv(self, hop: Hop, before: MasterLink | None, socket: Path) -> list[str]:
        """Return the command of the master for *hop*."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new" if self.terms.accepts_new else "yes",
            "ConnectTimeout": str(max(round(self.terms.patience(hop)), 1)),
            "ServerAliveInterval": str(self.terms.keepalive(hop).interval),
            "LogLevel": "DEBUG1",
            "ControlPersist": "no",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "UpdateHostKeys": "no",
        }
        if before:
            way = before.through("-W", _peer(hop))
            options["ProxyCommand"] = shlex.join(way).replace("%", "%%")
            # As for ssh's own ProxyJump: `ssh -W` passes no descriptor.
            options["ProxyUseFdpass"] = "no"
        written = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        return ["ssh", "-M", "-N", "-S", str(socket), *written, *hop.arguments, "--", hop.alias]

    def close(self) -> None:
        """Remove the folder of the sockets; the links are closed before."""
        with self._lock:
            if self._folder:
                self._folder.cleanup()
                self._folder = None

    def _new_socket(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="rlx-")
            return Path(self._folder.name) / str(next(self._numbers))

    def _await(self, link: MasterLink, before: MasterLink | None, deadline: float) -> None:
        """Wait until the master listens, once it is logged in, and sshd counts it as such too."""
        while not link.socket.exists():
            if link.process.poll() is not None:
                hop_before = before.hop if before else None
                known = self.terms.known.about(link.hop)
                raise why_it_failed(link.said, link.hop, hop_before, known)
            if time.monotonic() > deadline:
                raise Broken("connect", "no answer in time")
            time.sleep(_LOOK_S)
        until = min(deadline, time.monotonic() + _SIGN_S)
        while _IS_OPENSSH in (said := link.said) and _SIGN not in said:
            if link.process.poll() is not None or time.monotonic() > until:
                return
            time.sleep(_LOOK_S)


def _peer(hop: Hop) -> str:
    return f"[{hop.resolved.hostname}]:{hop.resolved.port}"
