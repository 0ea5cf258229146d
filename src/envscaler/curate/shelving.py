"""`derived_library`: a library that is made from others, and goes on where a killed command left it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envscaler.assessment import Assessment
from envscaler.errors import StoreError
from envscaler.evidence import EnvironmentAudit, Proof
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore, splits_of
from envscaler.store.grounds import is_library


@dataclass(frozen=True)
class Shelved:
    """One environment with all that belongs to it."""

    skeleton: EnvSkeleton
    assessment: Assessment | None
    scenarios: tuple[Scenario, ...]
    proofs: tuple[Proof, ...]
    audit: EnvironmentAudit | None
    """None also where its scenarios are no longer those that were audited."""


@contextmanager
def derived_library(target: Path, sources: Iterable[Path], provenance: dict[str, Any]) -> Iterator[LibraryStore]:
    """A library to be filled from others.

    Args:
        provenance: what it is made from and how; a library that is there must say the same.

    Raises:
        StoreError: if `target` is one of the sources, or something else is there.
    """
    for source in sources:
        if target.resolve() == source.resolve():
            raise StoreError(f"{target} is what is read; name another folder for the new library")
    there = is_library(target)
    if there and LibraryStore.open(target).read_index().provenance != provenance:
        raise StoreError(f"{target} is a library that was made otherwise; name a new folder")
    with LibraryStore.making(target) as store, store.writing():
        if not there:
            store.write_index(provenance)
        yield store
        store.write_index(provenance)


def shelve(store: LibraryStore, shelved: Shelved) -> None:
    """Put an environment into a library, unless it is there as it should be."""
    skeleton = shelved.skeleton
    if store.has(skeleton.id):
        there = (
            store.read_environment(skeleton.id),
            store.read_assessment(skeleton.id),
            tuple(store.scenarios(skeleton.id)),
            tuple(store.proofs(skeleton.id)),
            store.read_audit(skeleton.id),
        )
        if there == (skeleton, shelved.assessment, shelved.scenarios, shelved.proofs, shelved.audit):
            return
    store.write_environment(skeleton, shelved.assessment, shelved.scenarios, shelved.proofs)
    if shelved.audit is not None:
        store.write_audit(shelved.audit)


def clear(store: LibraryStore, wanted: Iterable[str]) -> None:
    """Remove environments that are not wanted any more, since a source was changed in between."""
    for env_id in set(store.env_ids()) - set(wanted):
        store.remove_environment(env_id)


def add_splits(store: LibraryStore, splits: Mapping[str, str]) -> None:
    """Put environments into splits. One that is in a split of the new library already stays there."""
    before = splits_of(store)
    wanted = {**splits, **before}
    if wanted != before:
        members: dict[str, list[str]] = {}
        for env_id, split in sorted(wanted.items()):
            members.setdefault(split, []).append(env_id)
        store.write_splits(members)
