"""How environments are asked for: whole, or staged where a model's first replies show that it cannot; once for a run.

What the scaffolds ask is the business of `design`, `staged` and `programming`.

Source: ours. What a model is called says little of what it can do; its first replies to the questions themselves do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from envscaler.errors import ProgramError, ReplyError, UsageError
from envscaler.models.settings import OFFLINE
from envscaler.roles import role as roles
from envscaler.sandbox import Sandbox
from envscaler.sandbox.fleet import few
from envscaler.skeleton import EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.design import Design, design
from envscaler.synth.programming import first_attempt
from envscaler.synth.resume import Keys, Scaffolding, SynthJournal
from envscaler.synth.settings import Scaffold, SynthSettings
from envscaler.synth.staged.design import staged_design

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

_ATTEMPTS = 2
"""Replies to each question about the sample: a strong model mends what it is told, a weak one does not."""
_WORKERS = 2
"""Processes in which its program is tried."""
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


def falls_back(settings: SynthSettings, asking: Asking) -> bool:
    """Whether an environment that cannot be had as it is asked for is staged instead.

    So it is where the scaffold was found out: one sample says little of the next environment.
    """
    found_out = settings.scaffold == "auto" and asking.scaffold == "whole"
    return found_out and not any(asking.is_offline(role) for role in _STAGED_ROLES)


async def planned(
    description: EnvDescription, seed_tasks: tuple[str, ...], language: str, asking: Asking, *, settings: SynthSettings
) -> Design:
    """The plan of an environment, asked for as the scaffold asks; where it is staged instead, `asking` is from then on.

    Raises:
        ReplyError: if a plan stays unusable.
    """
    if falls_back(settings, asking):
        # What runs into the limit once does so again, and on a slow machine that takes long.
        asking.again_if_cut = False
        try:
            return await design(description, seed_tasks, language, asking)
        except ReplyError:
            asking.scaffold = "staged"
        finally:
            asking.again_if_cut = True
    ask = design if asking.scaffold == "whole" else staged_design
    return await ask(description, seed_tasks, language, asking)


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
        self._isolation = settings.isolation
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
        asking = Asking(self._models, self._prompts, _ATTEMPTS)
        asking.again_if_cut = False
        scaffold, reason = await self._seen(asking)
        return Scaffolding(
            scaffold=scaffold, reason=reason, use=asking.whole_use, replies=asking.unusable, mended=asking.mended
        )

    async def _seen(self, asking: Asking) -> tuple[Scaffold, str]:
        """What the replies about the sample show."""
        try:
            made = await design(_SAMPLE, (), "en", asking)
        except ReplyError as fault:
            return "staged", f"its plan of a small sample environment cannot be used: {fault}"
        try:
            async with Sandbox(few(_WORKERS), isolation=self._isolation) as sandbox:
                faults = await first_attempt(made, seed=0, asking=asking, sandbox=sandbox)
        except (ReplyError, ProgramError) as fault:
            return "staged", f"it planned a small sample environment whole, but its program cannot be used: {fault}"
        of = len(made.tools)
        stand = of - len(faults)
        told = f"of {of} tools of a small sample environment that it planned whole {stand} worked at the first attempt"
        if 2 * stand >= of:
            return "whole", told
        name, why = next(iter(faults.items()))
        return "staged", f"{told}; {name}: {why}"
