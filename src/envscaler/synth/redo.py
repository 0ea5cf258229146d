"""`run_assess` and `run_scenarios`: single stages over the environments of a library that is there.

Both write one environment after the other, so that what a killed run had finished is not done again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envscaler.assessment import Assessment, Judging, Threshold
from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.errors import ProgramError, ReplyError, SandboxError, UsageError
from envscaler.evidence import Proof, Thresholds
from envscaler.llm.tracing import about
from envscaler.proof import prove
from envscaler.sandbox import Isolation, Sandbox
from envscaler.sandbox.fleet import few
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ModelUse
from envscaler.store import LibraryStore
from envscaler.synth.admission import Admission
from envscaler.synth.asking import Asking, merged
from envscaler.synth.assess import Terms, assess
from envscaler.synth.benches import WORKERS
from envscaler.synth.finishing import Proved
from envscaler.synth.renewal import renewed
from envscaler.synth.report import Assessed, AssessReport, ScenariosMade, ScenariosReport
from envscaler.synth.resume import scaffold_of
from envscaler.synth.scenarios import ScenarioWriter, scenario_id
from envscaler.synth.seeds import derived_seed
from envscaler.synth.settings import CHECKS_PER_CALL
from envscaler.synth.solving import SolverRuns
from envscaler.synth.work import proved, writing_origin

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
    judge: Judging = "auto",
    all_rounds: bool = False,
    seed: int = 0,
    attempts: int = 3,
    force: bool = False,
    environments_at_once: int | None = None,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> AssessReport:
    """Assess environments of a library anew where their assessment is missing, stale or was asked differently.

    Nothing is removed: an environment that is no longer accepted keeps its assessment, which says so.

    Args:
        env_id: only this one; None: all.
        rounds: test calls at most; once the verdict is settled no more are made.
        judge: calls that the checking agent is asked about.
        all_rounds: make all of them all the same.
        force: also where the stored assessment is still valid.

    Raises:
        StoreError: if there is no such library or environment.
        BudgetExhausted: a limit was reached; what is finished is kept.
        EndpointUnavailable: the endpoint stayed down; what is finished is kept.
    """
    store = LibraryStore.open(library)
    terms = Terms(rounds, threshold, by, judge, all_rounds)
    uses: dict[str, dict[str, ModelUse]] = {}

    async def one(name: str, sandbox: Sandbox) -> Assessed:
        skeleton = store.read_environment(name)
        stored = store.read_assessment(name)
        if stored is not None and not force and _is_valid(stored, skeleton, terms):
            if (stored.threshold, stored.by) != (threshold, by):
                stored = stored.model_copy(update={"threshold": threshold, "by": by})
                store.write_assessment(stored)
            return _assessed(stored, fresh=False)
        asking = Asking(models, prompts, attempts, scaffold_of(skeleton))
        try:
            made = await assess(
                skeleton,
                terms,
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
    assessed = await _each(store, one, names, "assess", Admission(models, environments_at_once), isolation, progress)
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
    thresholds: Thresholds | None = None,
    keep_unproved: bool = False,
    solver_runs: int | None = None,
    checks_per_call: int = CHECKS_PER_CALL,
    environments_at_once: int | None = None,
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
        thresholds: what the proof of a new scenario has to reach; the usual ones if None.
        keep_unproved: keep those that do not reach them; else they are dropped.
        solver_runs: how often the builder's model plays each task; None: as in `SynthSettings`.
        checks_per_call: check functions asked for at once.

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
    wanted = thresholds or Thresholds()
    runs = SolverRuns.of(models, solver_runs)

    async def one(name: str, sandbox: Sandbox) -> ScenariosMade | None:
        skeleton = store.read_environment(name)
        assessment = store.read_assessment(name)
        if env_id is None and assessment is not None and not assessment.accepted:
            skipped[name] = f"{name}: its assessment rejects it"
            return None
        present = list(store.scenarios(name))
        proofs = {proof.scenario_id: proof for proof in store.proofs(name)}
        asked = per_env if per_env is not None else len(present)
        there = {scenario.id for scenario in present}
        missing = [index for index in range(asked) if scenario_id(name, index) not in there]
        if len(present) >= asked:
            missing = []
        renewal = await _renewed(present, skeleton, sandbox) if renew else _Renewal(present)
        # Those that are written anew stay until there is another one.
        present = renewal.present
        kept = [scenario for scenario in present if scenario.id not in renewal.unfit]
        made: list[Proved | str] = []
        missing = sorted({*missing, *renewal.unfit.values()})
        if renewal.count:
            proofs |= renewal.proofs
            _store(store, name, present, proofs)
        if missing:
            asking = Asking(models, prompts, attempts, scaffold_of(skeleton))
            writer = ScenarioWriter(
                skeleton,
                seed=derived_seed(seed, name),
                asking=asking,
                sandbox=sandbox,
                origin=writing_origin(models, prompts, skeleton, seed, runs),
                min_state_distance=min_state_distance,
                thresholds=wanted,
                solver_runs=runs,
                checks_per_call=checks_per_call,
            )
            try:
                made = await writer.write(missing, kept)
            except (ProgramError, SandboxError) as fault:
                made = [f"{name}: {fault}"]
            uses[name] = asking.whole_use
        written = [one for one in made if isinstance(one, Proved)]
        new = [one for one in written if one.accepted or keep_unproved]
        if new:
            merged_by_id = {scenario.id: scenario for scenario in (*present, *(one.scenario for one in new))}
            present = sorted(merged_by_id.values(), key=lambda scenario: scenario.id)
            proofs |= {one.proof.scenario_id: one.proof for one in new}
            _store(store, name, present, proofs)
        fresh = [proof for proof in proofs.values() if proof.env_digest == skeleton.digest]
        return ScenariosMade(
            env_id=name,
            asked=asked,
            present=len(present),
            made=len(new),
            solved=sum(scenario.solution is not None for scenario in present),
            proved=proved(present, fresh, wanted),
            unproved=sum(not one.accepted for one in written),
            renewed=renewal.count,
            stale=sum(scenario.env_digest != skeleton.digest for scenario in present),
            dropped=(
                *renewal.told,
                *(outcome for outcome in made if isinstance(outcome, str)),
                *(one.reason for one in written if not one.accepted),
            ),
        )

    names = _named(store, env_id)
    made = await _each(store, one, names, "scenarios", Admission(models, environments_at_once), isolation, progress)
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
    proofs: dict[str, Proof] = field(default_factory=dict)
    """Of those that were made to fit, by id."""
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
                if outcome is not scenario:
                    renewal.count += 1
                    renewal.proofs[outcome.id] = await prove(skeleton, outcome, sandbox, judge)
                renewal.present.append(outcome)
                continue
            renewal.present.append(scenario)
            index = index_of(scenario.id, skeleton.id)
            if index is None or scenario.released is not None:
                renewal.told.append(f"{scenario.id} stays stale: {outcome}")
            else:
                renewal.unfit[scenario.id] = index
    return renewal


def _store(store: LibraryStore, env_id: str, scenarios: Sequence[Scenario], proofs: dict[str, Proof]) -> None:
    # Proofs first: of a scenario that a kill prevents, the next run writes both again.
    store.replace_proofs(env_id, [proofs[one.id] for one in scenarios if one.id in proofs])
    store.replace_scenarios(env_id, scenarios)


def index_of(name: str, env_id: str) -> int | None:
    """The index from 0 of a scenario that was written here; None for other ids."""
    digits = name.removeprefix(f"{env_id}-s")
    if not digits.isdecimal():
        return None
    index = int(digits) - 1
    return index if index >= 0 and scenario_id(env_id, index) == name else None


def _is_valid(stored: Assessment, skeleton: EnvSkeleton, terms: Terms) -> bool:
    """Whether an assessment made anew would say nothing else, but for chance."""
    if stored.env_digest != skeleton.digest or stored.rounds != terms.rounds:
        return False
    if (stored.judging, terms.judge) == ("auto", "all"):
        return False
    if not stored.saved:
        return True
    asked = stored.model_copy(update={"threshold": terms.threshold, "by": terms.by})
    return not terms.all_rounds and asked.settled is not None


def _assessed(assessment: Assessment, *, fresh: bool) -> Assessed:
    return Assessed(
        env_id=assessment.env_id,
        rounds=assessment.rounds,
        pass_rate=assessment.pass_rate,
        not_fail_rate=assessment.not_fail_rate,
        interval=assessment.interval,
        oracle_share=assessment.counts.oracle_share,
        made=assessment.made,
        accepted=assessment.accepted,
        fresh=fresh,
        failures=len(assessment.failures),
        at_fault={one.tool: one.faults[0].detail for one in assessment.at_fault},
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
    admission: Admission,
    isolation: Isolation,
    progress: Progress | None,
) -> list[Out]:
    shown = progress or NullProgress()
    shown.stage(stage, len(names))
    outcomes: list[Out] = []
    with store.writing():
        async with Sandbox(few(WORKERS), isolation=isolation) as sandbox:

            async def counted(name: str) -> Out:
                with admission.in_play(), about(name):
                    outcome = await function(name, sandbox)
                shown.advance(stage)
                return outcome

            async with aclosing(bounded_map(counted, names, limit=admission.room, window=len(names))) as results:
                outcomes.extend([outcome async for outcome in results])
    return outcomes
