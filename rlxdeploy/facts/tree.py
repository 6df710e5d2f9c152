"""How a shell looks at what of a job lies in one tree; `facts.digests` reads what it tells."""

# The words are the data folder, the job, the unit folder, and the others in which its manager finds
# drop-ins.  A job may write into its release, and as much as it likes: besides our two folders only
# what the release came with is read.  A host without the job may have in its store what it needs.
# GNU's find tells all but the digests by itself; others say nothing when asked so.  Its patterns
# mean a path as it is written if that has none of *?[.
LOOK = """\
home=$1/$2; glob=$3/rlx-$2@
for f in "$glob"*; do break; done
[ -d "$home" ] || [ -e "$f" ] || [ -L "$f" ] || [ -d "$1/store" ] || exit 0
tag() { while IFS= read -r line || [ -n "$line" ]; do printf '%s|%s\\n' "$1" "$line"; done; }
[ ! -f "$home/.revert/state" ] || sed -n 's/^release=/unconfirmed|/p' "$home/.revert/state"
for kept in "$home/releases"/*/.outside; do
  release=${kept%/.outside}
  while read -r number f; do
    [ "$f" != "$home/deployment.json" ] || {
      printf 'kept|%s|' "${release##*/}"; cat "$kept/files/$number"; echo
    }
  done <"$kept/list"
done
if [ -f "$home/lock" ]; then
  sed 's/^/lock|/' "$home/lock"; echo; pid=$(sed -n 's/^pid=//p' "$home/lock")
  sed 's/^/boot|/' /proc/sys/kernel/random/boot_id
  if [ -d /proc/self ]; then sed 's/^/process|/' "/proc/$pid/stat"
  elif kill -0 "$pid"; then echo "process|"; fi
fi
# What another job's release names stays when this one goes.
for f in "$1"/store/*; do
  for other in "$1"/*/releases; do
    [ "$other" != "$home/releases" ] && [ -d "$other" ] && grep -qF "${f##*/}" "$other"/*/env/* &&
      echo "shared|${f##*/}" && break
  done
done
echo "mark|$home/deployment.json"
[ ! -f "$home/deployment.json" ] || tag deployment <"$home/deployment.json"; echo
by_find() {
  case $home in *[][*?\\\\]*) return ;; esac
  find "$home/current" "$home/releases"/* "$@" \\
    -path "$home/current" -printf 'current|%l\\n' \\
    -o -path "$home/releases/*" -prune -printf 'made|%T@ %f\\n' \\
    -o -type l -printf 'stat|012%04m %u %s %p\\nlink|%p\\ntarget|%l\\n' \\
    -o -type f -printf 'stat|010%04m %u %s %p\\n' -exec sha256sum {} +
}
by_several() {
  to=$(readlink "$home/current") && echo "current|$to"
  ls -1trd "$home/releases"/*
  if [ -r /proc/version ]; then flag=-c form='stat|%f %U %s %n'
  else flag=-f form='stat|0%p %Su %z %N'; fi
  sum=sha256sum; command -v sha256sum >/dev/null || sum='shasum -a 256'
  aim='for l; do echo "link|$l"; readlink "$l" | sed "s/^/target|/"; done'
  find "$@" \\( -type f -o -type l \\) -exec stat $flag "$form" {} + -type f -exec $sum {} + \\
    -o -type l -exec sh -c "$aim" sh {} +
}
store=$1/store; shift 3; left=$#
while [ "$left" -gt 0 ]; do
  for f in "$1/${glob##*/}"*.service.d/*.conf; do [ ! -f "$f" ] || set -- "$@" "$f"; done
  shift; left=$((left - 1))
done
set -- "$home/key" "$home/deployment.json" "$store" "$glob"* \\
  "$home/current/env/" "$home/current/process/" "$@"
[ ! -f "$home/current/.released" ] ||
  while IFS= read -r f; do set -- "$@" "$home/current/$f"; done <"$home/current/.released"
# Files of the job that lie elsewhere, one path a line.
[ ! -f "$home/.installed" ] ||
  while IFS= read -r f; do set -- "$@" "$f"; done <"$home/.installed"
seen=$(by_find "$@")
if [ -n "$seen" ]; then printf '%s\\n' "$seen"; else by_several "$@"; fi
"""
