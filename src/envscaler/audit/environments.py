"""`audit_environment`: what is wrong with a program, whatever its scenarios are: tools, rules, the contract.

Tools are called many times from the states of scenarios; what can be shown is shown with the call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from envscaler.env import examine_env
from envscaler.env.oracles import reports_failure
from envscaler.errors import ProgramError
from envscaler.evidence import AuditFinding, AuditKind
from envscaler.probe import valid_arguments
from envscaler.proof.fields import moment
from envscaler.sandbox import Judge, Program, Sandbox, Session
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, Rule, ToolSpec
from envscaler.state import JsonValue, State, leaves

STATES = 4
"""Scenarios whose states tools are called from."""
CALLS = 12
"""Calls of one tool from one state."""
_FEW = 24
"""Calls that have to fail before a tool counts as unreachable."""
_ORACLES: dict[str, AuditKind] = {
    "not_loadable": "does_not_build",
    "reset_incomplete": "reset_incomplete",
    "unbounded": "unbounded",
    "schema": "schema_differs",
    "query_writes": "query_writes",
    "failure_writes": "failure_writes",
    "nondeterministic": "program_nondeterministic",
    "not_json": "state_not_json",
}
_NUMBERS = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|[\w-]*\d[\w.-]*")


@dataclass
class _Tried:
    """What came of the calls of one tool."""

    calls: int = 0
    worked: int = 0
    changed: int = 0
    raised: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    """Failures without their particulars, each with an example."""
    strange: int = 0
    """Failures that name a text of the arguments which the state does not have: perhaps it was to be an id."""


async def audit_environment(
    skeleton: EnvSkeleton, scenarios: Sequence[Scenario], sandbox: Sandbox, judge: Judge, *, seed: int = 0
) -> list[AuditFinding]:
    """The findings about one environment.

    Args:
        scenarios: the first ones give the states that tools are called from; without any the empty state does.
    """
    return await _Environment(skeleton, scenarios, sandbox, judge, seed).findings()


class _Environment:
    def __init__(
        self, skeleton: EnvSkeleton, scenarios: Sequence[Scenario], sandbox: Sandbox, judge: Judge, seed: int
    ) -> None:
        self._skeleton = skeleton
        self._scenarios = scenarios
        self._sandbox = sandbox
        self._judge = judge
        self._rng = Random(seed)
        self._program = Program(skeleton.source, skeleton.class_name)
        self._tried = {tool.name: _Tried() for tool in skeleton.tools}
        self._ruled = [rule for rule in skeleton.rules if rule.predicate]
        self._found: list[AuditFinding] = []

    async def findings(self) -> list[AuditFinding]:
        start: State | Scenario = self._scenarios[0] if self._scenarios else {}
        for finding in await examine_env(self._skeleton, start, self._sandbox):
            self._add(_ORACLES[finding.oracle], finding.detail, place=self._tool_in(finding.detail))
        if any(finding.kind == "does_not_build" for finding in self._found):
            return self._found
        for scenario in _spread(self._scenarios, STATES):
            await self._explore(scenario)
        for tool in self._skeleton.tools:
            self._judge_tool(tool, self._tried[tool.name])
        return self._found

    def _tool_in(self, detail: str) -> str:
        words = set(re.findall(r"\w+", detail))
        return next((tool.name for tool in self._skeleton.tools if tool.name in words), "")

    async def _explore(self, scenario: Scenario) -> None:
        await self._follow(scenario, scenario.solution or ())
        for tool in self._skeleton.tools:
            watched = any(tool.name in rule.tools for rule in self._ruled)
            for _ in range(2 if watched else 1):
                await self._try(scenario, tool)

    async def _follow(self, scenario: Scenario, solution: Sequence[SolutionCall]) -> None:
        if not solution:
            return
        try:
            async with self._sandbox.trial(
                self._program, scenario.initial_state, seed=scenario.seed, clock=scenario.clock
            ) as session:
                results: list[JsonValue] = []
                for call in solution:
                    results.append(await self._call(session, call.name, call.resolved(results)))
        except ProgramError as error:
            self._add("does_not_build", str(error), scenario.id)

    async def _try(self, scenario: Scenario, tool: ToolSpec) -> None:
        try:
            async with self._sandbox.trial(
                self._program, scenario.initial_state, seed=scenario.seed, clock=scenario.clock
            ) as session:
                for number in range(CALLS):
                    state = await session.state() if tool.effect == "update" else scenario.initial_state
                    arguments = valid_arguments(tool, state, self._skeleton.entities, self._rng)
                    if number % 2:
                        arguments = self._varied(tool, arguments, state)
                    await self._call(session, tool.name, arguments)
        except ProgramError as error:
            self._add("does_not_build", str(error), scenario.id)

    def _varied(self, tool: ToolSpec, arguments: dict[str, JsonValue], state: State) -> dict[str, JsonValue]:
        """The arguments with numbers that failures have named, and with texts that nothing has yet.

        Where a failure has named such a text and no call has succeeded, it may be meant to be an id, whatever its
        parameter is called; then all of them are ids of one collection.
        """
        told = "\n".join(self._tried[tool.name].errors.values())
        numbers = [float(number) for number in _NUMBERS.findall(told)]
        collections = [sorted(records) for records in state.values() if isinstance(records, dict) and records]
        ids = {key for keys in collections for key in keys}
        tried = self._tried[tool.name]
        meant = self._rng.choice(collections) if collections and tried.strange and not tried.worked else []
        out = dict(arguments)
        for name, value in arguments.items():
            schema = (tool.parameters.get("properties") or {}).get(name) or {}
            if isinstance(value, bool):
                continue
            if isinstance(value, (int, float)) and numbers:
                out[name] = type(value)(self._rng.choice(numbers) + self._rng.choice((0, 0, 1, -1)))
            elif isinstance(value, str) and value not in ids and not {"enum", "format"} & schema.keys():
                plain = moment(value) is None and "pattern" not in schema
                if plain and meant:
                    out[name] = self._rng.choice(meant)
                    continue
                out[name] = f"{value} {self._rng.randrange(1000)}" if plain else value
        return out

    async def _call(self, session: Session, name: str, arguments: dict[str, JsonValue]) -> JsonValue:
        tried = self._tried.get(name)
        outcome = await session.call(name, arguments)
        if tried is None:
            return outcome.result
        tried.calls += 1
        tried.changed += outcome.changed
        failure = str(outcome.fault) if outcome.fault is not None else None
        tried.raised += outcome.fault is not None
        if failure is None and reports_failure(outcome.result):
            failure = str(outcome.result.get("error"))
        if failure is None:
            tried.worked += 1
        else:
            tried.errors.setdefault(_PARTICULARS.sub("…", failure), failure)
            named = [value for value in arguments.values() if isinstance(value, str) and value and value in failure]
            if named:
                known = _texts(await session.state())
                tried.strange += any(value not in known for value in named)
        if outcome.changed and self._ruled:
            await self._hold_rules(session, name, arguments)
        return outcome.result

    async def _hold_rules(self, session: Session, name: str, arguments: dict[str, JsonValue]) -> None:
        """Find rules that a state breaks which a call has just led to."""
        said = await self._judge.evaluate([rule.predicate or "" for rule in self._ruled], await session.state())
        broken = [rule for rule, outcome in zip(self._ruled, said, strict=True) if outcome.value is False]
        for rule in broken:
            # A rule of other tools may say something of requests only, and not of every state that follows.
            if name in rule.tools or not rule.tools:
                self._break(rule, name, arguments)
        # One state that is broken breaks the rule again at every call that follows.
        self._ruled = [rule for rule in self._ruled if rule not in broken]

    def _break(self, rule: Rule, name: str, arguments: dict[str, JsonValue]) -> None:
        says = f"after {name} the rule does not hold any more ({rule.predicate})"
        call: JsonValue = {"name": name, "arguments": arguments}
        # A rule that names no tool, or is not said to be enforced, can be one of how things are at first.
        claimed = bool(rule.tools) and rule.enforced is not False
        self._add("rule_not_enforced", says, place=rule.text, suspected=not claimed, call=call)

    def _judge_tool(self, tool: ToolSpec, tried: _Tried) -> None:
        if tried.worked and tool.effect == "update" and not tried.changed:
            says = f"{tried.worked} calls succeeded and none changed the state"
            self._add("tool_without_effect", says, place=tool.name)
        elif tried.calls and not tried.worked:
            example = next(iter(tried.errors.values()), "")
            says = f"all of {tried.calls} calls with valid arguments failed, for example: {example}"
            alike = len(tried.errors) == 1 and tried.strange <= tried.calls / 4
            sure = tried.calls >= _FEW and (
                alike or tried.raised > tried.calls / 4 or never_succeeds(self._skeleton, tool.name)
            )
            self._add("unreachable_tool", says, place=tool.name, suspected=not sure)

    def _add(
        self,
        kind: AuditKind,
        says: str,
        scenario_id: str | None = None,
        *,
        place: str = "",
        suspected: bool = False,
        **evidence: JsonValue,
    ) -> None:
        finding = AuditFinding(
            env_id=self._skeleton.id,
            scenario_id=scenario_id,
            kind=kind,
            evidence={"says": says, **evidence},
            suspected=suspected,
            place=place,
        )
        if not any((one.kind, one.place, one.scenario_id) == (kind, place, scenario_id) for one in self._found):
            self._found.append(finding)


def _texts(state: State) -> set[str]:
    """All texts of a state, the keys included."""
    found: set[str] = set()
    for path, value in leaves(state):
        found.update(path)
        if isinstance(value, str):
            found.add(value)
    return found


def never_succeeds(skeleton: EnvSkeleton, tool: str) -> bool:
    """Whether the code of a tool has no way to a success: no return but of failures that is reached at all."""
    try:
        tree = ast.parse(skeleton.source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    method = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == tool), None)
    return method is not None and not _may_succeed(method.body)


def _may_succeed(body: Sequence[ast.stmt]) -> bool:
    """Whether a success can be returned from these statements, or they can be left at their end."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return not _is_failure(statement.value)
        if isinstance(statement, ast.Raise):
            return False
        if isinstance(statement, ast.If):
            always = _constant(statement.test)
            ways = [statement.body, statement.orelse]
            reached = [way for way, taken in zip(ways, (always is not False, always is not True), strict=True) if taken]
            if any(_returns_success(way) for way in reached):
                return True
            if all(_ends(way) for way in reached):
                return False
        elif _returns_success([statement]):
            return True
    return True


def _returns_success(body: Sequence[ast.stmt]) -> bool:
    returns = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Return)]
    return any(not _is_failure(node.value) for node in returns)


def _ends(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise)


def _is_failure(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Dict):
        return False
    return any(
        isinstance(key, ast.Constant)
        and key.value == "success"
        and isinstance(part, ast.Constant)
        and part.value is False
        for key, part in zip(value.keys, value.values, strict=True)
    )


def _constant(test: ast.expr) -> bool | None:
    return bool(test.value) if isinstance(test, ast.Constant) else None


def _spread(scenarios: Sequence[Scenario], most: int) -> list[Scenario]:
    """Scenarios from all over a list."""
    if len(scenarios) <= most:
        return list(scenarios)
    return [scenarios[index * len(scenarios) // most] for index in range(most)]
