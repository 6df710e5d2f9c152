# What is no longer needed: old releases, stored files, the job.

prune() { # how many to keep: what is in use, and the newest of the others
  spare=$1
  releases=$(ls -1t "$home/releases" 2>/dev/null)
  for name in $releases; do in_use "$name" && spare=$((spare - 1)); done
  for name in $releases; do
    in_use "$name" && continue
    spare=$((spare - 1))
    [ "$spare" -ge 0 ] || rm -rf "$home/releases/$name"
  done
  sweep
}

in_use() { # release: what `current` or a running rank stands in, or may go back to
  [ "$1" != "$(standing)" ] && [ "$1" != "$(value release "$back/state")" ] || return 0
  for file in "$run_home"/*.supervisor; do
    [ -f "$file" ] || continue
    rank=${file##*/}; rank=${rank%.supervisor}
    lives "$rank" supervisor && grep -q "\"release\": *\"$1\"" "$file" && return 0
  done
  return 1
}

sweep() { # stored files that no file in `env` of any job's release names
  # A file too many does no harm: the next sweep takes it.
  [ -d "$data/store" ] && hold_store || return 0
  for file in "$data"/store/*; do
    [ -f "$file" ] || continue
    grep -q "${file##*/}" "$data"/*/releases/*/env/* 2>/dev/null || rm -f "$file"
  done
  release_store
}

remove_job() {
  for file in "$run_home"/*; do
    case ${file##*/} in [0-9]*.state | [0-9]*.supervisor | [0-9]*.lock | [0-9]*.notify) rm -f "$file" ;; esac
  done
  [ ! -f "$home/.installed" ] || while IFS= read -r file; do rm -f "$file"; done <"$home/.installed"
  disarm
  rm -f "$home/.installed"
  rm -rf "$home/releases" "$home/log" "$home/current" "$home/deployment.json" "$home/key" \
    "$back" "$back.tmp"
  sweep
}
