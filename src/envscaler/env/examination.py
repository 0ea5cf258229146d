"""`examine_tools`: many calls of every tool, each followed by what tells whether it did what it said.

One call cannot tell of a record that was made and is in no list, of a rule that holds until the third repetition, or
of an update that never changes anything. So updates are repeated and followed by the queries that read the same
records, all of it is made a second time, and what was found, settled and left open is told by tool. Which environment
is kept is the business of `synth`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from random import Random

from envscaler.assessment import Finding
from envscaler.env.aliasing import aliases
from envscaler.env.conformance import schema_findings
from envscaler.env.meaning import Known, meaning_of
from envscaler.env.meaning.queries import rows_of
from envscaler.env.meaning.reading import ids_named, misfit, properties_of, reading
from envscaler.env.meaning.standing import is_evaluated
from envscaler.env.oracles import ExaminedCall, examine, reports_failure, try_call
from envscaler.env.tool_examination import ToolExamination
from envscaler.errors import ProgramError
from envscaler.messages import ToolCall
from envscaler.probe import spoiled_arguments, valid_arguments, wrong_arguments
from envscaler.probe.pool import Pool
from envscaler.program import tool_schemas
from envscaler.program.early_writes import early_writes
from envscaler.sandbox import DEFAULT_CLOCK, Program, Sandbox, Session, Snapshot
from envscaler.sandbox.judge import Judge
from envscaler.skeleton import Entity, EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State, encode

_TRIES = 8
"""Calls made, where a valid one is wanted, until one succeeds."""
_REPEATS = 3
"""Times that a call which succeeded is made again: a limit shows at its end."""
_PRESSED = 6
"""Calls with one record held, of an update with a rule that can be evaluated."""
_ANY = 4
"""Calls of an update in a round that are made beside those which are to succeed."""
_WRONG = 4
"""Calls of each tool in a round that have one thing wrong."""
_STEPS = 12
"""Calls by which a round but the first gets to a state of its own."""
_IDLE = 3
"""Different calls that succeed without an effect, none with one, from which a tool is said to have none."""
_FOLLOWED = 2
"""Records of which the queries are asked after an update."""


async def examine_tools(
    skeleton: EnvSkeleton,
    state: State,
    sandbox: Sandbox,
    *,
    only: Collection[str] | None = None,
    rounds: int = 4,
    seed: int = 0,
    clock: str = DEFAULT_CLOCK,
    stop_early: bool = False,
) -> dict[str, ToolExamination]:
    """Try every tool from `state`; by tool, in the order of the tools.

    Args:
        only: names of tools to be tried, beside the queries that follow an update; None: all.
        rounds: rounds from `state` on, in each of which every tool is called with right arguments and wrong ones.
        stop_early: make no more calls once something was found of any tool.

    Raises:
        ProgramError: if the program cannot be loaded or cannot take the state.
        SandboxError: if the machinery fails.
    """
    trial = _Trial(_as_held_to(skeleton), Random(seed), clock, only)
    for finding in schema_findings(skeleton):
        name = next((tool.name for tool in skeleton.tools if finding.detail.startswith(f"{tool.name}:")), None)
        for seen in [trial.seen[name]] if name is not None else trial.seen.values():
            seen.add([finding])
    for name, detail in early_writes(skeleton.source, skeleton.class_name).items():
        if name in trial.seen:
            trial.seen[name].add([Finding(oracle="early_write", detail=detail)])
    program = Program(skeleton.source, skeleton.class_name)
    async with AsyncExitStack() as stack:
        judge = await stack.enter_async_context(sandbox.judge())
        session = await stack.enter_async_context(sandbox.trial(program, state, clock=clock))
        for _ in range(rounds):
            if not (stop_early and trial.found):
                await trial.round(session, judge)
        if not (stop_early and trial.found):
            await trial.again(session)
    if not (stop_early and trial.found):
        telling = trial.telling()
        calls = [(one.examined.moment, one.examined.call) for one in telling]
        for number, found in (await aliases(sandbox, program, state, calls)).items():
            trial.seen[telling[number].tool.name].add(found, telling[number].examined)
    trial.conclude()
    return trial.seen


def _as_held_to(skeleton: EnvSkeleton) -> EnvSkeleton:
    """The environment with the schemas that its calls are held to: those of an imported one's methods, where a
    published schema is wrong in places."""
    if skeleton.origin.source is None:
        return skeleton
    try:
        derived = tool_schemas(skeleton.source, skeleton.class_name)
    except ProgramError:
        return skeleton
    tools = (tool.model_copy(update={"parameters": derived.get(tool.name, tool.parameters)}) for tool in skeleton.tools)
    return skeleton.model_copy(update={"tools": tuple(tools)})


@dataclass(frozen=True)
class _Made:
    tool: ToolSpec
    examined: ExaminedCall

    @cached_property
    def size(self) -> int:
        """Bytes of the result."""
        return len(encode(self.examined.outcome.result))


class _Trial:
    def __init__(self, skeleton: EnvSkeleton, rng: Random, clock: str, only: Collection[str] | None) -> None:
        self._skeleton = skeleton
        self._known = Known(skeleton.entities, skeleton.rules)
        self._rng = rng
        self._clock = clock
        self._tried = [tool for tool in skeleton.tools if only is None or tool.name in only]
        self._start: Snapshot | None = None
        self._last: dict[tuple[int, str], _Made] = {}
        """The last call of each round and tool that succeeded. What a program counts outside its state has gone up by
        then."""
        self._telling: dict[str, _Made] = {}
        self._round = 0
        self._now: State = {}
        """The state after the last call."""
        self._now_digest = ""
        self.seen = {tool.name: ToolExamination() for tool in skeleton.tools}

    def telling(self) -> list[_Made]:
        """The call of each tool that succeeded and returned most."""
        return list(self._telling.values())

    @property
    def found(self) -> bool:
        """Whether something was found of any tool."""
        return any(seen.findings for seen in self.seen.values())

    async def round(self, session: Session, judge: Judge) -> None:
        """One round over all tools."""
        if self._start is None:
            self._start = await session.snapshot()
        else:
            await session.restore(self._start, fresh=False)
            await self._walk(session)
        self._now, self._now_digest = await session.state(), session.digest
        self._round += 1
        tools = self._rng.sample(self._tried, len(self._tried))
        for tool in tools:
            if self.seen[tool.name].hung:
                continue  # each such call takes as long as a session lets it
            first = await self._valid(session, judge, tool)
            worked = first.call if first is not None else None
            if worked is not None and tool.effect == "update":
                await self._repeat(session, judge, tool, worked)
                if any(tool.name in rule.tools and is_evaluated(rule) for rule in self._skeleton.rules):
                    await self._press(session, judge, tool, worked)
            if worked is not None and tool.effect == "query":
                await self._call(session, judge, tool, worked)
            await self._others(session, judge, tool, worked)
            if first is not None and tool.effect == "update" and self._round == 1:
                await self._spoil(session, judge, tool, first)

    async def _walk(self, session: Session) -> None:
        """Go to another state by calls that nobody examines."""
        updates = [tool for tool in self._skeleton.tools if tool.effect == "update" and not self.seen[tool.name].hung]
        for _ in range(_STEPS if updates else 0):
            tool = self._rng.choice(updates)
            arguments = valid_arguments(tool, await session.state(), self._skeleton.entities, self._rng)
            await session.call(tool.name, arguments)

    async def _valid(self, session: Session, judge: Judge, tool: ToolSpec) -> ExaminedCall | None:
        """Call until it succeeds; the call that did."""
        for _ in range(_TRIES):
            arguments = self._arguments(tool, self._now)
            call = ToolCall(name=tool.name, arguments=arguments)
            examined = await self._call(session, judge, tool, call)
            if _succeeded(examined):
                await self._follow(session, judge, tool, examined)
                return examined
            if examined.hung or not properties_of(tool):
                break
        return None

    async def _others(self, session: Session, judge: Judge, tool: ToolSpec, worked: ToolCall | None) -> None:
        """More calls, whether they succeed or not: with nothing, with anything, and with one thing wrong."""
        tried: list[dict[str, JsonValue]] = [{}] if tool.effect == "query" and properties_of(tool) else []
        state = self._now
        if tool.effect == "query" and not tool.parameters.get("required"):
            tried += [{name: value} for name in properties_of(tool) for value in self._drawn(tool, name, state)[:1]]
        for _ in range(_ANY if tool.effect == "update" and properties_of(tool) else 0):
            tried.append(self._arguments(tool, state))
        for number in range(_WRONG):
            right = worked.arguments if worked is not None and number % 2 == 0 else None
            entities, pool = self._skeleton.entities, self._known.pool(state)
            tried.append(wrong_arguments(tool, state, entities, self._rng, arguments=right, pool=pool)[1])
        for arguments in tried:
            if _accepted(tool, arguments) and not self.seen[tool.name].hung:
                await self._call(session, judge, tool, ToolCall(name=tool.name, arguments=arguments))

    async def _spoil(self, session: Session, judge: Judge, tool: ToolSpec, worked: ExaminedCall) -> None:
        """Make a call that succeeded once more for each argument, with that one wrong, where it would change something:
        what is written before the wrong one is looked at shows there, and not where it is written already."""
        arguments = self._whole(tool, worked)
        for spoiled in spoiled_arguments(tool, worked.before, self._skeleton.entities, self._rng, arguments):
            if self.seen[tool.name].hung:
                break
            if session.digest != worked.digest_before and not await _back(session, worked.moment):
                break
            await self._call(session, judge, tool, ToolCall(name=tool.name, arguments=spoiled))

    def _whole(self, tool: ToolSpec, worked: ExaminedCall) -> dict[str, JsonValue]:
        """The arguments of a call with those that it left out; none is what a record that they name holds already."""
        named = ids_named(self._known, tool, worked.call.arguments, self._known.pool(worked.before))
        keys = {key for part in named.values() for key in part}
        entities = [one for container in named if (one := self._known.of_container(container)) is not None]
        rows = [pair for one in entities for pair in rows_of(worked.before, one).items()]
        whole: dict[str, JsonValue] = {}
        for name in properties_of(tool):
            held = [row[name] for key, row in rows if key in keys and name in row]
            given = worked.call.arguments.get(name)
            if given is None or (given in held and not (isinstance(given, str) and given in keys)):
                drawn = self._drawn(tool, name, worked.before)
                others = [row[name] for _, row in rows if row.get(name) is not None] + drawn
                given = next((value for value in others if value not in held), None)
                if given is None and drawn:
                    given = f"{drawn[0]} 2" if isinstance(drawn[0], str) else drawn[0]
            if given is not None:
                whole[name] = given
        return whole

    def _drawn(self, tool: ToolSpec, name: str, state: State) -> list[JsonValue]:
        """Some values for one parameter; none where it was left out each time."""
        drawn = (self._arguments(tool, state).get(name) for _ in range(_TRIES))
        return [value for value in drawn if value is not None]

    def _arguments(self, tool: ToolSpec, state: State) -> dict[str, JsonValue]:
        """Right arguments, drawn."""
        return valid_arguments(tool, state, self._skeleton.entities, self._rng, pool=self._known.pool(state))

    async def _repeat(self, session: Session, judge: Judge, tool: ToolSpec, call: ToolCall) -> None:
        for _ in range(_REPEATS):
            if not _succeeded(await self._call(session, judge, tool, call)):
                break

    async def _press(self, session: Session, judge: Judge, tool: ToolSpec, worked: ToolCall) -> None:
        """Hold one record that the arguments name and vary the rest: a limit on what it may have shows at its end."""
        pool = self._known.pool(self._now)
        held = [name for name in worked.arguments if pool.container(name) is not None]
        for name in held if len(worked.arguments) > 1 else ():
            for _ in range(_PRESSED):
                arguments = self._arguments(tool, self._now)
                arguments[name] = worked.arguments[name]
                await self._call(session, judge, tool, ToolCall(name=tool.name, arguments=arguments))

    async def _follow(self, session: Session, judge: Judge, tool: ToolSpec, examined: ExaminedCall) -> None:
        """Ask the queries that read what an update wrote."""
        if tool.effect == "query" or examined.before is examined.after:
            return
        pool = self._known.pool(examined.after)
        for entity in self._skeleton.entities:
            touched = _touched(entity, examined.before, examined.after)
            for query in self._skeleton.tools if touched else ():
                read = reading(self._known, query, pool)
                if query.effect == "update" or read.entity is not entity:
                    continue
                for arguments in self._asking(query, read.kind, entity, touched, examined.after, pool):
                    if self.seen[query.name].hung:
                        break
                    await self._call(session, judge, query, ToolCall(name=query.name, arguments=arguments))

    def _asking(
        self, query: ToolSpec, kind: str, entity: Entity, touched: list[str], state: State, pool: Pool
    ) -> Iterator[dict[str, str]]:
        if kind == "get":
            parameter = next(iter(properties_of(query)))
            yield from ({parameter: key} for key in touched[-_FOLLOWED:])
        elif kind == "list" and not query.parameters.get("required"):
            yield {}
        if kind == "list":
            rows = rows_of(state, entity)
            for name in properties_of(query):
                value = rows.get(touched[-1], {}).get(name)
                if isinstance(value, str) and pool.container(name) is not None and _accepted(query, {name: value}):
                    yield {name: value}

    async def _call(self, session: Session, judge: Judge, tool: ToolSpec, call: ToolCall) -> ExaminedCall:
        examined = await try_call(session, tool, call, repeat=False, now=(self._now_digest, self._now))
        meaning = await meaning_of(
            judge, self._known, tool, call, examined.outcome, examined.before, examined.after, clock=self._clock
        )
        self._now, self._now_digest = examined.after, session.digest
        fits = not misfit(tool, call.arguments)
        # An environment never lets such a call through: what it left behind is no state that others have to take.
        if examined.outcome.changed and not fits and await _back(session, examined.moment):
            self._now, self._now_digest = examined.before, session.digest
        seen = self.seen[tool.name]
        seen.calls += 1
        seen.hung = seen.hung or examined.hung
        seen.add(examined.findings, examined)
        seen.add_meaning(meaning, examined)
        if fits and _succeeded(examined):
            seen.succeeded += 1
            seen.given |= {name for name, value in call.arguments.items() if value is not None}
            if tool.effect == "update":
                seen.effective = seen.effective or examined.outcome.changed
                whole = all(call.arguments.get(name) is not None for name in properties_of(tool))
                if whole and not _is_so_already(call.arguments, examined.before):
                    # What is left out may ask for what is there already.
                    seen.tried.add(encode(call.arguments))
            made = _Made(tool, examined)
            self._last[self._round, tool.name] = made
            if tool.name not in self._telling or self._telling[tool.name].size < made.size:
                self._telling[tool.name] = made
        return examined

    async def again(self, session: Session) -> None:
        """Make some calls of each tool once more, each from its moment, in a worker that has seen none of them.

        Each alone: in the same order, what a program counts outside its state would count the same.
        """
        fresh = True
        for one in self._last.values():
            first = one.examined
            try:
                await session.restore(first.moment, fresh=fresh)
            except ProgramError as fault:
                detail = f"the program cannot go on from a state that it made itself: {fault}"
                self.seen[one.tool.name].add([Finding(oracle="not_restorable", detail=detail)], first)
                continue
            fresh = False
            repeated = await session.call(first.call.name, first.call.arguments)
            found = examine(one.tool, first.outcome, digest_before=first.digest_before, repeated=repeated)
            self.seen[one.tool.name].add((one for one in found if one.oracle == "nondeterministic"), first)

    def conclude(self) -> None:
        """Say what only all calls of a tool together tell."""
        for tool in self._skeleton.tools:
            seen = self.seen[tool.name]
            untried = [name for name in properties_of(tool) if name not in seen.given]
            if untried:
                seen.doubts.append(f"whether it heeds {', '.join(untried)}, with which it was not seen to succeed")
            if tool.effects and not seen.effective and len(seen.tried) >= _IDLE:
                detail = f"{tool.name} succeeded with {len(seen.tried)} different arguments and never changed anything"
                last = next((one.examined for one in self._last.values() if one.tool is tool), None)
                seen.add([Finding(oracle="success_without_effect", detail=detail)], last)


async def _back(session: Session, moment: Snapshot) -> bool:
    """Go back to a moment; False where the program does not take a state of its own, which is found elsewhere."""
    try:
        await session.restore(moment, fresh=False)
    except ProgramError:
        return False
    return True


def _is_so_already(arguments: Mapping[str, JsonValue], state: State) -> bool:
    """Whether a record holds all that the arguments say, so that a call which sets them changes nothing."""
    records = (record for part in state.values() if isinstance(part, dict) for record in part.values())
    return any(
        isinstance(record, dict) and all(name in record and record[name] == value for name, value in arguments.items())
        for record in records
    )


def _succeeded(examined: ExaminedCall) -> bool:
    return examined.outcome.fault is None and not reports_failure(examined.outcome.result)


def _accepted(tool: ToolSpec, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether the interface would let the names of the arguments through."""
    required = tool.parameters.get("required") or ()
    return all(name in arguments for name in required) and set(arguments) <= set(properties_of(tool))


def _touched(entity: Entity, before: State, after: State) -> list[str]:
    """Keys of the records that differ, those that are gone first."""
    old, new = rows_of(before, entity), rows_of(after, entity)
    return [key for key in old if key not in new] + [key for key, row in new.items() if old.get(key) != row]


def needing_judge(examined: dict[str, ToolExamination]) -> Sequence[str]:
    """The tools of which something is left that only a judge can tell."""
    return [name for name, seen in examined.items() if seen.needs_judge]
