"""Where an inventory has secrets; what they are is read on the controller, when a plan is made."""

from collections.abc import Iterator, Mapping

from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.job import EnvValue, Secret
from rlxdeploy.model.locate import KeyPath


def secrets_of(inventory: Inventory) -> Iterator[tuple[KeyPath, Secret]]:
    """Yield every secret that a rank of ours may get, with the key of its variable.

    A node that is not managed runs elsewhere, and so do its secrets.
    """
    yield from _in(inventory.job.env, ("job", "env"))
    for index, node in enumerate(inventory.node):
        if node.managed:
            yield from _in(node.env, ("node", index, "env"))


def has_secrets(inventory: Inventory) -> bool:
    """Tell whether any file of a release of *inventory* can hold a secret."""
    return next(secrets_of(inventory), None) is not None


def variables_of(inventory: Inventory) -> frozenset[str]:
    """Return the names of the controller's variables that secrets of *inventory* come from."""
    kinds = (secret.source.partition(":") for _, secret in secrets_of(inventory))
    return frozenset(name for kind, _, name in kinds if kind == "env")


def _in(env: Mapping[str, EnvValue], path: KeyPath) -> Iterator[tuple[KeyPath, Secret]]:
    for name, value in env.items():
        if isinstance(value, Secret):
            yield (*path, name), value
