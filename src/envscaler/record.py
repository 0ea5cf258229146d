"""`Record`: the base of everything that is stored. How a record becomes a file is the store's business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Version that the store writes into every file and every JSON line. Readers accept this one and older."""

JsonSchema = dict[str, Any]
"""A JSON Schema object, as in JSON."""


class Record(BaseModel):
    """A frozen value with documented fields; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values for some fields; what was derived from the old ones is derived anew."""
        copied = super().model_copy(update=update, deep=deep)
        # pydantic takes the values of cached properties along, such as a digest of what is no longer so.
        fields = type(self).__pydantic_fields__
        if len(copied.__dict__) > len(fields):
            for name in copied.__dict__.keys() - fields.keys():
                del copied.__dict__[name]
        return copied
