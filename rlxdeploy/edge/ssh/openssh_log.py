"""What a failed OpenSSH client says of itself, read from its log at debug1.

The client has no other channel: it exits 255 whatever happened.  It is not translated.
"""

import re
from collections.abc import Callable, Sequence

from rlxdeploy.edge.ssh.failure import (
    AuthenticationFailed,
    Broken,
    ConnectFailure,
    ForwardingRefused,
    KeyRejected,
    LostBeforeBanner,
    NoAgreement,
    ProxyFailed,
)
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Keepalive
from rlxdeploy.facts.known_hosts import KnownKey, Standing

_KEY = re.compile(r"^debug1: Server host key: (.+)$", re.MULTILINE)
_ADDED = re.compile(r"^Warning: Permanently added ", re.MULTILINE)
_NOT_ADDED = re.compile(r"^(Failed to add the host to the list of known hosts .*)$", re.MULTILINE)
_OFFERED = re.compile(r"^debug1: Offering public key: (.+)$", re.MULTILINE)
_LAST_LINES = 3

# In this order: what is more particular stands first.
_REJECTED = re.compile(
    r"(?P<changed>REMOTE HOST IDENTIFICATION HAS CHANGED)"
    r"|(?P<revoked>REVOKED HOST KEY)"
    r"|Host key verification failed|No .* host key is known for"
)
_NOT_LET_IN = re.compile(
    r"^(?:Received disconnect .*|Disconnected from .*)?(?P<many>Too many authentication failures)"
    r"|^.*Permission denied \((?P<methods>[^)]*)\)",
    re.MULTILINE,
)
_NO_MATCH = re.compile(r"^Unable to negotiate .*?: (?P<why>no matching .*)$", re.MULTILINE)
_FORWARDING = re.compile(r"(?:stdio forwarding failed|open failed: (?P<why>.*))")
# What ssh says of a server that hangs up before its banner, and of nothing else.
_HANGUP = re.compile(
    r"(?:kex|ssh)_exchange_identification: (?:read: |write: )?"
    r"(?:Connection (?:closed|reset) by|Broken pipe).*"
    r"|(?:banner exchange: )?Connection (?:closed|reset|to)(?: by)? .* port \d+.*"
)
_ESTABLISHED = "debug1: Connection established."
_AUTHENTICATED = "Authenticated to "
_BANNER = "debug1: Remote protocol version"
_LATE = "timed out"
_SILENT = re.compile(r"^Timeout, server .* not responding", re.MULTILINE)
_PLAIN = re.compile(
    r"^ssh: (?:connect to host \S+ port \d+|Could not resolve hostname \S+): (?P<why>.*)$",
    re.MULTILINE,
)


def why_it_failed(
    log: str, hop: Hop, before: Hop | None, known: Sequence[KnownKey]
) -> ConnectFailure:
    """Return what *log* says about *hop*, reached through *before*; *known* are its known keys."""
    log = log.replace("\r", "")
    tellers: tuple[Callable[[], ConnectFailure | None], ...] = (
        lambda: None if before else _behind_command(log, hop.resolved.proxy_command),
        lambda: _rejected(log, known),
        lambda: _not_let_in(log, hop),
        lambda: _negotiated(log),
        lambda: _forwarded(log, before),
        lambda: _connected(log),
        lambda: _lost(log, before),
    )
    for tell in tellers:
        if failure := tell():
            return failure
    return Broken("connect", _last_words(log) or "the OpenSSH client ended without a word")


def accepted_key(log: str) -> str:
    """Return the key, as type and fingerprint, that ssh has made known, "" if it was known.

    Raises Broken where ssh took a key in and could not remember it.
    """
    log = log.replace("\r", "")
    if failed := _NOT_ADDED.search(log):
        raise Broken("remember the host key", failed[1])
    key = _KEY.search(log) if _ADDED.search(log) else None
    return key[1] if key else ""


def why_it_ended(log: str, keepalive: Keepalive) -> str:
    """Return why a connection that was open has ended, from its master's *log*."""
    _, _, since = log.replace("\r", "").rpartition(_AUTHENTICATED)
    if _SILENT.search(since):
        return str(keepalive)
    _, _, later = since.partition("\n")
    return _last_words(later) or "the OpenSSH client ended without a word"


def is_hangup(said: str) -> bool:
    """Tell whether an ssh that is a ProxyCommand says only that a server hung up on it so early."""
    lines = said.replace("\r", "").splitlines()
    return bool(lines) and all(map(_HANGUP.fullmatch, lines))


def _rejected(log: str, known: Sequence[KnownKey]) -> KeyRejected | None:
    found = _REJECTED.search(log)
    if found is None:
        return None
    key = _KEY.search(log)
    shown = key[1] if key else "a key that ssh does not show"
    if found["revoked"]:
        return KeyRejected(shown, Standing.REVOKED, tuple(known))
    if found["changed"]:
        return KeyRejected(shown, Standing.CHANGED, tuple(known))
    return KeyRejected(shown, Standing.UNKNOWN)


def _not_let_in(log: str, hop: Hop) -> AuthenticationFailed | None:
    found = _NOT_LET_IN.search(log)
    if found is None:
        return None
    methods = tuple((found["methods"] or "publickey").split(","))
    offered = tuple(_OFFERED.findall(log))
    return AuthenticationFailed(
        hop.resolved.user, offered, methods=methods, too_many=bool(found["many"])
    )


def _negotiated(log: str) -> NoAgreement | None:
    found = _NO_MATCH.search(log)
    return NoAgreement(found["why"]) if found else None


def _forwarded(log: str, before: Hop | None) -> ForwardingRefused | None:
    found = _FORWARDING.search(log)
    return ForwardingRefused(before.alias, found["why"] or "refused") if found and before else None


def _behind_command(log: str, command: str) -> ConnectFailure | None:
    """Tell what ended before the banner behind a ProxyCommand, whose words are in *log* too.

    Should the command be an ssh itself, its words are of another host than ours.
    """
    if not command or _BANNER in log or _LATE in log:
        return None
    words = [line for line in _words(log) if not _HANGUP.fullmatch(line)]
    if words:
        return ProxyFailed(command, "; ".join(words[-_LAST_LINES:]))
    return LostBeforeBanner(_last_words(log), command)


def _lost(log: str, before: Hop | None) -> LostBeforeBanner | None:
    """Tell what ended before the server said who it is; a timeout is none of that."""
    if _BANNER in log or _LATE in log or not (before or _ESTABLISHED in log):
        return None
    return LostBeforeBanner(_last_words(log))


def _connected(log: str) -> Broken | None:
    found = _PLAIN.search(log)
    return Broken("connect", found["why"]) if found else None


def _last_words(log: str) -> str:
    return "; ".join(_words(log)[-_LAST_LINES:])


def _words(log: str) -> list[str]:
    lines = log.splitlines()
    return [line for line in lines if line and not line.startswith(("debug", "OpenSSH"))]
