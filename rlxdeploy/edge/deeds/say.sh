# What a host does for an apply: functions that edge/script.py calls with the data of one plan.
#
# Two phases.  Before GO nothing that runs is touched, and whatever ends the script (no GO, a cut
# channel, a full disk) undoes what it made.  After GO every step is carried out even if nobody
# listens any more.  Every line for the controller begins with the marker $m.
#
# Set before: m by data home run run_home job launch hold.  Plain POSIX: dash, busybox ash, bash.

umask 077
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
locked=; mark=; reader=; guard=; fresh=; prepared=; texts=; laid=; unsettled=; noted=0; at=stage
# The mode of folders through which a job's user has to get where the system's manager starts it.
shared=700; [ "$launch" != systemd ] || shared=755

say() { printf '\n%s %s\n' "$m" "$*"; }

one_line() { tr '\n\r' '  ' | tail -c 400; }

die() { # why
  say failed "$at" "$(printf %s "$1" | one_line)"
  leave 1
}

try() { # doing, command...: what the command complained of becomes the reason
  doing=$1; shift
  complaint=$("$@" 2>&1 </dev/null) || die "$doing: $complaint$(room)"
}

room() { # a full disk is the likeliest reason, and the least clear one
  df -Pk "$home" "$data" 2>/dev/null </dev/null |
    awk 'NR > 1 && $4 < 64 { print " (the disk of " $6 " is full)"; exit }'
}

leave() { # exit status
  trap '' HUP INT TERM PIPE
  set +fC; unset IFS
  [ -z "$reader" ] || kill "$reader" 2>/dev/null
  quiet_guard
  [ "$at" != stage ] || undo
  [ -z "$locked" ] || unlock
  [ "$at" = locked ] || tidy
  exit "$1"
}
