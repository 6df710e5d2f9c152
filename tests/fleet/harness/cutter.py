"""A TCP proxy that can cut: `python cutter.py ADDRESS PORT`, run where the controller runs.

It prints the port that it listens on at 127.0.0.1 and takes orders on stdin, each answered by one
line of JSON: `cut N` ends the connection of the moment, or the next, once it has carried N bytes
in both directions together, counted from the order on; `pass` cuts nothing, and answers of each
cut since the last such order when it came, and after how many bytes since then.
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

CHUNK = 4096


@dataclass
class Cutter:
    """What is left to pass (None: everything), and what has passed and was cut since `pass`."""

    address: str
    port: int
    left: int | None = None
    total: int = 0
    cuts: list[tuple[float, int]] = field(default_factory=list)

    def order(self, line: str) -> object:
        """Do as told and return the answer."""
        word, _, number = line.strip().partition(" ")
        if word == "cut":
            self.left = int(number)
            return None
        cuts, self.left, self.total, self.cuts = self.cuts, None, 0, []
        return cuts

    def allowed(self, data: bytes) -> bytes:
        """Return as much of *data* as may still pass."""
        if self.left is not None:
            data = data[: self.left]
            self.left -= len(data)
        self.total += len(data)
        return data

    async def serve(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        """Carry one connection; only its own end or the cut ends it."""
        far, to_far = await asyncio.open_connection(self.address, self.port)
        ways = [self._carry(near, to_far, to_near), self._carry(far, to_near, to_far)]
        with suppress(ConnectionError):
            await asyncio.gather(*ways)
        for writer in (to_near, to_far):
            writer.close()

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, other: asyncio.StreamWriter
    ) -> None:
        while data := await source.read(CHUNK):
            passing = self.allowed(data)
            sink.write(passing)
            await sink.drain()
            if len(passing) < len(data) or self.left == 0:
                # One cut an order: what comes after it passes.
                self.left = None
                self.cuts.append((time.time(), self.total))
                for writer in (sink, other):
                    writer.close()
                return
        with suppress(OSError):
            sink.write_eof()


async def main() -> None:
    """Serve until stdin ends."""
    cutter = Cutter(sys.argv[1], int(sys.argv[2]))
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    _say(str(server.sockets[0].getsockname()[1]))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        _say(json.dumps(cutter.order(line)))
    server.close()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
