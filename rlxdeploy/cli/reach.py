"""How the commands reach hosts: as many at once as wished, with the password that sudo wants."""

import sys
from getpass import getpass

from rlxdeploy.app.lab import Lab
from rlxdeploy.edge.become import usable_password
from rlxdeploy.errors import UsageError


def reach(forks: int | None = None, *, ask: bool) -> Lab:
    """Return the lab of one run; with *ask*, a person is asked for a password before anything else.

    Raises UsageError where nobody can be asked, and for what is no password.
    """
    return Lab(forks=forks, password=_become_password() if ask else "")


def _become_password() -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "there is no terminal to ask for a password on; let sudo ask none (NOPASSWD in"
            " sudoers), or log in as root"
        )
    try:
        return usable_password(getpass("Password for sudo on the hosts: ", sys.stderr))
    except EOFError:
        raise UsageError("no password was given") from None
