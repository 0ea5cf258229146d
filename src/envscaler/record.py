"""`Record`: the base of everything that is stored. How a record becomes a file is the store's business."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Version that the store writes into every file and every JSON line. Readers accept this one and older."""

JsonSchema = dict[str, Any]
"""A JSON Schema object, as in JSON."""


class Record(BaseModel):
    """A frozen value with documented fields; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
