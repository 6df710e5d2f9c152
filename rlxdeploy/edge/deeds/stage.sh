# Before GO: contents brought to where a rename or a switch is enough.

# The payload ends with all texts, a separator behind each and the marker before them: whoever has
# read that has got all of it.  Texts are written by the shell itself, without a process for each.
take() { # bytes, bytes of texts, separator: the payload, all of it before anything is made of it
  separator=$3
  exec 3<&0
  head -c "$1" <&3 >"$home/payload.tmp" &
  reader=$!
  wait "$reader" || { reader=; die "write $home/payload.tmp:$(room)"; }
  reader=
  exec 3<&-
  texts=$(tail -c "$2" "$home/payload.tmp"; echo _)
  case $texts in "$m$separator"*) ;; *)
    die "the connection ended after $(($(wc -c <"$home/payload.tmp"))) of $1 bytes" ;;
  esac
  texts=${texts%_}; texts=${texts#"$m$separator"}
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
  try "write ${unsettled%%
*}" sync_unsettled
  unsettled=
}

sync_unsettled() {
  IFS='
'
  set -f
  # shellcheck disable=SC2086
  set -- $unsettled
  set +f; unset IFS
  durable "$@"
}

begin() { # release folders...: in it, each behind the one that it is in
  staging=$home/releases/$1.tmp; shift
  [ ! -e "$home/current" ] || [ -L "$home/current" ] || die "$home/current is no link of ours"
  for one; do shift; set -- "$@" "$staging/$one"; done
  set -- "$staging" "$@"
  [ -d "$home/releases" ] || set -- "$home/releases" "$@"
  try "make $staging" new_folders "$@"
}

# Called by `try`, as `write` is.
new_folders() {
  [ "$launch" != systemd ] || umask 022
  exec mkdir "$@"
}

below() { # folder in a release: under the system's manager the job's user has to get through
  [ "$launch" != systemd ] || umask 022
  mkdir -p "$1"
}

list_released() { # paths...: what lies in a release besides is the job's
  printf '%s\n' "$@" >"$staging/.released" || die "write $staging/.released:$(room)"
}

lay() { # mode owner paths...: new and empty, so that owner and mode stand before there is a content
  as=$1 whose=$2; shift 2
  for one; do
    shift
    case $one in /*) ;; *) one=$staging/$one ;; esac
    set -- "$@" "$one"
    [ ! -e "$one" ] && [ ! -L "$one" ] || try "write ${one%.rlx-new}" rm -f "$one"
    set -C
    { true >"$one"; } 2>/dev/null || try "write ${one%.rlx-new}" new_file "$one"
    set +C
    laid="$laid$one
"
  done
  case $launch:$whose in
  *: | systemd:root) ;;
  *) try "write ${1%.rlx-new}" chown "$whose" "$@" ;;
  esac
  try "write ${1%.rlx-new}" chmod "$as" "$@"
}

# What fails in our own shell, whose complaints nobody catches, is tried once more for its reason.
new_file() { set -C; exec 4>"$1"; }

spill() { printf %s "$2" >"$1"; }

fill() { # every text into what was laid for it
  set -f
  IFS=$separator
  # shellcheck disable=SC2086
  set -- $texts
  IFS='
'
  for one in $laid; do
    spill "$one" "$1" 2>/dev/null || try "write ${one%.rlx-new}" spill "$one" "$1"
    shift
  done
  set +f; unset IFS
  unsettled=$unsettled$laid; laid=; texts=
}

put() { # path mode owner offset bytes: one that is no text, or lies where others may write
  one=$1; shift
  case $one in /*) ;; *) one=$staging/$one ;; esac
  unsettled="$unsettled$one
"
  try "write ${one%.rlx-new}" write "$one" "$@"
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

can_label() { command -v restorecon >/dev/null 2>&1; }

relabel() { # path: under SELinux a renamed file keeps the label of its first name
  ! can_label || restorecon -RF "$1"
}

finish() { # release: in place, unless one with the same name is: that may be running
  staged=$home/releases/$1
  settle
  if [ ! -e "$staged" ]; then
    try "put $staged in place" mv "$staged.tmp" "$staged"
    fresh=$staged
    ! can_label || try "label $staged" relabel "$staged"
    unsettled="$unsettled$home/releases
"
  elif alike "$staged" "$staged.tmp"; then
    rm -rf "$staged.tmp"
  fi
}

store() { # digest offset bytes
  # A release that names the file is in place.  So whoever sweeps from now on leaves the file alone,
  # and where nobody is just sweeping it need not be held.
  [ -e "$data/store/.lock" ] || ! is_stored "$@" || return 0
  need_folder "$data/store"
  hold_store || die "lock $data/store: held by $(value by "$data/store/.lock")$(room)"
  if ! is_stored "$@"; then
    try "write $data/store/$1" write "$data/store/$1.$$" 644 "" "$2" "$3"
    try "write $data/store/$1" durable "$data/store/$1.$$"
    try "write $data/store/$1" mv -f "$data/store/$1.$$" "$data/store/$1"
  fi
  release_store
}

in_store() { # digest: it was there when the host was asked, and has not been sent
  [ -f "$data/store/$1" ] || die "$data/store/$1 has gone since the plan was made; plan again"
}

is_stored() { # digest offset bytes
  [ -f "$data/store/$1" ] && pour "$2" "$3" 4>&1 | cmp -s - "$data/store/$1"
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

prepare() { # paths...: what is put beside its place, so that after GO a rename is enough
  for one; do
    [ ! -L "$one" ] || die "$one is a symbolic link; remove it or name its target"
    [ ! -d "$one" ] || die "$one is a folder"
    need_folder "${one%/*}"
    prepared="$prepared$one.rlx-new
"
  done
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
  [ ! -e "$home/payload.tmp" ] || rm -f "$home/payload.tmp"
  say staged
  IFS= read -r word || { word=; true; }
  [ "$word" = GO ] || { say undone "no GO"; leave 1; }
  quiet_guard
  trap '' HUP INT TERM PIPE
}
