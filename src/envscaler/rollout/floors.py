"""`floors_of`: what doing nothing and calling at random earn in the scenarios that a run played.

Read from what is there, never played for it: the checks of the run itself, proofs, and other runs of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from envscaler.evidence import Proof
from envscaler.record import Record
from envscaler.rollout.estimates import Mean, flattened, mean_of
from envscaler.rollout.report import RunRecord
from envscaler.rollout.results import REWARD_MODES, Place, Result, Rewards, idle_rewards, results_of_run
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import CheckResult, Mode, RewardMode

AT_RESET = "the checks at reset"
PROOFS = "the proofs"

FloorAgent = Literal["noop", "random"]
_Version = tuple[str, str, str]
"""Environment, scenario and its digest."""


class Floor(Record):
    """What an agent that tries nothing sensible earns."""

    agent: FloorAgent
    source: str
    """Where it was read: the id of a run, or in words."""
    scenarios: int
    """Scenarios of the run that it is known for."""
    rewards: dict[RewardMode, Mean]


def floors_of(
    results: Sequence[Result], library: LibraryStore | None, *, mode: Mode, own: Path | None = None
) -> tuple[Floor, ...]:
    """The floors beside the scores of a run, over the scenarios in which these count.

    Args:
        results: of the run.
        library: where other runs and proofs are looked for; None: nowhere.
        mode: of the run; only runs of the same mode are compared with it.
        own: folder of the run itself.
    """
    wanted = {_version(result) for result in results if result.counts and result.rewards["fraction"] is not None}
    if not wanted:
        return ()
    runs = floor_runs(library, mode=mode, own=own) if library is not None else ()
    candidates = [_floor_of_run(agent, run, wanted) for agent, run in runs]
    candidates += _noop_floors(results, wanted, library)
    best: dict[FloorAgent, Floor] = {}
    for floor in candidates:
        # The first of those that are known for most scenarios: a run before what was seen at reset.
        if floor.scenarios > (best[floor.agent].scenarios if floor.agent in best else 0):
            best[floor.agent] = floor
    return tuple(best[agent] for agent in get_args(FloorAgent) if agent in best)


def floor_runs(library: LibraryStore, *, mode: Mode, own: Path | None) -> Iterator[tuple[FloorAgent, RunStore]]:
    """The runs of a library that can be a floor for one of that mode, other than itself."""
    for run_id in library.rollouts():
        run = library.run(run_id)
        record = run.read_run(RunRecord) if run.exists else None
        if record is None or record.settings.mode != mode or (own and run.path.resolve() == own.resolve()):
            continue
        if record.settings.agent == "noop" or record.settings.agent == "random":
            yield record.settings.agent, run


def _floor_of_run(agent: FloorAgent, run: RunStore, wanted: set[_Version]) -> Floor:
    known = [result for result in results_of_run(run) if result.counts and _version(result) in wanted]
    return _floor(agent, run.path.name, [(_version(result), result.rewards) for result in known])


def _noop_floors(results: Iterable[Result], wanted: set[_Version], library: LibraryStore | None) -> Iterator[Floor]:
    seen = {_version(result): result.idle for result in results if result.idle}
    floor = _floor("noop", AT_RESET, [(version, idle) for version, idle in seen.items() if version in wanted])
    if floor.scenarios:
        yield floor
    if library is not None and floor.scenarios < len(wanted):
        proved = [
            (version, rewards)
            for env_id in sorted({env_id for env_id, _, _ in wanted} & set(library.env_ids()))
            for proof in library.proofs(env_id)
            if (version := (env_id, proof.scenario_id, proof.scenario_digest)) in wanted
            and (rewards := _idle_by_proof(proof))
        ]
        if proved:
            yield _floor("noop", PROOFS, proved)


def _idle_by_proof(proof: Proof) -> Rewards:
    probe = next(iter(proof.of("noop")), None)
    if probe is None:
        return {}
    held = [index not in probe.failed for index in range(len(proof.kinds))]
    return idle_rewards(
        [
            CheckResult(description="", kind=kind, passed=one, held_at_reset=one)
            for kind, one in zip(proof.kinds, held, strict=True)
        ]
    )


def _floor(agent: FloorAgent, source: str, rewards: Iterable[tuple[_Version, Rewards]]) -> Floor:
    values: dict[RewardMode, dict[str, dict[str, list[float]]]] = {mode: {} for mode in REWARD_MODES}
    scenarios: set[_Version] = set()
    for version, earned in rewards:
        for mode in REWARD_MODES:
            one = earned.get(mode)
            if one is not None:
                values[mode].setdefault(version[0], {}).setdefault(version[1], []).append(one)
                scenarios.add(version)
    return Floor(
        agent=agent,
        source=source,
        scenarios=len(scenarios),
        rewards={mode: _mean(inner) for mode, inner in values.items()},
    )


def _mean(values: Mapping[str, Mapping[str, Sequence[float]]]) -> Mean:
    return mean_of(flattened(values), sum(len(each) for inner in values.values() for each in inner.values()))


def _version(result: Result) -> _Version:
    return result.env_id, result.scenario_id, result.scenario_digest


def levels_of(library: LibraryStore) -> dict[Place, str]:
    """How difficult each scenario of a library is, where that is recorded."""
    return {
        (env_id, scenario.id): scenario.difficulty.level
        for env_id in library.env_ids()
        for scenario in library.scenarios(env_id, _ignore)
        if scenario.difficulty is not None
    }


def _ignore(complaint: str) -> None:
    """A scenario that a hand edit broke has no difficulty; whoever plays or shows the library is told of it."""
