"""The mark of an apply on a host: `deployment.json`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.model.survey import Deployed, JobSeen
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
        "ready": order.ready,
        "secrets": any(file.secret for file in files.hosts[placed.host.name].released),
    }


def readiness(marks: Iterable[Deployed | None], otherwise: str) -> str:
    """Return how ranks of what is deployed say that they are up, *otherwise* if no mark tells."""
    return next((one.ready for one in marks if one is not None and one.ready), otherwise)


def as_deployed(order: Order, marks: Iterable[Deployed | None]) -> Order:
    """Return *order* for the release of *marks*: the inventory may say other things by now."""
    told = [one for one in marks if one is not None]
    boot = next((one.boot for one in told if one.boot is not None), order.boot)
    return replace(order, ready=readiness(told, order.ready), boot=boot)


def mark_before(job: JobSeen) -> Deployed | None:
    """Return the mark of what a host goes back to if its ranks do not join, None for nothing."""
    return job.deployed if job.unconfirmed is None else job.kept.get(job.unconfirmed)


def same_mark(deployed: Deployed | None, mark: Mapping[str, object]) -> bool:
    """Tell whether a host already says what *mark* says."""
    if deployed is None:
        return False
    said = {name: getattr(deployed, name) for name in mark} | {"ranks": list(deployed.ranks)}
    return all(said[name] == value for name, value in mark.items() if name not in _TOLD)
