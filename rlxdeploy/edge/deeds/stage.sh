# Before GO: contents brought to where a rename or a switch is enough.

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

# A piece that begins at a multiple of its size is one block to dd, which also says whether it got
# and put down the whole of it.  A block has to fit into memory.
pour() { # offset bytes: of the payload to descriptor 4, all of it
  [ "$2" != 0 ] || return 0
  if [ $(($1 % $2)) = 0 ] && [ "$2" -le 16777216 ]; then
    said=$(dd if="$home/payload.tmp" bs="$2" skip=$(($1 / $2)) count=1 2>&1 >&4)
    case $said in *1+0*1+0*) return 0 ;; esac
    printf '%s\n' "$said" >&2
    return 1
  fi
  tail -c "+$(($1 + 1))" "$home/payload.tmp" | head -c "$2" >&4
}

# Called by `try`, which makes the subshell that its settings end with.
write() { # path mode owner offset bytes: owner and mode stand before there is any content
  [ ! -e "$1" ] && [ ! -L "$1" ] || rm -f "$1" || return
  set -C
  exec 4>"$1" || return
  case $launch:$3 in *: | systemd:root) ;; *) chown "$3" "$1" || return ;; esac
  chmod "$2" "$1" || return
  pour "$4" "$5"
}

can_sync=
[ ! -r /proc/version ] || case $(sync --help 2>&1 </dev/null) in *FILE*) can_sync=1 ;; esac

durable() { [ -z "$can_sync" ] || sync "$@"; } # paths

settle() { # what was written since the last time outlives a power cut; a process for all of it
  [ -n "$unsettled" ] || return 0
  list=$unsettled; unsettled=
  IFS='
'
  set -f
  # shellcheck disable=SC2086
  set -- $list
  set +f; unset IFS
  try "write $1" durable "$@"
}

begin() { # release
  need_folder "$home/releases"
  [ ! -e "$home/current" ] || [ -L "$home/current" ] || die "$home/current is no link of ours"
  try "make $home/releases/$1.tmp" mkdir -m "$shared" "$home/releases/$1.tmp"
}

below() { # folder in a release: under the system's manager the job's user has to get through
  [ "$launch" != systemd ] || umask 022
  mkdir -p "$1"
}

put() { # release path mode offset bytes
  target=$home/releases/$1.tmp/$2
  [ -d "${target%/*}" ] || try "make the folder of $2" below "${target%/*}"
  try "write $target" write "$target" "$3" "" "$4" "$5"
  unsettled="$unsettled$target
"
  # What lies in a release besides is the job's; our own two folders are known.
  case $2 in env/* | process/*) return 0 ;; esac
  printf '%s\n' "$2" >>"$home/releases/$1.tmp/.released" || die "write $target:$(room)"
}

alike() { # folder, folder: has the first all of the second; the job may have written there too
  [ -z "$(others "$1" "$2")" ] || return
  (cd "$2" && find . -type f) | while IFS= read -r one; do
    same_file "$1/$one" "$2/$one" || exit 1
  done
}

same_file() { cmp -s "$1" "$2" && [ "$(mode "$1")" = "$(mode "$2")" ]; }

others() ( # folder, folder: what the first has in our own folders, and the second has not
  cd "$1" && find env process ! -type d 2>/dev/null | while IFS= read -r one; do
    [ -f "$2/$one" ] || printf '%s\n' "$one"
  done
)

mend() { # folder, folder: the first gets all that the second has; what the job has written stays
  others "$1" "$2" | while IFS= read -r one; do rm -f "$1/$one" || exit; done || return
  (cd "$2" && find . -type f) | while IFS= read -r one; do
    ! same_file "$1/$one" "$2/$one" || continue
    below "$(dirname "$1/$one")" && mv -f "$2/$one" "$1/$one" || exit
  done || return
  relabel "$1" && rm -rf "$2"
}

mode() { ls -ld "$1" 2>/dev/null | cut -c 1-10; }

relabel() { # path: under SELinux a renamed file keeps the label of its first name
  ! command -v restorecon >/dev/null 2>&1 || restorecon -RF "$1"
}

finish() { # release: in place, unless one with the same name is: that may be running
  staged=$home/releases/$1
  settle
  if [ ! -e "$staged" ]; then
    try "put $staged in place" mv "$staged.tmp" "$staged"
    fresh=$staged
    try "label $staged" relabel "$staged"
    unsettled="$unsettled$home/releases
"
  elif alike "$staged" "$staged.tmp"; then
    rm -rf "$staged.tmp"
  fi
}

store() { # digest offset bytes
  need_folder "$data/store"
  hold_store || die "lock $data/store: held by $(value by "$data/store/.lock")$(room)"
  if [ ! -f "$data/store/$1" ] || ! pour "$2" "$3" 4>&1 | cmp -s - "$data/store/$1"; then
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
  need_folder "${1%/*}"
  prepared="$prepared$1.rlx-new
"
  unsettled="$unsettled$1.rlx-new
"
  try "write $1" write "$1.rlx-new" "$2" "$3" "$4" "$5"
}

undo() {
  [ -n "$locked" ] || return 0
  unarm
  [ -z "$fresh" ] || rm -rf "$fresh"
  rm -rf "$back.tmp"
  rm -rf "$home"/releases/*.tmp
  printf %s "$prepared" | while IFS= read -r file; do rm -f "$file"; done
  rm -f "$home/payload.tmp" "$data"/store/*".$$"
  [ "$(value pid "$data/store/.lock")" != $$ ] || release_store
  sweep
}

await_go() {
  settle
  rm -f "$home/payload.tmp"
  say staged
  IFS= read -r word || { word=; true; }
  [ "$word" = GO ] || { say undone "no GO"; leave 1; }
  quiet_guard
  trap '' HUP INT TERM PIPE
}
