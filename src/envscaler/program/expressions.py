"""What the expressions of a method stand for, as terms over the state and the parameters, all names taken away.

Statements and what they change are `effects`' business. Nothing is executed: a name that two branches set differently
is a choice, and whatever is not understood is an operation on what is.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from envscaler.program.module_facts import ModuleFacts
from envscaler.program.state_class import FunctionNode
from envscaler.program.terms import Constant, Sorts, Term, Terms, Value

Names = dict[str, Value]
_SAME = frozenset({"list", "tuple", "dict", "iter", "copy", "deepcopy"})
"""Calls that give what they were given, changed by nobody else."""
_PICKS = frozenset({"next", "min", "max", "pop", "choice"})
"""Calls that give one of what goes through their first argument."""
_ORDERS = frozenset({"sorted", "reversed", "filter"})


class Expressions(ABC):
    """Evaluates expressions of one program; `terms` and `sorts` are shared by all of its tools."""

    def __init__(self, module: ModuleFacts, terms: Terms, sorts: Sorts) -> None:
        self.module = module
        self.terms = terms
        self.sorts = sorts
        self._open: list[Term] = []
        """What is being gone through, outermost first."""
        self.tried: list[list[Term]] = []
        """Calls made in each `try` that is open."""

    @abstractmethod
    def inlined(self, function: FunctionNode, arguments: Names, owner: str | None) -> Value | None:
        """What a function of the program gives; None when it calls itself."""

    @abstractmethod
    def changed(self, target: Value, method: str, arguments: Sequence[Value], names: Mapping[str, Value]) -> None:
        """Record that a method changes a part of the state."""

    # -- leaves --

    def constant(self, value: object) -> Value:
        """A literal."""
        kind = "number" if type(value) in (int, float) else type(value).__name__
        return Value(self.terms.term(f"constant {kind}"), constant=Constant(value))

    def attribute(self, container: str | None, name: str) -> Term:
        """A key of the records of a container."""
        kind = self.module.kind(container, name) if container is not None else "key"
        return self.terms.term(f"attribute {kind}", identity=f"{container or ''}\n{name}")

    def container(self, name: str) -> Value:
        """A state attribute."""
        kind, mapping = self.module.container_kind(name)
        term = self.terms.term(f"container {kind}", identity=name)
        each = Value(self._each(term), record=name, stored=True)
        key = Value(self.terms.term("key of", ("0", each.term)))
        self.sorts.key(key.term, name)
        return Value(term, container=name, record=name, stored=True, element=key if mapping else each)

    def operation(self, label: str, *values: Value, **named: Value) -> Value:
        """What an operation makes of values."""
        term = self.terms.operation(label, [value.term for value in values])
        if named:
            more = sorted((f"named {role}", value.term) for role, value in named.items())
            term = self.terms.term(label, *self.terms.parts(term), *more)
        return Value(term)

    # -- truth --

    def holds(self, tree: ast.expr, names: Names) -> Term:
        """What must be so for an expression to count as true."""
        match tree:
            case ast.BoolOp(op=op, values=parts):
                return self.terms.operation(type(op).__name__, [self.holds(part, names) for part in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.terms.negated(self.holds(operand, names))
        return self.truth(self.value(tree, names))

    def truth(self, value: Value) -> Term:
        """What must be so for a value to count as true."""
        decided = self._decided(value, [case.truth for _, case in value.cases])
        if decided is not None:
            return decided
        if value.record is not None and value.key is not None:
            return self.terms.term("present", ("0", value.key), ("1", self.container(value.record).term))
        return value.term

    def _decided(self, value: Value, known: Sequence[bool | None]) -> Term | None:
        """What must be so for a choice to be one of the cases that are known to be true; None: it cannot be told."""
        if None in known or not value.cases or value.cases[-1][0]:
            return None
        # The last case is what is left: it holds where none of those of the other kind does.
        others = [case[0] for case, true in zip(value.cases, known, strict=True) if true != known[-1]]
        if not others:
            return None
        term = self.terms.operation("Or", [self.terms.operation("And", conditions) for conditions in others])
        return self.terms.negated(term) if known[-1] else term

    # -- expressions --

    def value(self, tree: ast.expr | None, names: Names) -> Value:
        """What an expression gives."""
        match tree:
            case None:
                return self.constant(None)
            case ast.Constant(value=value):
                return self.constant(value)
            case ast.JoinedStr(values=parts):
                return self._text([part.value for part in parts if isinstance(part, ast.FormattedValue)], names)
            case ast.Name(id=name):
                return names[name] if name in names else self._global(name)
            case ast.Attribute():
                return self._attribute_of(tree, names)
            case ast.Subscript():
                return self._subscript(tree, names)
            case ast.Call():
                return self._call(tree, names)
            case ast.Compare():
                return self._compare(tree, names)
            case ast.BoolOp(op=ast.Or(), values=[first, *rest]) if not isinstance(first, ast.Compare):
                return self._either(self.value(first, names), [self.value(part, names) for part in rest])
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Value(self.holds(tree, names))
            case ast.UnaryOp(operand=ast.Constant()):
                return self.constant(-1)
            case ast.UnaryOp(op=op, operand=operand):
                return self.operation(type(op).__name__, self.value(operand, names))
            case ast.BinOp(op=op, left=left, right=right):
                return self._binary(op, self.value(left, names), self.value(right, names))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                found, otherwise = self.value(body, names), self.value(orelse, names)
                if found.key is not None and otherwise.is_none:
                    return found  # a look-up that is not made with what cannot be a key finds nothing
                return self.choice([((self.holds(test, names),), found), ((), otherwise)])
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, names)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return self._collection(tree, parts, names)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(tree, names)
            case ast.NamedExpr(target=target, value=inner):
                names[target.id] = self.value(inner, names)
                return names[target.id]
            case ast.Lambda(args=given, body=body):
                unknown = {part.arg: Value(self.terms.term("argument")) for part in given.args}
                return self.value(body, {**names, **unknown})
            case ast.Starred(value=inner):
                return self.operation("spread", self.value(inner, names))
        inside = [self.value(part, names) for part in ast.iter_child_nodes(tree) if isinstance(part, ast.expr)]
        return self.operation(type(tree).__name__, *inside)

    def choice(self, cases: Sequence[tuple[tuple[Term, ...], Value]]) -> Value:
        """One of several values."""
        if len({value.term for _, value in cases}) == 1 and len({value.constant is None for _, value in cases}) == 1:
            constants = {repr(value.constant.value) for _, value in cases if value.constant is not None}
            if len(constants) <= 1 and all(value.fields is None for _, value in cases):
                return cases[-1][1]
        parts = []
        for conditions, value in cases:
            case = self.terms.term("case", ("value", value.term), *(("when", condition) for condition in conditions))
            parts.append(case)
        found = next((value for _, value in cases if value.record is not None), None)
        return Value(
            self.terms.operation("choice", parts),
            cases=tuple(cases),
            record=found.record if found is not None else None,
            stored=found is not None and found.stored,
            key=found.key if found is not None else None,
            element=next((value.element for _, value in cases if value.element is not None), None),
        )

    def each(self, value: Value) -> Value:
        """What going through a value gives."""
        if value.element is not None:
            return value.element
        return Value(self._each(value.term), record=value.record, stored=value.stored)

    def entry(self, value: Value, name: str) -> Value:
        """The entry of a dict under a key that the program writes out."""
        if value.fields is not None and name in value.fields:
            return value.fields[name]
        if value.cases and all(case.fields is not None or case.truth is False for _, case in value.cases):
            return self.choice([(conditions, self.entry(case, name)) for conditions, case in value.cases])
        attribute = self.attribute(value.record, name)
        term = self.terms.term("field", ("record", value.term), ("attribute", attribute))
        self.sorts.same(term, attribute)
        return Value(term, record=value.record, stored=value.stored)

    def opened(self, target: ast.expr, value: Value, names: Names) -> None:
        """Give a value the names of a target."""
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for position, part in enumerate(target.elts):
                self.opened(part, self.member(value, position), names)

    def member(self, value: Value, position: int) -> Value:
        """One member of a tuple."""
        if value.members is not None and position < len(value.members):
            return value.members[position]
        if value.cases and all(case.members is not None for _, case in value.cases):
            return self.choice([(conditions, self.member(case, position)) for conditions, case in value.cases])
        return Value(self.terms.term(f"member {position}", ("0", value.term)), record=value.record, stored=value.stored)

    # -- the kinds of expressions --

    def _each(self, term: Term) -> Term:
        depth = self._open.count(term)
        return self.terms.term(f"each {depth}", ("0", term))

    def _text(self, parts: Sequence[ast.expr], names: Names) -> Value:
        return Value(self.operation("text", *(self.value(part, names) for part in parts)).term, text=True)

    def _global(self, name: str) -> Value:
        constant = self.module.constants.get(name)
        if constant is not None:
            return self.value(constant, {})
        return Value(self.terms.term(f"name {self.module.outside(name)}"))

    def _attribute_of(self, tree: ast.Attribute, names: Names) -> Value:
        if isinstance(tree.value, ast.Name) and (names.get(tree.value.id) is SELF or tree.value.id in self.module.own):
            if tree.attr in self.module.constants:
                return self.value(self.module.constants[tree.attr], {})
            if names.get(tree.value.id) is SELF:
                return self.container(tree.attr) if tree.attr not in self.module.functions else self._global("")
            return self.constant("")
        owner = self.value(tree.value, names)
        if tree.attr == "value" and owner.constant is not None:
            return owner  # the value of a member of an enumeration
        if owner.record is not None:
            return self.entry(owner, tree.attr)
        return self.operation(f"get {self.module.outside(tree.attr)}", owner)

    def _subscript(self, tree: ast.Subscript, names: Names) -> Value:
        owner = self.value(tree.value, names)
        if isinstance(tree.slice, ast.Slice):
            bounds = [part for part in (tree.slice.lower, tree.slice.upper, tree.slice.step) if part is not None]
            cut = self.operation("slice", owner, *(self.value(part, names) for part in bounds))
            return Value(cut.term, record=owner.record, stored=owner.stored, element=owner.element)
        return self.at(owner, self.value(tree.slice, names))

    def at(self, owner: Value, key: Value) -> Value:
        """What stands in a value under a key or an index."""
        known = key.constant.value if key.constant is not None else None
        if isinstance(known, str):
            return self.entry(owner, known)
        if isinstance(known, int) and (owner.members is not None or owner.cases):
            return self.member(owner, known)
        if owner.container is not None:
            self.sorts.key(key.term, owner.container)
            term = self.terms.term("record", ("of", owner.term), ("key", key.term))
            return Value(term, record=owner.container, stored=True, key=key.term)
        element = owner.element if isinstance(known, int) else None
        term = self.operation("at", owner, key).term
        return Value(term, record=element.record if element else owner.record, stored=owner.stored)

    def _compare(self, tree: ast.Compare, names: Names) -> Value:
        terms = []
        left = self.value(tree.left, names)
        for op, comparator in zip(tree.ops, tree.comparators, strict=True):
            right = self.value(comparator, names)
            terms.append(self._compared(left, op, right))
            left = right
        return Value(self.terms.operation("And", terms))

    def _compared(self, left: Value, op: ast.cmpop, right: Value) -> Term:
        label = type(op).__name__
        none = [side for side in (left, right) if side.constant is not None and side.constant.value is None]
        if none and label in {"Is", "IsNot", "Eq", "NotEq"}:
            other = right if none[0] is left else left
            decided = self._decided(other, [case.is_none for _, case in other.cases])
            if decided is not None:
                return decided if label in {"Is", "Eq"} else self.terms.negated(decided)
            if other.key is not None and other.record is not None:
                present = self.truth(other)
                return self.terms.negated(present) if label in {"Is", "Eq"} else present
            return self.terms.operation("Is" if label in {"Is", "Eq"} else "IsNot", [left.term, right.term])
        if label in {"In", "NotIn"} and right.container is not None:
            self.sorts.key(left.term, right.container)
            held = self.terms.term("present", ("0", left.term), ("1", right.term))
            return held if label == "In" else self.terms.negated(held)
        if label in {"Eq", "NotEq"} and left.constant is None and right.constant is None:
            self.sorts.same(left.term, right.term)
        if label in {"Gt", "GtE"}:
            left, right, label = right, left, "Lt" if label == "Gt" else "LtE"
        return self.terms.operation(label, [left.term, right.term])

    def _either(self, first: Value, rest: Sequence[Value]) -> Value:
        if all(value.constant is not None or value.truth is False for value in rest):
            return first  # `x or {}`: a default in place of nothing
        return self.operation("either", first, *rest)

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(op, ast.Mod) and left.constant is not None and isinstance(left.constant.value, str):
            return Value(self.operation("text", right).term, text=True)
        if isinstance(op, ast.Add) and (left.text or right.text):
            return Value(self.operation("text", left, right).term, text=True)
        return self.operation(type(op).__name__, left, right)

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], names: Names) -> Value:
        fields: dict[str, Value] = {}
        parts: list[Term] = []
        for key, tree in zip(keys, values, strict=True):
            value = self.value(tree, names)
            name = key.value if isinstance(key, ast.Constant) else None
            if isinstance(name, str):
                fields[name] = value
            elif key is None:
                fields.update(value.fields or {})
                parts.append(value.term)
            else:
                parts.append(self.operation("entry", self.value(key, names), value).term)
        return self.written(fields, parts)

    def written(self, fields: dict[str, Value], more: Sequence[Term] = ()) -> Value:
        """A dict written with its keys. They are keys of nothing yet, and so only their values count."""
        entries = [self.terms.term("entry", ("0", value.term)) for value in fields.values()]
        term = self.terms.term("dict", *sorted(("has", part) for part in [*entries, *more]))
        return Value(term, fields=fields)

    def _collection(self, tree: ast.expr, parts: Sequence[ast.expr], names: Names) -> Value:
        values = [self.value(part, names) for part in parts]
        if all(value.constant is not None for value in values) and not isinstance(tree, ast.Tuple):
            return Value(self.terms.term("constants" if values else "nothing"))
        if all(value.constant is not None for value in values):
            return Value(self.terms.term("constants"), members=tuple(values))
        return Value(self.operation("members", *values).term, members=tuple(values))

    def _comprehension(self, tree: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, names: Names) -> Value:
        inner = dict(names)
        conditions: list[Term] = []
        sources: list[Value] = []
        for generator in tree.generators:
            source = self.value(generator.iter, inner)
            self.opened(generator.target, self.each(source), inner)
            self._open.append(source.term)
            sources.append(source)
            for test in generator.ifs:
                conditions.extend(self.terms.alternatives(self.holds(test, inner), "And"))
        trees = [tree.key, tree.value] if isinstance(tree, ast.DictComp) else [tree.elt]
        given = [self.value(part, inner) for part in trees]
        del self._open[len(self._open) - len(sources) :]
        parts = [(f"through {position}", source.term) for position, source in enumerate(sources)]
        parts += sorted(("where", condition) for condition in conditions)
        if given[-1].term != self.each(sources[-1]).term:
            parts += [(f"gives {position}", value.term) for position, value in enumerate(given)]
        return Value(self.terms.term("those", *parts), element=given[0])

    # -- calls --

    def _call(self, tree: ast.Call, names: Names) -> Value:
        function = tree.func
        owner_function = self.module.called(tree, lambda name: names.get(name) is SELF)
        arguments = [self.value(part, names) for part in tree.args if not isinstance(part, ast.Lambda)]
        named = {part.arg: self.value(part.value, names) for part in tree.keywords if part.arg and part.arg != "key"}
        if owner_function is not None:
            given = self._bound(owner_function.node, owner_function.bound, arguments, named)
            value = self.inlined(owner_function.node, given, owner_function.self_name)
            return value if value is not None else self.operation("again", *arguments)
        if isinstance(function, ast.Name) and function.id in self.module.records:
            return self.written(dict(named))
        if isinstance(function, ast.Attribute):
            value = self._method(function, tree, arguments, named, names)
        else:
            name = self.module.outside(function.id) if isinstance(function, ast.Name) else "value"
            value = self._function(name, tree, arguments, named, names)
        for made in self.tried:
            made.append(value.term)
        return value

    def _bound(
        self, function: FunctionNode, bound: bool, arguments: Sequence[Value], named: Mapping[str, Value]
    ) -> Names:
        parameters = [*function.args.posonlyargs, *function.args.args][1 if bound else 0 :]
        given: Names = {}
        defaults = function.args.defaults
        for parameter, default in zip(reversed(parameters), reversed(defaults), strict=False):
            given[parameter.arg] = self.value(default, {})
        for parameter, keyword_default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            given[parameter.arg] = self.value(keyword_default, {})
        given.update({parameter.arg: value for parameter, value in zip(parameters, arguments, strict=False)})
        given.update(named)
        return given

    def _function(
        self, name: str, tree: ast.Call, arguments: list[Value], named: Mapping[str, Value], names: Names
    ) -> Value:
        first = arguments[0] if arguments else None
        if name in _SAME and first is not None and not named and len(arguments) == 1:
            return Value(
                first.term,
                record=first.record,
                key=first.key if name not in {"list", "tuple"} else None,
                element=self.each(first),
                fields=dict(first.fields) if first.fields is not None else None,
                cases=first.cases,
            )
        if name == "dict" and not arguments:
            return self.written(dict(named))
        if name in {"list", "dict", "set", "tuple"} and not arguments:
            return Value(self.terms.term("nothing"))
        ordering = next((part.value for part in tree.keywords if part.arg == "key"), None)
        lambdas = [part for part in [*tree.args, ordering] if isinstance(part, ast.Lambda)]
        through = first if first is not None else self.value(tree.args[1], names) if len(tree.args) > 1 else None
        more = []
        if through is not None:
            for one in lambdas:
                inner = {**names, **{part.arg: self.each(through) for part in one.args.args}}
                more.append(Value(self.holds(one.body, inner)) if name == "filter" else self.value(one.body, inner))
        value = self.operation(f"call {name}", *arguments, *more, **named)
        if through is None:
            return value
        if name in _ORDERS:
            return Value(value.term, element=self.each(through))
        if name == "enumerate":
            return Value(value.term, element=self._pair(Value(self.terms.term("index")), self.each(through)))
        if name == "zip":
            members = tuple(self.each(argument) for argument in arguments)
            return Value(value.term, element=Value(value.term, members=members))
        if name in _PICKS:
            picked = self.each(through)
            return Value(value.term, record=picked.record, stored=picked.stored, members=picked.members)
        if name == "str" and first is not None:
            return first
        return value

    def _method(
        self,
        function: ast.Attribute,
        tree: ast.Call,
        arguments: list[Value],
        named: Mapping[str, Value],
        names: Names,
    ) -> Value:
        name = self.module.outside(function.attr)
        owner = self.value(function.value, names)
        if name in {"copy", "deepcopy", "choice"} and arguments:
            return self._function(name, tree, arguments, named, names)
        if name == "copy":
            return self._function(name, tree, [owner], {}, names)
        if name == "sort" and not owner.stored:
            return self._function("sorted", tree, [owner], named, names)
        if name == "get" and arguments:
            return self.at(owner, arguments[0])
        if name in {"values", "items", "keys"} and not arguments:
            return self._view(owner, name)
        if name in {"format", "join"} and owner.constant is not None:
            return Value(self.operation("text", *arguments, **named).term, text=True)
        if name in MUTATORS and owner.stored:
            self.changed(owner, name, arguments, named)
            if name in {"pop", "popitem", "setdefault"} and arguments:
                found = self.at(owner, arguments[0])
                return Value(found.term, record=found.record, stored=name == "setdefault", key=found.key)
        return self.operation(f"do {name}", owner, *arguments, **named)

    def _view(self, owner: Value, name: str) -> Value:
        if owner.container is not None:
            each = Value(self._each(owner.term), record=owner.container, stored=True)
            key = Value(self.terms.term("key of", ("0", each.term)))
            self.sorts.key(key.term, owner.container)
            element = {"values": each, "keys": key, "items": self._pair(key, each)}[name]
            return Value(owner.term, container=owner.container if name == "keys" else None, element=element)
        each = Value(self._each(owner.term), record=owner.record, stored=owner.stored)
        key = Value(self.terms.term("key of", ("0", each.term)))
        element = {"values": each, "keys": key, "items": self._pair(key, each)}[name]
        return Value(owner.term, record=owner.record, stored=owner.stored, element=element)

    def _pair(self, first: Value, second: Value) -> Value:
        return Value(self.operation("members", first, second).term, members=(first, second))


SELF = Value(-1)
"""What the first parameter of a method stands for."""
MUTATORS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "add", "discard"}
    | {"sort", "reverse"}
)
"""Methods that change the dict, list or set that they are called on."""
