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
_ESTABLISHED = "debug1: Connection established."
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
        lambda: _rejected(log, known),
        lambda: _not_let_in(log, hop),
        lambda: _negotiated(log),
        lambda: _forwarded(log, before),
        lambda: _connected(log),
        lambda: _lost(log, hop, before),
    )
    for tell in tellers:
        if failure := tell():
            return failure
    return Broken("connect", _last_words(log) or "the OpenSSH client ended without a word")


def why_it_ended(log: str, keepalive: Keepalive) -> str:
    """Return why a connection that was open has ended, from its master's *log*."""
    if _SILENT.search(log):
        return str(keepalive)
    return _last_words(log) or "the OpenSSH client ended without a word"


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


def _lost(log: str, hop: Hop, before: Hop | None) -> ConnectFailure | None:
    """Tell what ended before the server said who it is; a timeout is none of that."""
    if _BANNER in log or _LATE in log:
        return None
    if hop.resolved.proxy_command and before is None:
        return ProxyFailed(hop.resolved.proxy_command, _last_words(log))
    return LostBeforeBanner(_last_words(log)) if before or _ESTABLISHED in log else None


def _connected(log: str) -> Broken | None:
    found = _PLAIN.search(log)
    return Broken("connect", found["why"]) if found else None


def _last_words(log: str) -> str:
    lines = [
        line for line in log.splitlines() if line and not line.startswith(("debug", "OpenSSH"))
    ]
    return "; ".join(lines[-_LAST_LINES:])
