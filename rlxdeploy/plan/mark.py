"""The mark of an apply on a host: `deployment.json`."""

from collections.abc import Mapping

from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.model.survey import Deployed
from rlxdeploy.plan.order import Order

# Who applied from where, and when, is told; it is no reason to touch a host.
_TOLD = frozenset({"controller", "owner", "inventory", "applied_at"})


def deployment_mark(
    resolution: Resolution, placed: Placed, files: RemoteFiles, order: Order
) -> Mapping[str, object]:
    """Return what `deployment.json` on a host says: the fields of `Deployed`."""
    return {
        "deployment": order.deployment,
        "job": resolution.job,
        "release": files.release,
        "generation": files.generation,
        "plan": files.plan,
        "launch": str(placed.launch),
        "world": resolution.world,
        "ranks": [seat.rank for seat in resolution.on(placed.host.name)],
        "controller": order.controller,
        "owner": order.owner,
        "inventory": order.inventory,
        "applied_at": order.now,
        "placement": resolution.placement,
        "boot": order.boot,
        "secrets": any(file.secret for file in files.hosts[placed.host.name].released),
    }


def same_mark(deployed: Deployed | None, mark: Mapping[str, object]) -> bool:
    """Tell whether a host already says what *mark* says."""
    if deployed is None:
        return False
    said = {name: getattr(deployed, name) for name in mark} | {"ranks": list(deployed.ranks)}
    return all(said[name] == value for name, value in mark.items() if name not in _TOLD)
