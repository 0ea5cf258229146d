"""How environments are asked for: whole, or staged where a model's first replies show that it cannot; once for a run.

What the scaffolds ask is `design`'s and `staged`'s business.

Source: ours. What a model is called says little of what it can do; its first replies to the questions themselves do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from envscaler.errors import ReplyError, UsageError
from envscaler.models.settings import OFFLINE
from envscaler.roles import role as roles
from envscaler.skeleton import EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.design import Design, design
from envscaler.synth.resume import Keys, Scaffolding, SynthJournal
from envscaler.synth.settings import Scaffold, SynthSettings
from envscaler.synth.staged.design import staged_design

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

_ATTEMPTS = 2
"""Replies to each question of a whole plan: a strong model mends what it is told, a weak one does not."""


_STAGED_ROLES: tuple[roles.Role[Any], ...] = (roles.NAME_ENTITIES, roles.WRITE_RECORDS)
"""Of each family that the staged scaffold asks, a role."""

_SAMPLE = EnvDescription(
    summary="Parcel locker station",
    introduction="A station with lockers of several sizes in which parcels wait for their recipients. It keeps lockers "
    "with size and state, parcels with recipient, size, arrival and deadline, and recipients with their pick-up codes. "
    "Staff put a parcel into a free locker that fits, recipients look up their parcels and fetch them with their code, "
    "deadlines are extended once at most, and what is not fetched in time goes back to its sender. A locker holds one "
    "parcel at a time, and a broken one none.",
)
"""What a model is tried with: always the same, so that one odd task says nothing about it."""


async def planned(
    description: EnvDescription, seed_tasks: tuple[str, ...], language: str, asking: Asking, *, settings: SynthSettings
) -> Design:
    """The plan of an environment, asked for as the scaffold asks.

    Where the scaffold is the one that was found out, an environment that the model cannot plan whole is staged: one
    sample says little of the next environment. `asking` is then staged from there on.

    Raises:
        ReplyError: if a plan stays unusable.
    """
    if asking.scaffold == "staged":
        return await staged_design(description, seed_tasks, language, asking)
    try:
        return await design(description, seed_tasks, language, asking)
    except ReplyError:
        if settings.scaffold != "auto" or any(asking.is_offline(role) for role in _STAGED_ROLES):
            raise
    asking.scaffold = "staged"
    return await staged_design(description, seed_tasks, language, asking)


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
        embedded = sorted({role.family for role in _STAGED_ROLES if models.chat(role.family).name == OFFLINE})
        if settings.scaffold == "staged" and embedded:
            raise UsageError(
                f"--scaffold staged: the embedded offline model plans whole environments only, and it is the "
                f"{' and the '.join(embedded)} here; leave the option out or name another model"
            )
        if settings.scaffold != "auto":
            self.found = Scaffolding(scaffold=settings.scaffold, reason="as asked for")
        elif embedded:
            self.found = Scaffolding(scaffold="whole", reason="the embedded model needs no scaffold")

    async def scaffold(self) -> Scaffold:
        """The scaffold; the model is tried where that is not known.

        Raises:
            BudgetExhausted: a limit was reached.
            EndpointUnavailable: the endpoint stayed down.
        """
        async with self._lock:
            if self.found is None:
                self.found = self._journal.scaffolding(self._key)
            if self.found is None:
                self.found = await self._tried()
                self._journal.put(self._key, self.found)
        return self.found.scaffold

    async def _tried(self) -> Scaffolding:
        # A weak model may list attributes without end, and would again: on a slow machine that is half an hour.
        asking = Asking(self._models, self._prompts, _ATTEMPTS, again_if_cut=False)
        try:
            await design(_SAMPLE, (), "en", asking)
        except ReplyError as fault:
            reason = f"its plan of a small sample environment cannot be used: {fault}"
            return Scaffolding(
                scaffold="staged", reason=reason, use=asking.whole_use, replies=asking.unusable, mended=asking.mended
            )
        reason = "it planned a small sample environment whole"
        return Scaffolding(
            scaffold="whole", reason=reason, use=asking.whole_use, replies=asking.unusable, mended=asking.mended
        )
