"""A rank without a descriptor to spare while its group forms."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

import pytest

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import JoinTimeout
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.assembly import Assembly
from rlxdeploy.runtime.link.door import Door
from rlxdeploy.runtime.link.form import Formation, Onlooker, Place
from rlxdeploy.runtime.link.join import Joining
from rlxdeploy.runtime.link.meeting import Secrets
from rlxdeploy.runtime.wire.identity import Identity
from tests.runtime.cluster import PATIENCE_S, fresh_host

LIMITS = Limits(accept_rest_s=0.1)
JOIN_S = 0.4


class Counting(socket.socket):
    """A listener that knows how often somebody was to be let in."""

    tries = 0

    def accept(self) -> Tuple[socket.socket, Any]:
        self.tries += 1
        return super().accept()


class TurnedAway(Exception):
    """Ends the join: somebody was let in, and found to be a stranger."""


class Witness(Onlooker):
    """Remembers what a person is told."""

    def __init__(self) -> None:
        self.noted: List[str] = []

    def noticed(self, text: str) -> None:
        if text.startswith("turned away"):
            raise TurnedAway
        self.noted.append(text)


Forming = Union[Formation, Joining]


def rlx(place: Place, listener: socket.socket, onlooker: Onlooker) -> Forming:
    return Formation(place, Door(listener, LIMITS, 10, onlooker.noticed), LIMITS, onlooker)


def native(place: Place, listener: socket.socket, onlooker: Onlooker) -> Forming:
    secrets = Secrets(Identity("job", "plan", 2, 0, "", "none"), b"")
    return Joining(place, Assembly(place, listener, secrets, LIMITS, onlooker), LIMITS, onlooker)


WIRES: Dict[str, Callable[[Place, socket.socket, Onlooker], Forming]] = {
    "rlx": rlx,
    "native": native,
}


@contextlib.contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let this process open nothing for a while."""
    gc.collect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_who_cannot_be_let_in_waits_and_keeps_no_core_busy(
    wire: Callable[[Place, socket.socket, Onlooker], Forming],
) -> None:
    """It is tried again now and then, a person is told once why, and later it is let in."""
    witness = Witness()
    with Counting(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((fresh_host(), 0))
        listener.listen()
        listener.settimeout(0)
        own = Address(*listener.getsockname())
        forming = wire(
            Place(0, 2, star=False, peers=(own, own), peer_timeout=10.0), listener, witness
        )
        with socket.create_connection(own, PATIENCE_S) as knock:
            knock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with no_descriptor_left(), pytest.raises(JoinTimeout):
                forming.run(time.monotonic() + JOIN_S, JOIN_S)
            tries = listener.tries
            with pytest.raises(TurnedAway):
                forming.run(time.monotonic() + PATIENCE_S, PATIENCE_S)
        forming.close()

    assert 1 <= tries <= 2 + JOIN_S / LIMITS.accept_rest_s
    why = os.strerror(errno.EMFILE)
    assert witness.noted == [f"nobody who dials in can be let in for now: {why}"]
