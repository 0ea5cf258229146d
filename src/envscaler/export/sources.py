"""Where rows come from: runs with the libraries that they played, and what may be trained on of those.

Splits are of environments and stand in the library; how they are drawn is the library's business too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from envscaler.agents.dialects import DialectName, TextDialect, text_dialect_of
from envscaler.errors import UsageError
from envscaler.rollout.report import RunRecord
from envscaler.rollout.settings import RolloutSettings
from envscaler.rollout.standing import Standing
from envscaler.store import LibraryStore, RunStore, splits_of
from envscaler.store.grounds import is_library
from envscaler.store.splits import TRAIN
from envscaler.trajectory import Trajectory


@dataclass(frozen=True)
class Division:
    """Which environments of a library are exported."""

    splits: dict[str, str]
    """The split of each environment that is in one."""
    wanted: str | None = None
    """The only split that is exported; None: everything that is not held out."""

    @classmethod
    def of(cls, library: LibraryStore | None, wanted: str | None) -> Division:
        """
        Raises:
            UsageError: if the library has no such split.
        """
        splits = splits_of(library) if library is not None else {}
        if wanted is not None and wanted not in splits.values():
            place = library.path if library is not None else "a library that is not at hand"
            there = ", ".join(sorted(set(splits.values())))
            raise UsageError(f"{place} has no split {wanted!r}; {f'it has {there}' if there else 'it has none'}")
        return cls(splits, wanted)

    def fault(self, env_id: str) -> str | None:
        """Why an environment is left out; None when it is not."""
        split = self.splits.get(env_id)
        if self.wanted is not None:
            # What came into a library after it was split is in no split, and may be trained on.
            belongs = split == self.wanted or (split is None and self.wanted == TRAIN)
            return None if belongs else f"not in split {self.wanted}"
        return f"held out: {split}" if split not in (None, TRAIN) else None

    @property
    def held_out(self) -> int:
        """Environments that nothing may train on."""
        return sum(split != TRAIN for split in self.splits.values())

    def notes(self, library: LibraryStore) -> tuple[str, ...]:
        """What whoever exports of that library has to know."""
        if self.wanted is not None or not self.held_out:
            return ()
        environments = f"{self.held_out:,} environment{'s' if self.held_out > 1 else ''}"
        return (f"{environments} of {library.path} held out from training, and left out",)


@dataclass(frozen=True)
class RunSource:
    """One run that is exported."""

    run: RunStore
    library: LibraryStore | None
    """None: it is not at hand, and nobody knows what of it is held out."""
    division: Division

    @classmethod
    def of(cls, run: RunStore, split: str | None) -> RunSource:
        """The run with its library.

        Raises:
            UsageError: if the library has no such split.
            StoreError: if a record cannot be read.
        """
        library = library_of(run)
        return cls(run, library, Division.of(library, split))

    @cached_property
    def record(self) -> RunRecord | None:
        """What the run says of itself."""
        return self.run.read_run(RunRecord)

    @cached_property
    def standing(self) -> Standing:
        """Whether the run is there in full."""
        return Standing.of(self.run)

    @property
    def calls_natively(self) -> bool:
        """Whether calls can be more than text in its episodes."""
        return self.record is None or self.record.settings.dialect in ("native", "auto")

    def dialect(self, trajectory: Trajectory) -> TextDialect | None:
        """In which text dialect an episode was played, as its run says; None where calls were no text.

        Raises:
            UsageError: if this version does not know the dialect.
        """
        if trajectory.dialect in (None, "native"):
            return None
        settings = self.record.settings if self.record is not None else RolloutSettings()
        return text_dialect_of(
            cast(DialectName, trajectory.dialect), parallel=settings.parallel_calls, reasoning=settings.reasoning
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever exports has to know."""
        if self.library is None:
            return (f"the library that {self.run.path} played is not at hand: what of it is held out is not known",)
        return self.division.notes(self.library)


def library_of(run: RunStore) -> LibraryStore | None:
    """The library that a run played: the one that it lies in, else the one that its record names; None without one."""
    inside = run.path.resolve().parent.parent
    record = run.read_run(RunRecord)
    for folder in (inside, record.library if record is not None else None):
        if folder is not None and is_library(Path(folder)):
            return LibraryStore.open(folder)
    return None


def run_sources(runs: Sequence[RunStore | Path | str], split: str | None) -> tuple[RunSource, ...]:
    """The runs, each once, in the order given.

    Raises:
        StoreError: if there is no run at a path.
        UsageError: if none is named, or a library has no such split.
    """
    stores = [run if isinstance(run, RunStore) else RunStore.open(run) for run in runs]
    if not stores:
        raise UsageError("name at least one run")
    unique = {store.path.resolve(): store for store in reversed(stores)}
    return tuple(RunSource.of(store, split) for store in reversed(unique.values()))
