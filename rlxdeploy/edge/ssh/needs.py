"""Which client a route needs: fabric, or the OpenSSH client for what paramiko lacks."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from paramiko import Transport

from rlxdeploy.edge.ssh.identities import Agent, identities, offers
from rlxdeploy.edge.ssh.known_hosts import KnownHosts
from rlxdeploy.edge.ssh.route import Hop, Route
from rlxdeploy.model.vocabulary import SshClient

# Keys of `ssh -G` that paramiko has no counterpart for, where they are set or on.
_SET = ("pkcs11provider", "knownhostscommand", "revokedhostkeys", "bindinterface")
_ON = ("hostbasedauthentication", "proxyusefdpass", "verifyhostkeydns")
_ALGORITHMS = {
    "kexalgorithms": "kex",
    "ciphers": "ciphers",
    "macs": "digests",
    "hostkeyalgorithms": "key_types",
}
# paramiko takes an RSA key of any size, OpenSSH none below this unless told otherwise.
_RSA_BITS = 1024
# An agent that hangs must not hold up the choice of a client.
_AGENT_S = 2.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The client for a route, and why it is not fabric."""

    client: SshClient
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.client}" + (f" ({', '.join(self.reasons)})" if self.reasons else "")


def choose(wanted: SshClient, route: Route, known: KnownHosts) -> Choice:
    """Return the client for *route*: as wanted, and for auto the first that can do it."""
    if wanted is not SshClient.AUTO:
        return Choice(wanted)
    found = tuple(f"{hop.alias}: {reason}" for hop in route for reason in reasons(hop, known))
    return Choice(SshClient.OPENSSH if found else SshClient.FABRIC, found)


def reasons(hop: Hop, known: KnownHosts) -> Iterator[str]:
    """Yield what *hop* asks for that paramiko cannot do."""
    resolved = hop.resolved
    yield from (key for key in _SET if resolved.one(key))
    yield from (key for key in _ON if resolved.says(key))
    if int(resolved.one("requiredrsasize") or 0) > _RSA_BITS:
        yield "requiredrsasize"
    if resolved.says("gssapiauthentication") and _has_ticket():
        yield "gssapiauthentication, and there is a Kerberos ticket"
    if known.has_authority(hop):
        yield "a host certificate"
    if any("%C" in path for path in (*resolved.identity_files, *resolved.known_hosts_files)):
        yield "the token %C"
    yield from _algorithms(hop)
    yield from _keys(hop)


def _keys(hop: Hop) -> Iterator[str]:
    files = identities(hop)
    if hop.resolved.certificate_files or any(key.has_certificate for key in files):
        yield "a user certificate"
    agent = Agent(hop, _AGENT_S)
    try:
        keys = [offer.public for offer in offers(hop, agent, files) if offer.public]
    finally:
        agent.close()
    if any(key.is_security_key for key in keys):
        yield "a security key"
    if any(key.is_certificate for key in keys):
        yield "a certificate in the agent"


def _algorithms(hop: Hop) -> Iterator[str]:
    for key, ours in _our_algorithms().items():
        allowed = hop.resolved.listed(key)
        if allowed and ours.isdisjoint(allowed):
            yield f"{key} {','.join(allowed)}"


@cache
def _our_algorithms() -> Mapping[str, frozenset[str]]:
    options = Transport(_Unconnected()).get_security_options()
    return {key: frozenset(getattr(options, name)) for key, name in _ALGORITHMS.items()}


class _Unconnected:
    """Stands in for the socket of a transport that is only asked what it knows."""

    def settimeout(self, seconds: float) -> None:
        del seconds

    def close(self) -> None:
        pass


def _has_ticket() -> bool:
    cache = os.environ.get("KRB5CCNAME", f"/tmp/krb5cc_{os.getuid()}")  # noqa: S108  # Kerberos' own default
    kind, has_kind, rest = cache.partition(":")
    if has_kind and kind not in ("FILE", "DIR"):
        return True  # in a keyring or a daemon: only Kerberos could tell
    return os.access(rest if has_kind else cache, os.R_OK)
