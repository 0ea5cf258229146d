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

FieldType = Literal["text", "integer", "number", "boolean", "date"]
FIELD_TYPES: tuple[FieldType, ...] = ("text", "integer", "number", "boolean", "date")


class NamedEntity(Record):
    name: str
    """Singular, CamelCase."""
    description: str
    fields: tuple[str, ...] = ()
    """Some of what is kept of each; asked for because what has no fields is no kind of record."""


class NameEntitiesReply(Record):
    """The kinds of records that an environment keeps."""

    entities: tuple[NamedEntity, ...] = Field(min_length=2)


class StagedField(Record):
    name: str
    type: FieldType


class StagedKind(Record):
    """What is kept of one kind of record. Ids and references are no fields: code adds them."""

    fields: tuple[StagedField, ...] = Field(min_length=1)
    status: tuple[str, ...] = ()
    """The stages that such a record goes through."""
    belongs_to: tuple[str, ...] = ()
    """Entities to one record of which each of these belongs."""


class DescribeEntitiesInputs(t.PlanStateInputs):
    named: tuple[NamedEntity, ...]


class DescribeEntitiesReply(Record):
    """The fields of each kind of record."""

    kinds: dict[str, StagedKind] = Field(min_length=1)


class ListToolsInputs(t.PlanStateInputs):
    entities: tuple[Entity, ...]


class Refused(Record):
    """When a change is refused: a rule of the domain that code can write out."""

    field: str
    value: str | bool


class ListedTool(Record):
    entity: str
    name: str
    description: str
    fields: tuple[str, ...] = ()
    """Of a list, what can be filtered by; of a new record, what is given; of a change, what is set."""
    refused_when: Refused | None = None
    """Of a change or deletion: the record as it must not be."""


class ListToolsReply(Record):
    """The operations by kind; their parameters and effects follow from kind and fields."""

    lists: tuple[ListedTool, ...]
    gets: tuple[ListedTool, ...]
    creates: tuple[ListedTool, ...]
    changes: tuple[ListedTool, ...]
    deletes: tuple[ListedTool, ...] = ()

    @property
    def by_kind(self) -> tuple[tuple[ToolKind, ListedTool], ...]:
        """Each operation with its kind, queries first."""
        parts: tuple[tuple[ToolKind, tuple[ListedTool, ...]], ...] = (
            ("list", self.lists),
            ("get", self.gets),
            ("create", self.creates),
            ("change", self.changes),
            ("delete", self.deletes),
        )
        return tuple((kind, one) for kind, listed in parts for one in listed)


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
