# After GO: steps, one after the other, whether anybody listens or not.

step() { # number, command...: a failure is told, and what is to become of it waited for
  at=$1; shift
  if complaint=$("$@" 2>&1 </dev/null); then report "done" "$at"; return; fi
  report failed "$at" "$(printf %s "$complaint$(room)" | one_line)"
  hold_for_a_word
}

report() { # word...: to the controller, and for a session that takes this one's place
  say "$@"
  [ ! -f "$back/progress" ] || printf '%s\n' "$*" >>"$back/progress"
}

switch() { # release
  staged=$home/releases/$1
  if [ -d "$staged.tmp" ]; then
    # Ranks that go on may stand in this folder, and have their files in it.
    mend "$staged" "$staged.tmp" || return
  fi
  point_current "$1"
}

durably() { # folders... -- command...: after which these folders outlive a power cut
  unsettled=
  while [ "$1" != -- ]; do
    unsettled="$unsettled$1
"
    shift
  done
  shift
  "$@" && sync_unsettled
}

point_current() { # release
  staged=$home/releases/$1
  [ -d "$staged" ] || { echo "$staged is not there" >&2; return 1; }
  [ "$staged" = "$fresh" ] || touch "$staged"
  if [ ! -e "$home/current" ] && [ ! -L "$home/current" ]; then
    ln -s "releases/$1" "$home/current"
    return
  fi
  ln -sfn "releases/$1" "$home/current.tmp" || return
  # A plain mv would follow the link that stands there: GNU and busybox say -T, BSD says -h.
  mv -fT "$home/current.tmp" "$home/current" 2>/dev/null ||
    mv -fh "$home/current.tmp" "$home/current" 2>/dev/null ||
    { rm -f "$home/current" && mv "$home/current.tmp" "$home/current"; }
}

restore() { # release: all that it had when another took its place
  [ -d "$home/releases/$1/.outside" ] || { echo "nothing is kept of release $1" >&2; return 1; }
  put_all_back "$home/releases/$1/.outside" && durably "$home" -- point_current "$1"
}

put_in_place() { # path
  mv -f "$1.rlx-new" "$1" && relabel "$1" || return
  case $1 in "$home"/*) return 0 ;; esac
  note_installed "$1"
}

note_installed() { # path: what lies elsewhere is remembered, to be removed by a destroy
  [ ! -f "$home/.installed" ] || while IFS= read -r one; do
    [ "$one" != "$1" ] || return 0
  done <"$home/.installed"
  printf '%s\n' "$1" >>"$home/.installed"
}

remove() { # path
  rm -f "$1" || return
  case $1 in */"rlx-$job@"*.service.d/*) rmdir "${1%/*}" 2>/dev/null ;; esac
  [ -f "$home/.installed" ] || return 0
  { grep -vxF -- "$1" "$home/.installed" || true; } >"$home/.installed.tmp" &&
    mv -f "$home/.installed.tmp" "$home/.installed"
}

hold_for_a_word() { # the controller watches the ranks join; then it says what becomes of us
  while :; do
    quiet_guard
    trap 'leave 0' HUP TERM
    guard_for "$hold"
    IFS= read -r word || leave 0
    trap '' HUP INT TERM PIPE
    case $word in
    CONFIRM)
      complaint=$(confirm 2>&1) || die "confirm: $complaint"
      confirmed
      say confirmed ;;
    REVERT)
      at=back
      [ -f "$back/state" ] || die "there is nothing to go back to"
      ranks=$(value ranks "$back/state")
      complaint=$(go_back 2>&1 </dev/null) || die "go back: $complaint$(room)"
      say reverted "$(standing)" "$ranks" ;;
    *) leave 0 ;;
    esac
  done
}

trap 'say undone "no GO in time"; leave 1' TERM
trap 'leave 1' HUP INT PIPE
