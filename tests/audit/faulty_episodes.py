"""Episodes with one fault each, whose kind, call and places are known by how they were made.

Nothing here knows of `explain`: solutions are played, spoiled in one way, and kept only where the plain replay shows
that nothing else differs.
"""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from envscaler.agents import AgentKind, Briefing
from envscaler.env import Library
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage
from envscaler.probe import valid_arguments
from envscaler.rollout import ScenarioWorld, play
from envscaler.sandbox import Program, Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State, diff
from envscaler.trajectory import Trajectory, Usage

Kind = Literal[
    "missing call", "wrong entity", "wrong value", "call failed", "undone later", "extra edit", "rule broken"
]
_DRAWS = 60


@dataclass(frozen=True)
class FaultyEpisode:
    """A recorded episode and what is wrong with it."""

    kind: Kind
    skeleton: EnvSkeleton
    scenario: Scenario
    trajectory: Trajectory
    call: SolutionCall
    """The call that did it; of a missing one the call that was left out."""
    step: int | None
    """The step of that call, from 1; None where it is missing."""
    places: frozenset[str]
    """Where the final state is wrong: what the call changed, or did not change."""
    refusal: str | None = None
    """What the program answered to a call that it refused."""


class PlannedAgent:
    """Makes the calls of a list, one a step, whatever comes of them."""

    kind: AgentKind = "model"
    model: str | None = "planned"
    dialect: str | None = None

    def __init__(self, calls: Sequence[SolutionCall]) -> None:
        self._calls = tuple(calls)

    def unplayable(self, scenario: Scenario) -> str | None:
        return None

    def start(self, briefing: Briefing) -> PlannedAgent:
        return self

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        done = sum(isinstance(message, ToolMessage) for message in conversation)
        if done == len(self._calls):
            message = AssistantMessage(content="Done.")
        else:
            call = self._calls[done]
            message = AssistantMessage(tool_calls=(ToolCall(name=call.name, arguments=call.arguments, id=f"c{done}"),))
        return Completion(message=message, usage=Usage(), model="planned", cost_usd=0.0)


@dataclass(frozen=True)
class Course:
    """What calls did: their results, and the state before the first and after each."""

    results: tuple[JsonValue, ...]
    states: tuple[State, ...]

    def succeeded(self, place: int) -> bool:
        result = self.results[place]
        return isinstance(result, dict) and result.get("success") is True

    def changed(self, place: int) -> frozenset[str]:
        return frozenset(change.pointer for change in diff(self.states[place], self.states[place + 1]))

    @property
    def all_succeeded(self) -> bool:
        return all(self.succeeded(place) for place in range(len(self.results)))


class Workshop:
    """Makes faulty episodes of scenarios that carry a solution."""

    def __init__(self, sandbox: Sandbox, skeleton: EnvSkeleton, scenario: Scenario) -> None:
        assert scenario.solution is not None
        self._sandbox = sandbox
        self.skeleton = skeleton
        self.scenario = scenario
        self.solution = scenario.solution

    async def course(self, calls: Sequence[SolutionCall]) -> Course:
        """What the calls do, made with their literal arguments."""
        program = Program(self.skeleton.source, self.skeleton.class_name)
        results: list[JsonValue] = []
        scenario = self.scenario
        trial = self._sandbox.trial(program, scenario.initial_state, seed=scenario.seed, clock=scenario.clock)
        async with trial as session:
            states = [await session.state()]
            for call in calls:
                results.append((await session.call(call.name, call.arguments)).result)
                states.append(await session.state())
        return Course(tuple(results), tuple(states))

    async def episode(self, calls: Sequence[SolutionCall]) -> Trajectory:
        world = ScenarioWorld(self.skeleton, self.scenario, self._sandbox)
        return await play(world, PlannedAgent(calls), step_limit=60)

    async def updates(self) -> list[tuple[int, frozenset[str]]]:
        """The calls of the solution that change something, each with the places that it changes."""
        course = await self.course(self.solution)
        assert course.all_succeeded
        return [(place, course.changed(place)) for place in range(len(self.solution)) if course.changed(place)]

    async def missing(self) -> AsyncIterator[FaultyEpisode]:
        """One call left out, and nothing else different for it."""
        solved = (await self.course(self.solution)).states[-1]
        for place, places in await self.updates():
            if any(binding.call == place for call in self.solution for binding in call.bindings.values()):
                continue
            calls = [*self.solution[:place], *self.solution[place + 1 :]]
            course = await self.course(calls)
            differing = {change.pointer for change in diff(course.states[-1], solved)}
            if course.all_succeeded and differing <= places:
                trajectory = await self.episode(calls)
                if _failing(trajectory, "goal"):
                    yield self._made("missing call", trajectory, self.solution[place], None, places)

    async def wrong_entity(self, *, refused: bool) -> AsyncIterator[FaultyEpisode]:
        """One call made with the id of another record of the same kind, carried out or refused by a rule."""
        for place, _ in await self.updates():
            call = self.solution[place]
            for name, value in call.arguments.items():
                for other in self._twins(value):
                    wrong = call.model_copy(update={"arguments": {**call.arguments, name: other}})
                    found = await self._instead(place, wrong, "wrong entity", refused=refused)
                    if found is not None:
                        yield found
                        break

    async def wrong_value(self) -> AsyncIterator[FaultyEpisode]:
        """One call made with another amount or text."""
        for place, _ in await self.updates():
            call = self.solution[place]
            for name, value in call.arguments.items():
                if isinstance(value, bool) or self._is_id(value):
                    continue
                others: list[JsonValue] = []
                if isinstance(value, (int, float)):
                    others = [value + 1, value - 1]
                elif isinstance(value, str):
                    others = [f"{value} 2"]
                for other in others:
                    wrong = call.model_copy(update={"arguments": {**call.arguments, name: other}})
                    found = await self._instead(place, wrong, "wrong value", refused=False)
                    if found is not None:
                        yield found
                        break

    async def extra_edit(self) -> AsyncIterator[FaultyEpisode]:
        """One more update, of a record that the solution leaves alone, in the middle of the solution."""
        touched = {place for _, places in await self.updates() for place in places}
        for place in range(len(self.solution), 0, -1):
            for call in self._draws(place):
                calls = [*self.solution[:place], call, *self.solution[place:]]
                course = await self.course(calls)
                own = course.changed(place)
                if not course.all_succeeded or not own or _overlap(own, touched):
                    continue
                trajectory = await self.episode(calls)
                if _failing(trajectory, "guard") and not _failing(trajectory, "goal"):
                    yield self._made("extra edit", trajectory, call, place + 1, own)
                    return

    async def undone(self) -> AsyncIterator[FaultyEpisode]:
        """One more update, after the solution, after which a goal does not hold any more."""
        touched = {place for _, places in await self.updates() for place in places}
        for call in self._draws(len(self.solution)):
            calls = [*self.solution, call]
            course = await self.course(calls)
            own = course.changed(len(self.solution))
            if not course.all_succeeded or not _overlap(own, touched):
                continue
            trajectory = await self.episode(calls)
            if _failing(trajectory, "goal"):
                yield self._made("undone later", trajectory, call, len(calls), own)
                return

    async def rule_broken(self) -> AsyncIterator[FaultyEpisode]:
        """One more update, which a rule forbids and a program that has lost its refusals carries out."""
        lax = self._lax()
        for tool in {tool for rule in lax.skeleton.rules if rule.predicate for tool in rule.tools}:
            for call in self._draws(7, tool):
                calls = [*self.solution, call]
                course = await lax.course(calls)
                if not course.all_succeeded or not course.changed(len(self.solution)):
                    continue
                before, after = course.states[-2:]
                if all(lax.legal(before)) and not all(lax.legal(after)):
                    trajectory = await lax.episode(calls)
                    if _failing(trajectory, "guard"):
                        yield lax._made("rule broken", trajectory, call, len(calls), course.changed(len(calls) - 1))
                        return

    def legal(self, state: State) -> Iterator[bool]:
        """What each rule's predicate says of a state."""
        for rule in self.skeleton.rules:
            if rule.predicate is not None:
                yield eval(rule.predicate, {"state": state}) is True  # noqa: S307 - predicates of our own making

    # -- parts ----------------------------------------------------------------------------------------------

    async def _instead(self, place: int, wrong: SolutionCall, kind: Kind, *, refused: bool) -> FaultyEpisode | None:
        calls = [*self.solution[:place], wrong, *self.solution[place + 1 :]]
        course = await self.course(calls)
        others = all(course.succeeded(index) for index in range(len(calls)) if index != place)
        if not others or course.succeeded(place) is refused or bool(course.changed(place)) is refused:
            return None
        trajectory = await self.episode(calls)
        if not _failing(trajectory, "goal"):
            return None
        if not refused:
            return self._made(kind, trajectory, wrong, place + 1, course.changed(place))
        result = course.results[place]
        assert isinstance(result, dict)
        places = (await self.course(self.solution)).changed(place)
        return self._made("call failed", trajectory, wrong, place + 1, places, str(result["error"]))

    def _made(
        self,
        kind: Kind,
        trajectory: Trajectory,
        call: SolutionCall,
        step: int | None,
        places: frozenset[str],
        refusal: str | None = None,
    ) -> FaultyEpisode:
        return FaultyEpisode(kind, self.skeleton, self.scenario, trajectory, call, step, places, refusal)

    def _is_id(self, value: JsonValue) -> bool:
        return isinstance(value, str) and bool(self._twins(value))

    def _twins(self, value: JsonValue) -> list[str]:
        """The ids of the other records of its kind, in a fixed random order."""
        for rows in self.scenario.initial_state.values():
            if isinstance(rows, dict) and isinstance(value, str) and value in rows:
                others = [key for key in rows if key != value]
                Random(f"{self.scenario.id}{value}").shuffle(others)
                return others
        return []

    def _draws(self, seed: int, tool: str | None = None) -> Iterator[SolutionCall]:
        """Update calls with arguments that fit the state at reset."""
        rng = Random(f"{self.scenario.id}{seed}")
        tools = [one for one in self.skeleton.tools if one.effect == "update" and tool in (None, one.name)]
        for _ in range(_DRAWS if tools else 0):
            one = rng.choice(tools)
            arguments = valid_arguments(one, self.scenario.initial_state, self.skeleton.entities, rng)
            yield SolutionCall(name=one.name, arguments=arguments)

    def _lax(self) -> Workshop:
        """The same scenario in a program whose tools refuse nothing but records that there are not."""
        tree = _WithoutRefusals().visit(ast.parse(self.skeleton.source))
        skeleton = EnvSkeleton(
            **{
                **{name: getattr(self.skeleton, name) for name in EnvSkeleton.model_fields},
                "id": f"{self.skeleton.id}-lax",
                "source": ast.unparse(tree),
            }
        )
        changes = {"env_id": skeleton.id, "env_digest": skeleton.digest, "id": f"{skeleton.id}-s1"}
        fields = {name: getattr(self.scenario, name) for name in Scenario.model_fields}
        return Workshop(self._sandbox, skeleton, Scenario(**{**fields, **changes}))


class _WithoutRefusals(ast.NodeTransformer):
    """Takes out `if …: return {"success": False, …}`, but for records that are not there."""

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        refuses = len(node.body) == 1 and isinstance(node.body[0], ast.Return) and "False" in ast.unparse(node.body[0])
        return ast.Pass() if refuses and not node.orelse and "is None" not in ast.unparse(node.test) else node


def _failing(trajectory: Trajectory, kind: str) -> list[int]:
    assert trajectory.verdict is not None
    return [index for index, check in enumerate(trajectory.verdict.checks) if check.kind == kind and not check.passed]


def _overlap(some: frozenset[str], others: set[str]) -> bool:
    return any(one.startswith(other) or other.startswith(one) for one in some for other in others)


def shelf(environment: EnvSkeleton, *scenarios: Scenario) -> Library:
    """A library that has one environment in memory."""
    return _Shelf(environment, scenarios)


class _Shelf(Library):
    def __init__(self, environment: EnvSkeleton, scenarios: Sequence[Scenario]) -> None:
        self.isolation = "default"
        self._skeletons = {environment.id: environment}
        self._scenarios = {environment.id: tuple(scenarios)}
