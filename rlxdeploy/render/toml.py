"""An inventory back into the TOML it could have been read from."""

from typing import Any

import tomli_w

from rlxdeploy.model.inventory import Inventory


def to_document(inventory: Inventory) -> dict[str, Any]:
    """Return what was set, as the plain data of a TOML document; defaults stay unwritten."""
    return inventory.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def to_toml(inventory: Inventory) -> str:
    """Return a TOML text that reads back as an equal inventory."""
    return tomli_w.dumps(to_document(inventory))
