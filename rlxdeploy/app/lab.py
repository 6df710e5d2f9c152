"""The world as the use cases reach it: where sessions are opened, and what bounds them."""

import sys
from dataclasses import dataclass, field
from threading import Event

from rlxdeploy.edge.local import open_local
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.edge.survey import SurveyLimits


@dataclass(frozen=True, slots=True)
class Lab:
    """How one run reaches hosts.

    *interpreter* runs rlxdeploy and is the default python of ranks on the controller.  Once *stop*
    is set, no further host is begun.
    """

    open_session: OpenSession = open_local
    limits: SurveyLimits = field(default_factory=SurveyLimits)
    interpreter: str = sys.executable
    stop: Event = field(default_factory=Event)
