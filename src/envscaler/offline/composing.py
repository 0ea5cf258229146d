"""Puts optional parts onto a template that was rendered for a thing, as plain plans; `derive` chooses and validates.

A part (`templates/parts/<name>.yaml`) is a fragment of a domain file: entities, fields of the thing, the person or
the place, operations, invariants, and `guards` and `extras`: requirements and effects that join the template's main
operations. What of a template a part may rely on stands in the template's `hooks`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

Plan = dict[str, Any]
"""A domain file or a fragment of one, as YAML gives it."""

MOST_TOOLS = 25
"""Tools that a composed environment has at most; the prepared domains, which nothing is added to, have up to 26."""


class Composition:
    """A template's plan, to which parts are attached one after the other."""

    def __init__(self, plan: Plan, names: Mapping[str, str]) -> None:
        self.plan = plan
        self.hooks: Plan = plan.pop("hooks")
        self.names = names
        """Entity of the thing, the person and the place."""

    def entity(self, role: str) -> Plan:
        """The plan of the thing's, the person's or the place's entity."""
        found: Plan = next(entity for entity in self.plan["entities"] if entity["name"] == self.names[role])
        return found

    def called(self, variable: str) -> str:
        """How people name the thing of that variable: its label with the variable before each path."""
        return re.sub(r"\{(\w)", rf"{{{variable}.\1", str(self.entity("thing")["label"]))

    def references(self, role: str) -> bool:
        """Whether every thing names its person or its place."""
        target = self.names[role]
        return any(
            field.get("ref") == target
            and field["name"] == f"{_variable(self.entity(role))}_id"
            and not field.get("optional", False)
            for field in self.entity("thing")["fields"]
        )

    def live(self, variable: str) -> str:
        """The expression by which a thing can still be worked with."""
        return str(self.hooks["live"]).replace("$", variable)

    def drop(self, operations: set[str]) -> None:
        """Leave operations out."""
        self.plan["operations"] = [plan for plan in self.plan["operations"] if plan["name"] not in operations]

    def tools(self, part: Plan | None = None) -> int:
        """The least number of tools, with a part if one is given: lists of all entities, the thing's own queries."""
        entities = len(self.plan["entities"]) + len((part or {}).get("entities", ()))
        return len(self.plan["operations"]) + len((part or {}).get("operations", ())) + entities + 2

    def takes(self, part: Plan) -> bool:
        """Whether a part fits: room for its tools, no name twice, and a place for what it guards and adds."""
        if self.tools(part) > MOST_TOOLS or any(not self.references(need) for need in part.get("needs", ())):
            return False
        if self._taken(part):
            return False
        return all(self._targets(part.get(kind, ())) for kind in ("guards", "extras") if part.get(kind))

    def attach(self, part: Plan) -> None:
        """Join a part that fits."""
        for role, fields in (part.get("fields") or {}).items():
            for field in fields:
                self._add_field(role, dict(field))
        self.plan["entities"] = _sorted([*self.plan["entities"], *part.get("entities", ())])
        for guard in part.get("guards", ()):
            requirement = {key: guard[key] for key in ("when", "error", "rule")}
            for operation in self._targets([guard]):
                operation["requires"] = [*operation.get("requires", ()), requirement]
        for extra in part.get("extras", ()):
            for operation in self._targets([extra]):
                operation["effects"] = [*operation["effects"], extra["effect"]]
        self.plan["operations"] = [*self.plan["operations"], *part.get("operations", ())]
        self.plan["invariants"] = [*self.plan.get("invariants", ()), *part.get("invariants", ())]
        self.plan["vocabularies"] = {**self.plan.get("vocabularies", {}), **part.get("vocabularies", {})}
        self.plan["introduction"] = f"{str(self.plan['introduction']).strip()} {part['introduction']}"

    def tell_ids_apart(self) -> None:
        """Give another prefix of ids to an entity whose prefix one before it has: SHO for shops, SHOP for shoppers."""
        taken: set[str] = set()
        for entity in self.plan["entities"]:
            name = str(entity["name"]).upper()
            others = (name[:3] + letter for letter in name[3:] + ascii_uppercase)
            entity["prefix"] = next(prefix for prefix in (str(entity["prefix"]), *others) if prefix not in taken)
            taken.add(entity["prefix"])

    def _taken(self, part: Plan) -> bool:
        names = {word for entity in self.plan["entities"] for word in _words(entity)}
        if any(word in names for entity in part.get("entities", ()) for word in _words(entity)):
            return True
        tools = {operation["name"] for operation in self.plan["operations"]}
        if any(operation["name"] in tools for operation in part.get("operations", ())):
            return True
        if set(part.get("vocabularies", {})) & set(self.plan.get("vocabularies", {})):
            return True
        return any(
            field["name"] in {known["name"] for known in self.entity(role)["fields"]}
            for role, fields in (part.get("fields") or {}).items()
            for field in fields
        )

    def _targets(self, joins: Any) -> list[Plan]:
        """The main operations that have the records which a guard or an extra effect speaks of."""
        out: list[Plan] = []
        for operation in self.plan["operations"]:
            if operation["name"] not in self.hooks["main"]:
                continue
            records = {param["name"] for param in operation.get("params", ()) if param.get("ref")}
            created = {effect.get("create") for effect in operation.get("effects", ())}
            if any(
                set(join["with"]) <= records and (not join.get("creates") or self.names["thing"] in created)
                for join in joins
            ):
                out.append(operation)
        return out

    def _add_field(self, role: str, field: Plan) -> None:
        """A further field; what creates such a record gives it its first value."""
        first = field.pop("new")
        entity = self.entity(role)
        entity["fields"] = [*entity["fields"], field]
        for operation in self.plan["operations"]:
            for effect in operation.get("effects", ()):
                if effect.get("create") == entity["name"]:
                    effect["values"] = {**effect["values"], field["name"]: first}


def _variable(entity: Plan) -> str:
    return str(entity.get("variable") or entity["noun"]).lower().replace(" ", "_").replace("-", "_")


def _words(entity: Plan) -> set[str]:
    container = str(entity.get("container") or entity["plural"]).lower().replace(" ", "_").replace("-", "_")
    return {str(entity["name"]), _variable(entity), container}


def _sorted(entities: list[Plan]) -> list[Plan]:
    """What is referenced stands before what references it, otherwise in the order given."""
    out: list[Plan] = []
    waiting = list(entities)
    while waiting:
        known = {entity["name"] for entity in out}
        ready = next(
            entity
            for entity in waiting
            if {field["ref"] for field in entity["fields"] if field.get("ref")} <= known | {entity["name"]}
        )
        out.append(ready)
        waiting.remove(ready)
    return out
