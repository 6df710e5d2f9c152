"""Listen where the ranks of a host will, dial whom they will, and say what came of each call.

The text of this file is fed to `python3 -I -` on a host, so it stands alone: Python 3.6 and the
standard library.  Orders come on descriptor 3, one JSON object a line.  The first has

    marker  begins each line of the answers           token     what only listeners of this run know
    posts   [rank, address, port] to listen at        life_s    when all ends, whatever happens
    dial_s  after which a call counts as unanswered   answer_s  after which a connection is mute

and is answered by a `post` for each place where nobody can listen, then `ready`.  Every further one
has `calls`, each [number, rank, address, port, prove], and each call gets a `call` in answer.
Descriptor 3 ends when the controller hangs up or is gone, and we end with it.
"""

import contextlib
import errno
import hashlib
import hmac
import json
import math
import os
import resource
import selectors
import signal
import socket
import time
from io import FileIO
from typing import Any, Callable, Dict, Generator, NamedTuple, Tuple, Union

_CONTROL = 3
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_GREETING = b"RLX-PREFLIGHT "
# A greeting or an answer is shorter; what a stranger says need not be read to its end.
_LONGEST = 256
# As long as the runtime's own: every rank may call at the same moment.
_BACKLOG = 1024

_WORDS = {
    errno.ECONNREFUSED: "refused",
    errno.ETIMEDOUT: "timed out",
    errno.EHOSTUNREACH: "no route",
    errno.ENETUNREACH: "no route",
    errno.EADDRINUSE: "port in use",
    # Whoever starts the ranks may be allowed what the login user is not.
    errno.EACCES: "not proven",
    errno.EPERM: "not proven",
}

_PLAIN = ("refused", "timed out", "port in use")

Orders = Dict[str, Any]
Said = Tuple[str, str]
Line = Union[socket.socket, FileIO]
# Which events are waited for, and the moment (of time.monotonic) at which TimeoutError is raised.
Wait = Tuple[int, float]
Talk = Generator[Wait, None, None]


class Call(NamedTuple):
    """One call to make: to *rank* at an address, and whether it has to *prove* who it is."""

    number: int
    rank: int
    address: str
    port: int
    prove: bool


class Desk:
    """Talks over sockets, all at once; each yields what it waits for and ends with its socket."""

    def __init__(self, orders: Orders) -> None:
        self.orders, self.ended = orders, False
        self._selector = selectors.DefaultSelector()
        self._talks: Dict[Line, Tuple[Talk, float]] = {}

    def begin(self, sock: Line, talk: Talk) -> None:
        """Have *talk* go on as far as it can."""
        self._selector.register(sock, _READ, sock)
        self._go_on(sock, talk, talk.__next__)

    def turn(self) -> None:
        """Wait for the next event or deadline, and go on with the talks concerned."""
        first = min(until for _, until in self._talks.values())
        patience = None if first == math.inf else max(0.0, first - time.monotonic())
        for key, _ in self._selector.select(patience):
            # One of the same round may have ended another.
            if key.data in self._talks:
                talk, _ = self._talks[key.data]
                self._go_on(key.data, talk, talk.__next__)
        now = time.monotonic()
        for sock, (talk, until) in list(self._talks.items()):
            if until <= now:
                self._late(sock, talk)

    def say(self, word: str, fields: Dict[str, object]) -> None:
        """Write one line, which is short enough for a pipe to take it whole."""
        marker = self.orders["marker"]
        os.write(1, f"\n{marker} {word} {json.dumps(fields)}\n".encode())

    def _late(self, sock: Line, talk: Talk) -> None:
        late = TimeoutError(errno.ETIMEDOUT, "")
        self._go_on(sock, talk, lambda: talk.throw(late))

    def _go_on(self, sock: Line, talk: Talk, step: Callable[[], Wait]) -> None:
        try:
            events, until = step()
        except (StopIteration, OSError):
            self._talks.pop(sock, None)
            self._selector.unregister(sock)
            sock.close()
            return
        self._selector.modify(sock, events, sock)
        self._talks[sock] = talk, until


def told(desk: Desk, control: FileIO) -> Talk:
    """Follow the orders that come later, until there is nobody who gives them."""
    rest = b""
    while True:
        yield _READ, math.inf
        piece = control.read(1 << 16)
        if not piece:
            desk.ended = True
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            for order in json.loads(line.decode())["calls"]:
                dial(desk, Call(*order))


def listen(desk: Desk, rank: int, address: str, port: int) -> None:
    """Listen in the place of *rank* at exactly this address."""
    family, where = numeric(address, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
        sock.listen(_BACKLOG)
        sock.settimeout(0)
    except OSError:
        sock.close()
        raise
    desk.begin(sock, door(desk, sock, rank))


def door(desk: Desk, sock: socket.socket, rank: int) -> Talk:
    """Let callers in for as long as we are here."""
    while True:
        yield _READ, math.inf
        with contextlib.suppress(OSError):
            guest, _ = sock.accept()
            guest.settimeout(0)
            desk.begin(guest, answer(desk, guest, rank))


def answer(desk: Desk, guest: socket.socket, rank: int) -> Talk:
    """Prove to a caller that this is the listener for *rank*."""
    until = time.monotonic() + desk.orders["answer_s"]
    said = b""
    while b"\n" not in said and len(said) < _LONGEST:
        yield _READ, until
        piece = guest.recv(_LONGEST)
        if not piece:
            return
        said += piece
    if said.startswith(_GREETING):
        nonce = said[len(_GREETING) :].strip().decode("ascii", "replace")
        guest.send(proof(desk, rank, nonce))
        # Whoever hangs up first keeps its port busy for a minute, and ranks are to have this one.
        yield _READ, until


def dial(desk: Desk, order: Call) -> None:
    """Begin a call."""
    family, where = numeric(order.address, order.port)
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        tell(desk, order, why(error, "failed"))
        return
    sock.settimeout(0)
    begun = sock.connect_ex(where)
    desk.begin(sock, call(desk, order, sock, begun))


def call(desk: Desk, order: Call, sock: socket.socket, begun: int) -> Talk:
    """Wait for the connection, and for a proof of who is at its other end."""
    if begun == errno.EINPROGRESS:
        try:
            yield _WRITE, time.monotonic() + desk.orders["dial_s"]
            begun = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        except OSError as error:
            begun = error.errno or errno.ETIMEDOUT
    if begun:
        tell(desk, order, why(OSError(begun, os.strerror(begun)), "failed"))
    elif order.prove:
        yield from met(desk, order, sock)
    else:
        tell(desk, order, ("answered", ""))


def met(desk: Desk, order: Call, sock: socket.socket) -> Talk:
    """Ask who is there, and tell."""
    nonce, said = os.urandom(16).hex(), b""
    until = time.monotonic() + desk.orders["answer_s"]
    try:
        sock.send(_GREETING + nonce.encode() + b"\n")
        while b"\n" not in said and len(said) < _LONGEST:
            yield _READ, until
            piece = sock.recv(_LONGEST)
            if not piece:
                break
            said += piece
    except OSError as error:
        if error.errno != errno.ETIMEDOUT:
            tell(desk, order, ("a stranger answered", error.strerror or str(error)))
            return
    tell(desk, order, judged(desk, order.rank, nonce, said))


def judged(desk: Desk, rank: int, nonce: str, said: bytes) -> Said:
    """Return who it is that has *said* this."""
    if said == proof(desk, rank, nonce):
        return "answered", ""
    first = said.split(b" ")[0]
    if first.isdigit() and said == proof(desk, int(first), nonce):
        return "a stranger answered", f"it is rank {int(first)} of this job"
    if said:
        shown = said[:40].decode("ascii", "replace")
        return "a stranger answered", f"it said {shown!r}"
    return "a stranger answered", "it took the connection and said nothing"


def tell(desk: Desk, order: Call, said: Said) -> None:
    """Report what came of a call."""
    desk.say("call", {"n": order.number, "how": said[0], "detail": said[1]})


def why(error: OSError, otherwise: str) -> Said:
    """Return the word for what went wrong, and the system's own where that says more."""
    word = _WORDS.get(error.errno or 0, otherwise)
    return word, "" if word in _PLAIN else error.strerror or str(error)


def proof(desk: Desk, rank: int, nonce: str) -> bytes:
    """Return the line with which the listener for *rank* answers a nonce."""
    key, text = desk.orders["token"].encode(), f"{rank} {nonce}"
    return f"{rank} {hmac.new(key, text.encode(), hashlib.sha256).hexdigest()}\n".encode()


def numeric(address: str, port: int) -> Tuple[int, Any]:
    """Return the family and the socket address of a numeric address."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[
        0
    ]
    return found[0], found[4]


def allow_many_sockets() -> None:
    """Raise the soft limit on descriptors, which is low by default."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Listen, say so, and follow orders."""
    control = FileIO(_CONTROL)
    desk = Desk(json.loads(control.readline().decode()))
    signal.alarm(desk.orders["life_s"])
    allow_many_sockets()
    for rank, address, port in desk.orders["posts"]:
        try:
            listen(desk, rank, address, port)
        except OSError as error:
            how, detail = why(error, "cannot listen")
            desk.say("post", {"rank": rank, "how": how, "detail": detail})
    desk.say("ready", {})
    desk.begin(control, told(desk, control))
    while not desk.ended:
        desk.turn()


if __name__ == "__main__":
    main()
