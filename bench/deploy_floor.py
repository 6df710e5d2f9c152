"""The floor of `bench.deploy`: one connection and one exec a host, and nothing besides.

It goes over the library that rlxdeploy goes over.  A process of its own on the controller, given a
private key and a JSON file of scripts by address; each is fed to a shell, whose output is read to
its end.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from pathlib import Path

from paramiko import PKey, SSHClient
from paramiko.client import MissingHostKeyPolicy

logging.getLogger("paramiko").addHandler(logging.NullHandler())


class _AnyKey(MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """The floor does not even look at the host's key."""

    def missing_host_key(self, *_: object) -> None:
        return


def main() -> int:
    """Run every script, all at once; the exit status is the number of those that failed."""
    key = PKey.from_path(Path(sys.argv[1]))
    scripts = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda a=address, s=script: statuses.append(_run(a, s, key)))
        for address, script in scripts.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(threads) - statuses.count(0)


def _run(address: str, script: str, key: PKey) -> int:
    with SSHClient() as client:
        client.set_missing_host_key_policy(_AnyKey())
        client.connect(address, username="root", pkey=key, allow_agent=False, look_for_keys=False)
        channel = client.get_transport().open_session()
        channel.exec_command("/bin/sh -s")
        channel.sendall(script.encode())
        channel.shutdown_write()
        while channel.recv(1 << 15):
            pass
        return int(channel.recv_exit_status())


if __name__ == "__main__":
    sys.exit(main())
