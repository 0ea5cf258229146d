"""Typed inputs and replies of the staged design: small questions, each with a schema of its own, for weak models.

The schema of a question is made from what earlier ones brought (`staged_schemas`); the types here are what is common.

Source: ours. The paper (3.2) asks for a whole plan at once, which small models do not manage.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from envscaler.record import Record
from envscaler.roles import types as t
from envscaler.skeleton import Entity
from envscaler.state import JsonValue

ToolKind = Literal["get", "list", "create", "change", "delete"]
QUERIES: tuple[ToolKind, ...] = ("get", "list")
UPDATES: tuple[ToolKind, ...] = ("create", "change", "delete")

FieldType = Literal["text", "integer", "number", "boolean", "date", "status", "reference"]
FIELD_TYPES: tuple[FieldType, ...] = ("text", "integer", "number", "boolean", "date", "status", "reference")


class NamedEntity(Record):
    name: str
    """Singular, CamelCase."""
    description: str


class NameEntitiesReply(Record):
    """The kinds of records that an environment keeps."""

    entities: tuple[NamedEntity, ...] = Field(min_length=2)


class StagedField(Record):
    name: str
    type: FieldType
    references: str | None = None
    """The entity, for type `reference`."""
    values: tuple[str, ...] = ()
    """The values, for type `status`."""


class DescribeEntitiesInputs(t.PlanStateInputs):
    named: tuple[NamedEntity, ...]


class DescribeEntitiesReply(Record):
    """The fields of each kind of record, and the rules."""

    fields: dict[str, tuple[StagedField, ...]] = Field(min_length=1)
    """By entity. Ids are no fields of their own: code adds them."""
    rules: tuple[str, ...] = ()


class ListToolsInputs(t.PlanStateInputs):
    entities: tuple[Entity, ...]
    rules: tuple[str, ...]


class ListedTool(Record):
    kind: ToolKind
    entity: str
    name: str
    description: str
    fields: tuple[str, ...] = ()
    """`list`: what can be filtered by; `create`: what is given; `change`: what is set."""


class ListToolsReply(Record):
    """The operations; their parameters and effects follow from kind and fields."""

    queries: tuple[ListedTool, ...] = Field(min_length=1)
    updates: tuple[ListedTool, ...] = Field(min_length=1)


class WriteToolInputs(t.WriteMethodInputs):
    """One method, with what code knows of it."""

    signature: str
    """Its `def` line."""
    steps: tuple[str, ...]
    """What it does, in order."""


class WriteRecordsInputs(t.EnvironmentInputs):
    purpose: Literal["assessment", "scenario"]
    index: int
    """Which of the states of this environment it is."""
    seed: int
    ids: dict[str, tuple[str, ...]]
    """By container, the ids of its records, made by code."""


class WriteRecordsReply(Record):
    """The records of an initial state, by container and id; what exists once is made by code."""

    records: dict[str, dict[str, dict[str, JsonValue]]]
