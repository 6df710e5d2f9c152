"""An SSH server within the test's process: it runs what it is asked to, or fails as told."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import asyncssh

from tests.edge.ssh.sshd import make_key, public_line

Process = asyncssh.SSHServerProcess[bytes]
Act = Callable[[Process], Awaitable[None]]


class Reader(Protocol):
    """What asyncio and asyncssh readers have in common."""

    async def read(self, n: int = -1, /) -> bytes: ...


class Writer(Protocol):
    """What asyncio and asyncssh writers have in common."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


@dataclass(frozen=True)
class Server:
    """A server that runs: where it listens, the key it shows, and who logged in."""

    port: int
    host_key: str
    connections: list[str]

    @property
    def known(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.host_key}\n"


async def run_it(process: Process) -> None:
    """Run the command by the shell, as sshd does, and end it when the channel closes."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_shell(
        process.command or "true", stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    assert child.stdin
    assert child.stdout
    assert child.stderr
    feed = asyncio.ensure_future(_pump(process.stdin, child.stdin, child.stdin.close))
    try:
        output = asyncio.gather(
            _pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr)
        )
        gone = asyncio.ensure_future(process.channel.wait_closed())
        await asyncio.wait((output, gone), return_when=asyncio.FIRST_COMPLETED)
        if output.done():
            process.exit(await child.wait())
    finally:
        feed.cancel()
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _pump(source: Reader, sink: Writer, end: Callable[[], None] = lambda: None) -> None:
    with suppress(OSError, asyncssh.Error):
        while piece := await source.read(65536):
            sink.write(piece)
            await sink.drain()
    end()


async def drop_it(process: Process) -> None:
    """Answer, then cut the connection without a word."""
    process.stdout.write(b"begun\n")
    await process.stdout.drain()
    await asyncio.sleep(0.1)
    process.channel.get_connection().abort()


def fall_silent(until: threading.Event) -> Act:
    """Answer, then hang with all connections of this server, as a stopped machine does."""

    async def act(process: Process) -> None:
        process.stdout.write(b"begun\n")
        await process.stdout.drain()
        until.wait(20)  # of the loop's own thread

    return act


@contextmanager
def serving(folder: Path, authorized: Path, act: Act = run_it) -> Iterator[Server]:
    """Serve until the block ends and let in the keys of the file *authorized*."""
    host_key = folder / "server-host"
    if not host_key.exists():
        make_key(host_key)
    users: list[str] = []
    open_connections: list[asyncssh.SSHServerConnection] = []

    class Door(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            self.connection = conn
            open_connections.append(conn)

        def auth_completed(self) -> None:
            users.append(str(self.connection.get_extra_info("username")))

        def connection_requested(self, *_: object) -> bool:
            return True

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[str(host_key)],
            server_factory=Door,
            process_factory=act,
            encoding=None,
            authorized_client_keys=str(authorized),
        )

    async def end(acceptor: asyncssh.SSHAcceptor) -> None:
        acceptor.close()
        await acceptor.wait_closed()
        for connection in open_connections:
            connection.abort()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*rest, return_exceptions=True), 10)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="test server")
    thread.start()
    try:
        acceptor = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
        yield Server(acceptor.get_port(), public_line(host_key), users)
        asyncio.run_coroutine_threadsafe(end(acceptor), loop).result(15)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
