"""How people name records: by labels that are unique in a state, never by ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan, FieldType
from envscaler.offline.values import PLACEHOLDER
from envscaler.offline.wording import Wording
from envscaler.state import JsonValue, State

Row = dict[str, JsonValue]


@dataclass(frozen=True)
class Name:
    """How one record is named in a text."""

    text: str
    fields: frozenset[str]
    """Fields of the record whose values the text tells; for references, whose record it names."""


def path_value(
    blueprint: Blueprint, state: State, entity: EntityPlan, record: Row, path: str
) -> tuple[JsonValue, FieldType]:
    """Value and type of a dotted path from a record: `title`, `book.title`, `loan.member.name`.

    Raises:
        KeyError: if there is no such field, or a reference on the way is empty.
    """
    head, _, rest = path.partition(".")
    if not rest:
        name = head if entity.field(head) is not None or entity.title is None or head != "title" else entity.title
        field = entity.field(name)
        return record[name], field.type if field is not None else "str"
    if head in {entity.variable, "it"} and entity.field(f"{head}_id") is None:
        return path_value(blueprint, state, entity, record, rest)
    reference = reference_field(entity, head)
    target = blueprint.entity(reference.ref or "")
    return path_value(blueprint, state, target, state[target.container][record[reference.name]], rest)


def names_value(entity: EntityPlan, path: str) -> bool:
    """Whether a path in a template names a value of the record or of one that it references, not a vocabulary."""
    head, _, rest = path.partition(".")
    if not rest:
        return entity.field(head) is not None
    try:
        return head in {entity.variable, "it"} or reference_field(entity, head) is not None
    except KeyError:
        return False


def reference_field(entity: EntityPlan, head: str) -> FieldPlan:
    """The reference that a path's first part names: `book` is the field `book_id`.

    Raises:
        KeyError: if there is none.
    """
    for name in (f"{head}_id", head):
        field = entity.field(name)
        if field is not None and field.ref is not None:
            return field
    for field in entity.fields:
        if field.ref is not None and field.ref.lower() == head.replace("_", "").lower():
            return field
    raise KeyError(head)


def label(blueprint: Blueprint, state: State, entity: EntityPlan, record: Row, wording: Wording) -> str | None:
    """The label of a record; None where a part of it is empty."""
    text = entity.label
    for match in PLACEHOLDER.finditer(entity.label):
        try:
            value, kind = path_value(blueprint, state, entity, record, match.group(1))
        except KeyError:
            return None
        if value is None or value == "":
            return None
        text = text.replace(match.group(0), wording.spoken(value, kind))
    return text


def names(blueprint: Blueprint, state: State, entity: EntityPlan, wording: Wording) -> dict[str, Name]:
    """The records of an entity that can be named unambiguously, by id; qualified by a further field where needed."""
    labels = {
        key: text
        for key, record in state[entity.container].items()
        if (text := label(blueprint, state, entity, record, wording)) is not None
    }
    told, qualifiers = _told(blueprint, entity.name)
    shared = Counter(text.casefold() for text in labels.values())
    out: dict[str, Name] = {}
    for key, text in labels.items():
        if shared[text.casefold()] == 1:
            out[key] = Name(text, told)
            continue
        twins = [other for other, same in labels.items() if same.casefold() == text.casefold()]
        field = _qualifier(entity, qualifiers, state[entity.container], key, twins)
        if field is not None:
            value = wording.spoken(state[entity.container][key][field.name], field.type)
            phrase = wording.say("qualified", label=text, field=said(field), value=value)
            out[key] = Name(phrase, told | {field.name})
    return out


def said(field: FieldPlan) -> str:
    """What people call a field."""
    return field.label or field.name.removesuffix("_id").replace("_", " ")


def unit_of(field: FieldPlan, wording: Wording) -> str:
    """The unit that is said behind a value of a field; empty where none is."""
    return wording.quantities.unit(said(field), field.description) if field.type in {"int", "float"} else ""


def label_paths(entity: EntityPlan) -> tuple[str, ...]:
    """The dotted paths whose values the label of an entity tells."""
    return tuple(PLACEHOLDER.findall(entity.label))


def told_fields(entity: EntityPlan, paths: tuple[str, ...]) -> frozenset[str]:
    """Fields of which paths tell something: their values, or of references, of the record that they name."""
    told = set()
    for path in paths:
        head, _, rest = path.partition(".")
        if rest and not _is_own(entity, head):
            told.add(reference_field(entity, head).name)
        else:
            told.add(rest or (head if entity.field(head) is not None or entity.title is None else entity.title))
    return frozenset(told)


def paths_beyond(entity: EntityPlan, reference: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """What paths tell of the record that a field references."""
    parts = (path.partition(".") for path in paths)
    return tuple(
        rest
        for head, _, rest in parts
        if rest and not _is_own(entity, head) and reference_field(entity, head).name == reference
    )


def _is_own(entity: EntityPlan, head: str) -> bool:
    """Whether the first part of a path means the record itself."""
    return head in {entity.variable, "it"} and entity.field(f"{head}_id") is None


@lru_cache(maxsize=4096)
def _told(blueprint: Blueprint, entity_name: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Fields that the label of an entity tells, and fields that can qualify it."""
    entity = blueprint.entity(entity_name)
    told = told_fields(entity, label_paths(entity))
    # A date says which one is meant and seldom changes; a status changes, but filters know it.
    kinds = ({"date", "datetime"}, {"time"}, {"str"})
    order = [
        field.name
        for kind in kinds
        for field in entity.fields
        if field.type in kind and field.ref is None and field.name not in told and (kind != {"str"} or field.enum)
    ]
    return told, tuple(order)


def _qualifier(
    entity: EntityPlan, qualifiers: tuple[str, ...], rows: dict[str, Row], key: str, twins: list[str]
) -> FieldPlan | None:
    for name in qualifiers:
        value = rows[key].get(name)
        if value is not None and sum(rows[twin].get(name) == value for twin in twins) == 1:
            return entity.field(name)
    return None
