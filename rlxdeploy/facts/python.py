"""The python that ranks would run with: its version and its numpy, and whether both are as before.

To start an interpreter costs a host a fifth of all that a survey asks.  So what was said stands
for as long as the files are the same that it rests on: the interpreter, the libc, and the folders
in which Python looks for packages.  A folder is another one once anything in it comes or goes.
"""

from dataclasses import dataclass

from rlxdeploy.facts.places import LOOK, NOW
from rlxdeploy.facts.question import Answers, Question, fields, quoted
from rlxdeploy.model.survey import Stamp
from rlxdeploy.model.targets import Enquiry

NAME = "python"

# Importing numpy takes a tenth of a second and more; its metadata stands beside it.  Importing re
# would take a third of all the time this takes.
_VERSIONS = """\
import os, site, sys
print("python=" + sys.executable)
print("python_version=%d.%d.%d" % sys.version_info[:3])
if "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", ()):
    print("libc=" + (os.confstr("CS_GNU_LIBC_VERSION") or ""))
for folder in [folder for folder in sys.path if folder] + [site.getusersitepackages()]:
    print("folder=" + folder)
for folder in sys.path:
    if os.path.isfile(os.path.join(folder, "numpy", "__init__.py")):
        listed = [n[6:] for n in os.listdir(folder) if n[:6] == "numpy-" and n[6:7].isdigit()]
        names = [n for n in listed if n.endswith((".dist-info", ".egg-info"))]
        if names:
            print("numpy=" + names[0].split("-")[0].replace(".dist", "").replace(".egg", ""))
        else:
            import numpy
            print("numpy=" + numpy.__version__)
        break
"""

# The words are the stamp of before and the folders that it is of.  ctime changes with whatever is
# done to a file, and nobody can set it.  Two pythons may be one file, so its path belongs to it.
# It is told in seconds: what has just changed may change once more within one, and has no stamp.
# Nor has it from BSD's stat, which knows no -c.
_ASKED = """\
stamp() {
  set -- "$p" /lib/ld-*.so* /lib64/ld-*.so* "$@"
  set -f; set -- $(stat -Lc '%d:%i:%Z' "$@"); stamp=
  for one; do [ "${one##*:}" -lt "$((now - 2))" ] || return; done
  [ $# = 0 ] || stamp="$p $*"
}
before=$1; shift; stamp=
[ -n "$p" ] || { echo "libc=$(getconf GNU_LIBC_VERSION)"; exit 1; }
[ -z "$before" ] || { stamp "$@"; [ "$stamp" != "$before" ] || { echo same=yes; exit 0; }; }
said=$("$p" -E -c "$versions") || exit
printf '%s\\n' "$said"
set --
while IFS= read -r line; do
  case $line in folder=*) set -- "$@" "${line#folder=}" ;; esac
done <<END
$said
END
stamp "$@"; echo "stamp=$stamp"
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What is said of a python; all of it is empty where there is none, or none that runs."""

    path: str
    version: str
    numpy: str
    libc: str
    stamp: Stamp


def question(enquiry: Enquiry) -> Question:
    """Return what to ask about the enquiry's python; one that is as before is not started."""
    known = enquiry.known.stamp if enquiry.known else Stamp()
    script = (
        f"{NOW}{LOOK}look {quoted([enquiry.python])}; p=$found\nversions={quoted([_VERSIONS])}\n"
        f"set -- {quoted([known.text, *known.folders])}\n{_ASKED}"
    )
    return Question(NAME, script)


def parse(enquiry: Enquiry, answers: Answers) -> Interpreter:
    """Read the answer; where the host says that all is as before, it is what was known."""
    text = answers.text(NAME)
    said = fields(text)
    if "same" in said and (known := enquiry.known):
        return Interpreter(known.python, known.python_version, known.numpy, known.libc, known.stamp)
    folders = (line.partition("=")[2] for line in text.split("\n") if line.startswith("folder="))
    return Interpreter(
        path=said.get("python", ""),
        version=said.get("python_version", ""),
        numpy=said.get("numpy", ""),
        libc=said.get("libc", ""),
        stamp=Stamp(said.get("stamp", ""), tuple(folders)),
    )
