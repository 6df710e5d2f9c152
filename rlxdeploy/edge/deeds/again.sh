# A session that was lost after GO, taken up by another one: what the steps came to, and we hold.

take_up() { # marker of the session that was lost, what the revert timer is called
  at=again mark=$1
  [ -d "$home" ] || say_settled
  until lock_file "$home/lock" 2>/dev/null; do
    [ "$taken" = 1 ] || die "lock $home: it cannot be written$(room)"
    await_holder "$2"
    nap
  done
  locked=1
  [ -f "$back/state" ] && [ "$(value mark "$back/armer")" = "$mark" ] || say_settled
  name_armer
  say taken
  tell_progress
}

await_holder() { # what the revert timer is called
  # It may let go at any moment: what it says is read once.
  holder=$(cat "$home/lock" 2>/dev/null)
  # While it does its steps it does not hear us; then it waits for a word that will not come.
  if [ "$(held mark)" = "$mark" ]; then kill -TERM "$(held pid)" 2>/dev/null; return; fi
  case $(held by) in "$1" | '') return ;; esac
  say locked "$(held by), pid $(held pid)"
  at=locked; leave 1
}

held() { printf '%s\n' "$holder" | sed -n "s/^$1=//p"; }

say_settled() { say settled "$(standing)"; leave 0; }

tell_progress() {
  end=
  while read -r word rest; do say "$word" "$rest"; end=$word; done <"$back/progress"
  case $end in over | failed) ;; *) say failed again "its steps were cut off" ;; esac
}
