"""`import_released`: the authors' published files become a library, and their episodes a run in it.

The same call resumes, and a second one changes no byte. What the user changed in the library stays, unless asked.
How an entry is read is the business of `released`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from envscaler.engine import NullProgress, Progress
from envscaler.errors import StoreError, UsageError
from envscaler.ingest.checking import Check, check_all
from envscaler.ingest.report import Counts, ImportedEnvironment, ImportReport, Outcome
from envscaler.released import (
    Entry,
    entries,
    env_id_of,
    episode_of,
    folder_name,
    notes_of,
    published_episode,
    scenario_of,
    skeleton_of,
    trajectory_of,
)
from envscaler.rollout import RolloutSettings, RunRecord, scores
from envscaler.sandbox import Isolation
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import digest
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Trajectory

Kind = Literal["environments", "scenarios", "trajectories"]
_NOTE = "imported episodes: rewards are those recorded by whoever played them; `envscaler replay` plays them again"


@dataclass(frozen=True, slots=True)
class ReleasedFiles:
    """What is imported; at least one of the three."""

    environments: Path | None = None
    scenarios: Path | None = None
    trajectories: Path | None = None


async def import_released(
    files: ReleasedFiles,
    library: Path,
    *,
    check: bool = True,
    replace: bool = False,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> ImportReport:
    """Put published files into a library, which is made where there is none.

    Entries that cannot be used are skipped and reported with file, entry and field.

    Args:
        check: run `check_env` on every environment of the file, on the state of its first scenario.
        replace: replace environments, scenarios and episodes that the library has differently; else they stay.

    Raises:
        UsageError: if no file is given.
        StoreError: if a file cannot be read at all, or the library cannot be written.
        SandboxError: if the machinery that checks fails.
    """
    if files == ReleasedFiles():
        raise UsageError("there is nothing to import; give --environments, --scenarios or --trajectories")
    progress = progress if progress is not None else NullProgress()
    with LibraryStore.making(library) as store, store.writing():
        work = _Import(store, files, replace, progress)
        work.read_environments()
        work.read_scenarios()
        work.write()
        work.read_trajectories()
        checks = [work.check_of(found) for found in work.of_file]
        findings = await check_all(checks, store.cache_dir, isolation, progress) if check else [None] * len(checks)
    return ImportReport(
        library=library,
        environments=Counts(**work.counts["environments"]),
        scenarios=Counts(**work.counts["scenarios"]),
        trajectories=Counts(**work.counts["trajectories"]),
        imported=tuple(
            ImportedEnvironment(
                env_id=found.skeleton.id,
                outcome=found.outcome,
                tools=len(found.skeleton.tools),
                scenarios=found.held,
                checked_on=done.scenario_id if check else None,
                findings=seen,
                notes=notes_of(found.skeleton),
            )
            for found, done, seen in zip(work.of_file, checks, findings, strict=True)
        ),
        run=work.run.path if work.run is not None else None,
        skipped=tuple(work.skipped),
    )


@dataclass
class _Found:
    """An environment of the file or of the library, and the scenarios that the file has of it."""

    skeleton: EnvSkeleton
    in_file: bool = True
    outcome: Outcome = "unchanged"
    scenarios: list[Scenario] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    held: int = 0
    """Scenarios that the library holds of it."""
    by_id: dict[str, Scenario] | None = None
    """These scenarios, once somebody asked for one."""


class _Import:
    def __init__(self, store: LibraryStore, files: ReleasedFiles, replace: bool, progress: Progress) -> None:
        self.counts: dict[Kind, Counter[str]] = {
            "environments": Counter(),
            "scenarios": Counter(),
            "trajectories": Counter(),
        }
        self.skipped: list[str] = []
        self.run: RunStore | None = None
        self._store = store
        self._files = files
        self._replace = replace
        self._progress = progress
        self._found: dict[str, _Found] = {}

    @property
    def of_file(self) -> list[_Found]:
        """The environments of the file, in its order."""
        return [found for found in self._found.values() if found.in_file]

    # -- reading --

    def read_environments(self) -> None:
        path = self._files.environments
        for position, entry in self._entries("environments", path):
            with self._skipping("environments"):
                skeleton = skeleton_of(
                    entry.value,
                    entry.where,
                    source=_name(path),
                    position=position,
                    key=entry.key,
                    listed=entry.listed,
                )
                if skeleton.id in self._found:
                    raise StoreError(f"{entry.where}: there is an earlier environment with id {skeleton.id}")
                self._found[skeleton.id] = _Found(skeleton)

    def read_scenarios(self) -> None:
        for position, entry in self._entries("scenarios", self._files.scenarios):
            with self._skipping("scenarios"):
                found = self._environment(entry)
                scenario = scenario_of(
                    entry.value,
                    entry.where,
                    env_digest=found.skeleton.digest,
                    class_name=found.skeleton.class_name,
                    source=_name(self._files.scenarios),
                    position=position,
                )
                found.names[scenario.id] += 1
                found.scenarios.append(_named_apart(scenario, found.names[scenario.id]))

    def read_trajectories(self) -> None:
        path = self._files.trajectories
        if path is None:
            return
        run_id = f"released-{folder_name(path.stem)}"
        run = self.run = self._store.run(run_id)
        there = {trajectory.id: _digest(trajectory) for trajectory in run.trajectories()}
        order: dict[str, int] = {}
        samples: Counter[str] = Counter()
        with self._run_of_its_own(run):
            for _, entry in self._entries("trajectories", path):
                made: Trajectory | None = None
                with self._skipping("trajectories"):
                    made = self._trajectory(entry, path.name, samples)
                if made is None:
                    continue
                order[made.id] = len(order)
                outcome: Outcome = "added"
                if made.id in there:
                    same = there[made.id] == _digest(made)
                    outcome = "unchanged" if same else "replaced" if self._replace else "kept"
                if outcome in ("added", "replaced"):
                    run.append(made)
                self.counts["trajectories"][outcome] += 1
            if self.counts["trajectories"]["replaced"]:
                run.arrange(lambda one: (order.get(one.id, len(order)), one.id))
        if not run.exists:
            self.run = None
            return
        record = RunRecord(
            id=run_id,
            library=self._store.path.resolve(),
            settings=RolloutSettings(out=run.path),
            note=_NOTE,
            status="complete",
            planned=sum(samples.values()),
            scores=scores(run.trajectories()),
        )
        if record != run.read_run(RunRecord):
            run.write_run(record)

    @contextmanager
    def _run_of_its_own(self, run: RunStore) -> Iterator[None]:
        """Held while episodes are written to it; one that holds nothing at the end goes again."""
        try:
            with run.writing(), run:
                yield
        finally:
            run.discard_empty()

    def _trajectory(self, entry: Entry, file: str, samples: Counter[str]) -> Trajectory:
        found = self._environment(entry)
        skeleton = found.skeleton
        task_id = episode_of(published_episode(entry.value, entry.where), entry.where).task_id
        scenario = self._scenario(found, task_id)
        made = trajectory_of(entry.value, entry.where, skeleton=skeleton, scenario=scenario, file=file)
        place = made.id
        number = samples[place]
        samples[place] += 1
        return made.model_copy(update={"sample": number, "id": f"{place.removesuffix('.0')}.{number}"})

    def _scenario(self, found: _Found, name: str) -> Scenario | None:
        if found.by_id is None:
            # As the library has them, which includes what other files brought.
            found.by_id = {scenario.id: scenario for scenario in self._store.scenarios(found.skeleton.id)}
        return found.by_id.get(name)

    def _entries(self, kind: Kind, path: Path | None) -> Iterator[tuple[int, Entry]]:
        if path is None:
            return
        stage = f"read {kind}"
        self._progress.stage(stage, None)
        for position, entry in enumerate(entries(path, lambda sentence: self._skip(kind, sentence))):
            yield position, entry
            self._progress.advance(stage)

    @contextmanager
    def _skipping(self, kind: Kind) -> Iterator[None]:
        try:
            yield
        except StoreError as fault:
            self._skip(kind, str(fault))

    def _skip(self, kind: Kind, sentence: str) -> None:
        self.skipped.append(sentence)
        self.counts[kind]["skipped"] += 1

    def _environment(self, entry: Entry) -> _Found:
        env_id = env_id_of(entry.value, entry.where)
        if env_id not in self._found:
            if not self._store.has(env_id):
                raise StoreError(f"{entry.where}: there is no environment {env_id!r}, in the file or in the library")
            self._found[env_id] = _Found(self._store.read_environment(env_id), in_file=False)
        return self._found[env_id]

    # -- writing --

    def write(self) -> None:
        """Write what is new; what is there and different stays, or is replaced where that was asked for."""
        self._progress.stage("write", len(self._found))
        for found in self._found.values():
            self._write_environment(found)
            self._progress.advance("write")
        index = self._store.read_index()
        sources = dict(index.provenance.get("released") or {})
        for kind, path in (("environments", self._files.environments), ("scenarios", self._files.scenarios)):
            if path is not None:
                sources[kind] = sorted({*sources.get(kind, ()), path.name})
        self._store.write_index({**index.provenance, "released": sources})

    def _write_environment(self, found: _Found) -> None:
        skeleton = found.skeleton
        there = self._store.has(skeleton.id)
        present = list(self._store.scenarios(skeleton.id)) if there else []
        if found.in_file:
            if not there:
                found.outcome = "added"
            elif not _same(self._store.read_environment(skeleton.id), skeleton):
                found.outcome = "replaced" if self._replace else "kept"
            self.counts["environments"][found.outcome] += 1
        merged = self._merged(present, found.scenarios)
        if found.in_file and found.outcome in ("added", "replaced"):
            assessment = self._store.read_assessment(skeleton.id) if there else None
            self._store.write_environment(skeleton, assessment, merged)
        elif merged != present:
            self._store.replace_scenarios(skeleton.id, merged)
        found.held = len(merged)

    def _merged(self, present: list[Scenario], imported: list[Scenario]) -> list[Scenario]:
        merged = {scenario.id: scenario for scenario in present}
        for scenario in imported:
            there = merged.get(scenario.id)
            outcome: Outcome = "unchanged"
            if there is None:
                outcome = "added"
            elif not _same(there, scenario):
                outcome = "replaced" if self._replace else "kept"
            self.counts["scenarios"][outcome] += 1
            if outcome in ("added", "replaced"):
                merged[scenario.id] = scenario
        return list(merged.values())

    def check_of(self, found: _Found) -> Check:
        """What has to be checked of an environment: the library's, on the state of its first scenario."""
        env_id = found.skeleton.id
        skeleton = self._store.read_environment(env_id)
        first = next(self._store.scenarios(env_id), None)
        return Check(skeleton, first.initial_state if first is not None else {}, first.id if first else None)


def _named_apart(scenario: Scenario, number: int) -> Scenario:
    """The scenario under an id of its own, where earlier ones of its environment have the same."""
    if number == 1:
        return scenario
    released = scenario.released or {}
    fields = {"task_id": scenario.id, **(released.get("fields") or {})}
    changes = {"id": f"{scenario.id}-{number}", "released": {**released, "fields": fields}}
    return scenario.model_copy(update=changes)


def _same(one: EnvSkeleton | Scenario, other: EnvSkeleton | Scenario) -> bool:
    """Whether two records say the same, in whatever file and place they were published."""
    return _said(one) == _said(other)


def _said(record: EnvSkeleton | Scenario) -> dict[str, Any]:
    said = record.model_dump(exclude={"origin"})
    released = said["released"] or {}
    said["released"] = {name: part for name, part in released.items() if name not in ("position", "listed")}
    return said


def _digest(trajectory: Trajectory) -> str:
    return digest(trajectory.model_dump(mode="json"))


def _name(path: Path | None) -> str:
    return path.name if path is not None else ""
