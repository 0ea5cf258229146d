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
from envscaler.store import LibraryStore, splits_of, write_atomic
from envscaler.store.grounds import is_library

_UNFINISHED = "unfinished"
"""In the folder of caches, as long as not everything is there."""


@dataclass(frozen=True)
class Shelved:
    """One environment with all that belongs to it."""

    skeleton: EnvSkeleton
    assessment: Assessment | None
    scenarios: tuple[Scenario, ...]
    proofs: tuple[Proof, ...]
    audit: EnvironmentAudit | None
    """None also where its scenarios are no longer those that were audited."""


class Deriving:
    """A library in the making.

    Once it is finished, what is in it belongs to whoever works with it: the same command then adds what is missing and
    touches nothing that is there.
    """

    def __init__(self, store: LibraryStore, *, finished: bool) -> None:
        self.store = store
        self.finished = finished

    def put(self, shelved: Shelved) -> None:
        """Put an environment in, unless it is there as it should be."""
        skeleton = shelved.skeleton
        if self.store.has(skeleton.id):
            there = Shelved(
                skeleton=self.store.read_environment(skeleton.id),
                assessment=self.store.read_assessment(skeleton.id),
                scenarios=tuple(self.store.scenarios(skeleton.id)),
                proofs=tuple(self.store.proofs(skeleton.id)),
                audit=self.store.read_audit(skeleton.id),
            )
            if self.finished or there == shelved:
                return
        self.store.write_environment(skeleton, shelved.assessment, shelved.scenarios, shelved.proofs)
        if shelved.audit is not None:
            self.store.write_audit(shelved.audit)

    def clear(self, wanted: Iterable[str]) -> None:
        """Remove environments that a killed command put in and that its sources no longer have."""
        for env_id in () if self.finished else set(self.store.env_ids()) - set(wanted):
            self.store.remove_environment(env_id)

    def add_splits(self, splits: Mapping[str, str]) -> None:
        """Put environments into splits. One that is in a split already stays there."""
        before = splits_of(self.store)
        wanted = {**splits, **before}
        if wanted != before:
            members: dict[str, list[str]] = {}
            for env_id, split in sorted(wanted.items()):
                members.setdefault(split, []).append(env_id)
            self.store.write_splits(members)


@contextmanager
def derived_library(target: Path, sources: Iterable[Path], provenance: dict[str, Any]) -> Iterator[Deriving]:
    """A library to be filled from others.

    Args:
        provenance: what it is made from and how; a library that is there must say the same.

    Raises:
        StoreError: if `target` is one of the sources, or something else is there.
    """
    for source in sources:
        if target.resolve() == source.resolve():
            raise StoreError(f"{target} is what is read; name another folder for the new library")
    before = LibraryStore.open(target) if is_library(target) else None
    # One without anything is what a command leaves that is killed as it begins.
    there = before is not None and bool(before.read_index().provenance or before.env_ids())
    if before is not None and there and before.read_index().provenance != provenance:
        raise StoreError(f"{target} is a library that was made otherwise; name a new folder")
    with LibraryStore.making(target) as store, store.writing():
        mark = store.cache_dir / _UNFINISHED
        deriving = Deriving(store, finished=there and not mark.exists())
        if not there:
            # First, so that a library without it is known to be whole.
            write_atomic(mark, "")
            store.write_index(provenance)
        yield deriving
        store.write_index(provenance)
        mark.unlink(missing_ok=True)
