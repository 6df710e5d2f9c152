"""The transport that makes the started ranks one group; needs numpy alone.

    with Node.from_env().connect() as group:
        group.all_reduce(gradients, ReduceKind.MEAN)

Names are loaded when they are first used: the supervisor runs where there is no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, List

if TYPE_CHECKING:
    from rlxdeploy.runtime.algorithm.fold import ReduceKind
    from rlxdeploy.runtime.errors import (
        CollectiveMismatch,
        CollectiveTimeout,
        GroupClosed,
        GroupError,
        JoinTimeout,
        LengthMismatch,
        NoLink,
        NotSupported,
        PeerLost,
        PlanMismatch,
        PortInUse,
        RefusedError,
        SelfCheckFailed,
        SettingsError,
        WireError,
    )
    from rlxdeploy.runtime.group import ProcessGroup
    from rlxdeploy.runtime.limits import Limits
    from rlxdeploy.runtime.link.collectives import Turnout
    from rlxdeploy.runtime.node import Node
    from rlxdeploy.runtime.settings import Settings
    from rlxdeploy.runtime.wire.identity import HandshakeRefused, IdentityMismatch, WrongKey

__all__ = (
    "CollectiveMismatch",
    "CollectiveTimeout",
    "GroupClosed",
    "GroupError",
    "HandshakeRefused",
    "IdentityMismatch",
    "JoinTimeout",
    "LengthMismatch",
    "Limits",
    "NoLink",
    "Node",
    "NotSupported",
    "PeerLost",
    "PlanMismatch",
    "PortInUse",
    "ProcessGroup",
    "ReduceKind",
    "RefusedError",
    "SelfCheckFailed",
    "Settings",
    "SettingsError",
    "Turnout",
    "WireError",
    "WrongKey",
)
_HOMES = {
    "HandshakeRefused": "wire.identity",
    "IdentityMismatch": "wire.identity",
    "Limits": "limits",
    "Node": "node",
    "ProcessGroup": "group",
    "ReduceKind": "algorithm.fold",
    "Settings": "settings",
    "Turnout": "link.collectives",
    "WrongKey": "wire.identity",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
