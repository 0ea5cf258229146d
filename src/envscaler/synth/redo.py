"""`run_assess` and `run_scenarios`: single stages over the environments of a library that is there.

Both write one environment after the other, so that what a killed run had finished is not done again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envscaler.assessment import Assessment, Threshold
from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.errors import ProgramError, ReplyError, SandboxError, UsageError
from envscaler.sandbox import Isolation, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ModelUse
from envscaler.store import LibraryStore
from envscaler.synth.asking import Asking, merged
from envscaler.synth.assess import assess
from envscaler.synth.renewal import renewed
from envscaler.synth.report import Assessed, AssessReport, ScenariosMade, ScenariosReport
from envscaler.synth.resume import WRITING
from envscaler.synth.scenarios import ScenarioWriter, scenario_id
from envscaler.synth.seeds import derived_seed
from envscaler.synth.work import origin

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

Out = TypeVar("Out")


async def run_assess(
    library: Path,
    models: Models,
    prompts: Prompts,
    *,
    env_id: str | None = None,
    rounds: int = 100,
    threshold: float = 0.85,
    by: Threshold = "pass",
    seed: int = 0,
    attempts: int = 3,
    force: bool = False,
    environments_at_once: int = 4,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> AssessReport:
    """Assess environments of a library anew where their assessment is missing, stale or was asked differently.

    Nothing is removed: an environment that is no longer accepted keeps its assessment, which says so.

    Args:
        env_id: only this one; None: all.
        force: also where the stored assessment is still valid.

    Raises:
        StoreError: if there is no such library or environment.
        BudgetExhausted: a limit was reached; what is finished is kept.
        EndpointUnavailable: the endpoint stayed down; what is finished is kept.
    """
    store = LibraryStore.open(library)
    uses: dict[str, dict[str, ModelUse]] = {}

    async def one(name: str, sandbox: Sandbox) -> Assessed:
        skeleton = store.read_environment(name)
        stored = store.read_assessment(name)
        valid = stored is not None and stored.env_digest == skeleton.digest and stored.rounds == rounds
        if stored is not None and valid and not force:
            if (stored.threshold, stored.by) != (threshold, by):
                stored = stored.model_copy(update={"threshold": threshold, "by": by})
                store.write_assessment(stored)
            return _assessed(stored, fresh=False)
        asking = Asking(models, prompts, attempts)
        try:
            made = await assess(
                skeleton,
                rounds=rounds,
                threshold=threshold,
                by=by,
                seed=derived_seed(seed, name),
                asking=asking,
                sandbox=sandbox,
            )
        except (ReplyError, ProgramError, SandboxError) as fault:
            return Assessed(
                env_id=name,
                rounds=rounds,
                pass_rate=None,
                not_fail_rate=None,
                accepted=False,
                fresh=True,
                error=str(fault),
            )
        finally:
            uses[name] = asking.use
        store.write_assessment(made)
        return _assessed(made, fresh=True)

    names = _named(store, env_id)
    assessed = await _each(store, one, names, "assess", environments_at_once, isolation, progress)
    return AssessReport(
        library=library,
        threshold=threshold,
        by=by,
        assessed=tuple(assessed),
        use=merged(*(uses[name] for name in names if name in uses)),
        spent=models.meter.report().spent,
        faults=models.faults,
    )


async def run_scenarios(
    library: Path,
    models: Models,
    prompts: Prompts,
    *,
    per_env: int | None,
    renew: bool = False,
    env_id: str | None = None,
    seed: int = 0,
    attempts: int = 3,
    min_state_distance: float = 0.02,
    environments_at_once: int = 4,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> ScenariosReport:
    """Give each environment `per_env` scenarios, keeping those that it has.

    Scenarios that were made for another version of the program stay as they are, unless they are to be renewed; the
    report counts those that are stale in the end.

    Args:
        per_env: None: as many as it has.
        renew: make stale scenarios fit the program as it is now. One that still does what it did stays; another one
            is written in place of one that does not.
        env_id: only this one; None: all that are not rejected by their assessment.

    Raises:
        UsageError: if `per_env` is less than 1.
        StoreError: if there is no such library or environment.
        BudgetExhausted: a limit was reached; what is finished is kept.
        EndpointUnavailable: the endpoint stayed down; what is finished is kept.
    """
    if per_env is not None and per_env < 1:
        raise UsageError(f"{per_env} scenarios in each environment: give a number from 1 on")
    store = LibraryStore.open(library)
    skipped: dict[str, str] = {}
    uses: dict[str, dict[str, ModelUse]] = {}

    async def one(name: str, sandbox: Sandbox) -> ScenariosMade | None:
        skeleton = store.read_environment(name)
        assessment = store.read_assessment(name)
        if env_id is None and assessment is not None and not assessment.accepted:
            skipped[name] = f"{name}: its assessment rejects it"
            return None
        present = list(store.scenarios(name))
        asked = per_env if per_env is not None else len(present)
        there = {scenario.id for scenario in present}
        missing = [index for index in range(asked) if scenario_id(name, index) not in there]
        if len(present) >= asked:
            missing = []
        renewal = await _renewed(present, skeleton, sandbox) if renew else _Renewal(present)
        # Those that are written anew stay until there is another one.
        present = renewal.present
        kept = [scenario for scenario in present if scenario.id not in renewal.unfit]
        made: list[Scenario | str] = []
        missing = sorted({*missing, *renewal.unfit.values()})
        if renewal.count:
            store.replace_scenarios(name, present)
        if missing:
            asking = Asking(models, prompts, attempts)
            writer = ScenarioWriter(
                skeleton,
                seed=derived_seed(seed, name),
                asking=asking,
                sandbox=sandbox,
                origin=origin(models, prompts, WRITING, skeleton.origin.language, seed),
                min_state_distance=min_state_distance,
            )
            try:
                made = await writer.write(missing, kept)
            except (ProgramError, SandboxError) as fault:
                made = [f"{name}: {fault}"]
            uses[name] = asking.whole_use
            new = [scenario for scenario in made if isinstance(scenario, Scenario)]
            if new:
                merged_by_id = {scenario.id: scenario for scenario in (*present, *new)}
                present = sorted(merged_by_id.values(), key=lambda scenario: scenario.id)
                store.replace_scenarios(name, present)
        return ScenariosMade(
            env_id=name,
            asked=asked,
            present=len(present),
            made=sum(isinstance(outcome, Scenario) for outcome in made),
            solved=sum(scenario.solution is not None for scenario in present),
            renewed=renewal.count,
            stale=sum(scenario.env_digest != skeleton.digest for scenario in present),
            dropped=(*renewal.told, *(outcome for outcome in made if isinstance(outcome, str))),
        )

    names = _named(store, env_id)
    made = await _each(store, one, names, "scenarios", environments_at_once, isolation, progress)
    return ScenariosReport(
        library=library,
        environments=tuple(outcome for outcome in made if outcome is not None),
        renewing=renew,
        skipped=tuple(skipped[name] for name in names if name in skipped),
        use=merged(*(uses[name] for name in names if name in uses)),
        spent=models.meter.report().spent,
        faults=models.faults,
    )


@dataclass
class _Renewal:
    """What became of the stale scenarios of one environment."""

    present: list[Scenario]
    """All its scenarios, the renewed ones in their places."""
    count: int = 0
    """Those that were made to fit."""
    unfit: dict[str, int] = field(default_factory=dict)
    """Those that are to be written anew, by id, with their index."""
    told: list[str] = field(default_factory=list)
    """Why others stay as they are, one sentence each."""


async def _renewed(present: Sequence[Scenario], skeleton: EnvSkeleton, sandbox: Sandbox) -> _Renewal:
    renewal = _Renewal([])
    async with sandbox.judge() as judge:
        for scenario in present:
            outcome: Scenario | str = scenario
            if scenario.env_digest != skeleton.digest:
                outcome = await renewed(scenario, skeleton, sandbox, judge)
            if isinstance(outcome, Scenario):
                renewal.count += outcome is not scenario
                renewal.present.append(outcome)
                continue
            renewal.present.append(scenario)
            index = index_of(scenario.id, skeleton.id)
            if index is None or scenario.released is not None:
                renewal.told.append(f"{scenario.id} stays stale: {outcome}")
            else:
                renewal.unfit[scenario.id] = index
    return renewal


def index_of(name: str, env_id: str) -> int | None:
    """The index from 0 of a scenario that was written here; None for other ids."""
    digits = name.removeprefix(f"{env_id}-s")
    if not digits.isdecimal():
        return None
    index = int(digits) - 1
    return index if index >= 0 and scenario_id(env_id, index) == name else None


def _assessed(assessment: Assessment, *, fresh: bool) -> Assessed:
    return Assessed(
        env_id=assessment.env_id,
        rounds=assessment.rounds,
        pass_rate=assessment.pass_rate,
        not_fail_rate=assessment.not_fail_rate,
        accepted=assessment.accepted,
        fresh=fresh,
        failures=len(assessment.failures),
    )


def _named(store: LibraryStore, env_id: str | None) -> tuple[str, ...]:
    """
    Raises:
        StoreError: if the library has no environment, or not this one.
    """
    if env_id is not None:
        store.read_environment(env_id)
        return (env_id,)
    names = store.env_ids()
    if not names:
        raise UsageError(f"{store.path} has no environments yet; `envscaler synth` makes them")
    return names


async def _each(
    store: LibraryStore,
    function: Callable[[str, Sandbox], Awaitable[Out]],
    names: Sequence[str],
    stage: str,
    limit: int,
    isolation: Isolation,
    progress: Progress | None,
) -> list[Out]:
    shown = progress or NullProgress()
    shown.stage(stage, len(names))
    outcomes: list[Out] = []
    with store.writing():
        async with Sandbox(isolation=isolation) as sandbox:

            async def counted(name: str) -> Out:
                outcome = await function(name, sandbox)
                shown.advance(stage)
                return outcome

            async with aclosing(bounded_map(counted, names, limit=limit)) as results:
                outcomes.extend([outcome async for outcome in results])
    return outcomes
