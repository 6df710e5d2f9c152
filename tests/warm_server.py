"""Run the command in forks of an interpreter that has imported it: `warm_server.py SOCKET`.

Each message on the socket, a descriptor, is one run: its arguments, environment and folder as
JSON, and four descriptors: the run's stdin, stdout and stderr, and where to tell its process's
number and then its status as `os.waitpid` has it.  All ends with the other end of the socket;
runs that have begun are not waited for.
"""

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from typing import Any

from rlxdeploy.cli.main import COMMANDS, main

MESSAGE = 1 << 20
DESCRIPTORS = 4
# What a command imports only once it needs it.
LATE = ("rlxdeploy.edge.ssh.hosts", "rlxdeploy.edge.mdns")


def serve(requests: socket.socket) -> None:
    """Fork for each request; return in the process of a run."""
    while True:
        message, descriptors, *_ = socket.recv_fds(requests, MESSAGE, DESCRIPTORS)
        if not message:
            os._exit(0)
        # Between this process and a run is one that waits for it; for that one nobody has to.
        if os.fork() == 0:
            requests.close()
            _between(json.loads(message), *descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _between(request: dict[str, Any], *descriptors: int) -> None:
    *streams, told = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        os.close(told)
        _become(request, streams)
        return
    for stream in (*streams, *range(3)):
        os.close(stream)
    os.write(told, b"%d\n" % process)
    os.write(told, b"%d\n" % os.waitpid(process, 0)[1])
    os._exit(0)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Make this process the one that *request* describes."""
    os.setsid()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    _open_streams()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = request["argv"]


def _open_streams() -> None:
    """Have Python look at its three streams as it does when it starts."""
    sys.stdin = os.fdopen(0, closefd=False, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", closefd=False, encoding="utf-8")
    errors = "backslashreplace"
    sys.stderr = os.fdopen(2, "w", 1, closefd=False, encoding="utf-8", errors=errors)


if __name__ == "__main__":
    for name in (*(f"rlxdeploy.cli.{module}" for module in COMMANDS.values()), *LATE):
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Nothing of this is ever garbage, and what is not looked at stays one memory for all.
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()
