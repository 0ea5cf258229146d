"""`Asking`: questions to the models on behalf of one unit, with what its replies cost by stage."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from envscaler.errors import ReplyError, RequestFailed
from envscaler.models.settings import OFFLINE
from envscaler.record import JsonSchema, Record
from envscaler.roles.ask import Attempt, Doubt, ask, use_of
from envscaler.roles.role import Prompts, ReplyT, Role
from envscaler.skeleton import ModelUse
from envscaler.synth.replies import MendedReplies, Unusable, added_up, mended, mended_in_all, unusable
from envscaler.synth.settings import Scaffold

if TYPE_CHECKING:
    from envscaler.models import Models


class Asking:
    """Asks in any role, with the model of the role's family."""

    def __init__(
        self,
        models: Models,
        prompts: Prompts,
        attempts: int,
        scaffold: Scaffold = "whole",
    ) -> None:
        """
        Args:
            scaffold: how much is asked at once.
        """
        self.scaffold = scaffold
        self.again_if_cut = True
        """Ask again also after a reply that ran into the token limit."""
        self._models = models
        self._prompts = prompts
        self._attempts = attempts
        self._uses: dict[str, list[ModelUse]] = {}
        self._wasted: dict[str, list[ModelUse]] = {}
        """Use of questions that no attempt answered."""
        self._unusable: list[Unusable] = []
        self._mended: list[MendedReplies] = []
        self._parts: list[Asking] = []
        self.loads = False
        """Set where a program of the unit could be loaded for the first time."""

    @property
    def attempts(self) -> int:
        """Questions at most until a reply can be used."""
        return self._attempts

    async def __call__(
        self,
        role: Role[ReplyT],
        inputs: Record,
        *,
        doubt: Doubt[ReplyT] | None = None,
        sample: int = 0,
        attempts: int | None = None,
        schema: JsonSchema | None = None,
    ) -> ReplyT:
        """The usable reply.

        Args:
            attempts: questions at most; None: as many as ever.
            schema: what the reply has to satisfy, where that is narrower than the role's.

        Raises:
            ReplyError: if there is none after all attempts.
        """
        attempts = attempts if attempts is not None else self._attempts
        uses: list[ModelUse] = []

        def heard(attempt: Attempt) -> None:
            uses.append(use_of(attempt.completion))
            trace, name = self._models.trace, self._models.chat(role.family).name
            if attempt.mended and trace is not None:
                trace.mended(attempt.request, name, attempt.mended)
            if attempt.kind is None:
                self._mended += mended(role.stage, role.name, attempt.mended)
                self._models.meter.count_mended(role.name, attempt.mended)
                return
            self._unusable.append(unusable(role.stage, role.name, attempt.kind, attempt.fault))
            if trace is not None:
                trace.faulted(attempt.request, name, attempt.kind, attempt.fault)

        try:
            answer = await ask(
                self._models.chat(role.family),
                role,
                inputs,
                prompts=self._prompts,
                doubt=doubt,
                sample=sample,
                attempts=attempts,
                again_if_cut=self.again_if_cut,
                schema=schema,
                on_attempt=heard,
            )
        except RequestFailed as fault:
            # What the endpoint refuses for good is no reply, but what came before it was.
            self._unusable.append(unusable(role.stage, role.name, fault.kind, str(fault)))
            self._wasted.setdefault(role.stage, []).extend(uses)
            raise
        except ReplyError:
            self._models.meter.count_unusable(role.name, len(uses))
            self._wasted.setdefault(role.stage, []).extend(uses)
            raise
        self._models.meter.count_unusable(role.name, answer.attempts - 1)
        self._uses.setdefault(role.stage, []).append(answer.use)
        return answer.reply

    def is_offline(self, role: Role[Any]) -> bool:
        """Whether the embedded model answers in a role: the same to the same inputs, whatever fault is named."""
        return self._models.chat(role.family).name == OFFLINE

    def count(self, stage: str, uses: Iterable[ModelUse]) -> None:
        """Count what was used on behalf of the unit without a question in a role."""
        for use in uses:
            self._uses.setdefault(stage, []).append(use)

    @property
    def use(self) -> dict[str, ModelUse]:
        """What the usable replies so far cost, by stage; it does not depend on the order in which they came."""
        return {stage: total(uses) for stage, uses in sorted(self._uses.items())}

    @property
    def whole_use(self) -> dict[str, ModelUse]:
        """The same with the parts that are counted apart, and with replies to questions that stayed unanswered."""
        wasted = {stage: total(uses) for stage, uses in self._wasted.items()}
        return merged(self.use, wasted, *(part.whole_use for part in self._parts))

    @property
    def unusable(self) -> tuple[Unusable, ...]:
        """Replies that could not be used, those of the parts included."""
        return added_up([*self._unusable, *(one for part in self._parts for one in part.unusable)])

    @property
    def mended(self) -> tuple[MendedReplies, ...]:
        """Replies that were used after something in their form was made good, those of the parts included."""
        return mended_in_all([*self._mended, *(one for part in self._parts for one in part.mended)])

    def apart(self) -> Asking:
        """The same for a part of the unit whose use is counted apart."""
        part = Asking(self._models, self._prompts, self._attempts, self.scaffold)
        part.again_if_cut = self.again_if_cut
        self._parts.append(part)
        return part


def total(uses: list[ModelUse]) -> ModelUse:
    """The sum of uses, the same in any order: sums of floats one by one would differ in the last digit."""
    paid = [use for use in uses if use.calls]
    costs = [use.cost_usd for use in paid]
    return ModelUse(
        calls=sum(use.calls for use in paid),
        input_tokens=sum(use.input_tokens for use in paid),
        cached_input_tokens=sum(use.cached_input_tokens for use in paid),
        output_tokens=sum(use.output_tokens for use in paid),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def merged(*uses: dict[str, ModelUse]) -> dict[str, ModelUse]:
    """Uses by stage, added up."""
    stages = sorted({stage for use in uses for stage in use})
    return {stage: total([use[stage] for use in uses if stage in use]) for stage in stages}
