"""The way back of one host: what it returns to by itself unless it is told to stay."""

import math

from rlxdeploy.facts.ranks import has_finished
from rlxdeploy.model.plan import WayBack
from rlxdeploy.model.survey import JobSeen
from rlxdeploy.plan.mark import mark_before, readiness
from rlxdeploy.plan.order import Order


def way_back(job: JobSeen, ranks: tuple[int, ...], plan: str, order: Order) -> WayBack:
    """Return the way back of a host from *ranks* under the RLX_PLAN *plan* to *job*, as seen.

    What ran is to run again, what had failed too; what was stopped stays so, and a host where every
    rank has finished does not begin anew.  A host that is to have no ranks goes by what it ran.
    """
    release = job.current if job.deployed else ""
    release = release if job.unconfirmed is None else job.unconfirmed
    ran = [seen for seen in job.ranks if seen.active != "inactive"]
    ran = [] if all(map(has_finished, ran)) else ran
    ready = order.ready if ranks else readiness([mark_before(job)], order.ready)
    return WayBack(
        after_s=math.ceil(order.revert_after),
        ranks=ranks,
        plan=plan,
        notify=ready == "notify",
        release=release,
        again=tuple(seen.rank for seen in ran) if release else (),
        boot=any(seen.enabled for seen in ran),
        stands=job.current,
    )
