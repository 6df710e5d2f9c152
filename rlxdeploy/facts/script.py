"""The survey as one shell script, and the reader of what it writes.

- Every line of ours begins with a marker drawn at random for this one run; what stands before the
  first is a login profile's and is dropped.
- Processes are what a survey costs a host.  So the quick questions are asked in turn by one, in
  the background; only where it has not come to its end by the deadline they are asked once more,
  side by side, those that may hang at the same thing in one row.  Slow ones, and those that need a
  program that is not there, have their own process all along.
- `$(...)` waits for every child that holds its pipe, so no question is asked in one.
- Lines are cut into pieces that a pipe takes whole (PIPE_BUF is 512 bytes at least, 4096 on Linux),
  so that answers that arrive at once do not mix.  What is asked in turn is sent in few packets, for
  each of which two sides have work; side by side, each answer goes out as soon as it is there.
- A timer kills what is left of the questions at their deadline.
  The shell writes the end line as soon as nothing is left to wait for, and the controller waits
  for that line only, never for the end of the stream.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rlxdeploy.facts.places import LOOK, NOW, OWN_UID
from rlxdeploy.facts.privilege import FUNCTIONS, asks_for_root
from rlxdeploy.facts.question import Answer, Answers, Question

# PATH of a session without a login lacks the system folders; WSL and ROCm keep theirs apart.
_SYSTEM_PATH = (
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/wsl/lib:/opt/rocm/bin"
)
_PIECE = 400
# With the last line's marker and number, this is one write on Linux.
_PACKET = 3500

# Of what a profile prints, so much tells which one it is.
_SHOWN = 60
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07)")

# Where nobody listens any more we go on to our end, which takes the timer along.
_HEAD = """\
exec 2>/dev/null; trap : PIPE
LC_ALL=C; export LC_ALL; unset LANGUAGE
asked_path=$PATH; PATH=$PATH:{path}; export PATH asked_path
printf '\\n%s begin\\n' {marker}
say() {{ # number, which a line of our own changes
  b=
  while IFS= read -r l || [ -n "$l" ]; do
    case $l in {marker}@*) set -- "${{l#*@}}"; continue ;; esac
    while [ ${{#l}} -gt {piece} ]; do
      h=$(printf %.{piece}s "$l"); add "$1+$h"; l=${{l#"$h"}}
    done
    add "$1-$l"
    # Now: what a question has left running may hold our pipe open.
    case $few$l in {marker}=*) flush ;; esac
  done
  flush
}}
few=; most={piece}
add() {{ # a line; what is written at once is one packet
  [ $((${{#b}} + ${{#1}})) -le "$most" ] || flush
  b="${{b}}{marker} $1
"
}}
flush() {{ [ -z "$b" ] || printf %s "$b"; b=; }}
try() {{ # in a subshell, so that its exit ends only itself
  case " {plain} " in *" $1 "*) "q$1" </dev/null ;; *) ("q$1") </dev/null ;; esac
  r=$?; echo; echo "{marker}=$r"
}}
ask() {{ try "$1" </dev/null | say "$1"; }}
need() {{ # program, number
  if command -v "$1" >/dev/null; then ask "$2" &
  else printf '%s %s-\n%s %s-%s=127\n' {marker} "$2" {marker} "$2" {marker}; fi
}}
in_turn() {{ # numbers, and `root` before those that want to be it
  {{
    {now}
    for turn; do
      if [ "$turn" = root ]; then find_root
      else echo "{marker}@$turn"; try "$turn"
      fi
    done
  }} | say 0
}}
kin() {{ # the processes given and all descendants, parents first, from `pid parent` lines
  {{
    cat /proc/[0-9]*/stat | sed 's/^\\([0-9]*\\) .*) [A-Za-z] \\([0-9]*\\) .*/\\1 \\2/'
    [ -d /proc/self ] || ps -A -o pid= -o ppid=
  }} | awk -v of="$*" -v top=$$ '
    {{ up[$1] = $2 }}
    END {{
      n = split(of, p, " ")
      for (i = 1; i <= n; i++) if (up[p[i]] == top) {{ ours[p[i]] = 1; list[++k] = p[i] }}
      do {{
        more = 0
        for (c in up) if (!(c in ours) && (up[c] in ours)) {{
          ours[c] = 1; list[++k] = c; more = 1
        }}
      }} while (more)
      for (i = 1; i <= k; i++) print list[i]
    }}'
}}
pass() {{ nap=1; sleep "$1" & wait $!; nap=; }}
# Parents first: one whose child dies before it goes on, and would answer.
reap() {{ kin "$@" | while read -r p; do kill -9 "$p"; done; }}
# A nap that has just been forked takes a politer signal for the one that its shell traps.
wakeable() {{ trap '[ -z "$nap" ] || kill -9 $!; exit' TERM; }}
"""

# Questions run side by side: how they reach root is found out before, with one attempt for all.
# Who is root already need not ask.  What stands here a question need not bring.
_SHARED = (FUNCTIONS, OWN_UID, NOW, LOOK)
_ROOT = f"""\
{FUNCTIONS}\
[ "$uid" != 0 ] || rlx_root=self
find_root() {{ rlx_find_root </dev/null; }}
"""
_TRY = """\
if [ -n "$rlx_password" ]; then
  printf '\\n%s root ?\\n' {marker}
  rlx_find_root
  printf '\\n%s root %s\\n' {marker} "$rlx_root $rlx_why"
  [ -z "$rlx_why" ] || {{ printf '\\n%s end\\n' {marker}; exit 0; }}
fi
"""

_TAIL = """\
few=1; [ ! -d /proc/self ] || most={packet}
in_turn {all} </dev/null &
quick=$!
few=; most={piece}
(wakeable; pass {quick:g}; reap $quick; pass {rest:g}; reap $slow) </dev/null >/dev/null &
timer=$!
wait $quick
if [ $? -gt 128 ]; then
  printf '\\n%s again\\n' {marker}
  quick=
{rows}\
  (wakeable; pass {quick:g}; reap $quick) </dev/null >/dev/null &
  second=$!
  for p in $quick; do wait $p; done
  kill $second; wait $second
fi
for p in $slow; do wait $p; done
printf '\\n%s end\\n' {marker}
kill $timer; wait $timer
exit 0
"""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds a question may take on the host: files and small programs, and those of drivers.

    Reading files takes milliseconds; four seconds are a host deep in swap or a mount that hangs.
    The first nvidia-smi after boot initialises every card: eight of them took under ten seconds.
    """

    quick: float = 4.0
    slow: float = 12.0

    @property
    def whole(self) -> float:
        """Seconds that all questions together may take; the quick ones may be asked twice."""
        return max(self.slow, 2 * self.quick)

    def __post_init__(self) -> None:
        if not 0 < self.quick <= self.slow:
            raise ValueError("quick questions get some time, and slow ones at least as much")


def compose(questions: Sequence[Question], marker: str, patience: Patience) -> str:
    """Return the script that asks *questions*; *marker* is letters and digits, drawn at random."""
    if not re.fullmatch(r"[0-9A-Za-z]{16,64}", marker):
        raise ValueError("a marker is 16 to 64 letters and digits")
    numbered = tuple(enumerate(questions))
    plain = " ".join(str(number) for number, one in numbered if one.plain)
    head = _HEAD.format(
        path=_SYSTEM_PATH, marker=marker, piece=_PIECE, now=NOW.strip(), plain=plain
    )
    for_root = any(asks_for_root(one.script) for one in questions)
    root = _ROOT + _TRY.format(marker=marker) if for_root else ""
    asked = "".join(f"q{number}() {{\n{_own(one)}\n}}\n" for number, one in numbered)
    aside = [(number, one) for number, one in numbered if one.slow or one.needs]
    quick = [(number, one) for number, one in numbered if not (one.slow or one.needs)]
    # One that hung alone would hang again.
    again = _rows(quick) if quick[1:] else ()
    rows = (f'  in_turn {row} </dev/null &\n  quick="$quick $!"\n' for row in again)
    tail = _TAIL.format(
        all=" ".join(_rows(quick)),
        rows="".join(rows),
        quick=patience.quick,
        rest=max(0.0, patience.slow - patience.quick),
        marker=marker,
        piece=_PIECE,
        packet=_PACKET,
    )
    look = LOOK if any(LOOK in one.script for one in questions) else ""
    return f"{head}{OWN_UID}{look}{root}{asked}slow=\n{''.join(_aside(aside))}{tail}"


def _aside(questions: Sequence[tuple[int, Question]]) -> Iterator[str]:
    """Yield what asks by itself, begun first: a driver is waited for while others are asked."""
    needy = [f"need {shlex.quote(one.needs)} {number}" for number, one in questions if one.needs]
    groups = ["; ".join([*needy, "wait"])] if needy else []
    for group in (*groups, *(f"ask {number}" for number, one in questions if not one.needs)):
        yield f'({group}) </dev/null &\nslow="$slow $!"\n'


def _rows(questions: Sequence[tuple[int, Question]]) -> tuple[str, ...]:
    """Return the words of `in_turn` for each row; how root is reached is found out once in it."""
    rows: dict[object, list[str]] = {}
    for number, one in questions:
        row = rows.setdefault(one.row or number, [])
        if asks_for_root(one.script) and "root" not in row:
            row.append("root")
        row.append(str(number))
    return tuple(map(" ".join, rows.values()))


def _own(question: Question) -> str:
    """Return what *question* asks, without what stands at the head for all."""
    script = question.script
    for shared in _SHARED:
        script = script.replace(shared, "")
    return script


@dataclass(slots=True)
class Transcript:
    """Read what the script writes, in pieces of any size.

    *root* is how root is reached, as `facts.privilege` calls it, and after `nobody` why not; `?`
    while sudo is asked, "" where no password came with the script.
    """

    questions: Sequence[Question]
    marker: str
    ended: bool = False
    root: str = ""
    _rest: bytes = b""
    _before: bytes = b""
    _begun: bool = False
    _lines: dict[int, list[bytes]] = field(default_factory=dict)
    _kept: frozenset[int] = frozenset()

    def feed(self, piece: bytes) -> None:
        """Take in *piece*; *ended* tells whether the end line has come."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._take(line)

    def answers(self) -> Answers:
        """Return what was answered so far; a question without its last line has no answer."""
        done = {number: self._answer(parts) for number, parts in self._lines.items()}
        given = {self.questions[number].name: answer for number, answer in done.items() if answer}
        late = (question.name for question in self.questions if question.name not in given)
        return Answers(given, tuple(late), noise=_readable(self._before))

    @property
    def begun(self) -> bool:
        return self._begun

    def _take(self, line: bytes) -> None:
        head, _, said = line.partition(b" ")
        if head != self.marker.encode():
            self._before = self._before or (b"" if self._begun else line.strip())
        elif said in (b"begin", b"end"):
            self._begun, self.ended = True, said == b"end"
        elif said == b"again":
            self._ask_again()
        elif said.startswith(b"root "):
            self.root = said[len(b"root ") :].decode(errors="replace").strip()
        else:
            self._keep(said)

    def _keep(self, said: bytes) -> None:
        parted = re.match(rb"(\d{1,6})([+-])", said)
        number = int(parted[1]) if parted else -1
        if parted and number < len(self.questions) and number not in self._kept:
            text = said[parted.end() :] + (b"" if parted[2] == b"+" else b"\n")
            self._lines.setdefault(number, []).append(text)

    def _ask_again(self) -> None:
        """Keep what was answered; of the quick questions that were not all is asked anew."""
        aside = {number for number, one in enumerate(self.questions) if one.slow or one.needs}
        given = {number for number, parts in self._lines.items() if self._answer(parts)}
        self._kept = frozenset(given - aside)
        for number in self._lines.keys() - given - aside:
            del self._lines[number]

    def _answer(self, parts: Iterable[bytes]) -> Answer | None:
        """Join an answer; after it the shell puts a line break, the marker and the status."""
        whole = b"".join(parts)
        text, mark, status = whole.rpartition(b"\n" + self.marker.encode() + b"=")
        if not mark:
            return None
        return Answer(text.decode(errors="replace"), int(status))


def _readable(line: bytes) -> str:
    """Return the begin of a stranger's line for people, without colours and control characters."""
    plain = _ESCAPES.sub("", line.decode(errors="replace"))
    words = "".join(char for char in plain if char.isprintable()).strip()
    return words[:_SHOWN] or ("control characters" if line else "")
