"""`run_calibrate`: how often a model solves each scenario, written into the scenario.

Playing is `rollout`'s business, what is drawn by pass rate `curriculum`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from envscaler.engine import Progress
from envscaler.env import Shelf
from envscaler.record import Record
from envscaler.rollout import RolloutReport, RolloutSettings, results_of_run, run_rollout
from envscaler.rollout.report import told
from envscaler.rollout.results import Place, Result
from envscaler.rollout.settings import Folder
from envscaler.scenario import Calibration, Scenario
from envscaler.store import LibraryStore, RunStore
from envscaler.synth.curriculum import Band

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts


class CalibrateReport(Record):
    """How often the scenarios of a library were solved."""

    library: Folder
    run: Folder
    """Folder of the run that was played for it."""
    model: str
    note: str | None = None
    """What a reader has to know."""
    played: int
    """Episodes played now."""
    calibrated: int
    """Scenarios that have a pass rate now."""
    short: int
    """Those of them with fewer judged episodes than asked for."""
    unjudged: int
    """Scenarios that were played and never judged."""
    skipped: tuple[str, ...] = ()
    """What was not played, a sentence for each reason."""
    band: Band
    solved: dict[str, int] = {}
    """Scenarios by how many of their episodes were solved: `0/4`, `1/4` …"""
    never: int
    always: int
    in_band: int


async def run_calibrate(
    library: Shelf,
    settings: RolloutSettings,
    models: Models,
    prompts: Prompts,
    *,
    band: Band | None = None,
    progress: Progress | None = None,
) -> CalibrateReport:
    """Play a library's scenarios and write into each how often it was solved.

    The episodes stand in a run of the library as others do: the same call resumes it, and more samples extend it.
    Every judged episode of the run counts, also of earlier calls. What a scenario is does not change by it.

    Args:
        settings: what is played; the agent is the model.

    Raises:
        UsageError, StoreError: as `run_rollout`.
        BudgetExhausted, EndpointUnavailable: what was played is kept in the run; nothing is written into scenarios.
    """
    report = await run_rollout(library, settings, models, prompts, progress)
    band = band or Band()
    model = report.record.models.get("agent", settings.agent)
    of_place: dict[Place, list[Result]] = {}
    for result in results_of_run(RunStore(report.run)):
        of_place.setdefault(result.place, []).append(result)
    chosen = settings.env_ids if settings.env_ids is not None else library.env_ids
    with library.store.writing():
        outcomes = [one for env_id in chosen for one in _write(library.store, env_id, of_place, model, report.run.name)]
    return _report(report, model, band, outcomes, settings.samples)


def _write(
    store: LibraryStore, env_id: str, results: Mapping[Place, list[Result]], model: str, run_id: str
) -> list[Calibration | None]:
    """Write the pass rates of one environment; that of each scenario that was played, None where nothing was judged."""
    before = list(store.scenarios(env_id))
    after = []
    found: list[Calibration | None] = []
    for scenario in before:
        played = results.get((env_id, scenario.id), [])
        calibration = calibration_of(scenario, played, model, run_id)
        if played:
            found.append(calibration)
        if calibration is not None:
            scenario = scenario.model_copy(update={"calibration": calibration})
        after.append(scenario)
    if after != before:
        store.replace_scenarios(env_id, after)
    return found


def calibration_of(scenario: Scenario, results: Iterable[Result], model: str, run_id: str) -> Calibration | None:
    """How often a scenario, as it is now, was solved; None where no episode of it was judged."""
    rewards = [
        (result.rewards["fraction"], result.rewards["solved"])
        for result in results
        if result.counts and result.scenario_digest == scenario.digest
    ]
    judged = [(fraction, solved) for fraction, solved in rewards if fraction is not None]
    if not judged:
        return None
    return Calibration(
        model=model,
        samples=len(judged),
        solved=sum(solved == 1.0 for _, solved in judged),
        reward=fsum(fraction for fraction, _ in judged) / len(judged),
        settings=run_id,
    )


def _report(
    report: RolloutReport, model: str, band: Band, outcomes: Sequence[Calibration | None], asked: int
) -> CalibrateReport:
    calibrated = [one for one in outcomes if one is not None]
    shares = Counter((one.pass_rate, one.samples, f"{one.solved}/{one.samples}") for one in calibrated)
    return CalibrateReport(
        library=report.record.library,
        run=report.run,
        model=model,
        note=report.record.note,
        played=report.played,
        calibrated=len(calibrated),
        short=sum(one.samples < asked for one in calibrated),
        unjudged=len(outcomes) - len(calibrated),
        skipped=told(report.record.skipped),
        band=band,
        solved={text: number for (_, _, text), number in sorted(shares.items())},
        never=sum(one.solved == 0 for one in calibrated),
        always=sum(one.solved == one.samples for one in calibrated),
        in_band=sum(band.holds(one) for one in calibrated),
    )
