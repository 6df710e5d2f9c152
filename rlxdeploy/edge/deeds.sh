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
locked=; reader=; guard=; fresh=; prepared=; noted=0; at=stage

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
  [ -z "$reader" ] || kill "$reader" 2>/dev/null
  quiet_guard
  [ "$at" != stage ] || undo
  [ -z "$locked" ] || unlock
  [ "$at" = locked ] || tidy
  exit "$1"
}

# --- processes ---------------------------------------------------------------------------------

started() { # pid: when it started, nothing where it does not run
  if [ -d /proc/self ]; then
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" && $1 != "X" { print $20 }'
  else
    ps -o lstart= -p "$1" 2>/dev/null
  fi
}

same() { # pid, start: is it still that process
  [ -n "$1" ] && [ "$1" != 0 ] || return 1
  now_started=$(started "$1")
  [ -n "$now_started" ] && { [ -z "$2" ] || [ "$now_started" = "$2" ]; }
}

boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.bootsessionuuid 2>/dev/null; }

nap() { sleep 0.1 2>/dev/null || sleep 1; }

guard_for() { # seconds: then we get TERM, even in the middle of a read
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

# --- the lock ------------------------------------------------------------------------------------

value() { sed -n "s/^$1=//p" "$2" 2>/dev/null; } # key, file

lock_file() { # path: 0 taken, 1 held by somebody who lives, 2 cannot be made; $taken says it too
  turn=0; taken=2
  { echo "pid=$$"; echo "start=$(started $$)"; echo "boot=$(boot)"
    echo "since=$(date +%s)"; echo "by=$by"; } >"$1.$$" || { rm -f "$1.$$"; return 2; }
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
  noted=$(wc -l 2>/dev/null <"$data/.made") || noted=0
  complaint=$(lock_file "$home/lock" 2>&1); taken=$?
  if [ "$taken" = 1 ]; then
    since=$(value since "$home/lock")
    say locked "$(value by "$home/lock"), pid $(value pid "$home/lock"), for $(($(date +%s) - ${since:-0})) s"
    at=locked; leave 1
  fi
  [ "$taken" = 0 ] || die "lock $home: $complaint$(room)"
  locked=1
  rm -rf "$home/payload.tmp" "$home"/releases/*.tmp
}

unlock() { rm -f "$home/lock"; locked=; }

# --- folders -----------------------------------------------------------------------------------

make_folder() { # path: with its parents; what is new is noted, to be removed by a destroy
  [ -d "$1" ] && return 0
  make_folder "$(dirname "$1")" || return
  mkdir "$1" || return
  [ "$launch" != systemd ] || chmod 755 "$1"
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
  rmdir "$home/releases" "$home/log" "$home/run" "$home" "$data/store" "$run_home" 2>/dev/null
  [ -f "$data/.made" ] || return 0
  [ -d "$home" ] && [ "$at" != stage ] && return 0
  [ -d "$home" ] || noted=0
  old=$(awk -v n="$noted" 'NR <= n' "$data/.made")
  new=$(awk -v n="$noted" 'NR > n' "$data/.made" | backwards)
  [ "$(ls -A "$data")" != .made ] || rm -f "$data/.made"
  new=$(printf '%s\n' "$new" | rmdir_all | backwards)
  [ ! -f "$data/.made" ] || printf '%s\n' "$old" "$new" | awk NF >"$data/.made"
}

# --- stage ---------------------------------------------------------------------------------------

take() { # bytes: the payload, all of it before anything is made of it
  exec 3<&0
  head -c "$1" <&3 >"$home/payload.tmp" &
  reader=$!
  wait "$reader" || { reader=; die "write $home/payload.tmp:$(room)"; }
  reader=
  exec 3<&-
  got=$(wc -c <"$home/payload.tmp")
  [ "$got" -eq "$1" ] || die "the connection ended after $got of $1 bytes"
}

piece() { tail -c "+$(($1 + 1))" "$home/payload.tmp" | head -c "$2"; } # offset, bytes

write() ( # path mode owner offset bytes: owner and mode stand before there is any content
  rm -f "$1" || exit
  set -C
  exec 4>"$1" || exit
  [ -z "$3" ] || chown "$3" "$1" || exit
  chmod "$2" "$1" || exit
  piece "$4" "$5" >&4 || exit
  [ "$(wc -c <"$1")" -eq "$5" ] || { echo "only a part of $1 was written" >&2; exit 1; }
)

can_sync=
case $(uname -s) in Linux) case $(sync --help 2>&1 </dev/null) in *FILE*) can_sync=1 ;; esac ;; esac

durable() { [ -z "$can_sync" ] || sync "$@"; } # paths

begin() { # release
  need_folder "$home/releases"
  [ ! -e "$home/current" ] || [ -L "$home/current" ] || die "$home/current is no link of ours"
  try "make $home/releases/$1.tmp" mkdir "$home/releases/$1.tmp"
  [ "$launch" != systemd ] || chmod 755 "$home/releases" "$home/releases/$1.tmp"
}

put() { # release path mode offset bytes
  target=$home/releases/$1.tmp/$2
  try "make the folder of $2" mkdir -p "$(dirname "$target")"
  try "write $target" write "$target" "$3" "" "$4" "$5"
  try "write $target" durable "$target"
}

alike() { # folder, folder: has the first all of the second; the job may have written there too
  (cd "$2" && find . -type f) | while IFS= read -r one; do
    cmp -s "$1/$one" "$2/$one" && [ "$(mode "$1/$one")" = "$(mode "$2/$one")" ] || exit 1
  done
}

mode() { ls -ld "$1" 2>/dev/null | cut -c 1-10; }

finish() { # release: in place, unless one with the same name is: that may be running
  staged=$home/releases/$1
  if [ ! -e "$staged" ]; then
    try "put $staged in place" mv "$staged.tmp" "$staged"
    fresh=$staged
    try "put $staged in place" durable "$home/releases"
  elif alike "$staged" "$staged.tmp"; then
    rm -rf "$staged.tmp"
  fi
}

store() { # digest offset bytes
  need_folder "$data/store"
  hold_store || die "lock $data/store: held by $(value by "$data/store/.lock")$(room)"
  if [ ! -f "$data/store/$1" ] || [ "$(wc -c <"$data/store/$1")" -ne "$3" ]; then
    try "write $data/store/$1" write "$data/store/$1.$$" 644 "" "$2" "$3"
    try "write $data/store/$1" durable "$data/store/$1.$$"
    try "write $data/store/$1" mv -f "$data/store/$1.$$" "$data/store/$1"
  fi
  release_store
}

hold_store() { # jobs share the store: nobody sweeps while somebody counts on a file
  turns=0
  until lock_file "$data/store/.lock" 2>/dev/null; do
    turns=$((turns + 1))
    [ "$taken" = 1 ] && [ "$turns" -lt 100 ] || return 1
    nap
  done
}

release_store() { rm -f "$data/store/.lock"; }

prepare() { # path mode owner offset bytes: beside its place, so that after GO a rename is enough
  [ ! -L "$1" ] || die "$1 is a symbolic link; remove it or name its target"
  [ ! -d "$1" ] || die "$1 is a folder"
  need_folder "$(dirname "$1")"
  prepared="$prepared$1.rlx-new
"
  try "write $1" write "$1.rlx-new" "$2" "$3" "$4" "$5"
  try "write $1" durable "$1.rlx-new"
}

undo() {
  [ -z "$fresh" ] || rm -rf "$fresh"
  [ -n "$locked" ] || return 0
  rm -rf "$home"/releases/*.tmp
  printf %s "$prepared" | while IFS= read -r file; do rm -f "$file"; done
  rm -f "$home/payload.tmp" "$data"/store/*".$$"
  [ "$(value pid "$data/store/.lock")" != $$ ] || release_store
  sweep
}

await_go() {
  rm -f "$home/payload.tmp"
  say staged
  IFS= read -r word || { word=; true; }
  [ "$word" = GO ] || { say undone "no GO"; leave 1; }
  quiet_guard
  trap '' HUP INT TERM PIPE
}

# --- go ------------------------------------------------------------------------------------------

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
  [ -f "$home/.installed" ] || return 0
  { grep -vxF -- "$1" "$home/.installed" || true; } >"$home/.installed.tmp" &&
    mv -f "$home/.installed.tmp" "$home/.installed"
}

manager() { # systemctl of this launch
  if [ "$launch" = systemd-user ]; then
    XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} systemctl --user "$@"
  else
    systemctl "$@"
  fi
}

units() { for rank; do printf 'rlx-%s@%s.service ' "$job" "$rank"; done; }

reload() { manager daemon-reload; }

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
  manager reset-failed $(units "$@") 2>/dev/null
  # shellcheck disable=SC2046
  if [ -n "$boot" ]; then manager enable $(units "$@"); else manager disable $(units "$@"); fi || return
  # shellcheck disable=SC2046
  manager start --no-block $(units "$@")
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
  until_s=$(($(date +%s) + patience + 10))
  while any_lives "$@" && [ "$(date +%s)" -lt "$until_s" ]; do nap; done
  for rank; do
    file=$run_home/$rank.supervisor
    lives "$rank" supervisor && kill -KILL "$(member supervisor_pid "$file")"
    # A supervisor that was killed leaves its process, the leader of a group, behind.
    lives "$rank" main && kill -KILL "-$(member pid "$file")"
  done
  return 0
}

start_supervisors() { # release ranks... -- supervisor...
  release=$1; shift; ranks=
  while [ "$1" != -- ]; do ranks="$ranks $1"; shift; done; shift
  jobs=
  for rank in $ranks; do
    "$@" --file "$home/current/process/$rank.json" --release "$release" </dev/null &
    jobs="$jobs $!"
  done
  bad=0
  for one in $jobs; do wait "$one" || bad=1; done
  return "$bad"
}

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

in_use() { # release: what `current` or a running rank stands in
  case $(ls -ld "$home/current" 2>/dev/null) in *"/$1") return 0 ;; esac
  for file in "$run_home"/*.supervisor; do
    [ -f "$file" ] || continue
    rank=${file##*/}; rank=${rank%.supervisor}
    lives "$rank" supervisor && grep -q "\"release\": *\"$1\"" "$file" && return 0
  done
  return 1
}

sweep() { # stored files that no environment file of any job's release names
  # A file too many does no harm: the next sweep takes it.
  [ -d "$data/store" ] && hold_store || return 0
  for file in "$data"/store/*; do
    [ -f "$file" ] || continue
    grep -q "${file##*/}" "$data"/*/releases/*/env/*.env 2>/dev/null || rm -f "$file"
  done
  release_store
}

remove_job() {
  for file in "$run_home"/*; do
    case ${file##*/} in [0-9]*.state | [0-9]*.supervisor | [0-9]*.lock | [0-9]*.notify) rm -f "$file" ;; esac
  done
  [ ! -f "$home/.installed" ] || while IFS= read -r file; do rm -f "$file"; done <"$home/.installed"
  rm -f "$home/.installed"
  rm -rf "$home/releases" "$home/log" "$home/current" "$home/deployment.json" "$home/key"
  sweep
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
