"""What the supervisor of a rank is told to run: `process/<rank>.json`, format 1."""

import json

from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.resolution import Placed, Seat
from rlxdeploy.render.service import Service

FORMAT = 1


def process_file(placed: Placed, seat: Seat, service: Service, plan: str) -> RemoteFile:
    """Return the file for the supervisor of *seat*; the release is no part of its own content."""
    tree = placed.tree
    told = {
        "format": FORMAT,
        "job": tree.job,
        "rank": seat.rank,
        "argv": seat.argv,
        "workdir": placed.workdir,
        "env_file": tree.env_file(seat.rank),
        "restart": service.restart,
        "ready": service.ready,
        "join_timeout": service.join_timeout,
        "restart_s": service.restart_after,
        "start_limit_interval_s": service.start_limit_interval,
        "start_limit_burst": service.start_limit_burst,
        "restart_prevent": service.restart_prevent,
        "stop_timeout_s": service.stop_timeout,
        "watchdog_s": service.watchdog,
        "supervisor_file": tree.supervisor_file(seat.rank),
        "log_file": tree.log_file(seat.rank),
        "plan": plan,
    }
    return RemoteFile(
        path=f"process/{seat.rank}.json",
        content=(json.dumps(told, indent=2) + "\n").encode(),
        mode=0o600,
        source="rlxdeploy",
        restarts=(seat.rank,),
    )
