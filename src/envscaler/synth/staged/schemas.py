"""The JSON Schemas of the staged questions: each leaves open only what earlier replies have not settled.

Arrays of small models stop at `minItems`, so that is how many are wanted; and what is one of a few is an enum.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from envscaler.assessment import CaseType
from envscaler.record import JsonSchema
from envscaler.roles import staged as s
from envscaler.skeleton import Attribute, Entity, ToolSpec
from envscaler.synth.staged.parts import is_date, records

_ENTITIES = (3, 4)
_FIELDS = (3, 6)
_RULES = (2, 4)
_QUERIES = (5, 6)
_UPDATES = (5, 6)
_NAME = r"^[a-z][a-z0-9_]{1,29}$"
_PLAIN: tuple[s.FieldType, ...] = ("text", "integer", "number", "boolean", "date")
_DAY = r"^202[45]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"


def name_entities() -> JsonSchema:
    """Names of entities."""
    one = _object({"name": {"type": "string", "pattern": r"^[A-Z][A-Za-z]{2,24}$"}, "description": _text(120)})
    return _object({"entities": _several(one, _ENTITIES)})


def describe_entities(named: Sequence[s.NamedEntity]) -> JsonSchema:
    """Fields by entity, and rules."""
    fields: dict[str, JsonSchema] = {}
    for entity in named:
        others = [one.name for one in named if one.name != entity.name]
        forms = [
            _object({"name": _name(), "type": {"type": "string", "enum": list(_PLAIN)}}),
            _object({"name": _name(), "type": {"const": "status"}, "values": _several(_name(), (2, 5))}),
        ]
        if others:
            forms.append(
                _object({"name": _name(), "type": {"const": "reference"}, "references": {"enum": others}}),
            )
        fields[entity.name] = _several({"anyOf": forms}, _FIELDS)
    return _object({"fields": _object(fields), "rules": _several(_text(160), _RULES)})


def list_tools(entities: Sequence[Entity]) -> JsonSchema:
    """Queries and updates; for each entity the fields that it has."""

    def of(kinds: Iterable[s.ToolKind]) -> JsonSchema:
        return {
            "anyOf": [
                _object(
                    {
                        "kind": {"type": "string", "enum": list(kinds)},
                        "entity": {"const": entity.name},
                        "name": _name(),
                        "description": _text(160),
                        "fields": {
                            "type": "array",
                            "items": {"enum": [one.name for one in entity.attributes if one.name != entity.key]},
                            "minItems": 1,
                            "maxItems": 5,
                        },
                    }
                )
                for entity in records(entities)
                if len(entity.attributes) > 1
            ]
        }

    return _object(
        {"queries": _several(of(s.QUERIES), _QUERIES), "updates": _several(of(s.UPDATES), _UPDATES)},
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


def test_call(tool: ToolSpec, case: CaseType) -> JsonSchema:
    """The arguments of a test call; in a positive case of the types of the tool."""
    properties = tool.parameters["properties"]
    if case == "negative":
        odd: JsonSchema = {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "integer"}, {"type": "null"}]}
        properties = dict.fromkeys(properties, odd)
    arguments = _object(properties) | {"required": tool.parameters["required"]}
    return _object({"intent": _text(160), "arguments": arguments})


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
