"""`valid_arguments`: arguments that a schema allows, with ids and values that the state really holds.

Whether the program then accepts the call is not known: rules of the domain are in no schema.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from envscaler.probe.pool import Pool
from envscaler.program.arguments import SchemaChecker
from envscaler.record import JsonSchema
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State

_CREATES = ("create", "add", "register", "new", "open", "insert", "schedule", "place", "book")
_WORDS = ("north", "river", "amber", "cedar", "harbour", "meadow", "silver", "window", "garden", "signal")
_STRINGS: dict[str, tuple[str, ...]] = {
    "date-time": ("2025-01-15T10:00:00", "2025-02-03T14:30:00", "2025-03-21T09:15:00"),
    "date": ("2025-01-15", "2025-02-03", "2025-03-21"),
    "time": ("09:00", "14:30", "18:45"),
    "email": ("ana.lopez@example.org", "k.ito@example.org"),
    "phone": ("+1-202-555-0143", "+44-20-7946-0991"),
    "uri": ("https://example.org/a", "https://example.org/b"),
    "uuid": ("3f2b8c1e-5d47-4a90-9c1b-7e6f0a2d4b11", "a0c4e7d2-1b35-4f68-8e9a-2c3d4e5f6a7b"),
    "name": ("Ana Lopez", "Kenji Ito", "Maya Okafor"),
}
_HINTS = (
    ("email", "email"),
    ("phone", "phone"),
    ("url", "uri"),
    ("datetime", "date-time"),
    ("timestamp", "date-time"),
    ("_at", "date-time"),
    ("date", "date"),
    ("time", "date-time"),
    ("name", "name"),
)
_MAX_DEPTH = 6


def valid_arguments(
    tool: ToolSpec, state: State, entities: Sequence[Entity], rng: random.Random, *, pool: Pool | None = None
) -> dict[str, JsonValue]:
    """Arguments for `tool` that its schema allows and that mostly name what `state` holds.

    Optional ones are sometimes left out; the key of a record to be created is a new one. Of a `pattern`, only those
    that the state or common forms satisfy can be met.

    Args:
        pool: that of the state and the entities, where there is one.
    """
    return Writer(tool, pool if pool is not None else Pool(state, entities), rng).arguments()


class Writer:
    """Writes the arguments of one call; what was chosen for one argument fits the next where it can."""

    def __init__(self, tool: ToolSpec, pool: Pool, rng: random.Random) -> None:
        self._tool = tool
        self._pool = pool
        self._rng = rng
        self._chosen: list[dict[str, JsonValue]] = []
        """Records named by the arguments so far."""

    def arguments(self) -> dict[str, JsonValue]:
        """One set of arguments."""
        return self._object(self._tool.parameters, 0)

    def value(self, schema: Any, name: str, depth: int = 0) -> JsonValue:
        """A value for one parameter."""
        schema = self.resolved(schema)
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            telling = [part for part in schema["enum"] if part is not None]
            return self._rng.choice(telling or schema["enum"])
        if "const" in schema:
            return schema["const"]
        for keyword in ("anyOf", "oneOf"):
            options = [self.resolved(option) for option in schema.get(keyword) or ()]
            if options and depth < 2 * _MAX_DEPTH:
                others = [option for option in options if option.get("type") != "null"]
                return self.value(self._rng.choice(others or options), name, depth + 1)
            if options:
                return None
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((part for part in kind if part != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
        if kind == "object":
            return self._object(schema, depth) if "properties" in schema else self._free_object(schema, name, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "null":
            return None
        return self._scalar(schema, kind, name)

    # -- scalars --

    def _scalar(self, schema: JsonSchema, kind: str | None, name: str) -> JsonValue:
        checker = SchemaChecker(schema)
        container = self._pool.container(name)
        if container is not None and kind in ("string", None):
            ids = self._pool.ids(container)
            key = self._new_id(name, ids) if self._is_created(name) else self._id(container, name, ids)
            if not checker.faults(key, "it"):
                return key
        fitting = [value for value in self._near(name) if not checker.faults(value, "it")]
        if fitting and (kind == "string" or self._rng.random() < 0.8):
            return self._rng.choice(fitting)
        if kind in ("integer", "number"):
            return self._number(schema, kind)
        if kind == "boolean":
            return self._rng.random() < 0.5
        return self._text(schema, name, checker)

    def _near(self, name: str) -> list[JsonValue]:
        own = [record[name] for record in self._chosen if name in record]
        return own if own and self._rng.random() < 0.5 else self._pool.values(name, self._tool.name)

    def _id(self, container: str, name: str, ids: list[str]) -> str:
        related = [record[name] for record in self._chosen if isinstance(record.get(name), str)]
        if related and self._rng.random() < 0.6:
            return str(related[0])
        if not ids:
            return f"{name.removesuffix('_id') or 'id'}_1"
        key = self._rng.choice(ids)
        self._chosen.append(self._pool.record(container, key))
        return key

    def _is_created(self, name: str) -> bool:
        """Whether the tool makes the record whose key the parameter is."""
        words = self._tool.name.split("_")
        stem = name.removesuffix("_id")
        return words[0] in _CREATES and self._tool.name.endswith(stem) and name.endswith("_id")

    def _new_id(self, name: str, ids: list[str]) -> str:
        prefix = ids[0].rstrip("0123456789") if ids else f"{name.removesuffix('_id')}_"
        number = len(ids) + 1
        while f"{prefix}{number}" in ids:
            number += 1
        return f"{prefix}{number}"

    def _number(self, schema: JsonSchema, kind: str) -> JsonValue:
        step = schema.get("multipleOf") if isinstance(schema.get("multipleOf"), (int, float)) else None
        low, high = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        gap = 1 if kind == "integer" else 0.01
        least = low if isinstance(low, (int, float)) else above + gap if isinstance(above, (int, float)) else None
        most = high if isinstance(high, (int, float)) else below - gap if isinstance(below, (int, float)) else None
        if least is None:
            least = 1 if most is None or most >= 1 else most - 10
        if most is None:
            most = least + 20
        if kind == "integer":
            first, last = _up(least), int(most // 1)
            drawn = self._rng.randint(first, max(first, last))
            return drawn - drawn % int(step) if step and step >= 1 else drawn
        return min(max(round(self._rng.uniform(least, most), 2), least), most)

    def _text(self, schema: JsonSchema, name: str, checker: SchemaChecker) -> str:
        candidates = [*_STRINGS.get(str(schema.get("format")), ())]
        lowered = name.lower()
        candidates += next((list(_STRINGS[form]) for hint, form in _HINTS if hint in lowered), [])
        words = " ".join(self._rng.sample(_WORDS, 3))
        self._rng.shuffle(candidates)
        others = [text for texts in _STRINGS.values() for text in texts]
        for candidate in (*candidates, words, *others, f"{name.upper()[:3]}-101", "AB-1", "12345"):
            if not checker.faults(candidate, "it"):
                return candidate
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = words * (least // len(words) + 1) if isinstance(least, int) and least > len(words) else words
        return text[:most] if isinstance(most, int) else text

    # -- containers of values --

    def _object(self, schema: JsonSchema, depth: int) -> dict[str, JsonValue]:
        properties = schema.get("properties")
        required = schema.get("required") or ()
        out: dict[str, JsonValue] = {}
        for name, part in properties.items() if isinstance(properties, dict) else ():
            if name in required or (depth < _MAX_DEPTH and self._rng.random() < 0.5):
                out[name] = self.value(part, name, depth + 1)
        return out

    def _free_object(self, schema: JsonSchema, name: str, depth: int) -> dict[str, JsonValue]:
        values = schema.get("additionalProperties")
        if depth >= _MAX_DEPTH or values is False:
            return {}
        if isinstance(values, dict) and values:
            return {word: self.value(values, name, depth + 1) for word in self._rng.sample(_WORDS, 2)}
        records = self._pool.records_near(f"{name} {self._tool.name}")
        if not records:
            return {"note": " ".join(self._rng.sample(_WORDS, 2))}
        record = self._rng.choice(records)
        keys = [key for key in record if self._pool.container(key) is None] or list(record)
        return {key: record[key] for key in self._rng.sample(keys, min(len(keys), 2))}

    def _array(self, schema: JsonSchema, name: str, depth: int) -> list[JsonValue]:
        prefix = schema.get("prefixItems") or []
        out = [self.value(part, name, depth + 1) for part in prefix]
        least = schema.get("minItems") if isinstance(schema.get("minItems"), int) else 0
        most = schema.get("maxItems") if isinstance(schema.get("maxItems"), int) else len(out) + 3
        wanted = self._rng.randint(max(least or 0, min(1, most or 0)), max(least or 0, min(most or 0, len(out) + 3)))
        if depth >= _MAX_DEPTH:
            wanted = least or 0
        tries = 0
        while len(out) < wanted and tries < 20 * wanted:
            tries += 1
            element = self.value(schema.get("items", {}), name.removesuffix("s"), depth + 1)
            if schema.get("uniqueItems") is True and element in out:
                continue
            out.append(element)
        return out

    # -- schemas --

    def resolved(self, schema: Any, depth: int = 0) -> JsonSchema:
        """The schema behind a local reference, `allOf` merged into one; empty where that leads nowhere."""
        for _ in range(10 - depth):
            if not isinstance(schema, dict):
                return {}
            pointer = schema.get("$ref")
            if isinstance(pointer, str):
                schema = self._at(pointer)
                continue
            if isinstance(schema.get("allOf"), list):
                merged = {key: part for key, part in schema.items() if key != "allOf"}
                for part in schema["allOf"]:
                    merged = {**self.resolved(part, depth + 1), **merged}
                return merged
            return schema
        return {}

    def _at(self, pointer: str) -> Any:
        target: Any = self._tool.parameters
        for part in pointer.lstrip("#/").split("/"):
            target = target.get(part) if isinstance(target, dict) and part else None
        return target


def _up(value: float) -> int:
    return int(value) if value == int(value) else int(value // 1) + 1
