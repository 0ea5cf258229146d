"""Takes one chosen description as far as asked: program, assessment, scenarios, files in the library.

A unit that fails is data; budgets, outages and cancellation pass through and leave nothing recorded.

Source: paper 3.2, 3.3, 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envscaler.assessment import Assessment
from envscaler.engine import Progress
from envscaler.errors import ProgramError, ReplyError, SandboxError
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.store import LibraryStore
from envscaler.synth.asking import Asking, merged
from envscaler.synth.assess import assess
from envscaler.synth.choosing import Candidate, Chosen
from envscaler.synth.design import Design, design
from envscaler.synth.programming import program
from envscaler.synth.resume import DISCOVERING, PROGRAMMING, WRITING, Keys, SynthJournal, Unit
from envscaler.synth.scenarios import ScenarioWriter, scenario_id
from envscaler.synth.seeds import derived_seed
from envscaler.synth.settings import BUILDING, Stage, SynthSettings

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts, Role


@dataclass(frozen=True)
class Built:
    """What became of one environment in this run."""

    unit: Unit
    resumed: bool = False
    """True when an earlier run had done all of it."""
    lost: bool = False
    """True when infrastructure failed; nothing was recorded, and the next run tries again."""
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
        sandbox: Sandbox,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._store = store
        self._journal = journal
        self._keys = keys
        self._models = models
        self._prompts = prompts
        self._sandbox = sandbox
        self._progress = progress
        self._present = set(store.env_ids())

    async def build(self, chosen: Chosen) -> Built:
        """Build one environment as far as the settings say."""
        candidate, env_id = chosen.candidate, chosen.decision.env_id
        asking = Asking(self._models, self._prompts, self._settings.attempts)
        if not self._settings.reaches("program"):
            return await self._designed(candidate, env_id, asking)
        before = self._before(candidate, env_id)
        making = _Making(before or Unit(env_id=env_id, reached="design"), asking, self._progress)
        try:
            if before is not None and self._complete(before):
                return Built(before, resumed=True)
            try:
                await self._carry_on(candidate, making, in_library=before is not None and env_id in self._present)
            except SandboxError as fault:
                return Built(Unit(env_id=env_id, reached=making.stage, failed=str(fault)), lost=True)
            except (ReplyError, ProgramError) as fault:
                making.fail(str(fault))
            unit = making.unit()
            self._journal.put(candidate.unit, unit)
            return Built(unit)
        finally:
            making.done_with(*(stage for stage in BUILDING if self._settings.reaches(stage)))

    def _before(self, candidate: Candidate, env_id: str) -> Unit | None:
        """How far earlier runs came with an environment; None: it is to be made from the start."""
        before = self._journal.unit(candidate.unit)
        if before is None and env_id in self._present:
            # Killed after the environment was written and before that was recorded.
            return adopted(self._store, env_id, self._keys.assessment())
        if before is not None and env_id not in self._present and (before.failed is None or not self._complete(before)):
            return None  # somebody removed it, or it was not kept and now has another chance
        return before

    async def _carry_on(self, candidate: Candidate, making: _Making, *, in_library: bool) -> None:
        settings, env_id = self._settings, making.before.env_id
        seed = derived_seed(settings.seed, env_id)
        if in_library:
            skeleton = self._store.read_environment(env_id)
            assessment = self._store.read_assessment(env_id)
            scenarios = tuple(self._store.scenarios(env_id))
        else:
            skeleton, assessment, scenarios = await self._programmed(candidate, env_id, seed, making), None, ()
        making.done_with("program")
        making.stage = "program"
        if settings.reaches("assess") and making.assessed_by is None:
            making.stage = "assess"
            making.assessed_by = self._keys.assessment()
            assessment = await assess(
                skeleton,
                rounds=settings.rounds,
                threshold=settings.threshold,
                by=settings.by,
                seed=seed,
                asking=making.asking,
                sandbox=self._sandbox,
            )
            if not assessment.accepted:
                making.fail(rejection(assessment))
                if in_library:
                    self._store.write_assessment(assessment)
                return
        making.done_with("assess")
        if settings.reaches("scenarios"):
            making.stage = "scenarios"
            writer = ScenarioWriter(
                skeleton,
                seed=seed,
                asking=making.asking,
                sandbox=self._sandbox,
                origin=origin(self._models, self._prompts, WRITING, skeleton.origin.language, settings.seed),
                min_state_distance=settings.min_state_distance,
            )
            there = {scenario.id for scenario in scenarios}
            untried = range(making.scenarios_tried, settings.scenarios)
            outcomes = await writer.write([n for n in untried if scenario_id(env_id, n) not in there], scenarios)
            scenarios += tuple(outcome for outcome in outcomes if isinstance(outcome, Scenario))
            making.count(scenarios, outcomes, max(making.scenarios_tried, settings.scenarios))
        use = merged(skeleton.origin.use, making.asking.use)
        skeleton = skeleton.model_copy(update={"origin": skeleton.origin.model_copy(update={"use": use})})
        self._store.write_environment(skeleton, assessment, scenarios)
        self._present.add(env_id)

    async def _programmed(self, candidate: Candidate, env_id: str, seed: int, making: _Making) -> EnvSkeleton:
        made = await design(candidate.description, candidate.seed_tasks, candidate.language, making.asking)
        making.stage = "program"
        programmed = await program(made, seed=seed, asking=making.asking, sandbox=self._sandbox)
        making.dropped_tools = programmed.dropped
        start = origin(
            self._models, self._prompts, (*DISCOVERING, *PROGRAMMING), candidate.language, self._settings.seed
        )
        return EnvSkeleton(
            id=env_id,
            description=candidate.description,
            entities=made.entities,
            rules=programmed.rules,
            tools=programmed.tools,
            class_name=programmed.class_name,
            source=programmed.source,
            origin=start.model_copy(
                update={
                    "seed_tasks": candidate.seed_tasks,
                    "use": candidate.use,
                    "dropped": programmed.dropped,
                }
            ),
        )

    async def _designed(self, candidate: Candidate, env_id: str, asking: Asking) -> Built:
        key = self._keys.design(candidate.unit)
        known = self._journal.design(key)
        if known is not None:
            return Built(Unit(env_id=env_id, reached="design"), resumed=True, design=known)
        try:
            made = await design(candidate.description, candidate.seed_tasks, candidate.language, asking)
        except ReplyError as fault:
            return Built(Unit(env_id=env_id, reached="design", failed=str(fault), use=asking.use))
        self._journal.put(key, made)
        return Built(Unit(env_id=env_id, reached="design", use=asking.use), design=made)

    def _complete(self, unit: Unit) -> bool:
        """Whether an earlier run did all that is asked for now."""
        if unit.failed is not None:
            # What failed an assessment may pass one that is asked differently.
            return unit.reached != "assess" or unit.assessed_by == self._keys.assessment()
        if not self._settings.reaches("assess"):
            return True
        if unit.assessed_by is None:
            return False
        return not self._settings.reaches("scenarios") or unit.scenarios_tried >= self._settings.scenarios


class _Making:
    """One environment in the making: how far it is, and what will be recorded of it."""

    def __init__(self, before: Unit, asking: Asking, progress: Progress) -> None:
        self.before = before
        self.asking = asking
        self._progress = progress
        self._shown: set[Stage] = set()
        self.stage: Stage = before.reached
        self.assessed_by = before.assessed_by if before.failed is None else None
        self.scenarios_tried = before.scenarios_tried
        self.dropped_tools = before.dropped_tools
        self._dropped_scenarios = list(before.dropped_scenarios)
        self._scenarios: tuple[Scenario, ...] | None = None
        self._failed: str | None = None

    def done_with(self, *stages: Stage) -> None:
        """Show that nothing more will be done in these stages."""
        for stage in stages:
            if stage not in self._shown:
                self._shown.add(stage)
                self._progress.advance(stage)

    def fail(self, reason: str) -> None:
        self._failed = reason

    def count(self, scenarios: tuple[Scenario, ...], outcomes: list[Scenario | str], tried: int) -> None:
        self._scenarios = scenarios
        self._dropped_scenarios += [outcome for outcome in outcomes if isinstance(outcome, str)]
        self.scenarios_tried = tried

    def unit(self) -> Unit:
        """The record of it."""
        scenarios = self._scenarios
        return Unit(
            env_id=self.before.env_id,
            reached=self.stage,
            failed=self._failed,
            assessed_by=self.assessed_by,
            scenarios_tried=self.scenarios_tried,
            scenarios=len(scenarios) if scenarios is not None else self.before.scenarios,
            solved=sum(one.solution is not None for one in scenarios) if scenarios is not None else self.before.solved,
            dropped_tools=self.dropped_tools,
            dropped_scenarios=tuple(self._dropped_scenarios),
            unsolved=tuple(
                f"{one.id}: {reason}"
                for one in scenarios or ()
                for reason in one.origin.dropped
                if one.solution is None and reason.startswith("solution")
            ),
            use=merged(self.before.use, self.asking.whole_use),
        )


def adopted(store: LibraryStore, env_id: str, assessed_by: str) -> Unit:
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
        assessed_by=assessed_by if assessment is not None else None,
        scenarios_tried=tried,
        scenarios=len(scenarios),
        solved=sum(scenario.solution is not None for scenario in scenarios),
        dropped_tools=skeleton.origin.dropped,
        use=merged(
            {stage: use for stage, use in skeleton.origin.use.items() if stage != "discover"},
            *(scenario.origin.use for scenario in scenarios),
        ),
    )


def rejection(assessment: Assessment) -> str:
    """Why an environment is not kept, with what was found first."""
    rate = assessment.pass_rate if assessment.by == "pass" else assessment.not_fail_rate
    if rate is None:
        return f"no test call could be made: {'; '.join(assessment.failures[:1])}"
    first = next((case for case in assessment.cases if case.verdict != "pass"), None)
    example = f"; for example {first.call.name}, {first.verdict}: {first.reason}" if first is not None else ""
    name = "pass" if assessment.by == "pass" else "not-fail"
    return f"{name} rate {rate:.2f} is below {assessment.threshold:.2f}{example}"


def origin(models: Models, prompts: Prompts, asked: Iterable[Role[Any]], language: str, seed: int) -> Origin:
    """Where something comes from that was made by these roles."""
    used = list(asked)
    names = models.names
    return Origin(
        language=language,
        models={family: names[family] for family in sorted({role.family for role in used})},
        prompts={role.name: prompts.digest(role) for role in used},
        seed=seed,
    )
