"""Where one job's files may lie on a host: in the system's tree or in the user's.

Before the launch is settled both are looked at; the shell knows the user's folders, we do not.
"""

from collections.abc import Iterator

from rlxdeploy.facts.privilege import as_root_if_it_can
from rlxdeploy.facts.question import quoted

SYSTEM_DATA = "/var/lib/rlx"
SYSTEM_RUN = "/run/rlx"
SYSTEM_UNITS = "/etc/systemd/system"

# Where drop-ins for our units count besides (systemd.unit(5)): `edit --runtime` writes to the
# folders in /run, `set-property` to those called control.
SYSTEM_DROP_INS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)

# The environment of a bare exec may lack what a login sets.  Whom we are, Linux tells without a
# process of its own, and half a dozen questions ask.
OWN_UID = """\
uid=
while read -r key real uid rest; do [ "$key" != Uid: ] || break; done </proc/self/status
[ -n "$uid" ] || uid=$(id -u)
"""
# The host's clock, for all that ask: seconds since the epoch.
NOW = "now=$(date +%s)\n"

USER_PLACES = f"""{OWN_UID}\
[ -n "$HOME" ] || HOME=$(getent passwd "$uid" | cut -d: -f6)
data_home=${{XDG_DATA_HOME:-$HOME/.local/share}}
runtime_dir=${{XDG_RUNTIME_DIR:-/run/user/$uid}}
[ -d "$runtime_dir" ] && [ -w "$runtime_dir" ] || runtime_dir=
"""

# In an exec of its own, without a session: the user's manager listens here or is not there.
USER_MANAGER = """\
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$uid}; export XDG_RUNTIME_DIR
[ -S "$XDG_RUNTIME_DIR/systemd/private" ] || [ -S "$XDG_RUNTIME_DIR/bus" ] || exit
"""

# Where a program is; the session's own PATH stands in asked_path.
LOOK = """\
[ -n "$HOME" ] || HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
places=$asked_path:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin:/opt/local/bin
places=$places:/usr/local/sbin:/usr/sbin:/sbin
look() { # into $found: the absolute path of a program, which a bare launch has to be given
  found=
  case $1 in
  /*) [ ! -f "$1" ] || [ ! -x "$1" ] || found=$1; return;;
  */*) return;;
  esac
  IFS=:; set -f
  for d in $places; do
    case $d in /*) [ -f "$d/$1" ] && [ -x "$d/$1" ] && found=${d%/}/$1 && break;; esac
  done
  unset IFS; set +f
}
"""

USER_DATA = "$data_home/rlx"
USER_UNITS = "$HOME/.config/systemd/user"
USER_DROP_INS = (
    "$HOME/.config/systemd/user.control",
    "$runtime_dir/systemd/user.control",
    "$runtime_dir/systemd/user",
    "$data_home/systemd/user",
    "/etc/systemd/user",
    "/run/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
)


def with_privilege(script: str, *words: str, sudo: bool) -> str:
    """Return a command that runs *script* with *words* as root if it can, and *sudo* lets it."""
    if sudo:
        return as_root_if_it_can(script, *words)
    return f"set -- {quoted(words)}\n{script}"


def tagged(text: str) -> Iterator[tuple[str, str]]:
    """Read `tag|text` lines, as the questions about our files write them."""
    for line in text.split("\n"):
        tag, bar, rest = line.partition("|")
        if bar:
            yield tag, rest
