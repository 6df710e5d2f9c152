# Processes, and waiting for what we do not wait for for ever.

started() { # pid: when it started, nothing where it does not run
  if [ -d /proc/self ]; then
    IFS= read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case $1 in Z | X) ;; *) echo "${20}" ;; esac
  else
    ps -o lstart= -p "$1" 2>/dev/null
  fi
}

same() { # pid, start: is it still that process
  [ -n "$1" ] && [ "$1" != 0 ] || return 1
  now_started=$(started "$1")
  [ -n "$now_started" ] && { [ -z "$2" ] || [ "$now_started" = "$2" ]; }
}

boot() {
  if [ -r /proc/sys/kernel/random/boot_id ]; then
    IFS= read -r id </proc/sys/kernel/random/boot_id && echo "$id"
  else
    sysctl -n kern.bootsessionuuid 2>/dev/null
  fi
}

up_for() { # whole seconds since the boot, to whatever time somebody sets the clock
  if [ -r /proc/uptime ]; then IFS=. read -r up rest </proc/uptime && echo "$up"
  else # The time of the boot moves along with the clock.
    booted=$(sysctl -n kern.boottime 2>/dev/null | sed -n 's/^{ sec = \([0-9]*\).*/\1/p')
    echo $(($(date +%s) - ${booted:-0}))
  fi
}

nap() { sleep 0.1 2>/dev/null || sleep 1; }

guard_for() { # seconds of the kernel's, not the clock's: then we get TERM, even while we read
  # By the second, so that no long sleep is left over when the guard is killed.
  ( left=$1
    while [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
    kill -TERM $$ ) </dev/null >/dev/null 2>&1 &
  guard=$!
}

quiet_guard() {
  [ -z "$guard" ] || { kill -KILL "$guard"; wait "$guard"; } 2>/dev/null
  guard=
}
