"""Faults of structure: what no tool may do, whatever it is for."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from envscaler.skeleton import EnvSkeleton

from .editing import Place, created, refusals, statements, work

Mutation = Callable[[Place], Iterator[tuple[EnvSkeleton, bool]]]
"""Environments with the fault in the method of a place; whether what is violated is machine-readable."""


def _container(place: Place) -> str:
    return next(entity.container for entity in place.skeleton.entities if entity.container is not None)


def query_writes(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A query counts, marks or tidies up."""
    if place.tool.effect != "query":
        return
    counter = next(key for key in ("next_", "current_") if f"self.{key}" in place.skeleton.source)
    name = next(
        word.split(":")[0].removeprefix("self.") for word in place.skeleton.source.split() if f"self.{counter}" in word
    )
    for text in (
        f"self.{name} = self.{name} * 2",
        f"self.{_container(place)}.pop(next(iter(self.{_container(place)}), ''), None)",
        "self.last_asked = self.current_time",
        f"for row in self.{_container(place)}.values():\n    row['seen'] = True",
    ):
        method = place.method()
        method.body[-1:-1] = statements(text)
        yield place.changed(method), True


def partial_write(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A write comes before the last test that can refuse the call."""
    method = place.method()
    tests = list(refusals(method))
    if place.tool.effect != "update" or len(tests) < 2:
        return
    known = {
        node.id
        for statement in method.body[: method.body.index(tests[-1])]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    } | {"self", *place.parameters}
    for statement in work(method):
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        counts = isinstance(statement, ast.AugAssign)
        if names <= known | {"str", "int", "float", "len", "sum", "round"} and (
            counts or isinstance(target, ast.Subscript)
        ):
            early = place.method()
            at = early.body.index(list(refusals(early))[-1])
            early.body.insert(at, copy.deepcopy(statement))
            yield place.changed(early), True


class _NoCopies(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return node.args[0] if name == "dict" and len(node.args) == 1 else node


def aliased_result(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A tool hands out the record that it keeps."""
    method = place.method()
    last = method.body[-1]
    if "dict(" in ast.unparse(last) and "self" not in ast.unparse(last):
        method.body[-1] = _NoCopies().visit(last)
        yield place.changed(method), True


def wrong_key(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """A field is read or written under another name, or a record is filed under another key."""
    attributes = {attribute.name for entity in place.skeleton.entities for attribute in entity.attributes}
    keys = [
        node.slice.value
        for node in ast.walk(place.method())
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in attributes
    ]
    for wanted in dict.fromkeys(keys):
        method = place.method()
        for node in ast.walk(method):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == wanted:
                node.slice = ast.Constant(f"{wanted}_value")
                break
        yield place.changed(method), True
    for number, _ in enumerate(created(place.method())):
        method = place.method()
        record = list(created(method))[number].value
        assert isinstance(record, ast.Dict)
        last = record.keys[-1]
        assert isinstance(last, ast.Constant)
        record.keys[-1] = ast.Constant(f"current_{last.value}")
        yield place.changed(method), True
        filed = place.method()
        for statement in work(filed):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name):
                target.slice = ast.parse(f"{target.slice.id}.lower()", mode="eval").body
                yield place.changed(filed), True
                break


def nondeterministic(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """What a tool returns depends on more than the state and the call."""
    for value, head in (
        ("os.getpid()", "import os"),
        ("next(_SERVED)", "import itertools\n\n_SERVED = itertools.count()"),
        ("len(_LOG) if _LOG.append(0) is None else 0", "_LOG = []"),
        ("threading.get_native_id()", "import threading"),
    ):
        method = place.method()
        returned = method.body[-1]
        assert isinstance(returned, ast.Return)
        assert isinstance(returned.value, ast.Dict)
        returned.value.keys.append(ast.Constant("trace"))
        returned.value.values.append(ast.parse(value, mode="eval").body)
        yield place.changed(method, head=head), True


def schema_mismatch(place: Place) -> Iterator[tuple[EnvSkeleton, bool]]:
    """The published schema and the signature are not of one mind."""
    schema = place.tool.parameters
    properties = schema["properties"]
    if not properties:
        return
    first = next(iter(properties))
    renamed = {(f"{name}_value" if name == first else name): part for name, part in properties.items()}
    required = [f"{name}_value" if name == first else name for name in schema.get("required", [])]
    yield place.with_schema({**schema, "properties": renamed, "required": required}), True
    fewer = {name: part for name, part in properties.items() if name != first}
    rest = [name for name in schema.get("required", []) if name != first]
    yield place.with_schema({**schema, "properties": fewer, "required": rest}), True
    yield place.with_schema({**schema, "properties": {**properties, first: {"type": "boolean"}}}), True
    method = place.method()
    method.args.args.append(ast.arg("reason", ast.Name("str")))
    method.args.defaults = [ast.Constant("") for _ in method.args.defaults] + [ast.Constant("")]
    yield place.changed(method), True


STRUCTURAL: dict[str, Mutation] = {
    "write in a query": query_writes,
    "partial write before an error": partial_write,
    "aliasing of returned state": aliased_result,
    "wrong key": wrong_key,
    "nondeterminism": nondeterministic,
    "schema mismatch": schema_mismatch,
}
