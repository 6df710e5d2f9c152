"""Root on a host: the one function through which every privileged session is opened.

No prompt is ever matched.  sudo is first asked whether it would do anything without a password; a
wrong guess costs no attempt and locks no account.
"""

from typing import Protocol

from rlxdeploy.edge.session import Session, framed
from rlxdeploy.errors import Refused
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import Become

PLAIN = ("/bin/sh",)
BY_SUDO = ("sudo", "-n", "--", "/bin/sh")

_DOING = "become root"
_MARK = "rlxdeploy-become:"
_QUESTION = f"""\
if [ "$(id -u)" = 0 ]; then a=root
elif ! command -v sudo >/dev/null 2>&1; then a=missing
elif sudo -n true </dev/null >/dev/null 2>&1; then a=sudo
else a=password
fi
echo; echo "{_MARK}$a"
"""


class OpenShell(Protocol):
    """Opens a session whose bootstrap runs in *shell*, an argument vector."""

    def __call__(self, host: Host, deadline: float, shell: tuple[str, ...]) -> Session:
        """Return the session; raises HostError."""


def open_as_root(open_shell: OpenShell, host: Host, become: Become, deadline: float) -> Session:
    """Return a session as root on *host*.

    Raises Refused where the login user is not root and sudo is missing, not wanted or asks for a
    password, and what *open_shell* raises.
    """
    match _asked(open_shell, host, deadline):
        case "root":
            return open_shell(host, deadline, PLAIN)
        case _ if become is Become.NONE:
            remedy = 'log in as root, or become = "auto" in [ssh]'
            raise Refused(host.name, _DOING, "the login user is not root", remedy)
        case "sudo":
            return open_shell(host, deadline, BY_SUDO)
        case "password":
            remedy = "allow it NOPASSWD in sudoers, or log in as root"
            raise Refused(host.name, _DOING, "sudo wants a password", remedy)
        case _:
            raise Refused(host.name, _DOING, "there is no sudo", "log in as root, or install it")


def _asked(open_shell: OpenShell, host: Host, deadline: float) -> str:
    """Return root, sudo, password or missing; what a shell profile prints before is skipped."""
    with open_shell(host, deadline, PLAIN) as session:
        session.send(framed(_QUESTION), deadline)
        answer = b""
        while piece := session.read(deadline):
            answer += piece
            for line in answer.decode(errors="replace").split("\n")[:-1]:
                if line.startswith(_MARK):
                    return line.removeprefix(_MARK)
        raise Refused(host.name, _DOING, f"the shell ended: {session.complaints.strip()}")
