"""Public-key authentication as ssh does it in batch mode: no question is ever asked."""

import time
from collections.abc import Iterable, Sequence

from paramiko import AuthenticationException, BadAuthenticationType, SSHException, Transport

from rlxdeploy.edge.ssh.failure import AuthenticationFailed, Broken
from rlxdeploy.edge.ssh.identities import Offer, Unusable

_PUBLIC_KEY = "publickey"
_DOING = "log in"


class KeyAuthentication:
    """paramiko's auth strategy: `none` first, as ssh does, then each of *offers* in order."""

    def __init__(self, user: str, offers: Iterable[Offer], deadline: float) -> None:
        self._user = user
        self._offers = offers
        self._deadline = deadline
        self._offered: list[str] = []
        self._passed_over: list[str] = []

    def authenticate(self, transport: Transport) -> None:
        """Log in, or raise AuthenticationFailed with all that was tried, or Broken."""
        methods = self._methods(transport)
        for offer in self._offers if _PUBLIC_KEY in methods else ():
            methods = self._try(transport, offer, methods)
            if not methods:
                return
            if _PUBLIC_KEY not in methods:
                break
        if methods:
            raise self._failed(methods)

    def _methods(self, transport: Transport) -> Sequence[str]:
        """Ask what the server takes; nothing where `none` was enough."""
        try:
            transport.auth_none(self._user)
        except BadAuthenticationType as error:
            return tuple(error.allowed_types)
        except (SSHException, EOFError, OSError) as error:
            raise Broken(_DOING, str(error)) from error
        return ()

    def _try(self, transport: Transport, offer: Offer, methods: Sequence[str]) -> Sequence[str]:
        """Offer one key; return what the server takes next, nothing once we are in."""
        try:
            key = offer.load()
        except Unusable as reason:
            self._passed_over.append(str(reason))
            return methods
        if time.monotonic() > self._deadline:
            raise Broken(_DOING, "no answer in time")
        self._offered.append(offer.described)
        try:
            return tuple(transport.auth_publickey(self._user, key))
        except BadAuthenticationType as error:
            return tuple(error.allowed_types)
        except (AuthenticationException, SSHException, EOFError, OSError) as error:
            if transport.is_active():
                return methods
            if len(self._offered) == 1:
                raise Broken(_DOING, str(error)) from error
            raise self._failed(methods, too_many=True) from error

    def _failed(self, methods: Sequence[str], *, too_many: bool = False) -> AuthenticationFailed:
        return AuthenticationFailed(
            self._user, tuple(self._offered), tuple(self._passed_over), tuple(methods), too_many
        )
