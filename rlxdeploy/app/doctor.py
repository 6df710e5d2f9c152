"""The use case `doctor`: ask every host of a job once, and say what should be mended."""

import time
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.app.survey import Extra, surveyed
from rlxdeploy.app.validate import load
from rlxdeploy.model.checkup import Checkup
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.resolve.checkup.examine import examine
from rlxdeploy.resolve.checkup.means import TREES
from rlxdeploy.resolve.checkup.patient import Asked


def doctor(inventory: Path, lab: Lab, say: Say, scope: Scope = ALL) -> Checkup:
    """Return what is wrong with the hosts of *scope*; changes nothing.

    Raises InventoryError, and UsageError where *scope* means nobody.
    """
    loaded = load(inventory)
    lab.follow(loaded)
    began = time.time()
    loaded, survey = surveyed(loaded, None, lab, say, Extra(folders=TREES, scope=scope))
    return examine(loaded, survey, Asked(began, time.time()), lab.interpreter)
