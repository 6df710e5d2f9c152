"""The system that ranks would be started on: identity, service manager, python, programs."""

import base64
import binascii
import hashlib
import re

from rlxdeploy.facts import python, rows, units
from rlxdeploy.facts.places import LOOK, NOW, OWN_UID, USER_PLACES, tagged
from rlxdeploy.facts.privilege import FUNCTIONS
from rlxdeploy.facts.question import Answers, Question, fields, quoted, whole
from rlxdeploy.model.survey import Platform
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import UserManager

# Below it systemd lacks directives that our units need.
MIN_SYSTEMD = 245

_SYSTEM = (
    NOW
    + """\
echo "clock=$now"
if read -r arch </proc/sys/kernel/arch; then
  read -r os </proc/sys/kernel/ostype; read -r name </proc/sys/kernel/hostname
else
  set -- $(uname -snm) # always in this order
  os=$1; name=$2; arch=$3
fi
echo "os=$os"
echo "hostname=$name"
echo "arch=$arch"
for f in /etc/machine-id /var/lib/dbus/machine-id; do
  [ -r "$f" ] && read -r id <"$f" && echo "machine_id=$id" && break
done
read -r id </proc/sys/kernel/random/boot_id && echo "boot_id=$id"
if [ "$os" = Darwin ]; then
  ioreg -rd1 -c IOPlatformExpertDevice |
    sed -n 's/.*IOPlatformUUID" = "\\(.*\\)".*/machine_id=\\1/p'
  echo "boot_id=$(sysctl -n kern.bootsessionuuid)"
  echo "init=launchd"
else
  read -r init </proc/1/comm && echo "init=$init"
fi
if [ -d /run/systemd/system ]; then
  echo "init=systemd"
  version= # its own library has it in its name, `libsystemd-shared-252.so`; a client would link it
  for folder in /usr/lib/systemd /usr/lib/*/systemd /lib/systemd; do
    for f in "$folder"/libsystemd-shared-*.so; do
      f=${f##*-shared-}; version=${version:-${f%%[!0-9]*}}
    done
  done
  if [ -n "$version" ]; then echo "systemd=$version"
  else systemctl --version | sed -n '1s/[^0-9]*\\([0-9]*\\).*/systemd=\\1/p'; fi
fi
for f in /lib/ld-musl-*.so.1; do [ -e "$f" ] && echo "libc=musl"; done
for kind in ed25519 ecdsa rsa; do
  f=/etc/ssh/ssh_host_${kind}_key.pub
  [ -r "$f" ] && read -r kind key rest <"$f" && echo "host_key=$key" && break
done
"""
)

_USER = """\
echo "id=$(id)"
echo "uid=$uid"
echo "home=$HOME"
echo "data_home=$data_home"
echo "runtime_dir=$runtime_dir"
"""

_SUDO = f'{FUNCTIONS}{OWN_UID}[ "$uid" = 0 ] || {{ can_be_root && echo yes; }}\n'

_PROGRAMS = """\
echo "searched=$places"
for program; do look "$program"; echo "$program=$found"; done
"""


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the system; only *enquiry.sudo* lets it try `sudo -n`."""
    asked = [
        Question("system", _SYSTEM, row=rows.KERNEL, plain=True),
        Question("user", USER_PLACES + _USER, row=rows.HOME, plain=True),
        Question("programs", f"{LOOK}set -- {quoted(enquiry.programs)}\n{_PROGRAMS}", plain=True),
        python.question(enquiry),
    ]
    if enquiry.sudo:
        asked.append(Question("sudo", _SUDO, row=rows.ROOT, plain=True))
    if enquiry.user:
        asked.append(Question("job user", f"id -Gn -- {quoted([enquiry.user])} && echo ok"))
    return tuple(asked)


def parse(enquiry: Enquiry, answers: Answers) -> Platform:
    """Read the answers; raise Unanswered where the host said not even who it is."""
    system = fields(answers.required("system"))
    user = fields(answers.required("user"))
    interpreter = python.parse(enquiry, answers)
    programs, searched = _programs(enquiry, answers.text("programs"))
    login, groups = _names(user.get("id", ""))
    uid, sudo = whole(user.get("uid", "")), answers.text("sudo").strip() == "yes"
    return Platform(
        os=_os(system.get("os", "")),
        arch=_arch(system.get("arch", "")),
        hostname=system.get("hostname", ""),
        machine_id=system.get("machine_id", ""),
        boot_id=system.get("boot_id", ""),
        init=system.get("init", ""),
        systemd=system.get("systemd", ""),
        libc=interpreter.libc or system.get("libc", ""),
        python=interpreter.path,
        python_version=interpreter.version,
        numpy=interpreter.numpy,
        stamp=interpreter.stamp,
        user=login,
        uid=uid,
        home=user.get("home", ""),
        data_home=user.get("data_home", ""),
        runtime_dir=user.get("runtime_dir", ""),
        clock=float(whole(system.get("clock", ""))),
        programs=programs,
        searched=searched,
        groups=groups,
        job_groups=_job_groups(answers.text("job user")),
        launches=_launches(
            system, answers, privileged=uid == 0 or sudo, python=bool(interpreter.path)
        ),
        user_manager=_user_manager(answers).value,
        sudo=sudo,
        host_key=_fingerprint(system.get("host_key", "")),
        noise=answers.noise,
    )


def _os(uname: str) -> str:
    return {"Darwin": "macos"}.get(uname, uname.lower())


def _arch(machine: str) -> str:
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(machine, machine)


def _names(ident: str) -> tuple[str, tuple[str, ...]]:
    """Read `uid=1000(ann) gid=1000(ann) groups=1000(ann),44(video)`; names may hold blanks.

    An account or a group without a name has its number alone.
    """
    user = re.match(r"uid=(\d+)(?:\(([^)]*)\))?", ident)
    groups = re.search(r" groups=(\d+(?:\([^)]*\))?(?:,\d+(?:\([^)]*\))?)*)", ident)
    listed = re.findall(r"(\d+)(?:\(([^)]*)\))?", groups[1]) if groups else []
    login = (user[2] or user[1]) if user else ""
    return login, tuple(name or number for number, name in listed)


def _programs(enquiry: Enquiry, text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read one line a program, in the order of the enquiry, after the places searched."""
    lines = text.split("\n") if text else []
    searched = lines[0].partition("=")[2] if lines else ""
    places = tuple(dict.fromkeys(place for place in searched.split(":") if place.startswith("/")))
    found = {
        program: line.removeprefix(f"{program}=")
        for program, line in zip(enquiry.programs, lines[1:], strict=False)
    }
    return {program: found.get(program, "") for program in enquiry.programs}, places


def _launches(
    system: dict[str, str], answers: Answers, *, privileged: bool, python: bool
) -> tuple[str, ...]:
    """Return the launches that work, best first; none is a host that cannot run a rank."""
    recent = system.get("init") == "systemd" and whole(system.get("systemd", "")) >= MIN_SYSTEMD
    works = {
        "systemd": recent and privileged,
        "systemd-user": recent and _user_manager(answers) is UserManager.LINGERS,
        "process": python,
    }
    return tuple(launch for launch, there in works.items() if there)


def _user_manager(answers: Answers) -> UserManager:
    said = dict(tagged(answers.text(units.USER)))
    if "manager" not in said:
        return UserManager.NONE
    return UserManager.LINGERS if "lingers" in said else UserManager.IN_SESSIONS


def _job_groups(text: str) -> tuple[str, ...] | None:
    lines = text.splitlines()
    return tuple(lines[0].split()) if lines[-1:] == ["ok"] else None


def _fingerprint(key: str) -> str:
    """Return the OpenSSH fingerprint of a public key in base64, "" for none."""
    try:
        blob = base64.b64decode(key, validate=True)
    except binascii.Error:
        return ""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}" if blob else ""
