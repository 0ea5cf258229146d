"""The quality check of an environment by oracles that need no model and by two agents.

Before anybody is asked every tool is tried from the test state (`env.examination`). How a call is judged is
`judging`'s business, what is done with an environment that fails `repair`'s and the pipeline's.

Source: paper 3.3. Ours: the rounds run as several chains from one test state, so that they need not wait for each
other and one tool that spoils the state spoils the calls of its chain only; and they end when the verdict is settled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Self

from envscaler.assessment import Assessment, CaseType, Judging, Repair, TestCase, Threshold
from envscaler.engine import bounded_map
from envscaler.env.examination import examine_tools
from envscaler.env.meaning import Evaluator
from envscaler.env.tool_examination import ToolExamination
from envscaler.errors import ReplyError
from envscaler.messages import ToolCall
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Program, Sandbox
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import State, encode
from envscaler.synth.asking import Asking
from envscaler.synth.chains import Chain, Sessions
from envscaler.synth.judging import CallJudge, Tried, with_finding
from envscaler.synth.seeds import derived_seed
from envscaler.synth.staged.calls import drawn
from envscaler.synth.states import known_of, write_state
from envscaler.synth.turns import local_work

CHAINS = 10
"""Rounds that run side by side, each chain from the test state on."""
EXAMINED_ROUNDS = 2
"""Rounds in which every tool is tried before anybody is asked."""
_HISTORY = 6
"""Earlier calls of the same tool and kind that the testing agent is shown."""


@dataclass(frozen=True)
class Terms:
    """How much is tested, who judges, and which rate counts."""

    rounds: int
    """Rounds at most."""
    threshold: float
    by: Threshold
    judge: Judging = "auto"
    all_rounds: bool = False
    """Make all rounds, also those that could hardly change the verdict."""


@dataclass(frozen=True)
class Turn:
    """What one round is to test."""

    round: int
    tool: ToolSpec
    case: CaseType


@dataclass(frozen=True)
class Trial:
    """A test call with its verdict, and what is needed to make it again."""

    tried: Tried
    case: TestCase


def schedule(tools: Sequence[ToolSpec], rounds: int) -> tuple[Turn, ...]:
    """Rounds balanced over tools and over positive and negative, each tool alternating."""
    turns = []
    for number in range(rounds):
        pass_over, place = divmod(number, len(tools))
        case: CaseType = "positive" if (pass_over + place) % 2 == 0 else "negative"
        turns.append(Turn(round=number, tool=tools[place], case=case))
    return tuple(turns)


async def assess(skeleton: EnvSkeleton, terms: Terms, *, seed: int, asking: Asking, sandbox: Sandbox) -> Assessment:
    """Test an environment as it is.

    Raises:
        ReplyError: if no test state can be had.
        ProgramError: if the program cannot be loaded.
    """
    examination = await Examination.begin(skeleton, terms, seed=seed, asking=asking, sandbox=sandbox)
    await examination.carry_on()
    return examination.assessment()


class Examination:
    """An assessment in the making; the program may be exchanged for a better one on the way."""

    examined: dict[str, ToolExamination]
    """What was found of each tool of the program as it is, without a model."""

    def __init__(
        self, skeleton: EnvSkeleton, state: State, terms: Terms, seed: int, asking: Asking, sandbox: Sandbox
    ) -> None:
        self.skeleton = skeleton
        self.state = state
        """The test state."""
        self._terms = terms
        self._seed = seed
        self._asking = asking
        self._sandbox = sandbox
        self._trials: dict[int, Trial] = {}
        self._failures: list[str] = []
        self._made = 0
        self._numbered = terms.rounds
        """Number of the next round that is made beside those asked for."""
        self._history: dict[tuple[str, CaseType], list[str]] = {}

    @classmethod
    async def begin(cls, skeleton: EnvSkeleton, terms: Terms, *, seed: int, asking: Asking, sandbox: Sandbox) -> Self:
        """An examination with a test state, in which every tool was tried, and no rounds made.

        Raises:
            ReplyError: if no test state can be had.
        """
        written = await write_state(
            known_of(skeleton),
            Program(skeleton.source, skeleton.class_name),
            purpose="assessment",
            index=0,
            seed=derived_seed(seed, "assessment"),
            asking=asking,
            sandbox=sandbox,
        )
        examination = cls(skeleton, written.state, terms, derived_seed(seed, "rounds"), asking, sandbox)
        examination.examined = await examination.examine(skeleton)
        return examination

    async def examine(self, skeleton: EnvSkeleton) -> dict[str, ToolExamination]:
        """Try every tool of a version of the program from the test state; nobody is asked.

        Raises:
            ProgramError: if the program cannot be loaded.
        """
        seed = derived_seed(self._seed, "examination")
        async with local_work():
            return await examine_tools(skeleton, self.state, self._sandbox, rounds=EXAMINED_ROUNDS, seed=seed)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The calls of the program as it is, in the order of the rounds."""
        return tuple(trial for _, trial in sorted(self._trials.items()))

    async def carry_on(self) -> None:
        """Make rounds until the verdict is settled or as many were made as were asked for.

        Raises:
            ProgramError: if the program cannot be loaded.
        """
        while not self._is_over():
            turns = schedule(self.skeleton.tools, self._terms.rounds)[self._made :]
            await self._make(turns, counted=True)

    async def test_again(self, rounds: Mapping[str, int]) -> None:
        """Make so many rounds of each of these tools beside those asked for.

        Raises:
            ProgramError: if the program cannot be loaded.
        """
        turns: list[Turn] = []
        for pass_over in range(max(rounds.values(), default=0)):
            for place, tool in enumerate(self.skeleton.tools):
                if pass_over < rounds.get(tool.name, 0):
                    case: CaseType = "positive" if (pass_over + place) % 2 == 0 else "negative"
                    turns.append(Turn(self._numbered, tool, case))
                    self._numbered += 1
        await self._make(turns, counted=False)

    def exchange(
        self, skeleton: EnvSkeleton, changed: Collection[str], examined: Mapping[str, ToolExamination]
    ) -> tuple[TestCase, ...]:
        """Go on with another version of the program.

        Args:
            changed: tools that no longer are what they were; their calls count no more.
            examined: what was found of its tools without a model.

        Returns:
            The calls that count no more.
        """
        gone = [trial for trial in self.trials if trial.tried.tool.name in changed]
        for trial in gone:
            del self._trials[trial.tried.round]
        self.skeleton = skeleton
        self.examined = dict(examined)
        return tuple(trial.case for trial in gone)

    def assessment(self, repairs: tuple[Repair, ...] = ()) -> Assessment:
        """The record of it."""
        terms = self._terms
        return Assessment(
            env_id=self.skeleton.id,
            env_digest=self.skeleton.digest,
            rounds=terms.rounds,
            made=self._made if self._made < terms.rounds else None,
            cases=tuple(trial.case for trial in self.trials),
            examined=tuple(self.examined[tool.name].record(tool.name) for tool in self.skeleton.tools),
            failures=tuple(self._failures),
            threshold=terms.threshold,
            by=terms.by,
            judging=terms.judge,
            repairs=repairs,
        )

    def _is_over(self) -> bool:
        terms = self._terms
        if self._made >= terms.rounds:
            return True
        # Before every tool was called both ways the calls made are no fair sample of the environment.
        if terms.all_rounds or self._made < 2 * len(self.skeleton.tools):
            return False
        return self.assessment().settled is not None

    async def _make(self, turns: Sequence[Turn], *, counted: bool) -> None:
        """Make these rounds in chains from the test state.

        Args:
            counted: they are among those asked for, and end when the verdict is settled.
        """
        program = Program(self.skeleton.source, self.skeleton.class_name)
        count = min(CHAINS, len(turns))
        async with AsyncExitStack() as stack:
            evaluator = await stack.enter_async_context(self._sandbox.judge())
            rounds = _Rounds(self.skeleton, self._seed, self._asking, self._terms.judge, evaluator, self._history)
            sessions = await stack.enter_async_context(Sessions(self._sandbox, program, self.state))
            beginning, digest = await sessions.beginning()
            chains = [Chain(sessions, beginning, digest) for _ in range(count)]
            # Chains go in step: what the testing agent is told of earlier calls then depends on no timing, and
            # neither does when it is seen that the verdict is settled.
            for start in range(0, len(turns), count):
                step = list(zip(turns[start : start + count], chains, strict=False))
                for outcome in [outcome async for outcome in bounded_map(rounds.make, step, limit=count)]:
                    if isinstance(outcome, Trial):
                        self._trials[outcome.tried.round] = outcome
                        self._remember(outcome.case)
                    else:
                        self._failures.append(outcome)
                if counted:
                    self._made += len(step)
                    if self._is_over():
                        break
            language = self.skeleton.origin.language
            session = await stack.enter_async_context(sessions.apart())
            for chain in chains:
                for number, finding in (await chain.repeat(session)).items():
                    if number in self._trials:
                        trial = self._trials[number]
                        self._trials[number] = replace(trial, case=with_finding(trial.case, finding, language))

    def _remember(self, case: TestCase) -> None:
        calls = self._history.setdefault((case.call.name, case.case), [])
        calls.append(encode(case.call.arguments).decode("utf-8", "replace"))
        del calls[:-_HISTORY]


class _Rounds:
    """The two agents at one program."""

    def __init__(
        self,
        skeleton: EnvSkeleton,
        seed: int,
        asking: Asking,
        judging: Judging,
        evaluator: Evaluator,
        history: Mapping[tuple[str, CaseType], Sequence[str]],
    ) -> None:
        self._known = dict(known_of(skeleton))
        self._entities = skeleton.entities
        self._seed = seed
        self._asking = asking
        self._judge = CallJudge(skeleton, asking, judging, evaluator)
        self._history = history

    async def make(self, turn_and_chain: tuple[Turn, Chain]) -> Trial | str:
        """One round: a judged call, or why there is none."""
        turn, chain = turn_and_chain
        state, digest = chain.state, chain.digest
        try:
            asked = await self._written(turn, state)
            call = ToolCall(name=turn.tool.name, arguments=asked.arguments)
            refused = refusal(turn.tool, call)
            examined = await chain.call(turn.round, turn.tool, call) if refused is None else None
            tried = Tried(
                round=turn.round,
                tool=turn.tool,
                case=turn.case,
                intent=asked.intent,
                call=call,
                state=examined.before if examined is not None else state,
                digest=examined.digest_before if examined is not None else digest,
                examined=examined,
                refused=refused,
            )
            return Trial(tried, await self._judge.judge(tried))
        except ReplyError as fault:
            return f"round {turn.round} ({turn.tool.name}, {turn.case}): {fault}"

    async def _written(self, turn: Turn, state: State) -> t.TestCallReply:
        seed = derived_seed(self._seed, turn.round)
        if self._asking.scaffold == "staged":
            return drawn(turn.tool, turn.case, state, self._entities, seed)
        return await self._asking(
            roles.TEST_CALL,
            t.TestCallInputs(
                **self._known,
                state=state,
                tool=turn.tool,
                case=turn.case,
                round=turn.round,
                seed=seed,
                history=tuple(self._history.get((turn.tool.name, turn.case), ())),
            ),
            sample=turn.round,
        )


def refusal(tool: ToolSpec, call: ToolCall) -> str | None:
    """Why the interface would refuse a call before it reaches the program: names that are missing or unknown.

    Values of a wrong type do reach the program here, although an environment refuses them too: how the program
    takes them is what a negative case is to find out.
    """
    properties = tool.parameters.get("properties", {})
    missing = [name for name in tool.parameters.get("required", []) if name not in call.arguments]
    unknown = [name for name in call.arguments if name not in properties]
    if tool.parameters.get("additionalProperties") not in (None, False):
        unknown = []
    parts = [f"missing: {', '.join(missing)}"] if missing else []
    parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
    return f"the interface does not accept these arguments ({'; '.join(parts)})" if parts else None
