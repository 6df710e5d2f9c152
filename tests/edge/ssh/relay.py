"""A ProxyCommand, as nc would be one: it joins its stdin and stdout to a TCP port."""

import sys
from pathlib import Path

_RELAY = """
import contextlib, os, socket, sys, threading
peer = socket.create_connection((sys.argv[1], int(sys.argv[2].rpartition("-")[2])))
def pump(read, write, end):
    with contextlib.suppress(ConnectionError):
        while piece := read(65536):
            write(piece)
    end()
back = lambda: pump(peer.recv, lambda p: os.write(1, p), lambda: os._exit(0))
threading.Thread(target=back, daemon=True).start()
pump(lambda n: os.read(0, n), peer.sendall, lambda: peer.shutdown(socket.SHUT_WR))
threading.Event().wait(10)
"""


def relay(folder: Path) -> str:
    """Return the command; it wants an address, and a port that may stand after a `-`."""
    path = folder / "relay.py"
    path.write_text(_RELAY)
    return f"{sys.executable} {path}"
