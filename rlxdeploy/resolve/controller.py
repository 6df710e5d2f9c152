"""What resolving has to know of the machine that rlxdeploy runs on, besides its survey."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlxdeploy.model.loaded import Loaded
from rlxdeploy.resolve.entries import entries

_LOCALHOST = "localhost"


@dataclass(frozen=True, slots=True)
class Controller:
    """The *interpreter* that runs rlxdeploy, and the addresses of *names* as looked up there.

    *planned* is how a saved plan shares out the layers: it stands where the same is still asked.
    """

    interpreter: str
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    planned: str = ""

    def addresses(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name, none if it has not been looked up or has none."""
        return self.names.get(name, ("127.0.0.1",) if name == _LOCALHOST else ())


def names_to_look_up(loaded: Loaded) -> tuple[str, ...]:
    """Return the host names in `addr`, whose addresses `Controller.names` should hold."""
    hosts = [entry.addr for entry in entries(loaded) if entry.addr and entry.addr.ip is None]
    return tuple(dict.fromkeys(one.host for one in hosts if one.host != _LOCALHOST))
