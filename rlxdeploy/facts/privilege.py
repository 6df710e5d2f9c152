"""Root on a host: the one shell function through which everything privileged goes.

No prompt is ever matched.  sudo is first asked whether it would do anything without a password; a
wrong guess costs no attempt and locks no account.
"""

from rlxdeploy.facts.question import quoted

# `as_root` takes the shell's place: what shall go on afterwards stands outside its subshell.
_AS_ROOT = """\
can_be_root() { [ "$(id -u)" = 0 ] || sudo -n true </dev/null >/dev/null 2>&1; }
as_root() {
  if [ "$(id -u)" = 0 ]; then exec /bin/sh -c "$@"; else exec sudo -n /bin/sh -c "$@"; fi
}
"""


def as_root_or(otherwise: str, script: str, *words: str) -> str:
    """Return a shell command that runs *script* with *words* as root, or else *otherwise*.

    The command takes the place of the shell that runs it.
    """
    asked = quoted([script, "sh", *words])
    return f"{_AS_ROOT}if can_be_root; then as_root {asked}; else {otherwise}; fi\n"


def as_root_if_it_can(script: str, *words: str) -> str:
    """Return a shell command that runs *script* as root where that needs no password.

    Elsewhere it runs as the login user, and sees or does what that one may.
    """
    return as_root_or(f"exec /bin/sh -c {quoted([script, 'sh', *words])}", script, *words)
