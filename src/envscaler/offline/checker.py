"""The checking agent: compares what a call did with what the blueprint says it should have done.

It reads no code: the interpreter's prediction from the state before is what result and state after are held against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from envscaler.assessment import CallVerdict
from envscaler.offline.blueprint import Blueprint, OperationPlan
from envscaler.offline.expression import CLOCK
from envscaler.offline.interpret import Prediction, interpret, tool_parameter
from envscaler.offline.wording import Wording, wording
from envscaler.roles.types import JudgeCallInputs, JudgeCallReply
from envscaler.state import Change, JsonValue, diff

_SHOWN = 120
"""Characters of a value that a reason shows."""


def judge_call(blueprint: Blueprint | None, inputs: JudgeCallInputs) -> JudgeCallReply:
    """The verdict on one call; without a blueprint, or for a tool that is not in it, general rules decide."""
    judge = _Judge(inputs, wording(inputs.language))
    operation = blueprint.operation(inputs.call.name) if blueprint is not None else None
    if blueprint is None or operation is None or CLOCK not in inputs.before:
        return judge.generally()
    return judge.against(blueprint, operation)


@dataclass(frozen=True)
class _Judge:
    inputs: JudgeCallInputs
    said: Wording

    def _say(self, verdict: CallVerdict, key: str, **values: object) -> JudgeCallReply:
        return JudgeCallReply(verdict=verdict, reason=self.said.say(key, **values))

    def _reported(self) -> bool | None:
        """What the result says of itself; None if it has not the form that results have."""
        result = self.inputs.result
        success = result.get("success") if isinstance(result, dict) else None
        return success if isinstance(success, bool) else None

    def _error_told(self) -> str:
        result = self.inputs.result
        return str(result.get("error") or result.get("message") or "") if isinstance(result, dict) else ""

    # -- against a prediction -------------------------------------------------------------------------------

    def against(self, blueprint: Blueprint, operation: OperationPlan) -> JudgeCallReply:
        try:
            prediction = interpret(blueprint, operation, self.inputs.before, self.inputs.call.arguments)
        except (KeyError, TypeError, ValueError):
            # The state is not one of this blueprint's: its program was rewritten by somebody else.
            return self.generally()
        names = {tool_parameter(blueprint, param) for param in operation.params}
        needed = {tool_parameter(blueprint, param) for param in operation.params if not param.optional}
        if self.inputs.error is not None:
            given = self.inputs.call.arguments.keys()
            return self._raised(prediction, by_signature=not needed <= given or not given <= names)
        reported = self._reported()
        if reported is None:
            return self._say("fail", "judge_form", result=_shown(self.inputs.result))
        if reported and not prediction.success:
            return self._say("fail", "judge_should_refuse", error=prediction.error)
        if not reported and prediction.success:
            return self._say("fail", "judge_should_succeed", error=self._error_told())
        return self._state_fault(prediction) or self._result_verdict(operation, prediction)

    def _raised(self, prediction: Prediction, *, by_signature: bool) -> JudgeCallReply:
        if prediction.success or prediction.violated is not None or self.inputs.changes:
            return self._say("fail", "judge_raised", error=self.inputs.error)
        if by_signature:
            return self._say("pass", "judge_raised_arguments", error=self.inputs.error)
        return self._say("warning", "judge_raised_wrong", error=self.inputs.error)

    def _state_fault(self, prediction: Prediction) -> JudgeCallReply | None:
        after = self.inputs.after
        if prediction.state == after or _same(prediction.state, after):
            return None
        for change in diff(prediction.state, after):
            if not _same(change.before, change.after):
                return self._say(
                    "fail",
                    "judge_state",
                    place=change.pointer,
                    got=_side(change, "after"),
                    want=_side(change, "before"),
                )
        return None

    def _result_verdict(self, operation: OperationPlan, prediction: Prediction) -> JudgeCallReply:
        result: dict[str, Any] = self.inputs.result
        if not prediction.success:
            told = self._error_told()
            if not told.strip():
                return self._say("warning", "judge_silent")
            return self._right("judge_right_refused", error=_shown(told))
        if operation.query is not None or operation.returns is not None:
            fault = self._data_fault(prediction.data, result.get("data"))
            if fault is not None:
                return fault
        elif not result.get("message") and not result.get("data"):
            return self._say("warning", "judge_no_message")
        if operation.query is not None:
            return self._right("judge_right_query")
        return self._right("judge_right_update", count=len(self.inputs.changes))

    def _data_fault(self, want: JsonValue, got: JsonValue) -> JudgeCallReply | None:
        if _same(want, got):
            return None
        change = next((change for change in diff(want, got) if not _same(change.before, change.after)), None)
        place = "/data" + (change.pointer if change is not None else "")
        shown = (_side(change, "after"), _side(change, "before")) if change is not None else (_shown(got), _shown(want))
        return self._say("fail", "judge_data", place=place, got=shown[0], want=shown[1])

    def _right(self, key: str, **values: object) -> JudgeCallReply:
        return self._say("pass", "judge_right", what=self.said.say(key, **values))

    # -- by general rules -----------------------------------------------------------------------------------

    def generally(self) -> JudgeCallReply:
        inputs = self.inputs
        if inputs.error is not None:
            key = "judge_raised" if inputs.case == "positive" or inputs.changes else "judge_raised_wrong"
            return self._say("fail" if key == "judge_raised" else "warning", key, error=inputs.error)
        reported = self._reported()
        if reported is None:
            return self._say("fail", "judge_form", result=_shown(inputs.result))
        place = inputs.changes[0].pointer if inputs.changes else ""
        if inputs.tool.effect == "query" and inputs.changes:
            return self._say("fail", "judge_query_wrote", place=place)
        if not reported and inputs.changes:
            return self._say("fail", "judge_failure_wrote", place=place)
        if inputs.case == "negative" and reported:
            # An empty search result is a right answer to many a wrong argument.
            harmless = inputs.tool.effect == "query" or not inputs.changes
            verdict: CallVerdict = "warning" if harmless else "fail"
            return self._say(verdict, "judge_negative_succeeded", intent=inputs.intent)
        if inputs.case == "positive" and not reported:
            # The tester sees no code: what it takes for valid may break a rule, so this is no proof of a fault.
            return self._say("warning", "judge_positive_failed", error=self._error_told())
        if reported and inputs.tool.effect == "update" and not inputs.changes:
            return self._say("warning", "judge_no_change")
        if not reported:
            told = self._error_told()
            if not told.strip():
                return self._say("warning", "judge_silent")
            return self._right("judge_right_refused", error=_shown(told))
        return self._say("pass", "judge_plausible")


def _same(left: JsonValue, right: JsonValue) -> bool:
    """Equality of JSON values in which 2 and 2.0 are one number and true is none."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-6)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(one, other) for one, other in zip(left, right, strict=True))
    return bool(left == right)


def _side(change: Change, side: str) -> str:
    """What one side of a difference holds, as the reason tells it."""
    if (side == "before" and change.kind == "added") or (side == "after" and change.kind == "removed"):
        return "nothing"
    return _shown(change.before if side == "before" else change.after)


def _shown(value: JsonValue) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
