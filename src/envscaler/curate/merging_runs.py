"""`merge_runs`: the runs of merged libraries, with the ids that environments and scenarios have now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from envscaler.curate.shelving import Deriving
from envscaler.rollout.report import RunRecord
from envscaler.rollout.results import Place
from envscaler.rollout.scores import UNFINISHED, scores
from envscaler.store import LibraryStore, RunStore
from envscaler.store.run import EpisodeHead
from envscaler.trajectory import Trajectory

_Key = tuple[str, str, int]


def merge_runs(sources: Sequence[tuple[LibraryStore, Mapping[Place, Place]]], derived: Deriving) -> tuple[int, int]:
    """Copy all runs into the merged library.

    Two runs of one id whose agent, models, prompts and settings are the same become one; of two episodes of the same
    sample of a scenario the first one stays that came to its end.

    Args:
        sources: each library with where its scenarios are now.
        derived: the merged library.

    Returns:
        The runs and the episodes that are there in the end.
    """
    parts: dict[str, list[tuple[RunStore, RunRecord, Mapping[Place, Place]]]] = {}
    for store, places in sources:
        for run_id in store.rollouts():
            run = store.run(run_id)
            record = run.read_run(RunRecord)
            if record is None:
                continue
            name = run_id
            for number in count(2):
                if name not in parts or parts[name][0][1].difference(record) is None:
                    break
                name = f"{run_id}-{number}"
            parts.setdefault(name, []).append((run, record, places))
    episodes = sum(_written(name, members, derived) for name, members in sorted(parts.items()))
    return len(parts), episodes


def _written(name: str, members: Sequence[tuple[RunStore, RunRecord, Mapping[Place, Place]]], derived: Deriving) -> int:
    """Write one run, whatever a killed command left of it; its number of episodes."""
    target = derived.store.run(name)
    if derived.finished and target.read_run(RunRecord) is not None:
        return sum(1 for _ in target.trajectories())
    seen: dict[_Key, bool] = {}
    """Whether the episode came to its end, of those met in this call."""
    doubled = 0
    with target.writing():
        written = {_key(trajectory): _ended(trajectory) for trajectory in target.trajectories()}
        with target:
            for run, _, places in members:
                for trajectory in _moved(run, places):
                    key, ended = _key(trajectory), _ended(trajectory)
                    doubled += key in seen
                    seen[key] = seen.get(key, False) or ended
                    if key not in written or (ended and not written[key]):
                        written[key] = ended
                        target.append(trajectory)
        # Of two episodes the one written last stays: the one that came to its end.
        target.arrange(_key)
        records = [record for _, record, _ in members]
        target.write_run(
            records[0].model_copy(
                update={
                    "id": name,
                    "library": derived.store.path.resolve(),
                    "settings": records[0].settings.model_copy(update={"out": None}),
                    "planned": sum(record.planned for record in records) - doubled,
                    "status": "complete" if all(record.status == "complete" for record in records) else "stopped",
                    "skipped": tuple(skipped for record in records for skipped in record.skipped),
                    "scores": scores(target.trajectories()),
                }
            )
        )
    return len(seen)


def _moved(run: RunStore, places: Mapping[Place, Place]) -> Iterator[Trajectory]:
    for trajectory in run.trajectories():
        old = (trajectory.env_id, trajectory.scenario_id)
        env_id, scenario_id = places.get(old, old)
        if (env_id, scenario_id) != old:
            named = trajectory.id.replace(trajectory.scenario_id, scenario_id)
            trajectory = trajectory.model_copy(update={"id": named, "env_id": env_id, "scenario_id": scenario_id})
        yield trajectory


def _key(trajectory: Trajectory | EpisodeHead) -> _Key:
    return trajectory.env_id, trajectory.scenario_id, trajectory.sample


def _ended(trajectory: Trajectory) -> bool:
    return trajectory.stop not in UNFINISHED
