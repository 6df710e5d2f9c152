# After GO: steps, one after the other, whether anybody listens or not.

step() { # number, command...
  at=$1; shift
  complaint=$("$@" 2>&1 </dev/null) || die "$complaint$(room)"
  say "done" "$at"
}

switch() { # release
  staged=$home/releases/$1
  if [ -d "$staged.tmp" ]; then
    [ ! -e "$staged" ] || mv "$staged" "$staged.old.tmp" || return
    mv "$staged.tmp" "$staged" || return
    rm -rf "$staged.old.tmp"
  fi
  [ -d "$staged" ] || { echo "$staged is not there" >&2; return 1; }
  touch "$staged"
  ln -sfn "releases/$1" "$home/current.tmp" || return
  # A plain mv would follow the link that stands there: GNU and busybox say -T, BSD says -h.
  mv -fT "$home/current.tmp" "$home/current" 2>/dev/null ||
    mv -fh "$home/current.tmp" "$home/current" 2>/dev/null ||
    { rm -f "$home/current" && mv "$home/current.tmp" "$home/current"; } || return
  durable "$home"
}

put_in_place() { # path
  mv -f "$1.rlx-new" "$1" && durable "$(dirname "$1")" || return
  case $1 in "$home"/*) return 0 ;; esac
  # What lies elsewhere is remembered, to be removed by a destroy.
  grep -qxF -- "$1" "$home/.installed" 2>/dev/null || printf '%s\n' "$1" >>"$home/.installed"
}

remove() { # path
  rm -f "$1" || return
  case $1 in */"rlx-$job@"*.service.d/*) rmdir "${1%/*}" 2>/dev/null ;; esac
  [ -f "$home/.installed" ] || return 0
  { grep -vxF -- "$1" "$home/.installed" || true; } >"$home/.installed.tmp" &&
    mv -f "$home/.installed.tmp" "$home/.installed"
}

release_lock_when_told() { # the controller watches the ranks join; then it closes or says BYE
  say over
  trap 'leave 0' HUP TERM
  guard_for "$hold"
  IFS= read -r word
  leave 0
}

trap 'say undone "no GO in time"; leave 1' TERM
trap 'leave 1' HUP INT PIPE
