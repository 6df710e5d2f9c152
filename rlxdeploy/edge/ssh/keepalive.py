"""Ending a connection whose host has fallen silent, as ServerAliveInterval wants it.

paramiko sends keepalives and expects no answer to them: nobody would notice a host that lost power
or hangs.  Whatever comes from the host is a sign of life, as for ssh.
"""

import threading
import time
from functools import partial

from paramiko import SSHException

from rlxdeploy.edge.ssh.channel import hung_up_at
from rlxdeploy.edge.ssh.terms import Keepalive
from rlxdeploy.edge.ssh.transport import Transport


def keep_alive(transport: Transport, keepalive: Keepalive) -> None:
    """Watch *transport* until it ends, in a thread; give it up once *keepalive* is used up."""
    watch = partial(_watch, transport, keepalive)
    threading.Thread(target=watch, name="keepalive", daemon=True).start()


def _watch(transport: Transport, keepalive: Keepalive) -> None:
    asked, asked_at = 0, 0.0
    while transport.is_active():
        # Counted from the last question too: after this machine has slept, the host is asked.
        due = max(transport.heard_at, asked_at) + keepalive.interval
        if (left := due - time.monotonic()) > 0:
            transport.join(left)
            continue
        asked = 0 if transport.heard_at > asked_at else asked
        if asked == keepalive.most:
            transport.give_up(str(keepalive))
            return
        _ask(transport, keepalive)
        asked, asked_at = asked + 1, time.monotonic()


def _ask(transport: Transport, keepalive: Keepalive) -> None:
    """Send one keepalive; a host that takes nothing in is given all its time, then given up."""
    patience = time.monotonic() + keepalive.interval * keepalive.most
    try:
        with hung_up_at(patience, partial(transport.give_up, str(keepalive))):
            transport.ask_for_a_sign()
    except (SSHException, EOFError, OSError) as error:
        transport.give_up(str(error) or "the connection closed")
