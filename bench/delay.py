"""A TCP proxy that makes a place seem far away: `python -m bench.delay MS PORT=HOST:PORT …`.

MS is added to every round trip, half of it in each direction; a connection takes one more before
it is there.  It says `ready` once it listens, and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

_PIECE = 1 << 16


async def serve(round_trip: float, routes: dict[int, tuple[str, int]]) -> None:
    """Forward each port of loopback to its end; *round_trip* is in seconds."""
    servers = [
        await asyncio.start_server(_Far(round_trip, *end).accept, "127.0.0.1", port)
        for port, end in routes.items()
    ]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


class _Far:
    def __init__(self, round_trip: float, host: str, port: int) -> None:
        self._round_trip, self._host, self._port = round_trip, host, port

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry both directions of one connection until both have ended."""
        await asyncio.sleep(self._round_trip)
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        with suppress(OSError):
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
                await writer.drain()

        delivering = asyncio.create_task(deliver())
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(_PIECE)
            except OSError:
                piece = b""
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
