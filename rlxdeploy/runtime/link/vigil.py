"""What a rank of the native wire sees while it sleeps, and how it leaves so that all know why.

Whoever cannot go on tells every rank the first cause it knows, stops sending, and raises it;
whoever hears that does the same.  So all ranks name the same one, in a star too.
"""

from __future__ import annotations

import contextlib
import select
from dataclasses import replace
from time import monotonic
from typing import Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from rlxdeploy.runtime.errors import CollectiveTimeout, PeerLost, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.sockets import vanished
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.control import (
    LATE,
    LOST,
    MISMATCH,
    Cause,
    agree_on_missing,
    decode_abort,
    encode_abort,
    encode_goodbye,
)
from rlxdeploy.runtime.wire.header import WORDS, Header, decode

# How long poll sleeps before the kernel is asked which hosts still answer.
_TICK_S = 0.5
# The other end has closed its direction; what it sent before may still wait.
_HUNG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR

# Serves a message that nobody waits for; False where it has to wait for its call.
Serve = Callable[[Channel, Header, Call], bool]


class Vigil:
    """The channels of one rank; *sending* are those with something queued."""

    def __init__(
        self, rank: int, channels: Mapping[int, Channel], limits: Limits, peer_timeout: float
    ) -> None:
        self.rank, self.channels = rank, dict(channels)
        self.sending: List[Channel] = []
        self.serve: Serve = lambda _channel, _header, _call: False
        self.cause: Optional[Cause] = None
        self._limits, self._peer_timeout = limits, peer_timeout
        self._by_fd = {channel.sock.fileno(): channel for channel in self.channels.values()}
        # The call under way as its headers say it: word, sequence, total.
        self.current: Tuple[int, int, int] = (0, 0, 0)
        self._held: Set[int] = set()
        self._held_in = 0
        self._waiting: Tuple[int, ...] = ()
        self._busy: Set[int] = set()
        self._grief: Optional[Tuple[Channel, float]] = None

    def push(self, call: Call) -> None:
        """Send what waits to be sent, as far as the kernel takes it."""
        for channel in tuple(self.sending):
            channel.push()
            if channel.lost is not None:
                self.bury(channel, call)
                self.miss(channel, call)
            if not channel.queue:
                self.sending.remove(channel)

    def sleep(self, target: Optional[Channel], call: Call, waiting: Sequence[int]) -> None:
        """Wait until *target* can be read or something can be sent; raise where neither can."""
        before, self._waiting = self._waiting, tuple(waiting)
        now = monotonic()
        if now >= call.deadline:
            self.fail(self._late(call), call)
        limit = call.deadline - now
        if self._grief is not None:
            dead, since = self._grief
            limit = min(limit, since + self._limits.lost_grace_s - now)
            if limit <= 0:
                self.miss(dead, call)
        self.doze(target, call, limit)
        self._waiting = before

    def doze(self, target: Optional[Channel], call: Call, limit: float) -> None:
        """Sleep until something happens on any link, but no longer than *limit* seconds.

        What waits to be sent goes out: whoever sleeps need not know of it, and a link that can
        take it would end every sleep at once.
        """
        if self._held_in != self.current[1]:
            self._held.clear()
            self._held_in = self.current[1]
        poll = select.poll()
        for fd, channel in self._by_fd.items():
            events = self._events(channel, target)
            if events:
                poll.register(fd, events)
        ready = poll.poll(max(1, int(min(limit, _TICK_S) * 1000)))
        if not ready:
            self._held.clear()
            self._ask_kernel(call)
        for fd, what in ready:
            channel = self._by_fd[fd]
            if channel is not target and what & ~select.POLLOUT:
                self._notice(channel, what, call)
        if self.sending:
            self.push(call)

    def look(self, channel: Channel, call: Call) -> Optional[Header]:
        """Return the header that is next on *channel*, None if nothing is there yet."""
        try:
            header = channel.glance()
        except WireError as error:
            channel.lost = str(error)
            self.miss(channel, call)
        if header is None and channel.lost is not None:
            self.bury(channel, call)
            self.miss(channel, call)
        return header

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a rank is lost or leaves."""
        end = monotonic() + seconds
        call = Call("waiting", seconds, end + _TICK_S)
        while True:
            for channel in self.channels.values():
                if channel.lost is not None or channel.finished:
                    self.miss(channel, call)
            left = end - monotonic()
            if left <= 0:
                return
            self.doze(None, call, left)

    def busy(self, channel: Channel, *, reading: bool) -> None:
        """Say that *channel* is in the middle of a message, so that it must not be looked into."""
        if reading:
            self._busy.add(channel.rank)
        else:
            self._busy.discard(channel.rank)

    def bury(self, channel: Channel, call: Call) -> None:
        """Take note that *channel* has ended; raise the cause it left, if any."""
        last = channel.drain()
        if last is not None and last.op == Op.ABORT:
            self.told(channel, channel.last_cause(last), call)
        channel.finished = last is not None
        if self._grief is None and not channel.finished:
            self._grief = (channel, monotonic())

    def told(self, channel: Channel, abort: bytes, call: Call) -> NoReturn:
        """Raise the cause in the *abort* that came on *channel*."""
        try:
            cause = decode_abort(abort)
        except WireError as error:
            channel.lost = str(error)
            self.miss(channel, call)
        if not cause.address and cause.rank in self.channels:
            cause = replace(cause, address=self.channels[cause.rank].address)
        self.fail(cause, call)

    def miss(self, channel: Channel, call: Call) -> NoReturn:
        """Raise that *channel* ended although this call needs it."""
        self.fail(self._lost(channel, call), call)

    def mismatch(self, channel: Channel, ours: str, theirs: str, call: Call) -> NoReturn:
        """Raise that two ranks made different calls."""
        cause = Cause(MISMATCH, self.rank, op=call.op, why=ours, other=channel.rank, theirs=theirs)
        self.fail(cause, call)

    def fail(self, cause: Cause, call: Call) -> NoReturn:
        """Tell every rank and raise *cause*; one that is late first hears whom the others miss."""
        if cause.what != LATE:
            self.leave(cause)
            raise cause.error(call.op)
        own = self._late(call)
        heard = {cause.rank: cause.missing, self.rank: own.missing}
        self.leave(own)
        self._listen(heard)
        raise CollectiveTimeout(call.op, cause.seconds, agree_on_missing(heard))

    def leave(self, cause: Optional[Cause]) -> None:
        """Say goodbye, or why there is none, and stop sending; what is under way is finished."""
        if self.cause is not None:
            return
        self.cause = cause
        words = encode_goodbye() if cause is None else encode_abort(cause)
        open_ones = [channel for channel in self.channels.values() if channel.lost is None]
        for channel in self.channels.values():
            channel.leave(words)
        until = monotonic() + self._limits.farewell_s
        while True:
            for channel in open_ones:
                channel.push()
            poll = select.poll()
            queued = [each for each in open_ones if each.queue and each.lost is None]
            for channel in queued:
                poll.register(channel.sock, select.POLLOUT)
            left = until - monotonic()
            if not queued or left <= 0:
                break
            poll.poll(max(1, int(left * 1000)))
        for channel in open_ones:
            channel.shut()

    def _events(self, channel: Channel, target: Optional[Channel]) -> int:
        if channel.lost is not None:
            return 0
        events = select.POLLOUT if channel.queue else 0
        if channel is target:
            return events | select.POLLIN
        if channel.rank in self._busy:
            return events
        if channel.rank not in self._held:
            events |= select.POLLIN
        return events | _HUNG_UP

    def _notice(self, channel: Channel, what: int, call: Call) -> None:
        """Look at what came on a link that nobody waits for."""
        if what & _HUNG_UP:
            self.bury(channel, call)
            return
        try:
            header = channel.glance()
        except WireError as error:
            channel.lost = str(error)
            self.miss(channel, call)
        if channel.lost is not None:
            self.bury(channel, call)
        elif header is None or not self.serve(channel, header, call):
            self._compare(channel, header, call)
            self._held.add(channel.rank)

    def _compare(self, channel: Channel, header: Optional[Header], call: Call) -> None:
        """Raise where the next message of *channel* is of the call under way, yet of another."""
        word, sequence, total = self.current
        if header is None or header.op >= Op.SEND or header.sequence != sequence:
            return
        if (header.word, header.total) != (word, total):
            ours = decode(WORDS.pack(word, sequence, 0, total))
            self.mismatch(channel, str(ours), str(header), call)

    def _ask_kernel(self, call: Call) -> None:
        for channel in self.channels.values():
            if channel.lost is None and vanished(channel.sock, self._peer_timeout):
                channel.lost = f"its host has not answered for {self._peer_timeout:g} s"
                self.miss(channel, call)

    def _listen(self, heard: Dict[int, Tuple[int, ...]]) -> None:
        """Hear for a moment whom the others wait for."""
        until = monotonic() + self._limits.farewell_s
        silent = [c for c in self.channels.values() if c.lost is None and c.rank not in heard]
        while silent and monotonic() < until:
            poll = select.poll()
            for channel in silent:
                poll.register(channel.sock, select.POLLIN)
            poll.poll(max(1, int((until - monotonic()) * 1000)))
            for channel in tuple(silent):
                last = channel.drain()
                if last is not None and last.op == Op.ABORT:
                    with contextlib.suppress(WireError):
                        heard[channel.rank] = decode_abort(channel.last_cause(last)).missing
                if last is not None or channel.lost is not None:
                    silent.remove(channel)

    def _late(self, call: Call) -> Cause:
        return Cause(LATE, self.rank, op=call.op, seconds=call.seconds, missing=self._waiting)

    def _lost(self, channel: Channel, call: Call) -> Cause:
        why = PeerLost.FINISHED if channel.finished else channel.lost or ""
        return Cause(LOST, channel.rank, op=call.op, address=channel.address, why=why)
