"""Brings one chosen description into the library: what of it is there, what is missing, what is written and recorded.

How it is made is `work`'s business, and where, `benches`'. A unit that fails is data; budgets, outages and
cancellation pass through and leave nothing recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envscaler.engine import Progress
from envscaler.errors import ProcessLost, ReplyError
from envscaler.llm.spans import StageSpans
from envscaler.store import LibraryStore
from envscaler.synth.asking import Asking, merged
from envscaler.synth.benches import Bench
from envscaler.synth.choosing import Candidate, Chosen
from envscaler.synth.design import Design
from envscaler.synth.report import Testing
from envscaler.synth.resume import Keys, SynthJournal, Unit, scaffold_of
from envscaler.synth.scaffold import Scaffolder, planned
from envscaler.synth.scenarios import scenario_id
from envscaler.synth.settings import BUILDING, STAGES, Stage, SynthSettings
from envscaler.synth.structures import Structures
from envscaler.synth.work import Made, Work, proved, rejection

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts


@dataclass(frozen=True)
class Built:
    """What became of one environment in this run."""

    unit: Unit
    resumed: bool = False
    """True when an earlier run had done all of it."""
    lost: bool = False
    """True when infrastructure failed; nothing was recorded, and the next run tries again."""
    structure: str | None = None
    """Signature of its structure, when it was made now."""
    design: Design | None = None
    """Only where designs are all that is asked for."""


class Builder:
    """Builds environments for one run, any number side by side."""

    def __init__(
        self,
        settings: SynthSettings,
        *,
        store: LibraryStore,
        journal: SynthJournal,
        keys: Keys,
        models: Models,
        prompts: Prompts,
        bench: Bench,
        structures: Structures,
        progress: Progress,
        scaffolder: Scaffolder,
    ) -> None:
        self._scaffolder = scaffolder
        self._settings = settings
        self._store = store
        self._journal = journal
        self._keys = keys
        self._models = models
        self._prompts = prompts
        self._bench = bench
        self._structures = structures
        self._progress = progress
        self._present = set(store.env_ids())
        minutes = settings.environment_minutes
        self._seconds = None if minutes is None else 60 * minutes

    async def build(self, chosen: Chosen) -> Built:
        """Build one environment as far as the settings say."""
        if not self._settings.reaches("program"):
            return await self._designed(chosen.candidate, chosen.decision.env_id)
        shown: set[Stage] = set()

        def done_with(*stages: Stage) -> None:
            for stage in stages:
                if stage in BUILDING and stage not in shown:
                    shown.add(stage)
                    self._progress.advance(stage)

        built = await self._built(chosen, done_with)
        done_with(*(stage for stage in BUILDING if self._settings.reaches(stage)))
        return built

    async def _built(self, chosen: Chosen, done_with: Callable[[Stage], None]) -> Built:
        candidate, env_id = chosen.candidate, chosen.decision.env_id
        before = self._before(candidate, env_id)
        finished = self._journal.unit(candidate.unit)
        if finished is not None and self._structures.original_of(env_id) is not None:
            return Built(finished, resumed=True)
        if before is not None and self._complete(before):
            return Built(before, resumed=True)
        in_library = before is not None and env_id in self._present
        begun = before or Unit(env_id=env_id, reached="design")
        work = await self._work(candidate, begun, in_library=in_library)
        try:
            with StageSpans(self._models.tracer) as spans:

                def passed(stage: Stage) -> None:
                    done_with(stage)
                    following = STAGES[STAGES.index(stage) + 1 :]
                    if following and self._settings.reaches(following[0]):
                        spans.begin(following[0])

                spans.begin("design" if work.skeleton is None else "program")
                async with asyncio.timeout(self._seconds) as allowed:
                    made = await self._bench.carry_out(work, passed)
        except ProcessLost as fault:
            return Built(work.before.model_copy(update={"failed": str(fault)}), lost=True)
        except TimeoutError:
            if not allowed.expired():
                raise
            slow = f"not finished after {self._settings.environment_minutes:g} minutes"
            return Built(work.before.model_copy(update={"failed": slow}), lost=True)
        if made.lost:
            return Built(made.unit, lost=True)
        if made.unit.dropped_scenarios or made.unit.unproved or made.unit.replies:
            # What was tried in vain cannot be seen in a library whose record a kill prevents.
            self._journal.put(self._keys.begun(candidate.unit), made.unit)
        self._keep(made, in_library=in_library)
        self._journal.put(candidate.unit, made.unit)
        return Built(made.unit, structure=made.structure)

    def _before(self, candidate: Candidate, env_id: str) -> Unit | None:
        """How far earlier runs came with an environment; None: it is to be made from the start."""
        before = self._journal.unit(candidate.unit)
        if before is None and env_id in self._present:
            # Killed after the environment was written and before that was recorded.
            begun = self._journal.unit(self._keys.begun(candidate.unit))
            return begun if begun is not None else adopted(self._store, env_id, self._keys, self._settings)
        if before is not None and env_id not in self._present and (before.failed is None or not self._complete(before)):
            return None  # somebody removed it, or it was not kept and now has another chance
        return before

    async def _work(self, candidate: Candidate, before: Unit, *, in_library: bool) -> Work:
        env_id = before.env_id
        skeleton = self._store.read_environment(env_id) if in_library else None
        return Work(
            settings=self._settings,
            scaffold=scaffold_of(skeleton) if skeleton is not None else await self._scaffolder.scaffold(),
            description=candidate.description,
            seed_tasks=candidate.seed_tasks,
            language=candidate.language,
            discovery_use=candidate.use,
            before=before,
            assessment_key=self._keys.assessment(),
            skeleton=skeleton,
            assessment=self._store.read_assessment(env_id) if in_library else None,
            scenarios=tuple(self._store.scenarios(env_id)) if in_library else (),
            proofs=tuple(self._store.proofs(env_id)) if in_library else (),
            proving_key=self._keys.proving(),
        )

    def _keep(self, made: Made, *, in_library: bool) -> None:
        if made.skeleton is not None:
            self._store.write_environment(made.skeleton, made.assessment, made.scenarios, made.proofs)
            self._present.add(made.skeleton.id)
        elif made.assessment is not None and in_library:
            self._store.write_assessment(made.assessment)

    async def _designed(self, candidate: Candidate, env_id: str) -> Built:
        key = self._keys.design(candidate.unit)
        known = self._journal.design(key)
        if known is not None:
            unit = self._journal.unit(f"{key}:unit") or Unit(env_id=env_id, reached="design")
            return Built(unit, resumed=True, design=known)
        scaffold = await self._scaffolder.scaffold()
        asking = Asking(self._models, self._prompts, self._settings.attempts, scaffold)
        try:
            made = await planned(
                candidate.description, candidate.seed_tasks, candidate.language, asking, settings=self._settings
            )
        except ReplyError as fault:
            return Built(
                Unit(
                    env_id=env_id,
                    reached="design",
                    failed=str(fault),
                    unanswered=True,
                    use=asking.whole_use,
                    replies=asking.unusable,
                    mended=asking.mended,
                )
            )
        unit = Unit(env_id=env_id, reached="design", use=asking.use, replies=asking.unusable, mended=asking.mended)
        self._journal.put(f"{key}:unit", unit)
        self._journal.put(key, made)
        return Built(unit, design=made)

    def _complete(self, unit: Unit) -> bool:
        """Whether an earlier run did all that is asked for now."""
        if unit.failed is not None:
            # What failed an assessment may pass one that is asked differently.
            return unit.reached != "assess" or unit.assessed_by == self._keys.assessment()
        if not self._settings.reaches("assess"):
            return True
        if unit.assessed_by is None:
            return False
        if not self._settings.reaches("scenarios"):
            return True
        if unit.unproved and unit.proved_by != self._keys.proving():
            return False
        return unit.scenarios_tried >= self._settings.scenarios


def adopted(store: LibraryStore, env_id: str, keys: Keys, settings: SynthSettings) -> Unit:
    """The record of an environment that is in the library without one."""
    skeleton = store.read_environment(env_id)
    assessment = store.read_assessment(env_id)
    scenarios = list(store.scenarios(env_id))
    there = {scenario.id for scenario in scenarios}
    tried = 0
    while scenario_id(env_id, tried) in there:
        tried += 1
    return Unit(
        env_id=env_id,
        reached="program" if assessment is None else "scenarios" if scenarios else "assess",
        failed=rejection(assessment) if assessment is not None and not assessment.accepted else None,
        assessed_by=keys.assessment() if assessment is not None else None,
        testing=Testing.of(assessment) if assessment is not None else Testing(),
        scenarios_tried=tried,
        scenarios=len(scenarios),
        solved=sum(scenario.solution is not None for scenario in scenarios),
        proved_by=keys.proving() if scenarios else None,
        proved=proved(scenarios, store.proofs(env_id), settings.thresholds),
        loads=True,
        dropped_tools=skeleton.origin.dropped,
        use=merged(
            {stage: use for stage, use in skeleton.origin.use.items() if stage != "discover"},
            *(scenario.origin.use for scenario in scenarios),
        ),
    )
