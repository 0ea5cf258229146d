"""`CallPolicy`: what is made of replies whose form is wrong, and of several calls at once.

What was wrong is found by the dialect; here it is decided what is carried out, what is answered by an error, and when
an episode ends for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from envscaler.agents import AgentReply
from envscaler.agents.dialects import complaint
from envscaler.messages import NOT_MADE, AssistantMessage, ToolCall, ToolMessage
from envscaler.trajectory import Slip

OnSlip = Literal["repair", "error", "stop"]
"""`repair`: what is certain is put right, marked, and played; the rest is answered by an error. `error`: every slip is
answered by an error. `stop`: the first slip ends the episode."""


@dataclass(frozen=True)
class Ruling:
    """What is to be done with one reply."""

    refusals: tuple[ToolMessage | None, ...] = ()
    """For each call the observation that stands for carrying it out; None where it is carried out."""
    slips: tuple[Slip, ...] = ()
    bad: bool = False
    """Whether its form was wrong and was not put right."""
    stop: str | None = None
    """Why the episode ends here; then no call is carried out."""


@dataclass(frozen=True)
class CallPolicy:
    """The rules of one run."""

    on_slip: OnSlip = "repair"
    parallel: bool = True
    """Whether all calls of a reply are carried out, or the first only."""
    slip_limit: int = 3
    """Replies in a row that were not put right, at which an episode ends as an invalid action."""
    timeout_limit: int = 3
    """Tool calls in a row that ran out of time, at which an episode ends as an environment time-out."""

    def ruling(self, message: AssistantMessage, reply: AgentReply | None) -> Ruling:
        """What is to be done with a reply; None as reply: of an agent that makes no slips."""
        slips = reply.slips if reply is not None else ()
        calls = message.tool_calls
        if not self.parallel and len(calls) > 1:
            names = ", ".join(call.name for call in calls[1:])
            slips = (*slips, Slip(kind="second_call", detail=names[:200], repaired=self.on_slip == "repair"))
        if not slips:
            return Ruling(refusals=(None,) * len(calls))
        form = reply.form if reply is not None else ""
        fault = reply.fault if reply is not None else None
        found = tuple(slip for slip in slips if slip.kind != "drafted_call")
        if self.on_slip == "stop" and found:
            return Ruling(slips=_unrepaired(slips), bad=True, stop=complaint(found, ""))
        wrong = [slip for slip in found if slip.kind != "second_call"]
        if self.on_slip == "error" and wrong and calls:
            reason = complaint(wrong, form)
            refusals = tuple(_refusal(call, reason) for call in calls)
            return Ruling(refusals=refusals, slips=_unrepaired(slips), bad=True)
        bad = fault is not None or (self.on_slip == "error" and bool(found))
        reason = complaint([slip for slip in found if not slip.repaired and slip.kind != "second_call"], form)
        return Ruling(refusals=self._refusals(calls, reason), slips=slips, bad=bad)

    def _refusals(self, calls: tuple[ToolCall, ...], reason: str) -> tuple[ToolMessage | None, ...]:
        refusals: list[ToolMessage | None] = []
        broken = False
        for index, call in enumerate(calls):
            if broken:
                refusals.append(_refusal(call, "a call before it could not be carried out"))
            elif index and not self.parallel:
                refusals.append(_refusal(call, "only one call a reply is carried out, the first; make it again"))
            elif call.malformed is not None and reason:
                broken = True
                refusals.append(_refusal(call, reason))
            else:
                refusals.append(None)
        return tuple(refusals)


def _refusal(call: ToolCall, reason: str) -> ToolMessage:
    what = f"{call.name} was not called" if call.name else "nothing was carried out"
    return ToolMessage(
        content=f"Error: {what}: {reason}",
        tool_call_id=call.id or "",
        name=call.name,
        is_error=True,
        fault=NOT_MADE,
    )


def _unrepaired(slips: tuple[Slip, ...]) -> tuple[Slip, ...]:
    """The slips as not put right: what could have been was not."""
    return tuple(slip.model_copy(update={"repaired": False}) for slip in slips)
