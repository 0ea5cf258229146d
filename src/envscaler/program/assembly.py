"""One module from a state class and its methods, by concrete syntax tree: comments and string contents survive.

Whether the result is any good is `analysis`'s business, how it looks `layout`'s.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from envscaler.errors import ProgramError
from envscaler.program.fences import Written, decorators_of, is_main_guard, names_in, written
from envscaler.program.imports import Imported, Imports, imports_in, well_known
from envscaler.program.layout import block_of, is_docstring, parse, rendered, spaced
from envscaler.program.names import attributes_by_name, undefined_names
from envscaler.program.state_class import class_name_of


def assemble(class_source: str, methods: Mapping[str, str], *, class_name: str | None = None) -> str:
    """One program from the state class and the code written for each tool.

    Imports move to the top and are merged; one that would rebind a name stays inside its method. Helper functions,
    classes and constants that come with a method move beside the state class; a method that is there already is
    replaced in its place. Imports of well-known names that are missing are added, a forgotten `self` is put in.

    Args:
        class_source: a module that defines the state class, perhaps with methods already.
        methods: by tool name, the code that defines it: a bare `def` (at any indentation), with imports and helper
            definitions around it, or inside the class.
        class_name: the state class; None: the one that `class_name_of` finds.

    Raises:
        ProgramError: naming the method that cannot be put in.

    Source: paper 3.2, assembly.
    """
    name = class_name or class_name_of(class_source)
    module = _Module.of(class_source, name)
    pieces = [written(tool, code, name) for tool, code in methods.items()]
    for piece in pieces:
        module.put(piece, tools=set(methods))
    return module.text()


def replace_method(source: str, class_name: str, name: str, code: str) -> str:
    """The program with `code` for method `name`, which need not be there yet; see `assemble`.

    Raises:
        ProgramError: if the code does not define it.
    """
    return assemble(source, {name: code}, class_name=class_name)


def remove_method(source: str, class_name: str, name: str) -> str:
    """The program without a method.

    Raises:
        ProgramError: if the class has no such method.
    """
    module = _Module.of(source, class_name)
    if name not in module.functions:
        raise ProgramError(f"{class_name} has no method {name}")
    module.members = [part for part in module.members if not _is_function(part, name)]
    return module.text()


@dataclass
class _Module:
    """A program taken apart."""

    header: Sequence[cst.EmptyLine]
    footer: Sequence[cst.EmptyLine]
    imports: Imports
    comments: list[cst.EmptyLine]
    """Comments of the import lines."""
    before: list[cst.CSTNode]
    """Statements before the state class, imports left out."""
    state_class: cst.ClassDef
    members: list[cst.CSTNode]
    """Statements of the state class."""
    after: list[cst.CSTNode]
    put_in: dict[str, str] = field(default_factory=dict)
    """Text of each helper that came with a method, by name."""

    @classmethod
    def of(cls, source: str, class_name: str) -> _Module:
        try:
            tree = parse(source.replace("\r\n", "\n"))
        except SyntaxError as error:
            where = f" (line {error.lineno})" if error.lineno else ""
            raise ProgramError(f"the program does not parse: {error.msg}{where}") from error
        imports = Imports()
        statements: list[cst.CSTNode] = []
        comments: list[cst.EmptyLine] = []
        for node in tree.body:
            kept = node
            if isinstance(node, cst.SimpleStatementLine):
                imported = [imports_in(small) for small in node.body]
                for found in imported:
                    imports.add(found or ())
                rest = [small for small, found in zip(node.body, imported, strict=True) if found is None]
                if len(rest) < len(node.body):
                    comments += _comments(node)
                    if not rest:
                        continue
                    kept = node.with_changes(body=rest, leading_lines=[])
                elif isinstance(node.body[0], cst.Expr) and not (is_docstring(node) and not statements):
                    # A call at the left edge would run when the program is loaded.
                    continue
            if not is_main_guard(kept):
                statements.append(kept)
        places = [
            index
            for index, node in enumerate(statements)
            if isinstance(node, cst.ClassDef) and node.name.value == class_name
        ]
        if not places:
            raise ProgramError(f"the program defines no class {class_name}")
        place = places[-1]
        state_class = cst.ensure_type(statements[place], cst.ClassDef)
        block = block_of(state_class)
        members = _without_repeats(block.body)
        if block.footer and members:
            # What stands at the end of the class goes with the last member, so that methods can follow.
            members[-1] = _with_footer(members[-1], block.footer)
        earlier = [node for index, node in enumerate(statements[:place]) if index not in places]
        return cls(tree.header, tree.footer, imports, comments, earlier, state_class, members, statements[place + 1 :])

    @property
    def functions(self) -> dict[str, cst.FunctionDef]:
        return {part.name.value: part for part in self.members if isinstance(part, cst.FunctionDef)}

    def put(self, piece: Written, *, tools: set[str]) -> None:
        """Put the parts of one piece of code in."""
        rebinding = self.imports.conflicts(piece.imports)
        self.imports.add(each for each in piece.imports if each not in rebinding)
        for node in piece.definitions:
            self._define(node, piece.name)
        for name, helper in piece.helpers.items():
            # Code that repeats the class repeats its other tools, which are somebody else's.
            if name in tools or (not name.startswith("_") and name in self.functions):
                continue
            self._differing(name, helper, piece.name)
            self._place(_with_imports(helper, rebinding))
        if piece.method is not None:
            self._place(_with_imports(piece.method, rebinding))

    def _define(self, node: cst.CSTNode, tool: str) -> None:
        for name in _defined(node):
            there = next((index for index, other in enumerate(self.before) if name in _defined(other)), None)
            if there is None and not any(name in _defined(other) for other in self.after):
                continue
            if isinstance(node, cst.FunctionDef) and there is not None:
                self._differing(name, node, tool)
                self.before[there] = node
            # A class or constant that is there already is what the state class was written against.
            return
        for name in _defined(node):
            self._differing(name, node, tool)
        self.before.append(node)

    def _differing(self, name: str, node: cst.CSTNode, tool: str) -> None:
        """
        Raises:
            ProgramError: if another method came with a different definition of the same name.
        """
        text = "".join(cst.Module(body=[]).code_for_node(node.with_changes(leading_lines=[])).split())
        if self.put_in.setdefault(name, text) != text:
            raise ProgramError(f"method `{tool}`: its helper `{name}` differs from the one another method brought")

    def _place(self, function: cst.FunctionDef) -> None:
        for index, part in enumerate(self.members):
            if _is_function(part, function.name.value):
                self.members[index] = function
                return
        self.members.append(function)

    def text(self) -> str:
        """The whole program.

        Raises:
            ProgramError: if it does not parse after all.
        """
        text = self._rendered()
        try:
            tree = ast.parse(text)
            missing = {use.name for use in undefined_names(text, tree)}
        except (SyntaxError, ValueError, RecursionError) as error:
            raise ProgramError(f"the assembled program does not parse: {error}") from error
        added = well_known(missing, attributes_by_name(tree))
        if added:
            self.imports.add(added)
            text = self._rendered()
        return text

    def _rendered(self) -> str:
        members = [part for part in self.members if not _is_filler(part)] or self.members[:1]
        block = cst.IndentedBlock(body=spaced(members, around_definitions=1))  # type: ignore[arg-type]
        body = [*self.before, self.state_class.with_changes(body=block), *self.after]
        docstring = [body.pop(0)] if is_docstring(body[0]) else []
        lines = [cst.parse_statement(line) for line in self.imports.lines()]
        if lines:
            lines[0] = lines[0].with_changes(leading_lines=self.comments)
        return rendered(self.header, [*docstring, *lines, *body], self.footer)


def _without_repeats(members: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """The members; of two functions with one name only the last, unless decorators tell them apart."""
    out: list[cst.CSTNode] = []
    for part in members:
        if isinstance(part, cst.FunctionDef) and not decorators_of(part):
            out = [other for other in out if not _is_function(other, part.name.value)]
        out.append(part)
    return out


def _with_imports(function: cst.FunctionDef, imported: Sequence[Imported]) -> cst.FunctionDef:
    """The function with those of the imports that it uses as its first statements."""
    if not imported:
        return function
    used = Imports()
    names = names_in(function)
    used.add(each for each in imported if each.bound.split(".")[0] in names)
    lines = [cst.parse_statement(line) for line in used.lines()]
    if not lines:
        return function
    block = block_of(function)
    start = 1 if block.body and is_docstring(block.body[0]) else 0
    body = [*block.body[:start], *lines, *block.body[start:]]
    return function.with_changes(body=block.with_changes(body=body))


def _with_footer(node: cst.CSTNode, footer: Sequence[cst.EmptyLine]) -> cst.CSTNode:
    block = getattr(node, "body", None)
    if isinstance(block, cst.IndentedBlock):
        return node.with_changes(body=block.with_changes(footer=[*block.footer, *footer]))
    return node


def _comments(node: cst.SimpleStatementLine) -> list[cst.EmptyLine]:
    """The comments of an import line, which outlive it."""
    lines = [line for line in node.leading_lines if line.comment is not None]
    trailing = node.trailing_whitespace.comment
    return [*lines, cst.EmptyLine(comment=trailing)] if trailing is not None else lines


def _defined(node: cst.CSTNode) -> set[str]:
    """The names that a statement at module level binds, as far as they tell definitions apart."""
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return {node.name.value}
    names: set[str] = set()
    for small in node.body if isinstance(node, cst.SimpleStatementLine) else ():
        targets = [part.target for part in small.targets] if isinstance(small, cst.Assign) else []
        if isinstance(small, cst.AnnAssign):
            targets = [small.target]
        names |= {target.value for target in targets if isinstance(target, cst.Name)}
    return names


def _is_function(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value == name


def _is_filler(node: cst.CSTNode) -> bool:
    """Whether a member is a `pass` or `...` that only kept the class from being empty."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return False
    small = node.body[0]
    return isinstance(small, cst.Pass) or (isinstance(small, cst.Expr) and isinstance(small.value, cst.Ellipsis))
