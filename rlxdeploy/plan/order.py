"""What planning needs besides the machines: who asks, since when, and what is remembered."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlxdeploy.model.plan import Site


@dataclass(frozen=True, slots=True)
class Order:
    """The circumstances of one plan.

    *deployment* is the id of this inventory's job; *owner*, *controller* and *inventory* are what
    others read on the hosts, *now* is the wall clock in seconds.  *ready* is notify or exec, *boot*
    tells whether units start at boot.  *revert_after* is in how many seconds a host goes back by
    itself.  *adopt* takes over what another deployment id has put there.  *ends* tells that the
    ranks' program may end well by itself, which the built-in node's never does.

    *left* are the hosts that have the job, as recorded or as they say, by name; those that the
    resolution has no more are cleared.
    *generation* is the highest that the record knows of.
    *known* maps digests to contents that the controller still has, for the diff of a changed file.
    *secret* keys the digests that stand for secrets; *keep* is how many releases stay on a host.
    """

    deployment: str
    owner: str
    controller: str
    inventory: str
    now: float
    ready: str
    join_timeout: float
    boot: bool
    revert_after: float = 180.0
    adopt: bool = False
    ends: bool = False
    left: Mapping[str, Site] = field(default_factory=dict)
    known: Mapping[str, bytes] = field(default_factory=dict)
    secret: bytes = b""
    generation: int = 0
    keep: int = 3
