"""What this machine must have before a fleet can stand on it."""

import os
import shutil
from pathlib import Path

# The packages that bring these are named in .ci/install-fleet.
_PROGRAMS = (
    *("systemd-nspawn", "debootstrap", "ip", "iptables", "ip6tables", "ssh", "ssh-keygen"),
    *("nsenter", "unshare", "setpriv", "sysctl", "pkill"),
)
_CAP_SYS_ADMIN = 21


def unmet_need() -> str:
    """Return the first thing that is missing here for a fleet; nothing where all is there."""
    if os.geteuid() != 0:
        return "a fleet of hosts needs root"
    if not _capabilities() >> _CAP_SYS_ADMIN & 1:
        return "a fleet of hosts needs root that may mount (CAP_SYS_ADMIN)"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"a fleet of hosts needs {', '.join(missing)}: see .ci/install-fleet"
    return ""


def _capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
