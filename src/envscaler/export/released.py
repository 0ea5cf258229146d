"""`export_released`: a library as the authors' files, which their loader and `import_released` take.

What the format has no field for (solutions, kinds of checks, clocks …) stays behind. How an entry is written is the
business of `released`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from envscaler.errors import StoreError
from envscaler.record import Record
from envscaler.released import Published, published_environment, published_key, published_scenario, published_trajectory
from envscaler.rollout.scores import UNFINISHED
from envscaler.rollout.settings import Folder
from envscaler.rollout.standing import Standing
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore, RunStore, require_free, write_atomic
from envscaler.store.atomic import json_line, utf8
from envscaler.trajectory import Trajectory

ENVIRONMENTS = "environments.json"
SCENARIOS = "scenarios.json"
_LAST = (1, "", 0)
"""Place of what was made here: after everything that was imported."""

_Place = tuple[int, str, int]


class ReleasedExport(Record):
    """What an export wrote."""

    library: Folder
    out: Folder
    environments: int
    scenarios: int
    trajectories: dict[str, int] = {}
    """Number of episodes by file."""
    left_out: tuple[str, ...] = ()
    """What could not be written, one sentence each."""
    partial: tuple[str, ...] = ()
    """What the runs lack: they are still being played, or were not played to their end."""


def export_released(library: LibraryStore | Path | str, out: Path | str, runs: Sequence[Path] = ()) -> ReleasedExport:
    """Write `environments.json`, `scenarios.json` and a file for each run of imported episodes to a folder.

    Args:
        runs: further runs, whose episodes are written in the form of the authors' runner.

    Raises:
        StoreError: if there is no library or run, or `out` cannot be written.
    """
    store = library if isinstance(library, LibraryStore) else LibraryStore.open(library)
    folder = Path(out)
    if folder.is_file():
        raise StoreError(f"{out} is a file; name a folder")
    require_free(folder, folder=True)
    skeletons = sorted(map(store.read_environment, store.env_ids()), key=_place)
    published = [published_environment(skeleton) for skeleton in skeletons]
    listed = bool(skeletons) and all((skeleton.released or {}).get("listed") for skeleton in skeletons)
    keys = None if listed else [published_key(*pair) for pair in zip(skeletons, published, strict=True)]
    write_atomic(folder / ENVIRONMENTS, _json(published, keys))
    counts: Counter[str] = Counter()
    left_out: list[str] = []
    lacking: list[str] = []
    write_atomic(folder / SCENARIOS, _json(_scenarios(store, skeletons, counts, left_out)))
    by_id = {skeleton.id: skeleton for skeleton in skeletons}
    for run, file in _runs(store, runs):
        standing = Standing.of(run)
        rows = _trajectories(store, run, by_id, counts, file, left_out)
        lines = file.endswith((".jsonl", ".ndjson"))
        write_atomic(folder / file, (utf8(json_line(row)) for row in rows) if lines else _json(rows))
        lacking += filter(None, [standing.lack(counts[file])])
    return ReleasedExport(
        library=store.path,
        out=folder,
        environments=len(published),
        scenarios=counts.pop(SCENARIOS, 0),
        trajectories=dict(counts),
        left_out=tuple(left_out),
        partial=tuple(lacking),
    )


def _place(record: EnvSkeleton | Scenario) -> _Place:
    position = (record.released or {}).get("position")
    return (0, record.origin.source or "", position) if isinstance(position, int) else _LAST


def _scenarios(
    store: LibraryStore, skeletons: Iterable[EnvSkeleton], counts: Counter[str], left_out: list[str]
) -> Iterator[Published]:
    def placed(number: int, skeleton: EnvSkeleton) -> Iterator[tuple[_Place, int, Scenario, str]]:
        for scenario in sorted(store.scenarios(skeleton.id, left_out.append), key=_place):
            yield _place(scenario), number, scenario, skeleton.class_name

    # Those of one file were published side by side: merged, a scenario of each environment is held at a time beside
    # those of one that is sorted. What was made here follows, one environment after the other.
    imported = [placed(number, part) for number, part in enumerate(skeletons) if part.released is not None]
    own = (row for part in skeletons if part.released is None for row in placed(0, part))
    for _, _, scenario, class_name in chain(heapq.merge(*imported, key=lambda part: part[:2]), own):
        counts[SCENARIOS] += 1
        yield published_scenario(scenario, class_name)


def _runs(store: LibraryStore, others: Sequence[Path]) -> Iterator[tuple[RunStore, str]]:
    names: set[str] = {ENVIRONMENTS, SCENARIOS}

    def unused(name: str, run: RunStore) -> str:
        unused_name = name if name not in names else f"{run.path.name}-{name}"
        names.add(unused_name)
        return unused_name

    for run_id in store.rollouts():
        run = store.run(run_id)
        # Broken lines are told where the episodes are written.
        first = next(run.trajectories(_silent), None) if run.exists else None
        file = (first.released or {}).get("file") if first is not None else None
        if isinstance(file, str):
            yield run, unused(Path(file).name, run)
    for path in others:
        run = RunStore.open(path)
        yield run, unused(f"{run.path.name}.json", run)


def _trajectories(
    store: LibraryStore,
    run: RunStore,
    skeletons: dict[str, EnvSkeleton],
    counts: Counter[str],
    file: str,
    left_out: list[str],
) -> Iterator[Published]:
    known: dict[str, dict[str, Scenario]] = {}
    counts[file] = 0
    for trajectory in run.trajectories(left_out.append):
        if trajectory.stop in UNFINISHED:
            left_out.append(
                f"{trajectory.id}: cut short by the machinery ({trajectory.stop.value}), which has no reward"
            )
            continue
        scenario = _scenario_of(store, trajectory, skeletons, known)
        yield published_trajectory(trajectory, skeletons.get(trajectory.env_id), scenario)
        counts[file] += 1


def _scenario_of(
    store: LibraryStore,
    trajectory: Trajectory,
    skeletons: dict[str, EnvSkeleton],
    known: dict[str, dict[str, Scenario]],
) -> Scenario | None:
    env_id = trajectory.env_id
    if env_id not in known:
        held = store.scenarios(env_id, _silent) if env_id in skeletons else iter(())
        known[env_id] = {scenario.id: scenario for scenario in held}
    return known[env_id].get(trajectory.scenario_id)


def _silent(complaint: str) -> None:
    """For files that are read a second time."""


def _json(entries: Iterable[Published], keys: Sequence[str] | None = None) -> Iterator[bytes]:
    """One JSON value, an entry a line: a list, or an object with those keys."""
    opening, closing = ("[", "]") if keys is None else ("{", "}")
    yield opening.encode()
    for index, entry in enumerate(entries):
        key = "" if keys is None else f"{json_line(keys[index]).rstrip()}: "
        yield utf8(f"{',' if index else ''}\n{key}{json_line(entry).rstrip()}")
    yield f"\n{closing}\n".encode()
