"""The JSON Schemas of the staged questions: each leaves open only what earlier replies have not settled.

Arrays of small models stop at `minItems`, so that is how many are wanted; and what is one of a few is an enum.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envscaler.record import JsonSchema
from envscaler.roles import staged as s
from envscaler.skeleton import Attribute, Entity
from envscaler.synth.staged.parts import is_date, records, telling

_ENTITIES = (3, 4)
_FIELDS = (2, 4)
_STAGES = (2, 4)
_NAME = r"^[a-z][a-z0-9_]{1,29}$"
_DAY = r"^202[45]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"


def name_entities() -> JsonSchema:
    """Names of entities."""
    one = _object(
        {
            "name": {"type": "string", "pattern": r"^[A-Z][A-Za-z]{2,24}$"},
            "description": _text(120),
            "fields": _several(_words(), (3, 3)),
        }
    )
    return _object({"entities": _several(one, _ENTITIES)})


def describe_entities(named: Sequence[s.NamedEntity]) -> JsonSchema:
    """Fields, stages and owners by entity."""
    field = _object({"name": _name(), "type": {"type": "string", "enum": list(s.FIELD_TYPES)}})
    kinds: dict[str, JsonSchema] = {}
    for entity in named:
        others = [one.name for one in named if one.name != entity.name]
        kinds[entity.name] = _object(
            {
                "fields": _several(field, _FIELDS),
                "status": _several(_name(), _STAGES),
                "belongs_to": {"type": "array", "items": {"enum": others}, "maxItems": min(2, len(others))},
            }
        )
    return _object({"kinds": _object(kinds)})


def list_tools(entities: Sequence[Entity]) -> JsonSchema:
    """Operations by kind; for each entity the fields that it has."""

    def of(*, most_fields: int, refuses: bool = False) -> JsonSchema:
        forms = []
        for entity in records(entities):
            form: dict[str, JsonSchema] = {"entity": {"const": entity.name}, "name": _name(), "description": _text(120)}
            if most_fields:
                names = [one.name for one in entity.attributes if one.name != entity.key]
                form["fields"] = _several({"enum": names}, (1, most_fields))
            values = [_object({"field": {"const": one.name}, "value": _value(one, ())}) for one in telling(entity)]
            if refuses and values:
                form["refused_when"] = {"anyOf": values}
            forms.append(_object(form))
        return {"anyOf": forms}

    return _object(
        {
            "lists": _several(of(most_fields=2), (3, 3)),
            "gets": _several(of(most_fields=0), (2, 2)),
            "creates": _several(of(most_fields=5), (2, 2)),
            "changes": _several(of(most_fields=2, refuses=True), (4, 4)),
            "deletes": _several(of(most_fields=0, refuses=True), (1, 1)),
        }
    )


def write_records(entities: Sequence[Entity], ids: Mapping[str, Sequence[str]]) -> JsonSchema:
    """Records by container and id; a reference is one of the ids that there are."""
    containers = {entity.name: str(entity.container) for entity in records(entities)}
    parts = {
        str(entity.container): _object(
            {
                key: _object(
                    {
                        one.name: _value(one, ids.get(containers.get(one.references or "", ""), ()))
                        for one in entity.attributes
                        if one.name != entity.key
                    }
                )
                for key in ids[str(entity.container)]
            }
        )
        for entity in records(entities)
    }
    return _object({"records": _object(parts)})


def _value(attribute: Attribute, ids: Sequence[str]) -> JsonSchema:
    if attribute.references:
        return {"enum": list(ids)}
    if attribute.enum:
        return {"enum": list(attribute.enum)}
    if is_date(attribute):
        return {"type": "string", "pattern": _DAY}
    if attribute.type in ("int", "float"):
        return {"type": "integer", "minimum": 0, "maximum": 9999}
    return {"type": "boolean"} if attribute.type == "bool" else _text(60)


def _name() -> JsonSchema:
    return {"type": "string", "pattern": _NAME}


def _words() -> JsonSchema:
    return {"type": "string", "pattern": r"^[a-z][a-z _]{1,24}$"}


def _text(most: int) -> JsonSchema:
    return {"type": "string", "minLength": 2, "maxLength": most}


def _several(one: JsonSchema, least_and_most: tuple[int, int]) -> JsonSchema:
    least, most = least_and_most
    return {"type": "array", "items": one, "minItems": least, "maxItems": most}


def _object(properties: Mapping[str, JsonSchema]) -> JsonSchema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
