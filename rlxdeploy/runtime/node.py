"""A rank before it has joined: `Node.from_env().connect()`."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from typing import Any, Iterable, Mapping, Optional

from rlxdeploy.runtime.address import parse_address
from rlxdeploy.runtime.bringup import Bringup
from rlxdeploy.runtime.errors import GroupError, SettingsError
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.report import Reporter
from rlxdeploy.runtime.settings import Settings


class Node:
    """Builder of a group: every method returns a changed copy, `connect` joins.

    Settings are checked by `connect`, and by `from_env` at once; a SettingsError names the
    environment variable that says the same.
    """

    def __init__(self, rank: int = 0, world: int = 1, *, limits: Optional[Limits] = None) -> None:
        self._settings = Settings(rank=rank, world=world)
        self._limits = limits or Limits()
        self._environ: Mapping[str, str] = os.environ

    @classmethod
    def from_env(
        cls, environ: Optional[Mapping[str, str]] = None, *, limits: Optional[Limits] = None
    ) -> Node:
        """Take everything from *environ*, which is the process's own if not given."""
        node = cls(limits=limits)
        if environ is not None:
            node._environ = environ
        node._settings = Settings.from_env(node._environ)
        return node

    @property
    def settings(self) -> Settings:
        """What has been set so far."""
        return self._settings

    def rank(self, rank: int) -> Node:
        """Be rank *rank*."""
        return self._with(rank=rank)

    def world(self, world: int) -> Node:
        """Expect *world* ranks."""
        return self._with(world=world)

    def peers(self, addresses: Iterable[str]) -> Node:
        """Find the ranks at *addresses* (`host:port`), by rank; in a star only rank 0's counts."""
        try:
            return self._with(peers=tuple(map(parse_address, addresses)))
        except ValueError as error:
            raise SettingsError("PEERS", str(error), "HOST:PORT or [IPV6]:PORT") from None

    def discover(self, disc_port: int = 29600, data_base: int = 29500) -> Node:
        """Find the ranks: by broadcast in a mesh, by asking rank 0 or by mDNS in a star.

        *disc_port* is UDP; a rank listens at TCP port *data_base* plus its number, rank 0 of a
        star at *data_base*.
        """
        return self._with(discover=True, disc_port=disc_port, data_port=data_base)

    def discover_via(self, host: str) -> Node:
        """Find rank 0 of a star by asking *host* over UDP, at the port given to `discover`."""
        return self._with(discover=True, discover_host=host)

    def topology(self, topology: str) -> Node:
        """Connect as a `mesh` or a `star`."""
        return self._with(topology=topology)

    def heap_bytes(self, size: int) -> Node:
        """Offer *size* bytes to one-sided access."""
        return self._with(heap_bytes=size)

    def wire(self, wire: str) -> Node:
        """Speak the `rlx` or the `native` wire."""
        return self._with(wire=wire)

    def bind(self, address: str) -> Node:
        """Listen at *address* (`host` or `host:port`) and not at the own PEERS address."""
        return self._with(bind=address)

    def security(self, security: str) -> Node:
        """Authenticate with a key (`psk`), or accept that nobody does (`none`)."""
        return self._with(security=security)

    def key_file(self, path: str) -> Node:
        """Take the key from the file at *path*."""
        return self._with(key_file=path)

    def join_timeout(self, seconds: float) -> Node:
        """Give the group *seconds* to form."""
        return self._with(join_timeout=seconds)

    def timeout(self, seconds: float) -> Node:
        """Bound each later call to *seconds*, unless it says otherwise."""
        return self._with(timeout=seconds)

    def connect(self) -> ProcessGroup:
        """Join the group; a service manager is sent STATUS and READY.

        Raises JoinTimeout with the missing ranks and what was tried for each, PeerLost where one
        goes the moment the group has formed; SettingsError, PortInUse, another RefusedError; on
        the native wire HandshakeRefused: IdentityMismatch with both values, or WrongKey.
        """
        report = Reporter(self._settings, self._environ)
        try:
            bringup = Bringup(self._settings, self._limits, report)
            try:
                group = bringup.form(report.leaving)
            finally:
                bringup.close()
        except GroupError as error:
            report.leaving(str(error))
            raise
        report.ready()
        return group

    def _with(self, **changes: Any) -> Node:  # noqa: ANN401 - the fields of the settings
        changed = copy(self)
        changed._settings = replace(self._settings, **changes)  # noqa: SLF001 - a copy of this one
        return changed
