"""Faults of meaning: a tool that does not do what its name, its parameters, its effects or a rule say."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator

from envscaler.skeleton import Entity, EnvSkeleton

from .editing import Place, created, refusals, statements, work
from .structural import Mutation


def _listed(place: Place) -> Entity | None:
    """The entity of which a tool lists the records, all or those that its parameters choose."""
    rest = place.tool.name.removeprefix("list_")
    found = (entity for entity in place.skeleton.entities if entity.container is not None and entity.container == rest)
    return next(found, None)


def off_by_one(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """One record too few, a bound that is one off, one too many added."""
    if _listed(place) is not None:
        for cut in ("[1:]", "[:-1]"):
            method = place.method()
            returned = method.body[-1]
            assert isinstance(returned, ast.Return)
            assert isinstance(returned.value, ast.Dict)
            shown = ast.unparse(returned.value.values[-1])
            returned.value.values[-1] = ast.parse(f"{shown}{cut}", mode="eval").body
            yield place.changed(method), True
    for number, (rule, test) in enumerate(place.rules(place.method())):
        loosened = {ast.GtE: ast.Gt, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.Lt: ast.LtE}
        if isinstance(test.test, ast.Compare) and type(test.test.ops[0]) in loosened:
            method = place.method()
            compared = list(refusals(method))[number].test
            assert isinstance(compared, ast.Compare)
            # Only a test that refuses less lets a rule be broken.
            readable = (
                rule is not None and rule.predicate is not None and isinstance(test.test.ops[0], ast.GtE | ast.LtE)
            )
            compared.ops = [loosened[type(test.test.ops[0])]()]
            yield place.changed(method), readable
    for number, statement in enumerate(work(place.method())):
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
            method = place.method()
            changed = work(method)[number]
            assert isinstance(changed, ast.Assign)
            changed.value = ast.BinOp(changed.value, ast.Add(), ast.Constant(1))
            yield place.changed(method), _is_given(place, value)


def _is_given(place: Place, value: ast.BinOp) -> bool:
    """Whether a parameter that is named after the attribute says by how much it changes."""
    named = value.right.id if isinstance(value.right, ast.Name) else ""
    return named in place.parameters and f"['{named}']" in ast.unparse(value.left)


def missing_rule(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A rule that the program states and does not enforce."""
    for number, (rule, _) in enumerate(place.rules(place.method())):
        if rule is not None:
            method = place.method()
            method.body.remove(list(refusals(method))[number])
            yield place.changed(method), rule.predicate is not None


def swapped_arguments(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """Two arguments take each other's place, in a new record or in what is looked up."""
    for number, assigned in enumerate(created(place.method())):
        assert isinstance(assigned.value, ast.Dict)
        pairs = list(zip(assigned.value.keys, assigned.value.values, strict=True))
        given = [at for at, (_, value) in enumerate(pairs) if _from_argument(place, value)]
        for left, right in itertools.pairwise(given):
            method = place.method()
            record = list(created(method))[number].value
            assert isinstance(record, ast.Dict)
            record.values[left], record.values[right] = record.values[right], record.values[left]
            names = {key.value for key in (record.keys[left], record.keys[right]) if isinstance(key, ast.Constant)}
            yield place.changed(method), bool(names & set(place.parameters))
    required = place.tool.parameters.get("required", [])
    if len(required) > 1 and place.tool.effect == "update":
        for one, other in itertools.pairwise(required):
            method = place.method()
            method.body[1:1] = statements(f"{one}, {other} = {other}, {one}")
            yield place.changed(method), _both_kept(place, one, other)


def _both_kept(place: Place, one: str, other: str) -> bool:
    """Whether both parameters are attributes of the record that the tool makes, and either may stand in the other."""
    made = {effect.entity for effect in place.tool.effects or () if effect.kind == "create"}
    for entity in place.skeleton.entities:
        kept = {attribute.name: attribute for attribute in entity.attributes}
        if entity.name in made and one in kept and other in kept:
            return (kept[one].references, kept[one].enum, kept[one].type) == (
                kept[other].references,
                kept[other].enum,
                kept[other].type,
            )
    return False


def _from_argument(place: Place, value: ast.expr) -> bool:
    """Whether a value is a parameter, or the key of the record that a parameter names."""
    if isinstance(value, ast.Name):
        return value.id in place.parameters
    return (
        isinstance(value, ast.Subscript)
        and isinstance(value.slice, ast.Constant)
        and any(str(value.slice.value) in name for name in place.parameters)
    )


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr == self._old:
            return ast.parse(self._new, mode="eval").body
        return node


def stale_index(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A query reads an index, or copies, that were made when the program was loaded and are not kept up to date."""
    if place.tool.effect != "query":
        return
    for entity in place.skeleton.entities:
        container = entity.container
        if container is None or f"self.{container}" not in ast.unparse(place.method()):
            continue
        # What else a query works out from the records has no name that tells it.
        gets = place.tool.name == f"get_{str(entity.key).removesuffix('_id')}"
        readable = _listed(place) is entity or gets
        index = f"{container}_index"
        kept = f"{{key: row for key, row in self.{container}.items() if key in self.{index}}}"
        copies = f"self.{index}"
        for form, at_init in (
            (kept, f"self.{index} = list(self.{container})"),
            (copies, f"self.{index} = copy.deepcopy(self.{container})"),
        ):
            method = _Renamed(container, form).visit(place.method())
            yield place.changed(method, at_init=at_init), readable and _written(place, entity, removed=form == kept)


def _written(place: Place, entity: Entity, *, removed: bool) -> bool:
    """Whether a tool makes or changes records of the entity at all, so that an index of them can be stale."""
    kinds = {
        effect.kind for tool in place.skeleton.tools for effect in tool.effects or () if effect.entity == entity.name
    }
    return "create" in kinds if removed else bool(kinds & {"create", "update", "delete"})


def ignored_filter(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A list or a search leaves out one of its conditions."""
    if place.tool.effect != "query":
        return
    for number, statement in enumerate(place.method().body):
        if isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Assign):
            method = place.method()
            del method.body[number]
            yield place.changed(method), _listed(place) is not None
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp):
            method = place.method()
            chosen = copy.deepcopy(statement)
            assert isinstance(chosen.value, ast.ListComp)
            chosen.value.generators[0].ifs = []
            method.body[number] = chosen
            yield place.changed(method), bool(place.parameters) and place.tool.name.startswith("find_")


SEMANTIC: dict[str, Mutation] = {
    "off-by-one": off_by_one,
    "missing rule": missing_rule,
    "swapped arguments": swapped_arguments,
    "stale index": stale_index,
    "ignored filter": ignored_filter,
}
