"""Inventories there and back again."""

import tomllib
from typing import Any

from hypothesis import given, settings

from rlxdeploy.model.inventory import Inventory
from rlxdeploy.render.toml import to_document, to_toml
from tests.model.strategies import DOCUMENTS, INVENTORIES


@given(INVENTORIES)
@settings(max_examples=150, deadline=None)
def test_an_inventory_reads_back_equal(inventory: Inventory) -> None:
    """What is written as TOML loads as the very inventory it was written from."""
    assert Inventory.model_validate(tomllib.loads(to_toml(inventory))) == inventory


@given(DOCUMENTS)
@settings(max_examples=150, deadline=None)
def test_a_document_comes_back_with_the_keys_it_had(document: dict[str, Any]) -> None:
    """Nothing is added or lost, and texts such as device lists come back verbatim."""
    assert to_document(Inventory.model_validate(document)) == document


def test_a_default_stays_unwritten() -> None:
    """An inventory that sets nothing is an empty document."""
    assert to_toml(Inventory()) == ""
