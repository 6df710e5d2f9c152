# The way back: what stood before GO is kept until the controller confirms, or the host goes back.
#
# $back holds: `state` (release, boot, ranks), `list` and `files` (all of ours that lies outside of
# releases), `fresh` (releases made since), `coming` (what was to be installed), `armer` (who went),
# `progress` (what became of its steps), `timer`, and `back.sh`, this script with data of its own.
# An apply that finds it there goes back as far as the one before it would.

back=$home/.revert

standing() {
  [ -L "$home/current" ] && release=$(readlink "$home/current") && printf '%s\n' "${release##*/}"
}

as_seen() { # release: the plan is made from that, and somebody may have been faster
  now=$(standing)
  [ "$now" = "$1" ] && return
  say moved "${now:+release }${now:-no release} stands there now and not ${1:-none}, as when it was asked"
  leave 1
}

keep_file() { # folder path: once; what is not there has no line
  [ -f "$2" ] || return 0
  ! sed 's/^[0-9]* //' "$1/list" 2>/dev/null | grep -qxF -- "$2" || return 0
  kept=$(($(wc -l 2>/dev/null <"$1/list" || echo 0) + 1))
  cp -p "$2" "$1/files/$kept" && printf '%s %s\n' "$kept" "$2" >>"$1/list"
}

ours_outside() { cat "$home/.installed" 2>/dev/null; printf '%s\n' "$home/key" "$home/deployment.json"; }

keep_state() { # boot, ranks to start again... -- files that may be somebody else's...
  mkdir "$back.tmp" "$back.tmp/files" || return
  boot=$1; shift; ranks=
  while [ "$1" != -- ]; do ranks="$ranks $1"; shift; done; shift
  [ ! -f "$home/.installed" ] || while IFS= read -r file; do
    keep_file "$back.tmp" "$file" || return
  done <"$home/.installed"
  for file in "$home/key" "$home/deployment.json" "$@"; do
    keep_file "$back.tmp" "$file" || return
  done
  same_list "$home/.installed" "$back.tmp/installed" || return
  printf 'release=%s\nboot=%s\nranks=%s\n' "$(standing)" "$boot" "${ranks# }" >"$back.tmp/state"
}

way_back() { # boot ranks... -- files...
  if [ -f "$back/state" ]; then
    try "make $back.tmp" mkdir "$back.tmp"
    while [ "$1" != -- ]; do shift; done; shift
    # What the apply before has put there is not to come back.
    for file; do
      ours_outside | grep -qxF -- "$file" || try "keep $file" keep_file "$back" "$file"
    done
    coming=$back/coming
  else
    try "keep what stands in $home" keep_state "$@"
    while [ "$1" != -- ]; do shift; done; shift
    coming=$back.tmp/coming
  fi
  printf '%s\n' "$home/deployment.json" "$@" >>"$coming" || die "write $coming:$(room)"
  for file in "$back.tmp" "$coming" "$back.tmp"/* "$back.tmp"/files/*; do
    [ ! -e "$file" ] || unsettled="$unsettled$file
"
  done
}

put_back() { # copy path
  cmp -s "$1" "$2" && [ "$(mode "$1")" = "$(mode "$2")" ] && return
  [ -d "$(dirname "$2")" ] || folder "$(dirname "$2")" || return
  cp -p "$1" "$2.rlx-new" && mv -f "$2.rlx-new" "$2" && durable "$(dirname "$2")"
}

put_all_back() { # folder: the files outside are as they were when it was made
  ours_outside | while IFS= read -r file; do
    sed 's/^[0-9]* //' "$1/list" 2>/dev/null | grep -qxF -- "$file" || remove "$file" || exit
  done || return
  same_list "$1/installed" "$home/.installed" || return
  [ -f "$1/list" ] || return 0
  while read -r number file; do
    put_back "$1/files/$number" "$file" || return
  done <"$1/list"
}

same_list() { # from to: which files are ours, for some that were kept are somebody else's
  if [ -f "$1" ]; then cp -p "$1" "$2.tmp" && mv -f "$2.tmp" "$2"
  elif [ -e "$2" ]; then rm -f "$2"; fi
}

every_rank() { # whatever instance of the job there is
  for file in "$run_home"/*.supervisor "$units"/*.wants/"rlx-$job@"*.service; do
    file=${file##*[/@]}; file=${file%.*}
    case $file in *[!0-9]* | '') ;; *) echo "$file" ;; esac
  done
  [ "$launch" = process ] || manager list-units --all --plain --no-legend "rlx-$job@*.service" |
    sed -n 's/.*rlx-'"$job"'@\([0-9]*\)\.service.*/\1/p'
}

stop_every_rank() {
  ranks=$(every_rank | sort -nu)
  [ -n "$ranks" ] || return 0
  # shellcheck disable=SC2086
  if [ "$launch" = process ]; then stop_supervisors $ranks; else stop_units disable $ranks; fi
}

start_kept() { # state, release: the ranks that ran, as they did
  ranks=$(value ranks "$1")
  # shellcheck disable=SC2086
  if [ -z "$ranks" ]; then return 0
  elif [ "$launch" = process ]; then start_supervisors "$2" $ranks --
  else start_units "$(value boot "$1")" $ranks; fi
}

go_back() { # a second call, after a power cut say, ends where the first would have
  unheld=
  stop_every_rank || return
  release=$(value release "$back/state")
  # After a power cut some may still lie beside the place they were for.
  [ ! -f "$back/coming" ] || while IFS= read -r file; do rm -f "$file.rlx-new"; done <"$back/coming"
  put_all_back "$back" || return
  if [ -n "$release" ]; then durably "$home" -- point_current "$release" || return; fi
  [ "$launch" = process ] || reload || return
  if [ -n "$release" ]; then
    start_kept "$back/state" "$release" || return
    [ ! -f "$back/fresh" ] || while IFS= read -r one; do
      [ "$one" = "$release" ] || rm -rf "$home/releases/$one"
    done <"$back/fresh"
    sweep
  else
    remove_job
  fi
  forget_way_back
}

confirm() { # what stands now is to stay; of the release before, all is kept that it had outside
  release=$(value release "$back/state" 2>/dev/null)
  if [ -n "$release" ] && [ "$release" != "$(standing)" ] && [ -d "$home/releases/$release" ]; then
    rm -rf "$home/releases/$release/.outside"
    disarm
    mv "$back" "$home/releases/$release/.outside" || return
  else
    forget_way_back
  fi
}

forget_way_back() { disarm; rm -rf "$back"; }
