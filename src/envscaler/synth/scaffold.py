"""How environments are asked for: whole, or staged where a model's first replies show that it cannot; once for a run.

What the scaffolds ask is `design`'s and `staged`'s business.

Source: ours. What a model is called says little of what it can do; its first replies to the questions themselves do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from envscaler.errors import ReplyError, UsageError
from envscaler.models.settings import OFFLINE
from envscaler.roles import role as roles
from envscaler.synth.asking import Asking
from envscaler.synth.choosing import Candidate
from envscaler.synth.design import design
from envscaler.synth.resume import Keys, Scaffolding, SynthJournal
from envscaler.synth.settings import Scaffold, SynthSettings

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

_ATTEMPTS = 2
"""Replies to each question of a whole plan: a strong model mends what it is told, a weak one does not."""


class Scaffolder:
    """Knows the scaffold of a run, once it has to be known."""

    def __init__(
        self, settings: SynthSettings, *, journal: SynthJournal, keys: Keys, models: Models, prompts: Prompts
    ) -> None:
        """
        Raises:
            UsageError: if the embedded model, which plans whole environments only, is to work staged.
        """
        self._journal = journal
        self._key = keys.scaffold()
        self._models = models
        self._prompts = prompts
        self._lock = asyncio.Lock()
        self.found: Scaffolding | None = None
        """None: not known yet."""
        asked = (roles.NAME_ENTITIES, roles.WRITE_RECORDS)
        embedded = sorted({role.family for role in asked if models.chat(role.family).name == OFFLINE})
        if settings.scaffold == "staged" and embedded:
            raise UsageError(
                f"--scaffold staged: the embedded offline model plans whole environments only, and it is the "
                f"{' and the '.join(embedded)} here; leave the option out or name another model"
            )
        if settings.scaffold != "auto":
            self.found = Scaffolding(scaffold=settings.scaffold, reason="as asked for")
        elif embedded:
            self.found = Scaffolding(scaffold="whole", reason="the embedded model needs no scaffold")

    async def of(self, candidate: Candidate) -> Scaffold:
        """The scaffold, tried with this environment if it is the first one.

        Raises:
            BudgetExhausted: a limit was reached.
            EndpointUnavailable: the endpoint stayed down.
        """
        async with self._lock:
            if self.found is None:
                self.found = self._journal.scaffolding(self._key)
            if self.found is None:
                self.found = await self._tried(candidate)
                self._journal.put(self._key, self.found)
        return self.found.scaffold

    async def _tried(self, candidate: Candidate) -> Scaffolding:
        asking = Asking(self._models, self._prompts, _ATTEMPTS)
        try:
            await design(candidate.description, candidate.seed_tasks, candidate.language, asking)
        except ReplyError as fault:
            reason = f"no whole plan of {candidate.description.summary!r} could be had: {fault}"
            return Scaffolding(scaffold="staged", reason=reason, use=asking.whole_use, replies=asking.unusable)
        reason = f"a whole plan of {candidate.description.summary!r} could be had"
        return Scaffolding(scaffold="whole", reason=reason, use=asking.whole_use, replies=asking.unusable)
