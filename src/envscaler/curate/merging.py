"""`merge_libraries`: several libraries as one, every program and every scenario once.

Environments are the same where their digests are: program, class and interface. What is only named the same gets
another name, the same for the same libraries in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from envscaler.curate.merging_runs import merge_runs
from envscaler.curate.shelving import Shelved, derived_library
from envscaler.errors import UsageError
from envscaler.evidence import Proof
from envscaler.record import Record
from envscaler.rollout.results import Place
from envscaler.rollout.settings import Folder
from envscaler.scenario import Scenario
from envscaler.store import LibraryStore, splits_of
from envscaler.store.splits import TRAIN


class MergeReport(Record):
    """What became of the libraries."""

    library: Folder
    environments: int = 0
    scenarios: int = 0
    same_environments: int = 0
    """Environments that were there already, under whatever id."""
    same_scenarios: int = 0
    renamed: dict[str, str] = {}
    """`library: old id` → id of environments whose id was taken by another one."""
    renamed_scenarios: int = 0
    held_out: tuple[str, ...] = ()
    """Environments that one library trains on and another one holds out: they are held out."""
    runs: int = 0
    episodes: int = 0


@dataclass
class _Source:
    store: LibraryStore
    names: dict[str, str] = field(default_factory=dict)
    """Environment id there → id in the merged library."""
    places: dict[Place, Place] = field(default_factory=dict)
    """Environment and scenario there → those in the merged library."""


def merge_libraries(libraries: Sequence[Path], target: Path, *, runs: bool = False) -> MergeReport:
    """Write the environments of several libraries into a new one.

    Of two scenarios of one environment that an agent could not tell apart the first one stays. Assessments and proofs
    go along; an audit goes along where all its scenarios do, and no others come in.

    Args:
        runs: take runs along too. Those with the same id, agent, models and settings become one.

    Raises:
        StoreError: if something cannot be read, or `target` is there and was made otherwise.
        UsageError: for less than two libraries, or one that is named twice.
    """
    if len(libraries) < 2 or len({library.resolve() for library in libraries}) < len(libraries):
        raise UsageError("name two or more libraries to merge, each once")
    sources = [_Source(LibraryStore.open(library)) for library in libraries]
    groups, renamed = _grouped(sources)
    provenance = {
        "merged_from": [
            {"library": library.resolve().name, "provenance": source.store.read_index().provenance}
            for library, source in zip(libraries, sources, strict=True)
        ]
    }
    counts = {"scenarios": 0, "same_scenarios": 0, "renamed_scenarios": 0}
    with derived_library(target, libraries, provenance) as derived:
        for env_id, members in groups.items():
            derived.put(_combined(env_id, members, counts))
        derived.clear(groups)
        splits, disputed = _splits(sources)
        derived.add_splits(splits)
        played = merge_runs([(source.store, source.places) for source in sources], derived) if runs else (0, 0)
    return MergeReport(
        library=target,
        environments=len(groups),
        same_environments=sum(len(members) - 1 for members in groups.values()),
        renamed=renamed,
        held_out=disputed,
        runs=played[0],
        episodes=played[1],
        **counts,
    )


_Members = list[tuple[_Source, str]]


def _grouped(sources: Sequence[_Source]) -> tuple[dict[str, _Members], dict[str, str]]:
    """For each environment of the merged library where it comes from, and the ids that were taken."""
    by_digest: dict[str, str] = {}
    groups: dict[str, _Members] = {}
    renamed: dict[str, str] = {}
    # Ids of later libraries are kept free for those whose own they are.
    own = {env_id for source in sources for env_id in source.store.env_ids()}
    for source in sources:
        for env_id in source.store.env_ids():
            digest = source.store.read_environment(env_id).digest
            name = by_digest.get(digest)
            if name is None:
                name = env_id if env_id not in groups else _free(env_id, {*own, *groups})
                by_digest[digest] = name
                if name != env_id:
                    renamed[f"{source.store.path.resolve().name}: {env_id}"] = name
            groups.setdefault(name, []).append((source, env_id))
            source.names[env_id] = name
    return groups, renamed


def _free(env_id: str, taken: set[str]) -> str:
    return next(name for number in count(2) if (name := f"{env_id}-{number}") not in taken)


def _combined(env_id: str, members: _Members, counts: dict[str, int]) -> Shelved:
    """The environment of the first member with the scenarios of all, each once."""
    scenarios: dict[str, Scenario] = {}
    digests: dict[str, str] = {}
    proofs: list[Proof] = []
    for source, old in members:
        moved: dict[str, str] = {}
        for scenario in source.store.scenarios(old):
            there = digests.get(scenario.digest)
            if there is not None and source is not members[0][0]:
                counts["same_scenarios"] += 1
                source.places[old, scenario.id] = (env_id, there)
                continue
            name = _scenario_name(scenario.id, old, env_id)
            if name in scenarios:
                name = next(free for n in count(1) if (free := f"{env_id}-s{n:03d}") not in scenarios)
                counts["renamed_scenarios"] += 1
            scenarios[name] = scenario.model_copy(update={"id": name, "env_id": env_id})
            digests.setdefault(scenario.digest, name)
            source.places[old, scenario.id] = (env_id, name)
            moved[scenario.id] = name
        proofs += _moved_proofs(source.store.proofs(old), env_id, moved)
    counts["scenarios"] += len(scenarios)
    source, old = members[0]
    skeleton = source.store.read_environment(old).model_copy(update={"id": env_id})
    assessments = [found for one, name in members if (found := one.store.read_assessment(name)) is not None]
    audit = source.store.read_audit(old) if len(members) == 1 and old == env_id else None
    return Shelved(
        skeleton=skeleton,
        assessment=assessments[0].model_copy(update={"env_id": env_id}) if assessments else None,
        scenarios=tuple(scenarios.values()),
        proofs=tuple(proofs),
        audit=audit,
    )


def _scenario_name(scenario_id: str, old: str, new: str) -> str:
    return f"{new}{scenario_id[len(old) :]}" if old != new and scenario_id.startswith(f"{old}-") else scenario_id


def _moved_proofs(proofs: Iterable[Proof], env_id: str, moved: dict[str, str]) -> Iterator[Proof]:
    for proof in proofs:
        if proof.scenario_id in moved:
            yield proof.model_copy(update={"env_id": env_id, "scenario_id": moved[proof.scenario_id]})


def _splits(sources: Sequence[_Source]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The split of each environment, and those that the libraries do not agree on. Once held out is held out."""
    found: dict[str, list[str]] = {}
    for source in sources:
        for env_id, split in splits_of(source.store).items():
            if env_id in source.names:
                found.setdefault(source.names[env_id], []).append(split)
    chosen = {env_id: next((name for name in names if name != TRAIN), TRAIN) for env_id, names in found.items()}
    return chosen, tuple(sorted(env_id for env_id, names in found.items() if len(set(names)) > 1))
