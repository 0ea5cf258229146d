"""`Place`: one tool method of a program as a syntax tree that a mutation may change."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from envscaler.skeleton import EnvSkeleton, Rule, ToolSpec


@dataclass(frozen=True)
class Place:
    """A tool of an environment and its method."""

    skeleton: EnvSkeleton
    tool: ToolSpec

    def method(self) -> ast.FunctionDef:
        """The method, parsed anew, so that it may be changed."""
        first, last = _spans(self.skeleton.source)[self.tool.name]
        lines = self.skeleton.source.splitlines()[first - 1 : last]
        method = ast.parse(textwrap.dedent("\n".join(lines))).body[0]
        assert isinstance(method, ast.FunctionDef)
        return method

    @cached_property
    def parameters(self) -> list[str]:
        """Names of the tool's parameters."""
        return list(self.tool.parameters["properties"])

    def changed(self, method: ast.FunctionDef, *, head: str = "", at_init: str = "") -> EnvSkeleton:
        """The environment with another text of the method.

        Args:
            head: lines before the class.
            at_init: a line at the end of `__init__`.
        """
        first, last = _spans(self.skeleton.source)[self.tool.name]
        lines = self.skeleton.source.splitlines()
        text = textwrap.indent(ast.unparse(ast.fix_missing_locations(method)), "    ")
        source = "\n".join([*lines[: first - 1], text, *lines[last:]]) + "\n"
        if at_init:
            ending = next(line for line in source.splitlines() if line.startswith("        self.current_time: "))
            source = source.replace(ending, f"{ending}\n        {at_init}", 1)
        name = self.skeleton.class_name
        if head:
            source = source.replace(f"class {name}:", f"{head}\n\n\nclass {name}:", 1)
        return replaced(self.skeleton, source=source)

    def with_schema(self, parameters: dict[str, object]) -> EnvSkeleton:
        """The environment in which the tool is published with another schema."""
        other = self.tool.model_copy(update={"parameters": parameters})
        tools = tuple(other if tool.name == self.tool.name else tool for tool in self.skeleton.tools)
        return replaced(self.skeleton, tools=tools)

    def rules(self, method: ast.FunctionDef) -> list[tuple[Rule | None, ast.If]]:
        """The tests of the method that refuse a call, each with the rule that it enforces.

        The generator writes the tests of rules last and names the rules in the docstring in the same order.
        """
        tests = list(refusals(method))
        told = (ast.get_docstring(method) or "").partition("Rules:\n")[2]
        texts = [line.strip()[2:] for line in told.splitlines() if line.strip().startswith("- ")]
        by_text = {rule.text: rule for rule in self.skeleton.rules}
        named = [by_text.get(text) for text in texts][-len(tests) :] if texts else []
        return list(zip([*[None] * (len(tests) - len(named)), *named], tests, strict=True))


@cache
def _spans(source: str) -> dict[str, tuple[int, int]]:
    """First and last line of each method."""
    return {
        node.name: (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    }


def replaced(skeleton: EnvSkeleton, **changes: object) -> EnvSkeleton:
    """The environment with other fields, and nothing kept of what was derived from the old ones."""
    fields = {name: getattr(skeleton, name) for name in EnvSkeleton.model_fields}
    return EnvSkeleton(**{**fields, **changes})


def refusals(method: ast.FunctionDef) -> Iterator[ast.If]:
    """The tests at the top level of a method that end it with a failure."""
    for statement in method.body:
        if isinstance(statement, ast.If) and len(statement.body) == 1 and isinstance(statement.body[0], ast.Return):
            yield statement


def work(method: ast.FunctionDef) -> list[ast.stmt]:
    """The statements between the last refusal and the final return."""
    tests = list(refusals(method))
    start = method.body.index(tests[-1]) + 1 if tests else 1
    return method.body[start:-1]


def created(method: ast.FunctionDef) -> Iterator[ast.AnnAssign]:
    """Assignments of a new record."""
    for statement in method.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Dict):
            yield statement


def statements(text: str) -> list[ast.stmt]:
    """Parsed statements."""
    return ast.parse(textwrap.dedent(text)).body
