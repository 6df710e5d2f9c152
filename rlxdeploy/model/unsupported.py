"""Keys that load but have no effect yet, or none for us.

One row a key; an integer step of a path matches `*`.  Removing a row is all it takes to say that
the key's effect is built.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.vocabulary import Policy, Provision, Security

Test = Callable[[object], bool]


def _always(_value: object) -> bool:
    return True


def _is_one_of(*values: object) -> Test:
    return lambda value: value in values


@dataclass(frozen=True, slots=True)
class Row:
    """A key pattern, with `*` for any one step, and the values of it that are meant."""

    pattern: tuple[str, ...]
    meant: Test = _always

    def matches(self, path: KeyPath) -> bool:
        """Return whether the row speaks of the key at *path*."""
        return len(path) == len(self.pattern) and all(
            wanted in ("*", step) for wanted, step in zip(self.pattern, path, strict=True)
        )


NOT_BUILT: Final = (
    Row(("job", "security"), _is_one_of(Security.TLS)),
    Row(("runtime", "provision"), _is_one_of(Provision.AUTO)),
)

NO_EFFECT: Final = (
    Row(("model",)),
    Row(("seq",)),
    Row(("placement", "objective", "hop_secs")),
    Row(("placement", "objective", "kv_dtype")),
    Row(("placement", "objective", "precision_ladder")),
)

# A rank's LAYERS are its node's under policy manual, and computed only by the other policies.
NO_EFFECT_UNLESS_MANUAL: Final = (Row(("node", "*", "layers")),)
NO_EFFECT_UNLESS_COMPUTED: Final = (
    Row(("reserve_ram_gb",)),
    Row(("placement", "n_layers")),
    Row(("placement", "layer_bytes")),
    Row(("placement", "layer_flops")),
    Row(("placement", "objective", "*")),
)
NO_EFFECT_UNLESS_EITHER: Final = (Row(("placement", "policy")),)


def unsupported(loaded: Loaded) -> tuple[Finding, ...]:
    """Return an error for each key written whose effect is not built yet."""
    return tuple(loaded.finding(path, "not supported yet") for path in _matching(loaded, NOT_BUILT))


def without_effect(loaded: Loaded) -> tuple[Finding, ...]:
    """Return a notice for each key written that is read by upstream's tools and not by us."""
    rows = [*NO_EFFECT]
    placement = loaded.inventory.placement
    manual = placement.policy is Policy.MANUAL
    computed = not manual and placement.n_layers is not None
    rows += () if manual else NO_EFFECT_UNLESS_MANUAL
    rows += () if computed else NO_EFFECT_UNLESS_COMPUTED
    rows += () if manual or computed else NO_EFFECT_UNLESS_EITHER
    return tuple(
        replace(
            loaded.finding(path, "accepted; it has no effect in rlxdeploy"),
            severity=Severity.NOTICE,
        )
        for path in _matching(loaded, rows)
    )


def _matching(loaded: Loaded, rows: Iterable[Row]) -> Iterator[KeyPath]:
    for path in loaded.places:
        if any(row.matches(path) and row.meant(_value(loaded, path)) for row in rows):
            yield path


def _value(loaded: Loaded, path: KeyPath) -> object:
    value: object = loaded.inventory
    for step in path:
        match value:
            case Mapping():
                value = value[step]
            case BaseModel():
                value = getattr(value, str(step))
            case tuple() if isinstance(step, int):
                value = value[step]
    return value
