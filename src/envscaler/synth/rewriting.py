"""`run_rewrite`: scenarios that a model always or never solves, written anew harder or easier, and proved again.

The originals stay. How often a model solves a scenario is `calibration`'s business.

Source: Envs-FORGE, SPADE (PAPER.md's neighbours): difficulty is moved to where the policy in training is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.errors import ProgramError
from envscaler.evidence import Thresholds
from envscaler.record import Record
from envscaler.roles.types import Wanted
from envscaler.sandbox import Isolation, Sandbox
from envscaler.scenario import Difficulty, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import digest
from envscaler.store import Journal, LibraryStore
from envscaler.synth.admission import Admission
from envscaler.synth.asking import Asking
from envscaler.synth.finishing import Proved
from envscaler.synth.redo import index_of
from envscaler.synth.resume import WRITING, scaffold_of
from envscaler.synth.scenarios import Order, ScenarioWriter
from envscaler.synth.seeds import derived_seed
from envscaler.synth.solving import SolverRuns
from envscaler.synth.work import writing_origin

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

STAGE = "rewrite"
_VERSIONS = re.compile(r"(?:\.(?:harder|easier))+\Z")

Direction = Literal["harder", "easier"]


class Rewritten(Record):
    """What became of one scenario that was to be written anew."""

    env_id: str
    made_from: str
    direction: Direction
    scenario_id: str
    fault: str | None = None
    """Why there is no new one; None: there is."""


@dataclass(frozen=True)
class Rewriting:
    """What is written anew, and how."""

    model: str
    """Whose pass rates decide."""
    harden: bool = False
    """Write those that are always solved anew, harder."""
    soften: bool = False
    """Write those that are never solved anew, easier."""
    env_ids: tuple[str, ...] | None = None
    """None: all environments."""
    seed: int = 0
    attempts: int = 3
    thresholds: Thresholds = field(default_factory=Thresholds)
    solver_runs: int | None = None
    """As in `run_scenarios`."""
    isolation: Isolation = "default"

    def direction(self, scenario: Scenario) -> Direction | None:
        """How a scenario is to be written anew; None: not at all."""
        calibration = scenario.calibration
        if calibration is None or calibration.model != self.model:
            return None
        if self.harden and calibration.solved == calibration.samples:
            return "harder"
        return "easier" if self.soften and calibration.solved == 0 else None


async def run_rewrite(
    library: LibraryStore,
    rewriting: Rewriting,
    models: Models,
    prompts: Prompts,
    progress: Progress | None = None,
) -> tuple[Rewritten, ...]:
    """Write scenarios anew and add what is proved to the library.

    A scenario is rewritten once in each direction. What was given up stands in a journal and is not tried again by the
    same call.

    Returns:
        What this call, and calls like it before, made of every scenario in question.

    Raises:
        StoreError: if the library cannot be read or written.
        BudgetExhausted, EndpointUnavailable, SandboxError: what is finished is kept.
    """
    shown = progress if progress is not None else NullProgress()
    names = rewriting.env_ids if rewriting.env_ids is not None else library.env_ids()
    shown.stage(STAGE, len(names))
    out: list[Rewritten] = []
    with library.writing(), Journal(library.cache_dir / "rewritten.jsonl") as journal:
        run = _Run(library, rewriting, models, prompts, journal)
        admission = Admission(models)
        async with Sandbox(isolation=rewriting.isolation) as sandbox:

            async def one(name: str) -> list[Rewritten]:
                with admission.in_play():
                    made = await run.environment(name, sandbox)
                shown.advance(STAGE)
                return made

            async with aclosing(bounded_map(one, names, limit=admission.room, window=len(names))) as results:
                async for made in results:
                    out += made
        if any(one.fault is None for one in out):
            library.write_index(library.read_index().provenance)
    return tuple(out)


class _Run:
    def __init__(
        self, library: LibraryStore, rewriting: Rewriting, models: Models, prompts: Prompts, journal: Journal
    ) -> None:
        self.library = library
        self.rewriting = rewriting
        self.models = models
        self.prompts = prompts
        self.journal = journal
        self.runs = SolverRuns.of(models, rewriting.solver_runs)

    async def environment(self, name: str, sandbox: Sandbox) -> list[Rewritten]:
        skeleton = self.library.read_environment(name)
        present = list(self.library.scenarios(name))
        there = {scenario.id for scenario in present}
        out: list[Rewritten] = []
        missing: list[tuple[Scenario, Order, Rewritten]] = []
        for scenario in present:
            direction = self.rewriting.direction(scenario)
            if direction is None or scenario.env_digest != skeleton.digest:
                continue
            order = _order(scenario, direction)
            outcome = Rewritten(env_id=name, made_from=scenario.id, direction=direction, scenario_id=order.id)
            fault = self.journal.get(self._key(skeleton, scenario, order))
            if order.id in there:
                out.append(outcome)
            elif isinstance(fault, str):
                out.append(outcome.model_copy(update={"fault": fault}))
            else:
                missing.append((scenario, order, outcome))
        if missing:
            out += await self._written(skeleton, present, missing, sandbox)
        return sorted(out, key=lambda one: one.scenario_id)

    async def _written(
        self,
        skeleton: EnvSkeleton,
        present: Sequence[Scenario],
        missing: Sequence[tuple[Scenario, Order, Rewritten]],
        sandbox: Sandbox,
    ) -> list[Rewritten]:
        made = await self._made(skeleton, present, [order for _, order, _ in missing], sandbox)
        out: list[Rewritten] = []
        new: list[Proved] = []
        for (scenario, order, outcome), proved in zip(missing, made, strict=True):
            fault = _fault(scenario, proved, outcome.direction)
            if fault is None and isinstance(proved, Proved):
                new.append(_from(scenario, proved, outcome.direction))
            else:
                self.journal.put(self._key(skeleton, scenario, order), fault)
            out.append(outcome.model_copy(update={"fault": fault}))
        if new:
            # Proofs first: of a scenario that a kill prevents, the next run writes both again.
            ids = {one.scenario.id for one in new}
            proofs = [proof for proof in self.library.proofs(skeleton.id) if proof.scenario_id not in ids]
            self.library.replace_proofs(skeleton.id, [*proofs, *(one.proof for one in new)])
            self.library.append_scenarios(skeleton.id, [one.scenario for one in new])
        return out

    async def _made(
        self, skeleton: EnvSkeleton, present: Sequence[Scenario], orders: Sequence[Order], sandbox: Sandbox
    ) -> Sequence[Proved | str]:
        rewriting = self.rewriting
        writer = ScenarioWriter(
            skeleton,
            seed=derived_seed(rewriting.seed, skeleton.id),
            asking=Asking(self.models, self.prompts, rewriting.attempts, scaffold_of(skeleton)),
            sandbox=sandbox,
            origin=writing_origin(self.models, self.prompts, skeleton, rewriting.seed, self.runs),
            thresholds=rewriting.thresholds,
            solver_runs=self.runs,
        )
        try:
            return await writer.fulfil(orders, present)
        except ProgramError as fault:
            return [f"{order.id}: {fault}" for order in orders]

    def _key(self, skeleton: EnvSkeleton, scenario: Scenario, order: Order) -> str:
        """Under what it is kept that there is no new version of a scenario: all that decides it."""
        return digest(
            {
                "scenario": scenario.digest,
                "id": order.id,
                "seed": self.rewriting.seed,
                "attempts": self.rewriting.attempts,
                "thresholds": self.rewriting.thresholds.model_dump(mode="json"),
                "runs": self.runs.count,
                "models": self.models.names,
                "prompts": {role.name: self.prompts.digest(role) for role in WRITING[scaffold_of(skeleton)]},
            }
        )


def _order(scenario: Scenario, direction: Direction) -> Order:
    new = f"{scenario.id}.{direction}"
    calls = scenario.difficulty.calls if scenario.difficulty is not None else None
    if calls is None and scenario.solution is not None:
        calls = len(scenario.solution)
    return Order(
        id=new,
        index=index_of(_VERSIONS.sub("", scenario.id), scenario.env_id) or 0,
        label=new,
        wanted=Wanted(direction=direction, task=scenario.task, state=scenario.initial_state, calls=calls),
    )


def _from(scenario: Scenario, proved: Proved, direction: Direction) -> Proved:
    made_from = f"{scenario.id} ({direction})"
    origin = proved.scenario.origin.model_copy(update={"made_from": made_from})
    return Proved(proved.scenario.model_copy(update={"origin": origin}), proved.proof)


def _fault(scenario: Scenario, proved: Proved | str, direction: Direction) -> str | None:
    """Why a new version is not taken; None when it is."""
    if isinstance(proved, str):
        return proved
    if not proved.accepted:
        return proved.reason
    before, after = scenario.difficulty, proved.scenario.difficulty
    if before is None or after is None:
        return None
    was, became = _weight(before), _weight(after)
    if (became > was) if direction == "harder" else (became < was):
        return None
    return f"{proved.scenario.id}: it is not {direction}: it weighs {became}, the scenario that it was made from {was}"


def _weight(difficulty: Difficulty) -> int:
    """What makes a scenario hard, added up."""
    return (
        difficulty.calls
        + difficulty.updates
        + difficulty.entities
        + difficulty.rules
        + (difficulty.distractors or 0)
        + (difficulty.look_ups or 0)
        + (difficulty.forbidden or 0)
    )
