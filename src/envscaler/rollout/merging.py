"""`merge_runs`: the episodes of several runs in one, as if one command had played them.

Only runs that could have been one are merged; what they were played with stands in their records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envscaler.env import Shelf
from envscaler.errors import StoreError, UsageError
from envscaler.models import Faults
from envscaler.record import Record
from envscaler.rollout.report import RunRecord, Skipped
from envscaler.rollout.results import UNFINISHED, Place, Result, result_of
from envscaler.rollout.scores import Scores, score_table
from envscaler.rollout.settings import Folder
from envscaler.skeleton import ModelUse
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Trajectory

_Key = tuple[Place, int]


class MergeReport(Record):
    """What one call of `merge_runs` did."""

    run: Folder
    """Folder of the new run."""
    record: RunRecord
    taken: dict[str, int]
    """Episodes taken from each run, by its folder."""
    doubled: int = 0
    """Episodes left out because a run named earlier, or a later line, has that sample of the scenario."""
    other_versions: int = 0
    """Episodes left out because they were played in another version of their environment or scenario."""
    unfinished: int = 0
    """Episodes left out because the machinery had cut them short."""

    @property
    def scores(self) -> Scores:
        """Scores of all episodes of the new run."""
        return self.record.scores.total


def merge_runs(sources: Sequence[Path], out: Path, *, renumber: bool = False) -> MergeReport:
    """Write a run that holds the episodes of others, which stay as they are.

    An episode is told by environment, scenario and sample. Of several that are alike a finished one counts before one
    that was cut short, then the one of the run named first.

    Args:
        out: folder of the new run.
        renumber: take equal samples of different runs as different episodes, and count samples anew.

    Raises:
        UsageError: if the runs cannot be one; the message says what differs.
        StoreError: if a run cannot be read, or there is something in `out`.
    """
    runs = [RunStore.open(source) for source in sources]
    records = _records(runs)
    if out.resolve() in {run.path.resolve() for run in runs}:
        raise UsageError(f"{out} is one of the runs that are to be merged; name a new folder")
    merged = RunStore(out)
    merged.require_usable()
    if merged.exists:
        raise UsageError(f"{out} is a run already; name a new folder")
    choice = _Choice(runs, renumber=renumber)
    results: dict[_Key, Result] = {}
    with merged.writing(), merged:
        for trajectory in choice.episodes():
            result = result_of(trajectory)
            results[result.place, result.sample] = result
            merged.append(trajectory)
        order = _order(records[0].library) if records[0].library is not None else {}
        merged.arrange(
            lambda head: (
                head.env_id,
                order.get((head.env_id, head.scenario_id), 1 << 30),
                head.scenario_id,
                head.sample,
            )
        )
        record = _record(records, out, results)
        merged.write_run(record)
    return MergeReport(
        run=merged.path,
        record=record,
        taken={str(run.path): number for run, number in zip(runs, choice.taken, strict=True)},
        doubled=choice.doubled,
        other_versions=choice.other_versions,
        unfinished=choice.unfinished,
    )


@dataclass
class _Choice:
    """Which episodes are taken."""

    runs: list[RunStore]
    renumber: bool
    taken: list[int] = field(default_factory=list)
    doubled: int = 0
    other_versions: int = 0
    unfinished: int = 0

    def episodes(self) -> Iterator[Trajectory]:
        """The episodes to be taken, run by run. Every run is read twice, so that none has to be held in memory."""
        versions: dict[Place, tuple[str, str]] = {}
        best: dict[_Key, tuple[bool, int, int]] = {}
        for number, run in enumerate(self.runs):
            own: dict[_Key, tuple[bool, int, int]] = {}
            for line, trajectory in enumerate(run.trajectories()):
                place = (trajectory.env_id, trajectory.scenario_id)
                version = (trajectory.env_digest, trajectory.scenario_digest)
                if versions.setdefault(place, version) != version:
                    self.other_versions += 1
                    continue
                key = (place, trajectory.sample)
                self.doubled += key in own
                own[key] = (trajectory.stop in UNFINISHED, number, line)  # the last line of a run counts
            for key, rank in own.items():
                if self.renumber:
                    best[(key[0], (number << 32) + key[1])] = rank
                    continue
                self.doubled += key in best
                best[key] = min(rank, best.get(key, rank))
        chosen = set(best.values())
        if self.renumber:
            self.unfinished = sum(cut_short for cut_short, _, _ in chosen)
            chosen = {rank for rank in chosen if not rank[0]}
        lines = {(number, line) for _, number, line in chosen}
        following: dict[Place, int] = {}
        for number, run in enumerate(self.runs):
            self.taken.append(0)
            for line, trajectory in enumerate(run.trajectories()):
                if (number, line) in lines:
                    self.taken[number] += 1
                    yield _renumbered(trajectory, following) if self.renumber else trajectory


def _renumbered(trajectory: Trajectory, following: dict[Place, int]) -> Trajectory:
    place = (trajectory.env_id, trajectory.scenario_id)
    sample = following.get(place, 0)
    following[place] = sample + 1
    name = trajectory.id.removesuffix(f".{trajectory.sample}")
    return trajectory.model_copy(update={"sample": sample, "id": f"{name}.{sample}"})


def _records(runs: Sequence[RunStore]) -> list[RunRecord]:
    records: list[RunRecord] = []
    folders: set[Path] = set()
    for run in runs:
        record = run.read_run(RunRecord)
        if record is None:
            raise UsageError(f"{run.path} has no run.json, so that it is not known what was played there")
        if run.being_written:
            raise UsageError(f"{run.path} is being played now; wait until that has ended")
        if run.path.resolve() in folders:
            raise UsageError(f"{run.path} is named twice")
        folders.add(run.path.resolve())
        if records and (difference := records[0].difference(record)) is not None:
            what, first, other = difference
            raise UsageError(
                f"{run.path} and {runs[0].path} cannot be one run: {what} is {other!r} there and {first!r} here"
            )
        records.append(record)
    return records


def _order(library: Path) -> dict[Place, int]:
    """Index of each scenario in its environment, as runs have them; empty where the library is gone."""
    try:
        shelf = Shelf(LibraryStore.open(library))
        return {
            (env_id, scenario.id): index
            for env_id in shelf.env_ids
            for index, scenario in enumerate(shelf.scenarios(env_id))
        }
    except StoreError:
        return {}


def _record(records: Sequence[RunRecord], out: Path, results: dict[_Key, Result]) -> RunRecord:
    first = records[0]
    played = {place for place, _ in results}
    skipped: list[Skipped] = []
    for record in records:
        skipped += [
            part for part in record.skipped if part not in skipped and (part.env_id, part.scenario_id) not in played
        ]
    levels = {record.isolation for record in records}
    requests: dict[str, int] = {}
    for record in records:
        for kind, number in record.faults.requests.items():
            requests[kind] = requests.get(kind, 0) + number
    whole = all(record.status == "complete" for record in records)
    return first.model_copy(
        update={
            "id": out.name,
            "settings": first.settings.model_copy(
                update={"out": out, "samples": 1 + max((sample for _, sample in results), default=0)}
            ),
            "isolation": "portable" if "portable" in levels else "hardened" if "hardened" in levels else None,
            "missing_isolation": tuple(
                dict.fromkeys(sentence for record in records for sentence in record.missing_isolation)
            ),
            "isolation_modes": tuple(sorted({mode for record in records for mode in record.isolation_modes})),
            "kept_apart": {env_id: why for record in records for env_id, why in record.kept_apart.items()},
            "status": "complete" if whole and not any(r.stop in UNFINISHED for r in results.values()) else "stopped",
            "planned": len(results),
            "scores": score_table([results[key] for key in sorted(results)]),
            "skipped": tuple(skipped),
            "spent": sum((record.spent for record in records), start=ModelUse()),
            "faults": Faults(
                requests=dict(sorted(requests.items())), replies=sum(record.faults.replies for record in records)
            ),
        }
    )
