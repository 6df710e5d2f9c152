"""How far a rank has come, told to its manager, the state file, a person, and perhaps the LAN."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import SettingsError, ranks_text
from rlxdeploy.runtime.link.discovery import own_address
from rlxdeploy.runtime.link.form import Onlooker
from rlxdeploy.runtime.link.mdns import NodeAdvert
from rlxdeploy.runtime.link.udp import own_host
from rlxdeploy.runtime.notify import Notifier
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.statefile import RankState, write_state

Say = Callable[[str], None]

# The state is written anew with each; who fails to reach so many learns no more from the others.
_NAMED = 16


def silent(_line: str) -> None:
    """Say nothing: a library does not write on its user's terminal."""


def logged(line: str) -> None:
    """Give *line* to the program's logging, as a warning of `rlxdeploy.runtime`."""
    import logging  # noqa: PLC0415 - most ranks have nothing to warn of, and it takes a while

    logging.getLogger("rlxdeploy.runtime").warning("%s", line)


class Reporter(Onlooker):
    """Turns events of a rank's life into STATUS lines, a state file and lines for *say*.

    Without *say* warnings alone are told, to the program's logging.  What cannot be told after the
    start (a full disk, a manager that is gone) is said once and never ends the group.
    """

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], say: Optional[Say] = None
    ) -> None:
        self._settings, self._say, self._warn = settings, say or silent, say or logged
        self._notifier = Notifier(environ)
        self._told: Optional[str] = None
        self._advert: Optional[NodeAdvert] = None
        self._state = RankState(
            settings.rank,
            settings.world,
            settings.job,
            settings.plan,
            os.getpid(),
            began_at=time.time(),
        )
        if settings.state_file:
            try:
                write_state(Path(settings.state_file), self._state)
            except OSError as error:
                raise SettingsError(
                    "RLX_STATE_FILE", settings.state_file, f"a file that can be written ({error})"
                ) from error

    @property
    def watchdog_s(self) -> Optional[float]:
        """How long the manager waits for a sign of life; None if it does not ask for any."""
        return self._notifier.watchdog_s

    def missing(self, ranks: Sequence[int]) -> None:
        """Tell which ranks have no link yet."""
        in_vain = {rank: why for rank, why in self._state.in_vain.items() if int(rank) in ranks}
        self._write(phase="joining", missing=tuple(ranks), in_vain=in_vain)
        self._tell(f"joining: still missing {ranks_text(ranks)} of {self._settings.world}")

    def in_vain(self, rank: int, why: str) -> None:
        """Tell what came of dialling a rank, where it is not what came of it before."""
        told = self._state.in_vain
        if told.get(str(rank)) != why and (str(rank) in told or len(told) < _NAMED):
            self._write(in_vain={**told, str(rank): why})

    def linked(self) -> None:
        """Tell that this rank has all its links; others may still be joining."""
        self._write(phase="joining", missing=(), in_vain={})
        self._tell("joining: linked, waiting until every rank is")

    def noticed(self, text: str) -> None:
        """Say something a person should know."""
        self._warn(text)

    def ready(self, epoch: Optional[str] = None, digest: Optional[str] = None) -> None:
        """Tell that the group is whole."""
        self._write(
            phase="ready", missing=(), in_vain={}, epoch=epoch, digest=digest, joined_at=time.time()
        )
        shown = f", digest {digest[:16]}" if digest else ""
        text = f"joined as rank {self._settings.rank} of {self._settings.world}{shown}"
        self._tell(text, READY="1")
        if self._settings.advertise and self._advert is None:
            self._advert = self._shown()

    def alive(self) -> None:
        """Feed the watchdog."""
        self._notify(WATCHDOG="1")

    def leaving(self, error: Optional[str] = None) -> None:
        """Tell that this rank has left the group, and why if something went wrong.

        The program may go on, and even join again.  After STOPPING=1 systemd would stop it, and
        would not keep the exit status of one that ends well.
        """
        self._leave(error or "left the group", error)

    def ending(self) -> None:
        """Tell that this process has been told to end, and does so."""
        self._leave("leaving", None, STOPPING="1")

    def _leave(self, status: str, error: Optional[str], **fields: str) -> None:
        if self._state.phase == "leaving":
            return
        self._write(phase="leaving", error=error)
        self._tell(status, **fields)
        if self._advert is not None:
            self._advert.close()

    def _shown(self) -> NodeAdvert:
        settings = self._settings
        own = own_address(settings) or Address(own_host(), settings.data_port)
        name = f"{settings.job or 'rlx'}-{settings.rank}"
        return NodeAdvert(name, own, self._say_once)

    def _write(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a state
        self._state = replace(self._state, **changes)
        if self._settings.state_file:
            try:
                write_state(Path(self._settings.state_file), self._state)
            except OSError as error:
                self._say_once(f"RLX_STATE_FILE {self._settings.state_file}: {error}")

    def _tell(self, status: str, **fields: str) -> None:
        self._say(status)
        self._notify(STATUS=status, **fields)

    def _notify(self, **fields: str) -> None:
        failed = self._notifier.send(**fields)
        if failed:
            self._say_once(failed)

    def _say_once(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._warn(text)
