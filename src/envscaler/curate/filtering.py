"""`filter_library`: a library of those environments and scenarios of another one that are as one wants them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from envscaler.curate.shelving import Shelved, derived_library
from envscaler.errors import UsageError, require_one_of
from envscaler.evidence import EnvironmentAudit, Proof, Thresholds
from envscaler.proof import is_stale
from envscaler.record import Record
from envscaler.rollout.settings import Folder
from envscaler.scenario import Level, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore, splits_of
from envscaler.synth.curriculum import Band, Curriculum, in_band


class Selection(Record):
    """What is wanted; every condition that is given has to hold."""

    env_ids: tuple[str, ...] = ()
    """Ids of environments, or patterns such as `hotel-*`; empty: all."""
    splits: tuple[str, ...] = ()
    """Names of splits; empty: all environments, also those in none."""
    languages: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    """Properties that the audit of the environment must show (`determinism`, `floor_gap` …)."""
    accepted: bool = False
    """Only environments that passed their assessment."""
    levels: tuple[Level, ...] = ()
    """Levels of difficulty; empty: all."""
    proved: bool = False
    """Only scenarios with a valid proof that reaches the usual thresholds."""
    band: Band | None = None
    """Only scenarios whose calibrated pass rate is in it."""
    curriculum: Curriculum | None = None
    """Only scenarios that stand in it."""
    without_environments: tuple[str, ...] = ()
    """Ids of environments that are like those of a benchmark."""
    without_scenarios: tuple[tuple[str, str], ...] = ()
    """Scenarios that are like tasks of a benchmark: ids of environment and scenario."""

    @property
    def of_scenarios(self) -> bool:
        """Whether it asks something of scenarios, so that an environment without any that fits is left out."""
        return bool(self.levels or self.proved or self.band or self.curriculum)


class FilterReport(Record):
    """What was taken over, and why the rest was not."""

    library: Folder
    environments: int = 0
    scenarios: int = 0
    dropped_environments: dict[str, int] = {}
    """How many were left out, by reason."""
    dropped_scenarios: dict[str, int] = {}
    """Of the environments that were looked into."""


def filter_library(library: Path, target: Path, selection: Selection) -> FilterReport:
    """Write what is wanted of a library into a new one, with assessments, proofs and splits. Runs are not taken along.

    Raises:
        StoreError: if the library cannot be read, or `target` is there and was made otherwise.
        UsageError: for an environment, split or grade that the library does not know.
    """
    source = LibraryStore.open(library)
    splits = splits_of(source)
    _require_known(source, selection, splits)
    reasons: Counter[str] = Counter()
    left: Counter[str] = Counter()
    kept: dict[str, int] = {}
    wanted = selection.model_dump(mode="json", exclude_defaults=True)
    provenance = {
        "filtered_from": {"library": library.resolve().name, "provenance": source.read_index().provenance},
        "selection": wanted,
    }
    with derived_library(target, [library], provenance) as derived:
        for env_id in source.env_ids():
            skeleton = source.read_environment(env_id)
            audit = source.read_audit(env_id)
            if (reason := _environment_fault(source, skeleton, audit, selection, splits.get(env_id))) is not None:
                reasons[reason] += 1
                continue
            proofs = list(source.proofs(env_id))
            every = list(source.scenarios(env_id))
            scenarios = _fitting(skeleton, every, proofs, selection, left)
            if selection.of_scenarios and not scenarios:
                reasons["none of its scenarios fits"] += 1
                continue
            ids = {scenario.id for scenario in scenarios}
            derived.put(
                Shelved(
                    skeleton=skeleton,
                    assessment=source.read_assessment(env_id),
                    scenarios=tuple(scenarios),
                    proofs=tuple(proof for proof in proofs if proof.scenario_id in ids),
                    audit=audit if len(scenarios) == len(every) else None,
                ),
            )
            kept[env_id] = len(scenarios)
        derived.clear(kept)
        derived.add_splits({env_id: split for env_id, split in splits.items() if env_id in kept})
    return FilterReport(
        library=target,
        environments=len(kept),
        scenarios=sum(kept.values()),
        dropped_environments=dict(sorted(reasons.items())),
        dropped_scenarios=dict(sorted(left.items())),
    )


def _require_known(source: LibraryStore, selection: Selection, splits: dict[str, str]) -> None:
    ids = source.env_ids()
    for pattern in selection.env_ids:
        if not any(fnmatchcase(env_id, pattern) for env_id in ids):
            raise UsageError(f"{source.path} has no environment {pattern!r}; envscaler show lists them")
    for split in selection.splits:
        if split not in splits.values():
            there = ", ".join(sorted(set(splits.values()))) or "none; envscaler library split draws them"
            raise UsageError(f"{source.path} has no split {split!r}; it has {there}")
    if selection.grades:
        known = {name for env_id in ids if (audit := source.read_audit(env_id)) is not None for name in audit.grades}
        if not known:
            raise UsageError(f"{source.path} has not been audited; envscaler audit does it")
        for grade in selection.grades:
            require_one_of("--graded", grade, sorted(known))


def _environment_fault(
    source: LibraryStore,
    skeleton: EnvSkeleton,
    audit: EnvironmentAudit | None,
    selection: Selection,
    split: str | None,
) -> str | None:
    """Why an environment is left out; None when it fits."""
    if skeleton.id in selection.without_environments:
        return "like one of a benchmark"
    if selection.env_ids and not any(fnmatchcase(skeleton.id, pattern) for pattern in selection.env_ids):
        return "not among the ids asked for"
    if selection.splits and split not in selection.splits:
        return f"in split {split}" if split is not None else "in no split"
    if selection.languages and skeleton.origin.language not in selection.languages:
        return f"in another language ({skeleton.origin.language})"
    if selection.accepted:
        assessment = source.read_assessment(skeleton.id)
        if assessment is None or assessment.env_digest != skeleton.digest:
            return "not assessed"
        if not assessment.accepted:
            return "did not pass its assessment"
    if selection.grades:
        if audit is None or audit.env_digest != skeleton.digest:
            return "not audited"
        missing = [grade for grade in selection.grades if audit.grades.get(grade) is not True]
        if missing:
            return f"its audit does not show {missing[0]}"
    return None


def _fitting(
    skeleton: EnvSkeleton,
    scenarios: Sequence[Scenario],
    proofs: Iterable[Proof],
    selection: Selection,
    left: Counter[str],
) -> list[Scenario]:
    proof_of = {proof.scenario_id: proof for proof in proofs}
    lessons = (
        {(one.env_id, one.scenario_id): one.scenario_digest for one in selection.curriculum.scenarios}
        if selection.curriculum is not None
        else None
    )
    kept = []
    for scenario in scenarios:
        fault = _scenario_fault(skeleton, scenario, proof_of.get(scenario.id), selection)
        if fault is None and lessons is not None:
            digest = lessons.get((scenario.env_id, scenario.id))
            fault = None if digest == scenario.digest else "edited since" if digest else "not in the curriculum"
        if fault is None:
            kept.append(scenario)
        else:
            left[fault] += 1
    return kept


def _scenario_fault(skeleton: EnvSkeleton, scenario: Scenario, proof: Proof | None, selection: Selection) -> str | None:
    """Why a scenario is left out; None when it fits."""
    if (scenario.env_id, scenario.id) in selection.without_scenarios:
        return "like a task of a benchmark"
    if selection.levels:
        level = scenario.difficulty.level if scenario.difficulty is not None else None
        if level not in selection.levels:
            return f"of difficulty {level or 'unknown'}"
    if selection.proved:
        if proof is None or is_stale(proof, skeleton, scenario):
            return "not proved"
        if Thresholds().shortfalls(proof):
            return "its proof is not good enough"
    if selection.band is not None and not in_band(scenario, selection.band):
        if scenario.calibration is None:
            return "not calibrated"
        return "solved in another share of the episodes"
    return None
