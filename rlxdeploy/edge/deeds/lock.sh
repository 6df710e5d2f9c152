# One apply a job: a lock that names its owner and outlives nobody.

value() { sed -n "s/^$1=//p" "$2" 2>/dev/null; } # key, file

lock_file() { # path: 0 taken, 1 held by somebody who lives, 2 cannot be made; $taken says it too
  turn=0; taken=2
  # Only who finds the job's own lock is told since when.
  { [ "$1" != "$home/lock" ] || echo "up=$(up_for)"
    echo "pid=$$"; echo "start=$(started $$)"; echo "boot=$(boot)"; echo "by=$by"
    echo "mark=${mark:-$m}"; } >"$1.$$" || { rm -f "$1.$$"; return 2; }
  while [ "$taken" = 2 ] && [ "$turn" -lt 3 ]; do
    turn=$((turn + 1))
    # A hard link is there with its content or not at all.
    if ln "$1.$$" "$1" 2>/dev/null; then taken=0
    elif holder_lives "$1"; then taken=1
    elif [ -e "$1" ]; then drop_stale "$1"
    fi
  done
  rm -f "$1.$$"
  [ "$taken" != 2 ] || echo "cannot make $1" >&2
  return "$taken"
}

holder_lives() { # path
  [ -e "$1" ] && [ "$(value boot "$1")" = "$(boot)" ] &&
    same "$(value pid "$1")" "$(value start "$1")"
}

drop_stale() { # path: by a name of our own, so that a fresh lock in its place survives
  seen=$(cat "$1")
  mv "$1" "$1.stale.$$" || return
  [ "$(cat "$1.stale.$$")" = "$seen" ] || ln "$1.stale.$$" "$1"
  rm -f "$1.stale.$$"
}

lock() {
  need_folder "$home"
  [ ! -f "$data/.made" ] || while IFS= read -r _; do noted=$((noted + 1)); done <"$data/.made"
  complaint=$(lock_file "$home/lock" 2>&1); taken=$?
  # Another apply that undoes itself may have taken the empty folder away in between.
  if [ "$taken" = 2 ] && [ ! -d "$home" ]; then
    need_folder "$home"
    complaint=$(lock_file "$home/lock" 2>&1); taken=$?
  fi
  if [ "$taken" = 1 ]; then
    # Who lives has taken it since the boot.
    since=$(value up "$home/lock")
    say locked "$(value by "$home/lock"), pid $(value pid "$home/lock")${since:+, for $(($(up_for) - since)) s}"
    at=locked; leave 1
  fi
  [ "$taken" = 0 ] || die "lock $home: $complaint$(room)"
  locked=1
  for left in "$home/payload.tmp" "$home"/releases/*.tmp "$back.tmp"; do
    [ ! -e "$left" ] || rm -rf "$left"
  done
}

unlock() { rm -f "$home/lock"; locked=; }

end_holder() { # somebody wants the lock free: asked to end, the holder undoes what it may
  [ -e "$home/lock" ] || { say unlocked; exit 0; }
  holder=$(value by "$home/lock"); pid=$(value pid "$home/lock")
  ! holder_lives "$home/lock" || kill -TERM "$pid"
  turns=0
  while holder_lives "$home/lock" && [ "$turns" -lt 100 ]; do turns=$((turns + 1)); nap; done
  ! holder_lives "$home/lock" || kill -KILL "$pid"
  [ ! -e "$home/lock" ] || drop_stale "$home/lock"
  say unlocked "$holder, pid $pid"
  exit 0
}
