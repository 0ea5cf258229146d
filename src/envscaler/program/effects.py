"""What a tool requires, changes and gives back, read from the statements of its method, names taken away.

Functions of the program that it calls are read where they are called. How facts become a graph is `structure`'s
business.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envscaler.program.expressions import MUTATORS, SELF, Expressions, Names
from envscaler.program.module_facts import ModuleFacts
from envscaler.program.state_class import FunctionNode
from envscaler.program.terms import Role, Sorts, Term, Terms, Value

_DEEPEST = 6
"""Calls of the program's own functions inside one another that are followed."""
_FAILURE = "success"
"""Key of a result that says whether the call did what it was asked for (paper 3.2)."""


@dataclass(frozen=True)
class Fact:
    """One thing that a tool requires, changes or gives back."""

    kind: str
    parts: tuple[tuple[Role, Term], ...]
    sets: tuple[tuple[Term, Term], ...] = ()
    """Attributes and what they are set to."""
    defaults: tuple[tuple[Term, Term], ...] = ()
    """The same for literals that creation gives; they count where something else uses the attribute."""


@dataclass
class _Frame:
    """A function that is being read."""

    outermost: bool
    function: FunctionNode
    returns: list[tuple[tuple[Term, ...], Value]] = field(default_factory=list)
    depth: int = 0
    """Length of the context at which it was called."""


class Effects(Expressions):
    """Reads the methods of one program."""

    def __init__(self, module: ModuleFacts, terms: Terms, sorts: Sorts) -> None:
        super().__init__(module, terms, sorts)
        self.facts: list[Fact] = []
        self._context: list[tuple[Role, Term]] = []
        """What must hold, and what is gone through, where the statement stands."""
        self._frames: list[_Frame] = []

    def tool(self, function: FunctionNode, parameters: Mapping[str, Term]) -> list[Fact]:
        """The facts of one tool.

        Args:
            parameters: the term of each parameter.
        """
        self.facts, self._context, self._frames = [], [], []
        names: Names = {name: Value(term) for name, term in parameters.items()}
        positional = [*function.args.posonlyargs, *function.args.args]
        if positional:
            names[positional[0].arg] = SELF
        self._frames.append(_Frame(True, function))
        self._block(function.body, names)
        return self.facts

    def inlined(self, function: FunctionNode, arguments: Names, owner: str | None) -> Value | None:
        if len(self._frames) > _DEEPEST or any(frame.function is function for frame in self._frames):
            return None
        names = dict(arguments)
        if owner is not None:
            names[owner] = SELF
        frame = _Frame(False, function, depth=len(self._context))
        self._frames.append(frame)
        ends = self._block(function.body, names)
        self._frames.pop()
        # The last case is what is left when none before it is so.
        last = frame.returns.pop()[1] if ends and frame.returns else self.constant(None)
        frame.returns.append(((), last))
        del self._context[frame.depth :]
        return frame.returns[0][1] if len(frame.returns) == 1 else self.choice(frame.returns)

    def changed(self, target: Value, method: str, arguments: Sequence[Value], names: Mapping[str, Value]) -> None:
        fields = {**(arguments[0].fields or {} if arguments else {}), **names}
        if method == "update" and target.container is None and fields:
            for name, value in fields.items():
                self._set(target, name, value)
        elif method in {"pop", "popitem", "remove", "discard", "clear"}:
            keys = tuple(("key", argument.term) for argument in arguments[:1])
            if target.container is not None and arguments:
                self.sorts.key(arguments[0].term, target.container)
            self._fact("delete", ("of", target.term), *keys)
        elif method in {"append", "add", "insert"} and target.container is not None and arguments:
            self._create(target, None, arguments[-1])
        elif method == "setdefault" and target.container is not None and len(arguments) > 1:
            self._create(target, arguments[0], arguments[1])
        else:
            values = tuple((f"value {position}", argument.term) for position, argument in enumerate(arguments))
            self._fact(f"change by {method}", ("to", target.term), *values)

    # -- statements --

    def _block(self, body: Sequence[ast.stmt], names: Names) -> bool:
        """Read statements; whether none after them is reached."""
        depth = len(self._context)
        ends = any(self._statement(statement, names) for statement in body)
        if self._frames[-1].depth <= depth:
            del self._context[depth:]
        return ends

    def _statement(self, statement: ast.stmt, names: Names) -> bool:
        match statement:
            case ast.Return(value=tree):
                self._returned(self.value(tree, names))
                return True
            case ast.Raise():
                self._refused()
                return True
            case ast.Continue() | ast.Break():
                return True
            case ast.If():
                return self._if(statement, names)
            case ast.Assert(test=test):
                refused = ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=[ast.Raise()], orelse=[])
                return self._if(refused, names)
            case ast.Match():
                return self._match(statement, names)
            case ast.For():
                self._for(statement, names)
            case ast.While(test=test, body=body):
                self._loop("while", self.holds(test, names), body, names)
            case ast.Try():
                return self._try(statement, names)
            case ast.With(items=opened, body=body):
                for part in opened:
                    self.value(part.context_expr, names)
                return self._block(body, names)
            case ast.Assign(targets=targets, value=tree):
                value = self.value(tree, names)
                for target in targets:
                    self._assigned(target, value, names)
            case ast.AnnAssign(target=target, value=tree) if tree is not None:
                self._assigned(target, self.value(tree, names), names)
            case ast.AugAssign(target=target, op=op, value=tree):
                before = self.value(target, names)
                self._assigned(target, self._binary(op, before, self.value(tree, names)), names)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._deleted(target, names)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=method)) as tree):
                self._called_for_effect(target, method, tree, names)
            case ast.Expr(value=tree):
                self.value(tree, names)
            case ast.FunctionDef(name=name):
                names[name] = Value(self.terms.term("function"))
        return False

    def _if(self, statement: ast.If, names: Names) -> bool:
        condition = self.holds(statement.test, names)
        opposite = self.terms.negated(condition)
        then, other = dict(names), dict(names)
        before = len(self.facts), self._returns()
        then_ends = self._within("when", condition, statement.body, then)
        silent = self._only_refused(before)
        before = len(self.facts), self._returns()
        other_ends = self._within("when", opposite, statement.orelse, other)
        if then_ends and other_ends:
            return True
        names.update(other if then_ends else then if other_ends else self._merged(condition, names, then, other))
        # After a refusal, what follows is what the tool does; after another early end it is one of two cases.
        if then_ends and not silent:
            self._context.append(("when", opposite))
        elif other_ends and not self._only_refused(before):
            self._context.append(("when", condition))
        return False

    def _match(self, statement: ast.Match, names: Names) -> bool:
        subject = self.value(statement.subject, names)
        ends, whole = True, False
        for case in statement.cases:
            parts = [node for node in ast.walk(case.pattern) if isinstance(node, ast.pattern)]
            kinds = " ".join(type(part).__name__ for part in parts)
            condition = self.terms.term(f"matches {kinds}", ("0", subject.term))
            inner = dict(names)
            for part in parts:
                captured = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
                if captured is not None:
                    inner[captured] = Value(self.terms.term("part", ("of", subject.term)))
            body: list[ast.stmt] = list(case.body)
            if case.guard is not None:
                body = [ast.If(test=case.guard, body=body, orelse=[])]
            case_ends = self._within("when", condition, body, inner)
            ends = ends and case_ends
            whole = whole or (
                case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
            )
            if not case_ends:
                names.update(self._merged(condition, names, inner, names))
        return ends and whole

    def _returns(self) -> int:
        return len(self._frames[-1].returns)

    def _only_refused(self, before: tuple[int, int]) -> bool:
        made, returned = self.facts[before[0] :], self._frames[-1].returns[before[1] :]
        if self._frames[-1].outermost:
            return bool(made) and all(fact.kind == "requires" for fact in made)
        return bool(returned) and all(self._fails(value) for _, value in returned) and not made

    def _within(self, role: Role, term: Term, body: Sequence[ast.stmt], names: Names) -> bool:
        depth = len(self._context)
        self._context.extend((role, part) for part in self.terms.alternatives(term, "And"))
        ends = self._block(body, names)
        del self._context[depth:]
        return ends

    def _merged(self, condition: Term, before: Names, then: Names, other: Names) -> Names:
        merged: Names = {}
        for name in {**then, **other}:
            one, two = then.get(name, before.get(name)), other.get(name, before.get(name))
            if one is None or two is None or one is two:
                kept = one if one is not None else two
                assert kept is not None
                merged[name] = kept
            else:
                merged[name] = self.choice([((condition,), one), ((), two)])
        return merged

    def _for(self, statement: ast.For, names: Names) -> None:
        through = self.value(statement.iter, names)
        element = self.each(through)
        self._open.append(through.term)
        self._loop("each", through.term, statement.body, names, statement.target, element)
        self._open.pop()
        if statement.orelse:
            self._block(statement.orelse, names)

    def _loop(
        self,
        role: Role,
        term: Term,
        body: Sequence[ast.stmt],
        names: Names,
        target: ast.expr | None = None,
        element: Value | None = None,
    ) -> None:
        inner = dict(names)
        for name in _assigned_in(body) & names.keys():
            if names[name] is not SELF:
                carried = self.terms.term("carried", ("0", names[name].term))
                inner[name] = Value(carried, record=names[name].record, element=names[name].element)
        if target is not None and element is not None:
            self.opened(target, element, inner)
        self._within(role, term, body, inner)
        for name, value in inner.items():
            before = names.get(name)
            if before is None or before is SELF:
                names[name] = value
            elif value is not before and name in _assigned_in(body):
                after = self.terms.term("loop", ("0", before.term), ("1", value.term), (role, term))
                names[name] = Value(after, record=value.record, element=value.element or before.element)

    def _try(self, statement: ast.Try, names: Names) -> bool:
        self.tried.append([])
        ends = self._block([*statement.body, *statement.orelse], names)
        made = self.tried.pop()
        raises = self.terms.term("raises", *sorted(("part", term) for term in set(made)))
        for handler in statement.handlers:
            inner = dict(names)
            if handler.name is not None:
                inner[handler.name] = Value(raises, text=True)
            handler_ends = self._within("when", raises, handler.body, inner)
            ends = ends and handler_ends
            if not handler_ends:
                names.update(self._merged(raises, names, inner, names))
        return self._block(statement.finalbody, names) or ends

    # -- what statements do --

    def _returned(self, value: Value) -> None:
        frame = self._frames[-1]
        if not frame.outermost:
            inside = self._context[frame.depth :]
            frame.returns.append((tuple(term for role, term in inside), value))
        elif self._fails(value):
            self._refused()
        else:
            self._fact("gives", *self._given(value))

    def _fails(self, value: Value) -> bool:
        """Whether a result says that the call failed."""
        if value.fields is not None:
            said = value.fields.get(_FAILURE)
            return said.truth is False if said is not None else "error" in value.fields
        return bool(value.cases) and any(self._fails(case) for _, case in value.cases)

    def _given(self, value: Value) -> list[tuple[Role, Term]]:
        """The parts of a result that are more than words."""
        if value.fields is None:
            return [("value", value.term)]
        parts = [part for part in value.fields.values() if part.constant is None and not part.text]
        return [
            given
            for part in parts
            for given in (self._given(part) if part.fields is not None else [("value", part.term)])
        ]

    def _refused(self) -> None:
        """One requirement for each way into a refusal."""
        conditions = [term for role, term in self._context if role == "when"]
        if not conditions:
            self._fact("requires")
            return
        last = max(position for position, (role, _) in enumerate(self._context) if role == "when")
        around = [*self._context[:last], *self._context[last + 1 :]]
        for way in self.terms.alternatives(conditions[-1], "Or"):
            parts = [("if", part) for part in self.terms.alternatives(way, "And")]
            self.facts.append(Fact("requires", tuple(sorted([*parts, *around]))))

    def _fact(self, kind: str, *parts: tuple[Role, Term]) -> None:
        self.facts.append(Fact(kind, tuple(sorted([*parts, *self._context]))))

    def _assigned(self, target: ast.expr, value: Value, names: Names) -> None:
        match target:
            case ast.Name():
                names[target.id] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for position, part in enumerate(parts):
                    self._assigned(part, self.member(value, position), names)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if names.get(owner) is SELF:
                container = self.container(attribute)
                self._fact("change", ("of", container.term), ("value", value.term))
            case ast.Attribute(value=owner_tree, attr=attribute):
                self._put(owner_tree, self.value(owner_tree, names), self.constant(attribute), value, names)
            case ast.Subscript(value=owner_tree, slice=key):
                self._put(owner_tree, self.value(owner_tree, names), self.value(key, names), value, names)

    def _put(self, tree: ast.expr, owner: Value, key: Value, value: Value, names: Names) -> None:
        name = key.constant.value if key.constant is not None else None
        if owner.container is not None and not isinstance(name, str):
            if value.stored and value.record == owner.container and value.key == key.term:
                return  # a record put back where it stands
            self._create(owner, key, value)
        elif owner.stored and isinstance(name, str):
            self._set(owner, name, value)
        elif owner.stored:
            self._fact("change", ("to", owner.term), ("key", key.term), ("value", value.term))
        elif owner.fields is not None and isinstance(name, str):
            self._rebound(tree, self.written({**owner.fields, name: value}), names)
        else:
            named = self.attribute(owner.record, name) if isinstance(name, str) else key.term
            put = self.terms.term("put", ("in", owner.term), ("key", named), ("value", value.term))
            self._rebound(tree, Value(put, record=owner.record, element=owner.element), names)

    def _set(self, owner: Value, name: str, value: Value) -> None:
        attribute = self.attribute(owner.record, name)
        if value.constant is None:
            self.sorts.same(attribute, value.term)
        fact = Fact("change", tuple(sorted([("to", owner.term), *self._context])), ((attribute, value.term),))
        self.facts.append(fact)

    def _create(self, owner: Value, key: Value | None, value: Value) -> None:
        assert owner.container is not None
        parts: list[tuple[Role, Term]] = [("of", owner.term)]
        if key is not None:
            self.sorts.key(key.term, owner.container)
            parts.append(("key", key.term))
        if value.fields is None:
            parts.append(("value", value.term))
        sets: list[tuple[Term, Term]] = []
        defaults: list[tuple[Term, Term]] = []
        for name, one in (value.fields or {}).items():
            attribute = self.attribute(owner.container, name)
            (defaults if one.constant is not None else sets).append((attribute, one.term))
            if one.constant is None:
                self.sorts.same(attribute, one.term)
        self.facts.append(Fact("create", tuple(sorted([*parts, *self._context])), tuple(sets), tuple(defaults)))

    def _deleted(self, target: ast.expr, names: Names) -> None:
        if not isinstance(target, ast.Subscript):
            return
        owner = self.value(target.value, names)
        key = self.value(target.slice, names)
        if owner.stored:
            if owner.container is not None:
                self.sorts.key(key.term, owner.container)
            self._fact("delete", ("of", owner.term), ("key", key.term))
        else:
            self._rebound(target.value, self.operation("without", owner, key), names)

    def _called_for_effect(self, target: ast.expr, method: str, tree: ast.Call, names: Names) -> None:
        value = self.value(tree, names)
        if method not in MUTATORS or not isinstance(_root(target), ast.Name):
            return
        owner = self.value(target, names)
        if not owner.stored and owner is not SELF:
            first = self.value(tree.args[0], names) if tree.args else None
            self._rebound(target, Value(value.term, record=owner.record, element=owner.element or first), names)

    def _rebound(self, tree: ast.expr, value: Value, names: Names) -> None:
        """Give what a local name holds its new content."""
        root = _root(tree)
        if not isinstance(root, ast.Name) or names.get(root.id) is SELF:
            return
        if root is tree:
            names[root.id] = value
        elif root.id in names:
            before = names[root.id]
            names[root.id] = Value(
                self.operation("with", before, value).term, record=before.record, element=before.element
            )


def _root(tree: ast.expr) -> ast.expr:
    while isinstance(tree, ast.Subscript | ast.Attribute):
        tree = tree.value
    return tree


def _assigned_in(body: Sequence[ast.stmt]) -> set[str]:
    """Local names that statements give another content."""
    found: set[str] = set()
    for part in (node for statement in body for node in ast.walk(statement)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found.add(part.id)
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
            root = _root(part)
            found |= {root.id} if isinstance(root, ast.Name) else set()
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in MUTATORS:
            root = _root(part.func.value)
            found |= {root.id} if isinstance(root, ast.Name) else set()
    return found
