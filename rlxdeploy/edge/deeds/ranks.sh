# Ranks stopped and started: units, or supervisors where no manager runs them.

manager() { # systemctl of this launch
  if [ "$launch" = systemd-user ]; then
    XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} systemctl --user "$@"
  else
    systemctl "$@"
  fi
}

units() { for rank; do printf 'rlx-%s@%s.service ' "$job" "$rank"; done; }

reload() { manager daemon-reload; }

# The manager reads a unit when it first needs it: only one that it holds can be out of date there.
holds() { # patterns...
  held=$(manager list-units --all --plain --no-legend "$@") || return 0
  [ -n "$held" ]
}

reload_held() { [ -n "$unheld" ] || reload; }

# Instance names hold no blank: left unquoted, the list becomes words.
stop_units() { # disable, ranks...
  disable=$1; shift
  # shellcheck disable=SC2046
  manager stop $(units "$@") || return
  # shellcheck disable=SC2046
  [ -z "$disable" ] || manager disable $(units "$@")
}

start_units() { # boot, ranks...
  boot=$1; shift
  # shellcheck disable=SC2046
  [ -n "$unheld" ] || manager reset-failed $(units "$@") 2>/dev/null
  # What starts at boot is not asked of the running manager, which need not be told.
  # shellcheck disable=SC2046
  if [ -n "$boot" ]; then manager enable --no-reload --now --no-block $(units "$@"); return; fi
  # shellcheck disable=SC2046
  ! any_enabled "$@" || manager disable $(units "$@") || return
  # shellcheck disable=SC2046
  manager start --no-block $(units "$@")
}

any_enabled() { # ranks...
  for rank; do
    for link in "$units"/*/"rlx-$job@$rank.service"; do [ ! -L "$link" ] || return 0; done
  done
  return 1
}

member() { # name, file: a number or a word in quotes of a supervisor's one-line JSON
  sed -n 's/.*"'"$1"'": *"\{0,1\}\([0-9.]*\).*/\1/p' "$2" 2>/dev/null
}

lives() { # rank, supervisor or main process
  file=$run_home/$1.supervisor
  case $2 in
  supervisor) same "$(member supervisor_pid "$file")" "$(member supervisor_start "$file")" ;;
  *) same "$(member pid "$file")" "$(member pid_start "$file")" ;;
  esac
}

any_lives() { for one; do lives "$one" supervisor && return 0; done; return 1; }

stop_supervisors() { # ranks...
  patience=0
  for rank; do
    lives "$rank" supervisor && kill -TERM "$(member supervisor_pid "$run_home/$rank.supervisor")"
    own=$(member stop_timeout_s "$home/current/process/$rank.json"); own=${own%%.*}
    [ "${own:-30}" -le "$patience" ] || patience=${own:-30}
  done
  until_s=$(($(up_for) + patience + 10))
  while any_lives "$@" && [ "$(up_for)" -lt "$until_s" ]; do nap; done
  for rank; do
    file=$run_home/$rank.supervisor
    lives "$rank" supervisor && kill -KILL "$(member supervisor_pid "$file")"
    # A supervisor that was killed leaves its process, the leader of a group, behind.
    lives "$rank" main && kill -KILL "-$(member pid "$file")"
    rest "$file"
  done
  return 0
}

rest() { # supervisor's file: what has finished and is stopped is no longer to be called finished
  IFS= read -r said 2>/dev/null <"$1" || return 0
  case $said in *'"active": "exited"'*) ;; *) return 0 ;; esac
  before=${said%%'"exited"'*} after=${said#*'"exited"'}
  printf '%s"inactive"%s\n' "$before" "$after" >"$1.new" && mv "$1.new" "$1"
}

start_supervisors() { # release ranks... -- supervisor...: without one, as it was started before
  release=$1; shift; ranks=
  while [ "$1" != -- ]; do ranks="$ranks $1"; shift; done; shift
  how=$home/releases/$release/.supervisor
  if [ $# != 0 ]; then printf '%s\n' "$@" >"$how" || return
  else
    [ -f "$how" ] || { echo "$how is not there" >&2; return 1; }
    while IFS= read -r word; do set -- "$@" "$word"; done <"$how"
  fi
  jobs=
  for rank in $ranks; do
    "$@" --file "$home/current/process/$rank.json" --release "$release" </dev/null &
    jobs="$jobs $!"
  done
  bad=0
  for one in $jobs; do wait "$one" || bad=1; done
  return "$bad"
}
