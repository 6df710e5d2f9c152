"""The base of everything a person writes in an inventory, and the numbers used there.

Numbers are strict: `true`, `"9100"` and `9100.0` are no ports; a float accepts an integer.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Written(BaseModel):
    """A closed table: an unknown key is an error, and values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


Flag = Annotated[bool, Field(strict=True)]
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
RankNumber = Annotated[int, Field(strict=True, ge=0, le=2**16 - 1)]
Slots = Annotated[int, Field(strict=True, ge=1, le=1024)]
Unsigned64 = Annotated[int, Field(strict=True, ge=0, le=2**64 - 1)]

# The transport addresses the heap with 32-bit offsets.
HeapMegabytes = Annotated[int, Field(strict=True, ge=1, le=4095)]

Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]

# A week outlasts any wait a person means; beyond it operating systems refuse the number.
Seconds = Annotated[float, Field(strict=True, gt=0, le=604_800, allow_inf_nan=False)]
