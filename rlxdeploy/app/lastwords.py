"""What ranks printed before their host is cleared: kept beside the inventory.

Under units the journal keeps it.  Without them the logs lie in the job's folder, and a first apply
that fails leaves nothing of that on the host: just when somebody wants to read them.
"""

import shutil
import time
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.edge.files import FileError, write_atomically
from rlxdeploy.edge.logs import LogQuery, read_log
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.record import FOLDER, prepare_folder
from rlxdeploy.model.plan import HostPlan, Plan
from rlxdeploy.model.vocabulary import Launch

# More than a person reads; a rank that prints without end is cut to its last.
LINES = 10_000

# The hosts wait to go back meanwhile.
PATIENCE_S = 10.0


def keep_logs(plan: Plan, inventory: Path, lab: Lab) -> tuple[str, ...]:
    """Keep the logs of all ranks whose hosts are about to be cleared; return what to tell of it.

    Logs that cannot be read or written are told of, too: going back does not wait for them.
    """
    doomed = {name: part for name, part in plan.hosts.items() if _is_cleared(part)}
    wanted = {row.rank: doomed[row.host] for row in plan.ranks if row.host in doomed}
    if not wanted:
        return ()
    outcomes = Pool(lab.forks, PATIENCE_S).on_hosts(
        lambda one, deadline: _read(*one, lab, deadline),
        {f"rank {rank}": (rank, part) for rank, part in wanted.items()},
        "read the log",
    )
    told = [f"its log is lost: {error}" for error in outcomes.failed.values()]
    folder = kept_logs(inventory, plan.job)
    try:
        prepare_folder(inventory)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        for name, text in outcomes.done.items():
            write_atomically(folder / f"{name.replace(' ', '-')}.log", text)
    except (OSError, FileError) as error:
        return (*told, f"the logs of the ranks could not be kept: {error}")
    return (*told, f"the logs of the ranks are in {folder}")


def kept_logs(inventory: Path, job: str) -> Path:
    """Return the folder of the kept logs."""
    return inventory.resolve().parent / FOLDER / f"{job}.logs"


def _is_cleared(part: HostPlan) -> bool:
    return part.launch == Launch.PROCESS and part.back is not None and not part.back.release


def _read(rank: int, part: HostPlan, lab: Lab, deadline: float) -> bytes:
    query = LogQuery(part.tree, part.launch, rank, LINES)
    patience = max(0.0, deadline - time.monotonic())
    lines = read_log(lab.open_session, part.host, query, patience)
    return "".join(f"{line}\n" for line in lines).encode()
