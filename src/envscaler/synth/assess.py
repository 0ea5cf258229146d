"""The quality check of an environment by two agents and by oracles that need no model.

What is done with an environment that fails is the pipeline's business.

Source: paper 3.3. Ours: the rounds run as several chains from one test state, so that they need not wait for each
other and one tool that spoils the state spoils the calls of its chain only; and an oracle's finding makes the
verdict `fail` whatever the checking agent says.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Literal

from envscaler.assessment import Assessment, CallVerdict, CaseType, Finding, TestCase, Threshold
from envscaler.engine import bounded_map
from envscaler.errors import ReplyError
from envscaler.messages import ToolCall
from envscaler.program import method_source
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Program, Sandbox
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State, diff, encode
from envscaler.synth.asking import Asking
from envscaler.synth.chains import Chain
from envscaler.synth.seeds import derived_seed
from envscaler.synth.states import known_of, write_state

CHAINS = 10
"""Rounds that run side by side, each chain from the test state on."""
_HISTORY = 6
"""Earlier calls of the same tool and kind that the testing agent is shown."""


@dataclass(frozen=True)
class Turn:
    """What one round is to test."""

    round: int
    tool: ToolSpec
    case: CaseType


def schedule(tools: Sequence[ToolSpec], rounds: int) -> tuple[Turn, ...]:
    """Rounds balanced over tools and over positive and negative, each tool alternating."""
    turns = []
    for number in range(rounds):
        pass_over, place = divmod(number, len(tools))
        case: CaseType = "positive" if (pass_over + place) % 2 == 0 else "negative"
        turns.append(Turn(round=number, tool=tools[place], case=case))
    return tuple(turns)


async def assess(
    skeleton: EnvSkeleton,
    *,
    rounds: int,
    threshold: float,
    by: Threshold,
    seed: int,
    asking: Asking,
    sandbox: Sandbox,
) -> Assessment:
    """Test an environment in `rounds` calls.

    Raises:
        ReplyError: if no test state can be had.
        ProgramError: if the program cannot be loaded.
    """
    program = Program(skeleton.source, skeleton.class_name)
    written = await write_state(
        known_of(skeleton),
        program,
        purpose="assessment",
        index=0,
        seed=derived_seed(seed, "assessment"),
        asking=asking,
        sandbox=sandbox,
    )
    testing = _Testing(skeleton, derived_seed(seed, "rounds"), asking)
    outcomes: list[TestCase | str] = []
    count = min(CHAINS, rounds)
    async with AsyncExitStack() as stack:
        chains: list[Chain] = []
        for _ in range(count):
            chains.append(await Chain.open(sandbox, program, written.state))
            stack.push_async_callback(chains[-1].close)
        turns = schedule(skeleton.tools, rounds)
        # Chains go in step: what the testing agent is told of earlier calls then depends on no timing.
        for start in range(0, rounds, count):
            step = list(zip(turns[start : start + count], chains, strict=False))
            outcomes += [outcome async for outcome in bounded_map(testing.round, step, limit=count)]
            testing.remember(outcomes[start:])
        repeated: dict[int, Finding] = {}
        async for findings in bounded_map(Chain.repeat, chains, limit=count):
            repeated |= findings
    return Assessment(
        env_id=skeleton.id,
        env_digest=skeleton.digest,
        rounds=rounds,
        cases=tuple(
            _with_finding(outcome, repeated.get(outcome.round)) for outcome in outcomes if isinstance(outcome, TestCase)
        ),
        failures=tuple(outcome for outcome in outcomes if isinstance(outcome, str)),
        threshold=threshold,
        by=by,
    )


def _with_finding(case: TestCase, finding: Finding | None) -> TestCase:
    if finding is None:
        return case
    findings = (*case.findings, finding)
    reason = "; ".join(one.detail for one in findings)
    return case.model_copy(update={"findings": findings, "verdict": "fail", "reason": reason, "judge": "oracle"})


@dataclass(frozen=True)
class _Ruling:
    verdict: CallVerdict
    reason: str
    judge: Literal["oracle", "model"]


class _Testing:
    """The two agents at one environment."""

    def __init__(self, skeleton: EnvSkeleton, seed: int, asking: Asking) -> None:
        self._skeleton = skeleton
        self._known = dict(known_of(skeleton))
        self._seed = seed
        self._asking = asking
        self._history: dict[tuple[str, CaseType], list[str]] = {}
        self._sources = {
            tool.name: method_source(skeleton.source, skeleton.class_name, tool.name) for tool in skeleton.tools
        }

    def remember(self, outcomes: Sequence[TestCase | str]) -> None:
        """Tell later rounds of the calls of earlier ones."""
        for outcome in outcomes:
            if isinstance(outcome, TestCase):
                calls = self._history.setdefault((outcome.call.name, outcome.case), [])
                calls.append(encode(outcome.call.arguments).decode("utf-8", "replace"))
                del calls[:-_HISTORY]

    async def round(self, turn_and_chain: tuple[Turn, Chain]) -> TestCase | str:
        """One round: a case, or why there is none."""
        turn, chain = turn_and_chain
        state, digest = await chain.state(), chain.digest
        try:
            tried = await self._asking(
                roles.TEST_CALL,
                t.TestCallInputs(
                    **self._known,
                    state=state,
                    tool=turn.tool,
                    case=turn.case,
                    round=turn.round,
                    seed=derived_seed(self._seed, turn.round),
                    history=tuple(self._history.get((turn.tool.name, turn.case), ())),
                ),
                sample=turn.round,
            )
            call = ToolCall(name=turn.tool.name, arguments=tried.arguments)
            refused = refusal(turn.tool, call)
            if refused is not None:
                shown = {"success": False, "error": refused}
                ruling = await self._judged(turn, call, tried.intent, shown, None, state, state)
                return _case(turn, call, tried.intent, ruling, error=f"Refused: {refused}", before=digest, after=digest)
            examined = await chain.call(turn.round, turn.tool, call)
            outcome = examined.outcome
            if examined.findings:
                ruling = _Ruling("fail", "; ".join(finding.detail for finding in examined.findings), "oracle")
            else:
                ruling = await self._judged(
                    turn, call, tried.intent, outcome.result, examined.error, examined.before, examined.after
                )
        except ReplyError as fault:
            return f"round {turn.round} ({turn.tool.name}, {turn.case}): {fault}"
        return _case(
            turn,
            call,
            tried.intent,
            ruling,
            result=outcome.result,
            error=examined.error,
            before=examined.digest_before,
            after=outcome.digest,
            findings=examined.findings,
        )

    async def _judged(
        self,
        turn: Turn,
        call: ToolCall,
        intent: str,
        result: JsonValue,
        error: str | None,
        before: State,
        after: State,
    ) -> _Ruling:
        reply = await self._asking(
            roles.JUDGE_CALL,
            t.JudgeCallInputs(
                description=self._skeleton.description,
                seed_tasks=self._known["seed_tasks"],
                rules=self._skeleton.rules,
                tool=turn.tool,
                source=self._sources[turn.tool.name],
                call=call,
                case=turn.case,
                intent=intent,
                result=result,
                error=error,
                before=before,
                after=after,
                changes=() if after is before else diff(before, after),
                language=self._skeleton.origin.language,
            ),
            sample=turn.round,
        )
        return _Ruling(reply.verdict, reply.reason, "model")


def _case(
    turn: Turn,
    call: ToolCall,
    intent: str,
    ruling: _Ruling,
    *,
    before: str,
    after: str,
    result: JsonValue = None,
    error: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> TestCase:
    return TestCase(
        round=turn.round,
        call=call,
        case=turn.case,
        intent=intent,
        result=result,
        error=error,
        before=before,
        after=after,
        findings=findings,
        verdict=ruling.verdict,
        reason=ruling.reason,
        judge=ruling.judge,
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
