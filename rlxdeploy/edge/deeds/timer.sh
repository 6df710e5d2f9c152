# The revert timer: a unit on disk, which a reboot starts again, or a process apart.
#
# It counts on the host's monotonic clock, and looks before it acts.

timer=rlx-$job-revert
firing=; armed=
unheld= # set where the manager held no unit of ours when we began

arm() { # seconds
  [ "$launch" = process ] || holds "rlx-$job@*.service" "$timer.timer" "$timer.service" || unheld=1
  [ -z "$fresh" ] || printf '%s\n' "${fresh##*/}" >>"$back.tmp/fresh"
  if [ -f "$back/state" ]; then
    disarm
    [ -z "$fresh" ] || printf '%s\n' "${fresh##*/}" >>"$back/fresh"
    try "arm" mv -f "$back.tmp/back.sh" "$back/back.sh"
    rm -rf "$back.tmp"; armed=again
  else
    [ ! -e "$back" ] || rm -rf "$back"
    try "arm" mv "$back.tmp" "$back"; armed=new
  fi
  name_armer
  # What was said before GO is no word of the new release.
  [ "$launch" != process ] || for rank in $new_ranks; do joined_once "$rank"; done >"$back/joined"
  : >"$back/progress"
  complaint=$(start_timer "$1" 2>&1) || die "start the revert timer: $complaint$(room)"
  armed=
}

name_armer() { # who went, and holds since
  printf 'pid=%s\nstart=%s\nmark=%s\n' $$ "$(started $$)" "${mark:-$m}" >"$back/armer"
}

stay() { [ ! -f "$back/state" ] || confirm; }

unarm() { # GO came, and the timer could not be started: nothing was changed
  [ "$armed" != new ] || { disarm; rm -rf "$back"; }
}

start_timer() { # seconds
  if [ "$launch" = process ]; then
    # shellcheck disable=SC2016
    apart /bin/sh -c 'sleep "$2"; exec /bin/sh "$1/back.sh"' sh "$back" "$1" \
      </dev/null >/dev/null 2>&1 3>&- 4>&- &
    printf 'pid=%s\nstart=%s\n' $! "$(started $!)" >"$back/timer"
    durable "$back" "$home"
    return
  fi
  wants=$units/timers.target.wants
  [ -d "$wants" ] || folder "$wants" || return
  umask 022
  printf '%s\n' "[Unit]" "Description=rlx job $job: go back unless all ranks are up" \
    "[Service]" "Type=oneshot" "ExecStart=/bin/sh \"$(systemd_word "$back/back.sh")\"" \
    "Restart=on-failure" "RestartSec=15" "TimeoutStartSec=infinity" >"$units/$timer.service" || return
  printf '%s\n' "[Unit]" "Description=rlx job $job: when to go back" \
    "[Timer]" "OnActiveSec=$1" "AccuracySec=1s" \
    "[Install]" "WantedBy=timers.target" >"$units/$timer.timer" || return
  ln -sf "$units/$timer.timer" "$wants/$timer.timer" || return
  durable "$units/$timer.service" "$units/$timer.timer" "$wants" "$units" "$back" "$home"
  reload_held && manager start "$timer.timer"
}

systemd_word() {
  case $1 in
  *[\\\"%\$]*) printf %s "$1" | sed 's/[\\"]/\\&/g; s/%/%%/g; s/\$/$$/g' ;;
  *) printf %s "$1" ;;
  esac
}

apart() { # in a session of its own
  if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
  exec perl -MPOSIX=setsid -e 'setsid; exec { $ARGV[0] } @ARGV' "$@"
}

disarm() { # whoever waits is stopped, but never we ourselves
  if [ "$launch" = process ]; then
    pid=$(value pid "$back/timer")
    [ "$pid" = $$ ] || ! same "$pid" "$(value start "$back/timer")" ||
      kill -KILL "-$pid" "$pid" 2>/dev/null # it was begun with TERM ignored, and stays so
    rm -f "$back/timer"
    return 0
  fi
  [ -e "$units/$timer.timer" ] || [ -e "$units/$timer.service" ] || return 0
  if [ -n "$firing" ]; then manager stop "$timer.timer"; else manager stop "$timer.timer" "$timer.service"
  fi 2>/dev/null
  rm -f "$units/timers.target.wants/$timer.timer" "$units/$timer.timer" "$units/$timer.service"
  rmdir "$units/timers.target.wants" 2>/dev/null
  ! holds "$timer.timer" "$timer.service" || reload
}

fire() {
  at=back firing=1
  [ -f "$back/state" ] || exit 0
  until lock_file "$home/lock"; do
    [ "$taken" = 1 ] || die "lock $home: it cannot be written$(room)"
    # The apply that we wait for has been silent for too long; another one has to end first.
    [ "$(value pid "$home/lock")" != "$(value pid "$back/armer")" ] ||
      kill -TERM "$(value pid "$back/armer")"
    sleep 1
  done
  locked=1
  [ -f "$back/state" ] || leave 0
  if all_joined; then
    echo "all ranks are up: release $(standing) stays"
    confirm || leave 1
  else
    echo "going back from release $(standing) to release $(value release "$back/state")"
    go_back || leave 1
  fi
  leave 0
}

all_joined() { # under the new RLX_PLAN, since GO
  for rank in $new_ranks; do joined "$rank" || return 1; done
  # A host that is to have no rank any more cannot tell.  A rank that waits for its group starts
  # again, for the old group would lack it; any other program could run beside the new group.
  [ -n "$new_ranks" ] || [ -z "$notify" ] || [ -z "$(value ranks "$back/state")" ]
}

joined() { # rank
  if [ "$launch" = process ]; then
    supervisor_joined "$1"; return
  fi
  shown=$(manager show -p ActiveState,SubState,MainPID,ExecMainStatus \
    -p ActiveEnterTimestampMonotonic,ExecMainStartTimestampMonotonic "rlx-$job@$1.service")
  if [ "$(property ActiveState)" = active ]; then
    if [ "$(property SubState)" != exited ]; then
      under_new_plan "$(property MainPID)" || return
      # Without a word from the rank, that it lives must do: past its imports and arguments.
      [ -n "$notify" ] || awk -v since="$(property ExecMainStartTimestampMonotonic)" \
        '{ exit !($1 - since / 1e6 >= 5) }' /proc/uptime
      return
    fi
    # One that exits 0 is finished, not failed.
    [ "$(property ExecMainStatus)" != 0 ] || return 0
  fi
  # READY was said behind a barrier: once is enough, and every host sees it alike.
  armed_at=$(manager show -p ActiveEnterTimestampMonotonic --value "$timer.timer")
  joined_at=$(property ActiveEnterTimestampMonotonic)
  [ -n "$notify" ] && [ "${armed_at:-0}" -gt 0 ] && [ "${joined_at:-0}" -gt "$armed_at" ]
}

supervisor_joined() { # rank
  file=$run_home/$1.supervisor
  grep -q "\"release\": *\"$(standing)\"" "$file" 2>/dev/null || return 1
  if grep -q -e '"active": *"exited"' -e '"active": *"inactive"' "$file"; then
    # One that exits 0 is finished, not failed.
    [ "$(member exit_status "$file")" != 0 ] || return 0
  elif grep -q '"ready": *true' "$file" && lives "$1" main; then
    under_new_plan "$(member pid "$file")"; return
  fi
  # Once is enough here too.  An older supervisor keeps no word of a process that has ended.
  once=$(joined_once "$1")
  [ -n "$notify" ] && [ -n "$once" ] && ! grep -qxF "$once" "$back/joined" &&
    grep -qF "\"plan\": \"$new_plan" "$file"
}

joined_once() { # rank: it, and which process of it was the last to say READY
  IFS= read -r said 2>/dev/null <"$run_home/$1.supervisor" || return 0
  case $said in *'"joined": "'[0-9]*) said=${said#*'"joined": "'}; echo "$1 ${said%%'"'*}" ;; esac
}

property() { printf '%s\n' "$shown" | sed -n "s/^$1=//p"; }

under_new_plan() { # pid
  [ -n "$new_plan" ] && [ -r "/proc/$1/environ" ] || return 0
  tr '\0' '\n' <"/proc/$1/environ" | grep -qx "RLX_PLAN=$new_plan"
}
