"""The JSON Schema of an inventory, for editors; it is made from the model and from nothing else."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rlxdeploy.model.inventory import Inventory

SCHEMA_FILE = "schemas/inventory.schema.json"


class _Dialect(GenerateJsonSchema):
    """TOML's view: there is no null, so a key that may stay unwritten is not one that is null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Describe the value as it is when written."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out a default of None."""
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Close a table whose keys have a pattern."""
        described = super().dict_schema(schema)
        closing = {"additionalProperties": False} if "patternProperties" in described else {}
        return described | closing

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - pydantic's union of schemas is private
        """Leave the key's name to speak for itself."""
        return False


def inventory_schema() -> dict[str, Any]:
    """Return the schema as plain data, draft 2020-12."""
    schema = Inventory.model_json_schema(schema_generator=_Dialect)
    return {
        "$schema": _Dialect.schema_dialect,
        "$comment": "Made by `rlxdeploy schema`; do not edit.",
        **schema,
        "title": "rlxdeploy inventory",
    }


def schema_text() -> str:
    """Return the text of `schemas/inventory.schema.json`."""
    return json.dumps(inventory_schema(), indent=2, ensure_ascii=False) + "\n"
