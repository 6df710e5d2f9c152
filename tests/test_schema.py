"""The JSON Schema that editors use."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from hypothesis import given, settings

from rlxdeploy.app.schema import SCHEMA_FILE, inventory_schema, schema_text
from rlxdeploy.edge.files import shipped
from tests.model.strategies import DOCUMENTS

ROOT = Path(__file__).resolve().parent.parent
INVENTORIES = sorted((ROOT / "inventories").glob("*.toml"))
VALIDATOR = jsonschema.Draft202012Validator(inventory_schema())


def test_the_file_is_what_the_model_says() -> None:
    """The schema in the tree is up to date: `rlxdeploy schema > schemas/inventory.schema.json`."""
    assert shipped(SCHEMA_FILE).read_text(encoding="utf-8") == schema_text()


def test_it_is_a_schema() -> None:
    """The schema itself obeys the draft that it names."""
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize("path", INVENTORIES, ids=lambda path: path.name)
def test_a_worked_example_points_at_the_schema_and_obeys_it(path: Path) -> None:
    """The `#:schema` line leads to the file, and the example passes."""
    text = path.read_text(encoding="utf-8")
    directive, _, target = text.splitlines()[0].partition(" ")

    assert directive == "#:schema"
    assert (path.parent / target).resolve() == ROOT / SCHEMA_FILE
    VALIDATOR.validate(tomllib.loads(text))


@given(DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_what_loads_obeys_the_schema(document: dict[str, Any]) -> None:
    """The schema refuses nothing that the reader accepts."""
    VALIDATOR.validate(document)


REFUSED: dict[str, dict[str, Any]] = {
    "an unknown key": {"ndoe": []},
    "an unknown key of a table": {"job": {"topolgy": "mesh"}},
    "a port in quotes": {"network": {"data_port": "29500"}},
    "a port of true": {"network": {"data_port": True}},
    "a port past the last": {"network": {"data_port": 65536}},
    "a word outside the vocabulary": {"job": {"topology": "ring"}},
    "a variable of ours": {"job": {"env": {"RANK": "0"}}},
    "a variable with a blank": {"job": {"env": {"A B": "0"}}},
    "a number as a variable's value": {"job": {"env": {"A": 1}}},
    "a table of one node": {"node": {"addr": "10.0.0.5"}},
    "a file without a destination": {"job": {"files": [{"source": "a"}]}},
    "no wait at all": {"job": {"join_timeout": 0}},
}


@pytest.mark.parametrize("document", REFUSED.values(), ids=REFUSED.keys())
def test_the_schema_refuses(document: dict[str, Any]) -> None:
    """An editor marks the mistakes that a schema can express."""
    assert not VALIDATOR.is_valid(document)
