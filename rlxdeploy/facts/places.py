"""Where one job's files may lie on a host, as shell variables that questions begin with.

A job lies in the system's tree or in the user's; before the launch is settled both are looked at.
"""

from rlxdeploy.facts.question import quoted

SYSTEM_DATA = "/var/lib/rlx"
SYSTEM_RUN = "/run/rlx"
SYSTEM_UNITS = "/etc/systemd/system"

# The environment of a bare exec may lack what a login sets.
USER_PLACES = """\
uid=$(id -u); user=$(id -un)
[ -n "$HOME" ] || HOME=$(getent passwd "$uid" | cut -d: -f6)
data_home=${XDG_DATA_HOME:-$HOME/.local/share}
runtime_dir=${XDG_RUNTIME_DIR:-/run/user/$uid}
[ -d "$runtime_dir" ] && [ -w "$runtime_dir" ] || runtime_dir=
"""

# Runs a piece of shell as root where that needs no password: others' files and processes.
_AS_ROOT = """\
as_root() {
  if [ "$(id -u)" = 0 ]; then /bin/sh -c "$@"; else sudo -n /bin/sh -c "$@"; fi
}
"""


def as_root(script: str, *words: str, sudo: bool) -> str:
    """Return a command that runs *script* with *words* as root, or as ourselves without *sudo*."""
    run = "as_root" if sudo else "/bin/sh -c"
    return f"{_AS_ROOT if sudo else ''}{run} {quoted([script, 'sh', *words])}"
