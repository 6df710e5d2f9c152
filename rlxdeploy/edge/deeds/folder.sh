# Folders that we make, and leave no trace of when nothing needs them.

make_folder() { # path: with its parents; what is new is noted, to be removed by a destroy
  [ -d "$1" ] && return 0
  up=${1%/*}
  make_folder "${up:-/}" || return
  # Another apply may make it at the same moment; then that one has it noted.
  mkdir -m "$shared" "$1" || { [ -d "$1" ]; return; }
  # Until the list's own folder is there, its parents wait for it.
  waiting="$waiting$1
"
  [ ! -d "$data" ] || { printf %s "$waiting" >>"$data/.made" && waiting=; }
}

folder() { # path: with its parents, or none of them
  waiting=
  make_folder "$1" && return
  printf %s "$waiting" | backwards | rmdir_all >/dev/null
  return 1
}

need_folder() { [ -d "$1" ] || try "make the folder $1" folder "$1"; } # path

backwards() { awk '{ line[NR] = $0 } END { for (i = NR; i; i--) print line[i] }'; }

rmdir_all() { # on stdin: folders; those that stay are printed
  while IFS= read -r one; do
    rmdir "$one" 2>/dev/null || [ ! -d "$one" ] || printf '%s\n' "$one"
  done
}

tidy() { # leave no folder that we made and that holds nothing; all of them if the job is gone
  rmdir "$home/releases" "$home/log" "$home/run" "$home" "$data/store" 2>/dev/null
  # A rank that starts may not have written there yet.
  if [ ! -L "$home/current" ]; then
    rmdir "$run_home" 2>/dev/null
    # The units' manager makes the run folder with the one above it, and leaves that.
    [ "$launch" = process ] || rmdir "${run_home%/*}" 2>/dev/null
  fi
  [ -f "$data/.made" ] || return 0
  [ -d "$home" ] && [ "$at" != stage ] && return 0
  [ -d "$home" ] || noted=0
  old=$(awk -v n="$noted" 'NR <= n' "$data/.made")
  new=$(awk -v n="$noted" 'NR > n' "$data/.made" | backwards)
  [ "$(ls -A "$data")" != .made ] || rm -f "$data/.made"
  new=$(printf '%s\n' "$new" | rmdir_all | backwards)
  [ ! -f "$data/.made" ] || {
    printf '%s\n' "$old" "$new" | awk NF >"$data/.made.tmp" &&
      mv -f "$data/.made.tmp" "$data/.made" || rm -f "$data/.made.tmp"
  }
}
