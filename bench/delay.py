"""A TCP proxy that makes a place seem far away: `python -m bench.delay MS PORT=HOST:PORT …`.

MS is added to every round trip, half of it in each direction; a connection takes one more before
it is there.  It says `ready` once it listens, how many round trips each connection took once that
has ended, one number a line, and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

_PIECE = 1 << 16

_Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def serve(round_trip: float, routes: dict[int, tuple[str, int]]) -> None:
    """Forward each port of loopback to its end; *round_trip* is in seconds."""
    servers = [
        await asyncio.start_server(_accepting(round_trip, *end), "127.0.0.1", port)
        for port, end in routes.items()
    ]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


def _accepting(round_trip: float, host: str, port: int) -> _Accept:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _Far(round_trip, host, port).accept(reader, writer)

    return accept


class _Far:
    """One connection; a round trip is a message that may answer one that has come back."""

    def __init__(self, round_trip: float, host: str, port: int) -> None:
        self._round_trip, self._host, self._port = round_trip, host, port
        self._trips, self._answered = 1, False

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry both directions of one connection until both have ended."""
        await asyncio.sleep(self._round_trip)
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        with suppress(OSError):
            await asyncio.gather(
                self._carry(reader, far_writer, back=False),
                self._carry(far_reader, writer, back=True),
            )
        print(self._trips, flush=True)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool
    ) -> None:
        """Write every piece half a round trip after it came."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, piece = await under_way.get()
                await asyncio.sleep(due - loop.time())
                if not piece:
                    writer.close()
                    return
                writer.write(piece)
                self._answered = self._answered or back
                await writer.drain()

        delivering = asyncio.create_task(deliver())
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(_PIECE)
            except OSError:
                piece = b""
            if self._answered and piece and not back:
                self._trips, self._answered = self._trips + 1, False
            under_way.put_nowait((loop.time() + self._round_trip / 2, piece))
        await delivering


def main() -> None:
    """Read the command line and serve."""
    milliseconds, *routes = sys.argv[1:]
    ends = {}
    for route in routes:
        port, _, end = route.partition("=")
        host, _, far_port = end.rpartition(":")
        ends[int(port)] = (host, int(far_port))
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(float(milliseconds) / 1000, ends))


if __name__ == "__main__":
    main()
