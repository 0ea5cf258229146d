"""`Method`: the parts of a generated tool method that faults are planted into, and calls that are known to work.

A generated method has a docstring, then tests that return a failure, then writes, then the result. Edits are made in
its text, line by line, so that the rest of the program stays as it was.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

from envscaler.probe import valid_arguments
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import State

from .bench import Bench, remembered, succeeded
from .grounds import Ground, clean, grounds, varied


@dataclass(frozen=True)
class Refusal:
    """A test that returns a failure."""

    first: int
    """Line of the `if`, from 0."""
    last: int
    """Line after its body."""
    test: str
    """The condition."""
    pattern: str
    """What its message matches."""


@dataclass(frozen=True)
class Method:
    """One tool method of a program."""

    skeleton: EnvSkeleton
    tool: ToolSpec

    @cached_property
    def _span(self) -> tuple[int, int]:
        """Its lines in the program, from 0."""
        top = next(
            node
            for node in _parsed(self.skeleton.source).body
            if isinstance(node, ast.ClassDef) and node.name == self.skeleton.class_name
        )
        node = next(n for n in top.body if isinstance(n, ast.FunctionDef) and n.name == self.tool.name)
        return node.lineno - 1, node.end_lineno or node.lineno

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the method, without the class's indentation."""
        first, last = self._span
        return [line.removeprefix("    ") for line in self.skeleton.source.splitlines()[first:last]]

    @cached_property
    def body(self) -> list[ast.stmt]:
        """Its statements after the docstring."""
        node = ast.parse("\n".join(self.lines)).body[0]
        assert isinstance(node, ast.FunctionDef)
        return node.body[1:]

    @property
    def start(self) -> int:
        """The first line after the docstring."""
        return self.body[0].lineno - 1

    @property
    def end(self) -> int:
        """The line of the final return."""
        return self.body[-1].lineno - 1

    @cached_property
    def refusals(self) -> list[Refusal]:
        """The tests at the top level, in order."""
        found = []
        for statement in self.body:
            message = _failure(statement)
            if isinstance(statement, ast.If) and message is not None:
                last = statement.end_lineno or statement.lineno
                found.append(Refusal(statement.lineno - 1, last, ast.unparse(statement.test), _pattern(message)))
        return found

    @property
    def work(self) -> list[ast.stmt]:
        """The statements between the last test and the final return: what writes."""
        after = self.refusals[-1].last if self.refusals else self.start
        return [statement for statement in self.body[:-1] if statement.lineno > after]

    @cached_property
    def rules(self) -> dict[str, Refusal]:
        """Each rule that the docstring names with the test that enforces it; tests of rules come last, in order."""
        text = "\n".join(self.lines[: self.start])
        listed = text.partition("Rules:\n")[2]
        rules = [line.strip()[2:] for line in listed.splitlines() if line.strip().startswith("- ")]
        return dict(zip(rules, self.refusals[-len(rules) :], strict=False)) if rules else {}

    def edited(self, first: int, last: int, *lines: str) -> EnvSkeleton:
        """The environment in whose method the lines from `first` to before `last` are others."""
        inserted = textwrap.indent("\n".join(lines), "    ").splitlines()
        return self.replaced([*self.lines[:first], *inserted, *self.lines[last:]])

    def replaced(self, lines: list[str]) -> EnvSkeleton:
        """The environment in which the method has these lines."""
        first, last = self._span
        program = self.skeleton.source.splitlines()
        text = [f"    {line}" if line else "" for line in lines]
        source = "\n".join([*program[:first], *text, *program[last:]]) + "\n"
        return with_source(self.skeleton, source)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def with_source(skeleton: EnvSkeleton, source: str) -> EnvSkeleton:
    """The environment with another program."""
    return varied(skeleton, source=source)


def with_line(skeleton: EnvSkeleton, line: str) -> str:
    """The program with a line at the end of `__init__`."""
    lines = skeleton.source.splitlines(keepends=True)
    last = max(index for index, text in enumerate(lines) if re.match(r"        self\.current_time: ", text))
    return "".join([*lines[: last + 1], f"        {line}\n", *lines[last + 1 :]])


def _failure(statement: ast.stmt) -> ast.expr | None:
    """The message of a test that returns a failure, or None."""
    if not isinstance(statement, ast.If) or len(statement.body) != 1 or statement.orelse:
        return None
    returned = statement.body[0]
    if not isinstance(returned, ast.Return) or not isinstance(returned.value, ast.Dict):
        return None
    parts = {
        ast.unparse(key): value for key, value in zip(returned.value.keys, returned.value.values, strict=True) if key
    }
    return parts.get("'error'") if ast.unparse(parts.get("'success'", ast.Constant(None))) == "False" else None


def _pattern(message: ast.expr) -> str:
    if isinstance(message, ast.JoinedStr):
        parts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in message.values]
        return "".join(parts)
    return re.escape(ast.literal_eval(message))


@dataclass(frozen=True)
class Attempt:
    """A call from a state, in the clean program."""

    tool: ToolSpec
    scenario: Scenario
    state: State
    call: SolutionCall
    result: object
    worked: bool
    changed: bool


_PER_TOOL = 15
"""Calls of each update that are tried in each scenario."""


@remembered
def attempts(env_id: str, bench: Bench) -> tuple[Attempt, ...]:
    """Calls of every tool, most with arguments that the schema allows, tried in the clean program."""
    draw = Random(env_id)
    tried = []
    for ground in (ground for ground in grounds() if ground.skeleton.id == env_id):
        skeleton, scenario = ground.skeleton, ground.scenario
        plain = [
            SolutionCall(name=tool.name, arguments=_arguments(tool, skeleton, scenario, draw))
            for tool in skeleton.tools
            for _ in range(_PER_TOOL if tool.effect == "update" else 3)
        ]
        draw.shuffle(plain)
        calls = [*ground.solution, *plain]
        played = bench.solve(skeleton, scenario, calls)
        for call, before, outcome in zip(calls, played.states, played.outcomes, strict=False):
            tool = skeleton.tool(call.name)
            assert tool is not None
            literal = SolutionCall(name=call.name, arguments=call.resolved(played.results))
            tried.append(Attempt(tool, scenario, before, literal, outcome.result, succeeded(outcome), outcome.changed))
    draw.shuffle(tried)
    return tuple(tried)


def _arguments(tool: ToolSpec, skeleton: EnvSkeleton, scenario: Scenario, draw: Random) -> dict[str, object]:
    return valid_arguments(tool, scenario.initial_state, skeleton.entities, draw)


def try_out(bench: Bench, skeleton: EnvSkeleton, attempt: Attempt) -> tuple[bool, bool, State]:
    """Whether the same call works in another program, whether it changes the state, and the state after it."""
    played = bench.play(skeleton, attempt.state, [attempt.call], clock=attempt.scenario.clock)
    return succeeded(played.outcomes[0]), played.outcomes[0].changed, played.final


def still_solved(bench: Bench, ground: Ground, skeleton: EnvSkeleton) -> tuple[Scenario, ...]:
    """Scenarios of the environment whose solutions run and satisfy their checks in another program."""
    scenarios = next(scenarios for env, scenarios in clean() if env.id == ground.skeleton.id)
    fresh = (varied(scenario, env_digest=skeleton.digest) for scenario in scenarios)
    return tuple(scenario for scenario in fresh if bench.solved(skeleton, scenario))
