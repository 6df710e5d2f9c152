"""All links of one rank over TCP, driven by the thread that calls.

Waiting spins for a while, as a message that is about to come costs less that way, then blocks in
poll.  Whatever the wait is for, poll reads from every rank and sends to every rank: progress
never depends on the size of the kernel's buffers, and a rank that is lost is noticed.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from typing import Dict, List, Mapping, NamedTuple, NoReturn, Sequence

from rlxdeploy.runtime.algorithm.moves import Member, Receive, Send
from rlxdeploy.runtime.errors import CollectiveTimeout, NoLink, PeerLost
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call, Links
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.peer import Home, Peer, Wanted
from rlxdeploy.runtime.link.sockets import unsent, vanished
from rlxdeploy.runtime.wire.frame import Kind, encode_header

# How long poll sleeps before the kernel is asked which hosts still answer.
_TICK_S = 1.0
_ABORT = struct.pack("ii", 1, 0)


class Connection(NamedTuple):
    """An open connection to a rank, and how errors call its other end."""

    sock: socket.socket
    address: str


class Patience(NamedTuple):
    """How to wait: spin for *spin_s*, giving the core away meanwhile where ranks share cores."""

    spin_s: float
    crowded: bool
    peer_timeout: float


class TcpLinks(Links):
    """The connections of one rank, by the rank at their other end."""

    def __init__(
        self,
        member: Member,
        connections: Mapping[int, Connection],
        limits: Limits,
        patience: Patience,
        heap: Heap,
    ) -> None:
        self.member, self.max_message, self.heap = member, limits.max_payload, heap
        self._limits, self._patience = limits, patience
        self.late_pause_s = limits.lost_pause_s
        self._lost: List[Peer] = []
        home = Home(member.rank, heap, limits, self._lost)
        self._peers: Dict[int, Peer] = {
            rank: Peer(rank, address, sock, home)
            for rank, (sock, address) in sorted(connections.items())
        }
        self._sending: List[Peer] = []
        self._ask_at = time.monotonic() + _TICK_S
        self._poll = select.poll()
        self._by_fd = {peer.sock.fileno(): peer for peer in self._peers.values()}
        for fd in self._by_fd:
            self._poll.register(fd, select.POLLIN)

    def post(self, send: Send, call: Call) -> None:
        """Send as far as the kernel takes it; the rest goes while others are waited for."""
        header = encode_header(Kind.SEND, self.member.rank, send.tag, len(send.data))
        self._send(send.to, header, send.data, call)

    def entrust(self, send: Send, call: Call) -> None:
        """Send bytes that stay as they are for good, without ever waiting for that."""
        peer = self._peer(send.to)
        if peer.lost is not None:
            self._raise_lost(call)
        header = encode_header(Kind.SEND, self.member.rank, send.tag, len(send.data))
        peer.send(header, send.data, lent=False)
        self._note_outbox(peer)

    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Begin to store *data* in the heap of rank *to*."""
        header = encode_header(Kind.PUT, self.member.rank, offset, len(data))
        self._send(to, header, data, call)

    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Fill *into* from the heap of rank *source*, which answers when it is in a call."""
        peer = self._peer(source)
        peer.fetch(offset, into)
        self._note_outbox(peer)
        self._answer([peer], call)

    def collect(self, receives: Sequence[Receive], call: Call) -> None:
        """Receive straight into the memory given, from all sources at once."""
        asked = [(self._peer(each.source), Wanted(each.tag, each.into)) for each in receives]
        self._answer(
            [peer for peer, wanted in asked if not peer.ask(wanted, call.op)],
            call,
        )

    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Wait for a message of any length."""
        peer = self._peer(source)
        if not peer.ask(Wanted(tag, None), call.op):
            self._answer([peer], call)
        return peer.inbox.pop(tag)

    def gather(
        self, sources: Sequence[int], tag: int, until: float, call: Call
    ) -> Dict[int, memoryview]:
        """Take the messages that are there by *until*; those still to come are thrown away."""
        asked = [self._peer(source) for source in sources]
        waiting = [peer for peer in asked if not peer.ask(Wanted(tag, None), call.op)]
        try:
            self._wait(waiting, call._replace(deadline=until))
        except CollectiveTimeout:
            for peer in waiting:
                # What the kernel has already was there in time.
                while not peer.answered(call.op) and self._receive(peer):
                    pass
        finally:
            for peer in waiting:
                peer.forget()
        came = {peer.rank: peer.inbox.pop(tag) for peer in asked if peer.inbox.has(tag)}
        for peer in asked:
            if peer.rank not in came:
                peer.inbox.refuse(tag)
        return came

    def flush(self, call: Call) -> None:
        """Wait until nothing lent is in the outboxes, reading meanwhile what others send."""
        quiet_since = time.monotonic()
        while any(peer.outbox.lent for peer in self._sending):
            waiting = [peer for peer in self._sending if peer.outbox.lent]
            if self._push() or self._block(call, waiting, quiet_since):
                quiet_since = time.monotonic()
            if time.monotonic() >= call.deadline and any(peer.outbox.lent for peer in waiting):
                self._raise_late(call, waiting)

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a link ends."""
        call = Call("waiting", seconds, time.monotonic() + seconds)
        while not self._lost:
            left = call.deadline - time.monotonic()
            if left <= 0:
                return
            self._sleep(left)
        self._raise_lost(call)

    def close(self) -> None:
        """Hand over what was sent, then close the sockets."""
        deadline = time.monotonic() + self._limits.linger_s
        while self._sending and time.monotonic() < deadline:
            if not self._push():
                time.sleep(0.001)
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_WR)
        self._linger(deadline)
        for peer in self._peers.values():
            peer.sock.close()

    def abort(self) -> None:
        """Reset the connections; what is still under way is thrown away."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            peer.sock.close()

    def _peer(self, rank: int) -> Peer:
        peer = self._peers.get(rank)
        if peer is None:
            raise NoLink(self.member.rank, rank)
        return peer

    def _send(self, to: int, header: bytes, data: memoryview, call: Call) -> None:
        peer = self._peer(to)
        if peer.lost is None:
            peer.send(header, data)
        if peer.lost is not None:
            self._raise_lost(call)
        self._note_outbox(peer)

    def _note_outbox(self, peer: Peer) -> None:
        if len(peer.outbox) and peer.lost is None and peer not in self._sending:
            self._sending.append(peer)

    def _receive(self, peer: Peer) -> bool:
        """Take in what came from *peer*, and see to what it asked for; return whether any came."""
        moved = peer.receive()
        self._note_outbox(peer)
        return moved

    def _answer(self, waiting: List[Peer], call: Call) -> None:
        """Wait until every peer in *waiting* has sent what it was asked for."""
        if call.whole and self._lost:
            self._raise_lost(call)
        try:
            self._wait(waiting, call)
        finally:
            for peer in waiting:
                peer.forget()

    def _wait(self, waiting: List[Peer], call: Call) -> None:
        quiet_since = time.monotonic()
        while waiting:
            moved = self._push()
            for peer in waiting:
                moved = self._receive(peer) or moved
            now = time.monotonic()
            if not moved and (self._lost or now - quiet_since >= self._patience.spin_s):
                moved = self._block(call, waiting, quiet_since)
            if moved:
                quiet_since = now
                waiting = [peer for peer in waiting if not peer.answered(call.op)]
            elif self._patience.crowded:
                os.sched_yield()
            if waiting and now >= call.deadline:
                self._raise_late(call, waiting)

    def _push(self) -> bool:
        """Send what waits to be sent, as far as the kernel takes it."""
        if not self._sending:
            return False
        moved = [peer.push() for peer in self._sending]
        self._sending = [peer for peer in self._sending if len(peer.outbox) and peer.lost is None]
        return any(moved)

    def _block(self, call: Call, waiting: Sequence[Peer], quiet_since: float) -> bool:
        """Sleep until something moves, and say so; raise where nothing can any more.

        A lost rank that the wait does not need may have finished: it fails the call only once
        nothing has moved for the grace.
        """
        now = time.monotonic()
        left = call.deadline - now
        if left <= 0:
            self._raise_late(call, waiting)
        if self._lost:
            left = min(left, quiet_since + self._limits.lost_grace_s - now)
            if left <= 0 or any(peer.lost is not None for peer in waiting):
                self._raise_lost(call)
        return self._sleep(left)

    def _sleep(self, seconds: float) -> bool:
        """Wait until a socket is ready, and serve it; return whether anything came or went."""
        for peer in self._sending:
            if peer.lost is None:
                self._poll.modify(peer.sock, select.POLLIN | select.POLLOUT)
        ready = self._poll.poll(max(1, int(min(seconds, _TICK_S) * 1000)))
        for peer in self._sending:
            if peer.lost is None:
                self._poll.modify(peer.sock, select.POLLIN)
        moved = [self._push(), *(self._receive(self._by_fd[fd]) for fd, _ in ready)]
        self._ask_kernel(time.monotonic())
        for peer in self._lost:
            fd = peer.sock.fileno()
            if self._by_fd.pop(fd, None) is not None:
                self._poll.unregister(fd)
        return any(moved)

    def _ask_kernel(self, now: float) -> None:
        """Look for vanished hosts, once a tick."""
        if now < self._ask_at:
            return
        self._ask_at = now + _TICK_S
        for peer in self._by_fd.values():
            if vanished(peer.sock, self._patience.peer_timeout):
                peer.lose(f"its host has not answered for {self._patience.peer_timeout:g} s")

    def _raise_lost(self, call: Call) -> NoReturn:
        first = self._lost[0]
        time.sleep(self._limits.lost_pause_s)
        raise PeerLost(first.rank, first.address, call.op, first.lost or "")

    def _raise_late(self, call: Call, waiting: Sequence[Peer]) -> NoReturn:
        raise CollectiveTimeout(call.op, call.seconds, [peer.rank for peer in waiting])

    def _linger(self, deadline: float) -> None:
        """Let the kernel deliver what was sent: closing with unread bytes would throw it away."""
        scrap = bytearray(65536)
        while time.monotonic() < deadline:
            open_peers = [peer for peer in self._peers.values() if peer.lost is None]
            if not any(unsent(peer.sock) for peer in open_peers):
                return
            for peer in open_peers:
                with contextlib.suppress(OSError):
                    peer.sock.recv_into(scrap)
            time.sleep(0.001)
