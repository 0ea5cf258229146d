"""`Reading`: what a check function asks of the final state, read off its code without running it.

It is read as far as published checks go: lookups, loops, comparisons with constants, small helpers. What is not
understood is left out; whether a state satisfies a check is only ever found by running it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from envscaler.state import JsonValue

Relation = Literal["is", "is_not", "above", "below", "contains", "among", "there", "gone", "yes", "refers"]
"""How a value is compared: equal, different, greater, smaller; it contains the constant; it is one of several; a key is
there or not; it counts as true; it is the id of some record of a container, whose name is the value."""

ANY = "*"
TODAY = "<today>"
"""In place of a constant: the day, or the moment, at which the check runs."""
_STATE = "final_state"
_OF_PROCESS = {"getpid", "time_ns", "perf_counter", "perf_counter_ns", "monotonic_ns", "process_time", "urandom"}
_CLOCK = {"today", "now", "utcnow"}
_SAME = {
    "isoformat",
    "strftime",
    "lower",
    "upper",
    "strip",
    "casefold",
    "title",
    "rstrip",
    "lstrip",
    "replace",
    "copy",
    "split",
    "date",
}
"""Methods that leave a value what it is, as far as what it says goes."""
_PASSING = {
    "str",
    "repr",
    "int",
    "float",
    "round",
    "list",
    "sorted",
    "set",
    "tuple",
    "dict",
    "len",
    "abs",
    "sum",
    "enumerate",
}


@dataclass(frozen=True)
class Demand:
    """One comparison of a part of the final state with a constant."""

    path: tuple[str, ...]
    """Keys on the way to the part, `*` where any will do."""
    relation: Relation
    value: JsonValue = None


@dataclass(frozen=True)
class Reading:
    """What is read off one check."""

    demands: tuple[Demand, ...] = ()
    constants: tuple[JsonValue, ...] = ()
    """All texts and numbers in it."""
    keys: frozenset[str] = frozenset()
    """Texts by which parts are looked up."""
    verdicts: frozenset[Any] = frozenset()
    """The constants that it returns; `...` stands for all else that it returns."""
    reads_state: bool = True
    """Whether what it returns can depend on the final state at all."""
    reads_initial: bool = False
    parts_of_texts: bool = False
    """Whether it looks for parts of texts."""
    whole: bool = False
    """Whether it compares whole states, or whole containers with each other."""
    by_process: bool = False
    """Whether it asks what differs from process to process: hashes, process ids, the order of a set, nanoseconds."""


@dataclass(frozen=True)
class _Part:
    """A part of the final state."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class _Initial:
    """A part of the initial state."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Key:
    """The key of some record of a container."""

    container: str


_Known = _Part | _Initial | _Constant | _Key | None


@lru_cache(maxsize=8192)
def read_check(source: str) -> Reading:
    """What a check asks for; an empty reading where it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reading()
    function = next(
        (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "check_func"), None
    )
    if function is None:
        return Reading()
    reader = _Reader(function)
    for statement in tree.body:
        reader.visit(statement)
    # A helper is read where it is defined, with its arguments unknown; names that are bound later are seen the
    # second time.
    reader.demands.clear()
    for statement in tree.body:
        reader.visit(statement)
    return Reading(
        demands=tuple(dict.fromkeys(reader.demands)),
        constants=tuple(dict.fromkeys(reader.constants)),
        keys=frozenset(reader.keys),
        verdicts=frozenset(_verdicts(function)),
        reads_state=_reads(function),
        reads_initial="initial_state" in source,
        parts_of_texts=reader.parts_of_texts,
        whole=reader.whole,
        by_process=reader.by_process,
    )


def _verdicts(function: ast.FunctionDef) -> Iterator[Any]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            yield node.value.value if isinstance(node.value, ast.Constant) else ...


def _reads(function: ast.FunctionDef) -> bool:
    name = function.args.args[0].arg if function.args.args else _STATE
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


@dataclass
class _Reader(ast.NodeVisitor):
    function: ast.FunctionDef
    names: dict[str, _Known] = field(default_factory=dict)
    demands: list[Demand] = field(default_factory=list)
    constants: list[JsonValue] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    parts_of_texts: bool = False
    whole: bool = False
    by_process: bool = False
    helpers: set[str] = field(default_factory=set)
    """Functions of one argument that the check defines: taken for ways to spell a value."""
    sets: set[str] = field(default_factory=set)
    unordered: set[str] = field(default_factory=set)
    """Names of lists made of sets."""

    def __post_init__(self) -> None:
        parameter = self.function.args.args[0].arg if self.function.args.args else _STATE
        self.names[parameter] = _Part(())
        self.names["initial_state"] = _Initial()

    # -- names ----------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node is not self.function and len(node.args.args) == 1:
            self.helpers.add(node.name)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._is_set(node.value):
            self.sets.update(target.id for target in node.targets if isinstance(target, ast.Name))
        listed = (
            node.value.args[:1] if isinstance(node.value, ast.Call) and _is_call(node.value, "list", "tuple") else []
        )
        if listed and self._is_set(listed[0]):
            self.unordered.update(target.id for target in node.targets if isinstance(target, ast.Name))
        self.generic_visit(node)
        for target in node.targets:
            self._bind(target, self._known(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value is not None:
            self._bind(node.target, self._known(node.value))

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehended(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehended(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehended(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.generic_visit(node)

    def _comprehended(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.visit(node.elt)

    def _loop(self, target: ast.expr, iterated: ast.expr) -> None:
        known = self._known(iterated)
        items = (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Attribute)
            and (iterated.func.attr == "items")
        )
        if isinstance(known, _Part):
            element: _Known = _Part((*known.path, ANY))
        elif isinstance(known, _Initial):
            element = _Initial((*known.path, ANY))
        else:
            element = None
        if items and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            is_container = isinstance(known, _Part) and len(known.path) == 1
            self._bind(target.elts[0], _Key(known.path[0]) if is_container and isinstance(known, _Part) else None)
            self._bind(target.elts[1], element)
        elif isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "enumerate":
            if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                self._bind(target.elts[1], element)
        else:
            self._bind(target, element)

    def _bind(self, target: ast.expr, known: _Known) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = known

    # -- what is asked for ----------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, (str, int, float)) and not isinstance(node.value, bool):
            self.constants.append(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # docstrings ask for nothing
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._compare(left, operator, right)
            left = right
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("startswith", "endswith", "find", "count"):
            part, constant = self._known(function.value), self._known(node.args[0]) if node.args else None
            if isinstance(part, _Part) and isinstance(constant, _Constant):
                self.parts_of_texts = True
                self.demands.append(Demand(part.path, "contains", constant.value))
        elif isinstance(function, ast.Attribute) and function.attr in ("append", "add") and node.args:
            # What is collected is looked through afterwards.
            part = self._known(node.args[0])
            if isinstance(part, _Part) and isinstance(function.value, ast.Name):
                self.names[function.value.id] = _Part(part.path[:-1])
        self.by_process = self.by_process or _asks_process(node)
        self._known(node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        listed = isinstance(node.value, ast.Call) and _is_call(node.value, "list", "tuple") and node.value.args[:1]
        name = node.value.id if isinstance(node.value, ast.Name) else None
        index = isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
        if index and ((listed and self._is_set(listed[0])) or name in self.unordered):
            self.by_process = True
        self._known(node)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._truth(node.test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._truth(node.value)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for value in node.values:
            self._truth(value)
        self.generic_visit(node)

    def _truth(self, node: ast.expr) -> None:
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node = node.operand
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool" and node.args:
            node = node.args[0]
        if isinstance(node, (ast.Call, ast.Subscript, ast.Name)):
            known = self._known(node)
            if isinstance(known, _Part) and known.path:
                self.demands.append(Demand(known.path, "yes"))

    def _compare(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> None:
        one, other = self._known(left), self._known(right)
        if isinstance(operator, ast.Eq | ast.NotEq) and not (_counts(left) or _counts(right)):
            self._note_whole(one, other)
        if isinstance(one, _Part) and isinstance(other, _Constant):
            self._demand(one.path, operator, other.value, turned=False)
        elif isinstance(one, _Constant) and isinstance(other, _Part):
            self._demand(other.path, operator, one.value, turned=True)
        for part, key in ((one, other), (other, one)):
            if isinstance(part, _Part) and isinstance(key, _Key):
                self.demands.append(Demand(part.path, "refers", key.container))

    def _note_whole(self, one: _Known, other: _Known) -> None:
        """Note a comparison of a state, or of all records of a container, with another one, or with a written one."""
        for part, against in ((one, other), (other, one)):
            if not isinstance(part, _Part) or len(part.path) > 1:
                continue
            written = isinstance(against, _Constant) and (
                isinstance(against.value, dict)
                or (isinstance(against.value, str) and against.value[:2] in ('{"', "{'"))
            )
            initial = isinstance(against, _Initial) and (against.path == part.path or not part.path)
            if written or initial:
                self.whole = True

    def _demand(self, path: tuple[str, ...], operator: ast.cmpop, value: Any, *, turned: bool) -> None:
        several = isinstance(value, (list, tuple, set, frozenset))
        relation: Relation
        if isinstance(operator, ast.In | ast.NotIn):
            if turned:
                relation = "contains"
                self.parts_of_texts = self.parts_of_texts or isinstance(value, str)
                self.demands.append(Demand(path, "gone" if isinstance(operator, ast.NotIn) else "there", value))
            elif several:
                relation = "among" if isinstance(operator, ast.In) else "is_not"
            else:
                # `status in "verified"`: the constant contains the value.
                relation, self.parts_of_texts = "is", True
        elif isinstance(operator, ast.Eq | ast.Is):
            relation = "is"
        elif isinstance(operator, ast.NotEq | ast.IsNot):
            relation = "is_not"
        elif isinstance(operator, ast.Gt | ast.GtE):
            relation = "below" if turned else "above"
        else:
            relation = "above" if turned else "below"
        for one in value if several else (value,):
            if one is None or isinstance(one, (str, int, float, bool)):
                self.demands.append(Demand(path, relation, one))

    def _is_set(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Set | ast.SetComp)
            or _is_call(node, "set", "frozenset")
            or (isinstance(node, ast.Name) and node.id in self.sets)
        )

    # -- what an expression is ------------------------------------------------------------------------------

    def _known(self, node: ast.expr) -> _Known:
        if isinstance(node, ast.Constant):
            return _Constant(node.value)
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = [self._known(part) for part in node.elts]
            if parts and all(isinstance(part, _Constant) for part in parts):
                return _Constant(tuple(part.value for part in parts if isinstance(part, _Constant)))
            return None
        if isinstance(node, ast.Subscript):
            return self._looked_up(self._known(node.value), node.slice)
        if isinstance(node, ast.BoolOp):
            return self._known(node.values[0])
        if isinstance(node, ast.IfExp):
            return self._known(node.body)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            known = self._known(node.operand)
            number = known.value if isinstance(known, _Constant) else None
            return _Constant(-number) if isinstance(number, (int, float)) else None
        if isinstance(node, ast.Dict) and node.keys:
            return _Constant({})
        if isinstance(node, ast.DictComp) and len(node.generators) == 1:
            return self._known(node.generators[0].iter)
        if isinstance(node, ast.BinOp):
            # `abs(amount - 5.0) < 0.01`
            one, other = self._known(node.left), self._known(node.right)
            if isinstance(node.op, ast.Sub) and isinstance(one, _Part) and isinstance(other, _Constant):
                self.demands.append(Demand(one.path, "is", other.value))
            if isinstance(node.op, ast.Add) and isinstance(one, _Constant) and isinstance(other, _Constant):
                texts = isinstance(one.value, str) and isinstance(other.value, str)
                if texts:
                    self.constants.append(one.value + other.value)
                    return _Constant(one.value + other.value)
            return None
        return self._called(node) if isinstance(node, ast.Call) else None

    def _called(self, node: ast.Call) -> _Known:
        function = node.func
        if isinstance(function, ast.Name):
            passes = function.id in _PASSING or function.id in self.helpers
            return self._known(node.args[0]) if passes and node.args else None
        if not isinstance(function, ast.Attribute):
            return None
        if function.attr in _CLOCK:
            return _Constant(TODAY)
        if function.attr in ("deepcopy", "dumps", "copy") and node.args:
            return self._known(node.args[0])
        known = self._known(function.value)
        if function.attr == "get" and node.args:
            return self._looked_up(known, node.args[0])
        if function.attr in ("values", "items", "keys"):
            return known
        if function.attr in _SAME:
            if isinstance(known, _Constant) and isinstance(known.value, str) and function.attr in ("lower", "casefold"):
                return _Constant(known.value.lower())
            return known
        return None

    def _looked_up(self, known: _Known, key: ast.expr) -> _Known:
        at = self._known(key)
        token = at.value if isinstance(at, _Constant) and isinstance(at.value, str) else ANY
        if isinstance(known, _Part):
            if token != ANY:
                self.keys.add(token)
            return _Part((*known.path, token))
        if isinstance(known, _Initial):
            return _Initial((*known.path, token))
        return None


def _is_call(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _counts(node: ast.expr) -> bool:
    """Whether an expression looks at numbers or keys of records and not at what they hold."""
    if _is_call(node, "len", "sum"):
        return True
    if _is_call(node, "set", "sorted", "list", "frozenset", "tuple") and isinstance(node, ast.Call) and node.args:
        inner = node.args[0]
        return not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr != "keys")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def _asks_process(node: ast.Call) -> bool:
    if _is_call(node, "hash", "id"):
        return True
    if _is_call(node, "next") and node.args and _is_call(node.args[0], "iter"):
        inner = node.args[0]
        assert isinstance(inner, ast.Call)
        return bool(inner.args) and (isinstance(inner.args[0], ast.Set | ast.SetComp) or _is_call(inner.args[0], "set"))
    return isinstance(node.func, ast.Attribute) and node.func.attr in _OF_PROCESS
