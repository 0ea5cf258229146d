"""`CallJudge`: the verdict on a test call, by oracles where they settle it and else by the checking agent.

Which calls are made is `assess`' business.

Source: paper 3.3, checking agent. Ours: an oracle's finding makes the verdict `fail` whatever the agent says, and
what is certain without it costs no question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envscaler.assessment import CallVerdict, CaseType, Finding, Judging, TestCase
from envscaler.env.meaning import Evaluator, meaning_of
from envscaler.env.oracles import ExaminedCall, reports_failure
from envscaler.messages import ToolCall
from envscaler.program import method_source, names_touched
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import Change, JsonValue, State, diff, tokens
from envscaler.synth.asking import Asking
from envscaler.synth.excerpt import excerpt
from envscaler.synth.reasons import Passed, failed_reason, passed_reason
from envscaler.synth.states import known_of


@dataclass(frozen=True)
class Tried:
    """A test call that was made: what it was for, and what it did."""

    round: int
    tool: ToolSpec
    case: CaseType
    intent: str
    call: ToolCall
    state: State
    """The state before it."""
    digest: str
    """Digest of that state."""
    examined: ExaminedCall | None
    """None: the interface refused it, and it never reached the program."""
    refused: str | None = None
    """Why the interface refused it."""

    @property
    def result(self) -> JsonValue:
        """What came back, where the interface refused the call what an agent would be told."""
        return self.examined.outcome.result if self.examined is not None else _refusal(self.refused or "")


def _refusal(reason: str) -> JsonValue:
    return {"success": False, "error": reason}


@dataclass(frozen=True)
class Settled:
    """What is certain of a call without a model."""

    findings: tuple[Finding, ...] = ()
    """Faults."""
    passed: Passed | None = None
    """Why it is right for certain; None: it is not, or nobody can tell without a model."""


async def settled(skeleton: EnvSkeleton, tried: Tried, evaluator: Evaluator) -> Settled:
    """What oracles settle of a call."""
    examined = tried.examined
    if examined is None:
        return Settled(passed="refused") if tried.case == "negative" else Settled()
    if examined.findings:
        return Settled(findings=examined.findings)
    meaning = await meaning_of(
        evaluator, skeleton, tried.tool, tried.call, examined.outcome, examined.before, examined.after
    )
    if meaning.findings:
        return Settled(findings=meaning.findings)
    if tried.case == "negative" and not examined.outcome.changed and _is_refusal(tried.result):
        return Settled(passed="refused")
    if meaning.settled:
        return Settled(passed="settled")
    return Settled()


def _is_refusal(result: JsonValue) -> bool:
    """Whether a result is a failure that says why."""
    if not (isinstance(result, dict) and reports_failure(result)):
        return False
    error = result.get("error")
    return isinstance(error, str) and bool(error.strip())


class CallJudge:
    """Judges the calls of one program."""

    def __init__(self, skeleton: EnvSkeleton, asking: Asking, judging: Judging, evaluator: Evaluator) -> None:
        """
        Args:
            evaluator: in what rules are evaluated.
        """
        self._skeleton = skeleton
        self._evaluator = evaluator
        self._asking = asking
        self._judging = judging
        self._language = skeleton.origin.language
        self._seed_tasks = known_of(skeleton).seed_tasks
        self._sources = {
            tool.name: method_source(skeleton.source, skeleton.class_name, tool.name) for tool in skeleton.tools
        }

    async def judge(self, tried: Tried) -> TestCase:
        """The call with its verdict.

        Raises:
            ReplyError: if the checking agent gives none.
        """
        known = await settled(self._skeleton, tried, self._evaluator)
        if known.findings:
            return _case(tried, "fail", failed_reason(known.findings, self._language), "oracle", known.findings)
        if known.passed is not None and self._judging == "auto":
            return _case(tried, "pass", passed_reason(known.passed, self._language), "oracle")
        reply = await self._asking(roles.JUDGE_CALL, self._question(tried), sample=tried.round)
        return _case(tried, reply.verdict, reply.reason, "model")

    def _question(self, tried: Tried) -> t.JudgeCallInputs:
        examined, skeleton = tried.examined, self._skeleton
        after = examined.after if examined is not None else tried.state
        changes = () if after is tried.state else diff(tried.state, after)
        spoken: list[JsonValue] = [tried.call.arguments, tried.result, [one.model_dump(mode="json") for one in changes]]
        part = excerpt(tried.state, self._touched(tried.tool.name, changes), spoken)
        return t.JudgeCallInputs(
            description=skeleton.description,
            seed_tasks=self._seed_tasks,
            rules=skeleton.rules,
            tool=tried.tool,
            source=self._sources[tried.tool.name],
            call=tried.call,
            case=tried.case,
            intent=tried.intent,
            result=tried.result,
            error=examined.error if examined is not None else None,
            before=tried.state,
            after=after,
            changes=changes,
            shown=part.state,
            left_out=part.left_out,
            language=self._language,
        )

    def _touched(self, tool: str, changes: Sequence[Change]) -> frozenset[str] | None:
        """State keys that the tool's method names, and those that changed."""
        touched = names_touched(self._skeleton.source, self._skeleton.class_name, tool)
        return (
            touched | {key for change in changes for key in tokens(change.pointer)[:1]} if touched is not None else None
        )


def _case(
    tried: Tried,
    verdict: CallVerdict,
    reason: str,
    judge: Literal["oracle", "model"],
    findings: tuple[Finding, ...] = (),
) -> TestCase:
    examined = tried.examined
    return TestCase(
        round=tried.round,
        call=tried.call,
        case=tried.case,
        intent=tried.intent,
        result=examined.outcome.result if examined is not None else None,
        error=examined.error if examined is not None else f"Refused: {tried.refused}",
        before=tried.digest,
        after=examined.outcome.digest if examined is not None else tried.digest,
        findings=findings,
        verdict=verdict,
        reason=reason,
        judge=judge,
    )


def with_finding(case: TestCase, finding: Finding | None, language: str) -> TestCase:
    """The case with what an oracle found later; its reason in the language of the environment."""
    if finding is None:
        return case
    findings = (*case.findings, finding)
    reason = failed_reason(findings, language)
    return case.model_copy(update={"findings": findings, "verdict": "fail", "reason": reason, "judge": "oracle"})
