"""Oracles of one test call that need no model: what must hold of every tool whatever it does.

Which calls are worth making is `synth`'s business, and whether a result is *right* a checking agent's.
"""

from __future__ import annotations

from dataclasses import dataclass

from envscaler.assessment import Finding
from envscaler.messages import ToolCall
from envscaler.sandbox import Outcome, Program, Session, Snapshot
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue, State, diff, encode


@dataclass(frozen=True)
class ExaminedCall:
    """One call that was made, and what the oracles found."""

    call: ToolCall
    outcome: Outcome
    before: State
    after: State
    digest_before: str
    findings: tuple[Finding, ...]
    hung: bool
    """Whether it, or its repetition, was ended because it did not come back."""
    moment: Snapshot
    """From where it can be made again."""
    line: str | None = None
    """Text of the line of the program at which it raised."""

    @property
    def error(self) -> str | None:
        """`Type: message` when the tool gave no result."""
        fault = self.outcome.fault
        return str(fault) if fault is not None else None


async def try_call(
    session: Session, tool: ToolSpec, call: ToolCall, *, repeat: bool = True, now: tuple[str, State] | None = None
) -> ExaminedCall:
    """Make a call and examine it; the session goes on from the state that the call left.

    Args:
        repeat: make a call that gave a result a second time, from the same moment in a fresh worker, and compare.
        now: digest and state of the session as it was left; where it is still there, the state is not fetched.
    """
    digest_before = session.digest
    moment = await session.snapshot(state=now[1] if now is not None and now[0] == digest_before else None)
    outcome = await session.call(call.name, call.arguments)
    after = moment.state if outcome.digest == digest_before else await session.state()
    repeated: Outcome | None = None
    if repeat and outcome.fault is None:
        # Not a fork: that would share what the program keeps outside its state, and this is to find it.
        await session.restore(moment)
        repeated = await session.call(call.name, call.arguments)
    findings = examine(tool, outcome, digest_before=digest_before, repeated=repeated, before=moment.state, after=after)
    return ExaminedCall(
        call=call,
        outcome=outcome,
        before=moment.state,
        after=after,
        digest_before=digest_before,
        findings=findings,
        hung=did_not_return(outcome) or (repeated is not None and did_not_return(repeated)),
        moment=moment,
        line=_line_of(session.program, outcome),
    )


def examine(
    tool: ToolSpec,
    outcome: Outcome,
    *,
    digest_before: str,
    repeated: Outcome | None = None,
    before: State | None = None,
    after: State | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with what a call did, whatever the tool is for.

    Args:
        repeated: the outcome of the same call from the same state; None when it was not made again.
        before: with `after`, lets the findings name the places that were written.
    """
    findings: list[Finding] = []
    fault = outcome.fault
    written = outcome.digest != digest_before
    places = _places(before, after) if written else ""
    if fault is not None and fault.kind in ("not_json", "too_large"):
        findings.append(Finding(oracle="not_json", detail=f"{tool.name} returned no usable JSON: {fault.message}"))
    elif fault is not None and did_not_return(outcome):
        findings.append(Finding(oracle="unbounded", detail=f"{tool.name} did not come back: {fault.message}"))
    if written and tool.effect == "query":
        findings.append(Finding(oracle="query_writes", detail=f"the query tool {tool.name} changed the state{places}"))
    if written and (fault is not None or reports_failure(outcome.result)):
        findings.append(
            Finding(oracle="failure_writes", detail=f"{tool.name} reported a failure and yet changed the state{places}")
        )
    if repeated is not None and fault is None:
        difference = _difference(outcome, repeated)
        if difference is not None:
            findings.append(
                Finding(
                    oracle="nondeterministic",
                    detail=f"the same call of {tool.name} from the same state gave {difference}",
                )
            )
    return tuple(findings)


def _line_of(program: Program, outcome: Outcome) -> str | None:
    number = outcome.fault.line if outcome.fault is not None else 0
    lines = program.source.split("\n") if number else []
    return lines[number - 1].strip() or None if 0 < number <= len(lines) else None


def did_not_return(outcome: Outcome) -> bool:
    """Whether the sandbox had to end the call."""
    return outcome.fault is not None and outcome.fault.kind in ("timeout", "killed")


def reports_failure(result: JsonValue) -> bool:
    """Whether a result says that the call was not carried out: an object with `success` false."""
    return isinstance(result, dict) and result.get("success") is False


def _difference(first: Outcome, second: Outcome) -> str | None:
    if second.fault is not None:
        return f"a result and then {second.fault}"
    if encode(first.result) != encode(second.result):
        places = diff(first.result, second.result)
        return f"another result at {places[0].pointer or 'the top'}" if places else "another result"
    if first.digest != second.digest:
        return "the same result and another state"
    return None


def _places(before: State | None, after: State | None) -> str:
    if before is None or after is None:
        return ""
    pointers = [change.pointer for change in diff(before, after)]
    more = f" and {len(pointers) - 3} more places" if len(pointers) > 3 else ""
    return f" at {', '.join(pointers[:3])}{more}"
