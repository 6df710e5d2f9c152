"""Being in a group: who this rank is, what a call may take, and how it all ends."""

from __future__ import annotations

from operator import index
from types import TracebackType
from typing import Callable, Optional, Type, TypeVar

from rlxdeploy.runtime.algorithm.tags import RESERVED_TAGS
from rlxdeploy.runtime.errors import CollectiveTimeout, GroupClosed, NotSupported
from rlxdeploy.runtime.link.base import Call, begin
from rlxdeploy.runtime.link.collectives import Collectives, Inadmissible

T = TypeVar("T")
M = TypeVar("M", bound="Membership")


class Membership:
    """A rank's place in a group on *wire*; *on_close* is called once, when the group ends.

    *timeout* (seconds) bounds every call that names none of its own.
    """

    def __init__(self, wire: Collectives, timeout: float, on_close: Callable[[], None]) -> None:
        self._wire, self._member = wire, wire.member
        self._timeout, self._on_close = timeout, on_close
        self._ended: Optional[str] = None

    @property
    def rank(self) -> int:
        """This rank's number."""
        return self._member.rank

    @property
    def world(self) -> int:
        """How many ranks the group has."""
        return self._member.world

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    @property
    def fully_linked(self) -> bool:
        """Whether any two ranks can exchange messages; in a star of three only 0 has all links."""
        return not self._member.hub

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass, and raise PeerLost as soon as a rank is lost."""
        call = self._begin("waiting", seconds)
        self._guard(call, lambda: self._wire.watch(seconds), abort_on=Exception)

    def close(self) -> None:
        """Leave the group: what was sent still arrives, ranks that wait for this one wake."""
        self._end("it was closed", self._wire.close)

    def abort(self) -> None:
        """Leave the group at once; what is under way is thrown away."""
        self._abort("it was aborted")

    def __enter__(self: M) -> M:  # noqa: PYI019 - typing.Self came with Python 3.11
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.close()
        else:
            self._abort(f"{type(error).__name__}: {error}")

    def _begin(
        self,
        op: str,
        timeout: Optional[float],
        other: int = 0,
        tag: int = 0,
        *,
        whole: bool = False,
    ) -> Call:
        if self._ended is not None:
            raise GroupClosed(f"{op}: the group has ended: {self._ended}")
        if not 0 <= index(other) < self.world:
            raise ValueError(f"{op}: ranks are 0..{self.world - 1}")
        if not 0 <= index(tag) < RESERVED_TAGS:
            raise ValueError(f"{op}: tags are 0..{RESERVED_TAGS - 1:#x}, not {tag:#x}")
        return begin(op, self._timeout if timeout is None else timeout, whole=whole)

    def _guard(
        self,
        call: Call,
        deed: Callable[[], T],
        *,
        usable_when_late: bool = False,
        abort_on: Type[BaseException] = BaseException,
    ) -> T:
        """Carry out *deed*; if it fails the group ends, unless lateness leaves it usable."""
        try:
            return deed()
        except (Inadmissible, NotSupported):
            raise
        except CollectiveTimeout as error:
            if not usable_when_late:
                self._abort(str(error))
            raise
        except abort_on as error:
            self._abort(f"{call.op} failed: {error}")
            raise

    def _abort(self, why: str) -> None:
        self._end(why, lambda: self._wire.abort(why))

    def _end(self, why: str, how: Callable[[], None]) -> None:
        if self._ended is None:
            self._ended = why
            how()
            self._on_close()
