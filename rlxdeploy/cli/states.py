"""What each host has come to, as a table."""

from collections.abc import Mapping

from rlxdeploy.app.run import HostState
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.tables import columns


def show_states(screen: Screen, states: Mapping[str, HostState]) -> None:
    """Print a table of hosts, each with its release, its ranks and what it has come to."""
    if not states:
        return
    rows = [
        (name, one.release or "-", ", ".join(map(str, one.ranks)) or "-", one.state)
        for name, one in states.items()
    ]
    for row in columns((("host", "release", "ranks", "state"), *rows)):
        screen.tell(f"  {row}", failed=True)
