"""Root on a host: the shell functions through which everything privileged goes.

sudo is first asked whether it would do anything without a password.  Where it would not and a
person has given one, that is tried once in a session: who has verified it need not guess, and a
wrong one counts once where accounts are locked after a few.  No prompt of anybody's is matched, in
whatever language: we have sudo print a line of ours each time it asks.

The password comes on stdin, two lines of it: one is read into a variable, which no child inherits,
and the other is left for the one sudo that takes the session's place.
"""

from rlxdeploy.facts.question import quoted

# sudo that asks a second time has refused the first answer.  An end of its input would count as
# another failure, and so would a polite signal: its input is held open, and sudo killed.
FUNCTIONS = """\
rlx_try_password() {
  {
    {
      /bin/sh -c 'echo "feeder $PPID"' >&3
      printf '%s\\n' "$rlx_password"
      exec sleep 30 3>&-
    } | {
      exec 5<&0
      LC_ALL=C sudo -S -k -p '
rlx asks
' true <&5 >/dev/null 2>&3 5<&- &
      echo "asker $!" >&3
      wait $!
      echo "ended $?" >&3
    }
  } 3>&1 | {
    asked=0; feeder=; ended=; said=
    while IFS= read -r line; do
      case $line in
      'feeder '*) feeder=${line#* } ;;
      'asker '*) asker=${line#* } ;;
      'ended '*) ended=${line#* } ;;
      'rlx asks') asked=$((asked + 1)); [ "$asked" -lt 2 ] || kill -9 "$asker" ;;
      ?*) said=$line ;;
      esac
      [ -z "$feeder" ] || [ -z "$ended" ] || break
    done
    kill "$feeder" 2>/dev/null
    [ "$ended" != 0 ] || exit 0
    if [ "$asked" -ge 2 ]; then echo 'sudo does not take the password'
    elif [ -n "$said" ]; then echo "sudo says: $said"
    else echo 'sudo ends without a word'
    fi
    exit 1
  }
}
rlx_find_root() { # how root is reached, found out once: self, free, password, or nobody
  [ -z "$rlx_root" ] || return 0
  if [ "$(id -u)" = 0 ]; then rlx_root=self
  elif ! command -v sudo >/dev/null 2>&1; then rlx_root=nobody
  elif sudo -n true </dev/null >/dev/null 2>&1; then rlx_root=free
  elif [ -n "$rlx_password" ] && rlx_why=$(rlx_try_password </dev/null 2>/dev/null); then
    rlx_root=password
  else rlx_root=nobody
  fi
}
can_be_root() { rlx_find_root; [ "$rlx_root" != nobody ]; }
rlx_skip() { [ -z "$rlx_password" ] || IFS= read -r rlx_password; }
as_root() { # in the shell's place: what shall go on afterwards stands outside its subshell
  case $rlx_root in
  self) rlx_skip; rlx_do=$1; shift 2; eval "$rlx_do"; exit ;;
  free) rlx_skip; exec sudo -n /bin/sh -c "$@" ;;
  *) exec sudo -S -k -p '' /bin/sh -c "$@" ;;
  esac
}
as_root_without_input() {
  [ "$rlx_root" = password ] || as_root "$@" </dev/null
  printf '%s\\n' "$rlx_password" | sudo -S -k -p '' /bin/sh -c "$@"
  exit
}
"""

# Stands before a script where a password comes with it, for this shell alone.
PRELUDE = "unset rlx_password rlx_root rlx_why; IFS= read -r rlx_password\n"

# What a password is good for: sudo takes 255 bytes in one line, and older ones no more.
LONGEST_PASSWORD = 255


def asks_for_root(script: str) -> bool:
    """Tell whether *script* does anything as root: only then it is given a password."""
    return "rlx_find_root" in script


def as_root_or(otherwise: str, script: str, *words: str) -> str:
    """Return a shell command that runs *script* with *words* as root, or else *otherwise*.

    The command takes the place of the shell that runs it, which is the session's own; its stdin is
    the script's.
    """
    asked = quoted([script, "sh", *words])
    choice = f"if can_be_root; then as_root {asked}; else rlx_skip; {otherwise}; fi\n"
    return f"{FUNCTIONS}{choice}"


def as_root_if_it_can(script: str, *words: str) -> str:
    """Return a shell command that runs *script*, which reads no input, as root where that works.

    Elsewhere it runs as the login user, and sees or does what that one may.
    """
    asked = quoted([script, "sh", *words])
    choice = 'if can_be_root; then as_root_without_input "$@"; fi\n'
    return f'{FUNCTIONS}set -- {asked}\n{choice}exec /bin/sh -c "$@"\n'
