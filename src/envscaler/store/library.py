"""`LibraryStore`: a library of environments and scenarios as a folder that a person can read and git can diff.

One process writes at a time; any number may read. Making environments that can be played is `env`'s business.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from envscaler.assessment import Assessment
from envscaler.errors import StoreError
from envscaler.evidence import EnvironmentAudit, Proof
from envscaler.record import Record
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store.atomic import (
    json_line,
    json_text,
    sync_folder,
    unwritable,
    utf8,
    versioned,
    write_atomic,
    write_durably,
)
from envscaler.store.grounds import CACHE, ENVIRONMENTS, INDEX, ROLLOUTS, is_library, require_free
from envscaler.store.lock import sole_writer
from envscaler.store.reading import Complaint, json_object, read_bytes, read_jsonl, read_record
from envscaler.store.run import RunStore
from envscaler.store.splits import by_environment, splits_of

_PROGRAM = "program.py"
_ENVIRONMENT = "environment.json"
_ASSESSMENT = "assessment.json"
_SCENARIOS = "scenarios.jsonl"
_PROOFS = "proofs.jsonl"
_AUDIT = "audit.json"
_LEFT = re.compile(rf"\.{re.escape(INDEX)}\..*\.tmp\Z")
_NAME = re.compile(r"\w[\w.+-]{0,119}\Z")


class LibraryIndex(Record):
    """library.json: what the library holds and where it comes from."""

    environments: int
    scenarios: int
    provenance: dict[str, Any] = {}
    """Command, models, seed and the like, as its maker states them; no wall-clock time."""
    splits: dict[str, tuple[str, ...]] = {}
    """Ids of the environments whose scenarios are in each split. An id stays in its split when its environment goes:
    one that comes back under it must not be trained on by accident."""


class LibraryStore:
    """Reads and writes the files of one library.

    Example:
        >>> import tempfile
        >>> store = LibraryStore.create(Path(tempfile.mkdtemp()) / "library")
        >>> store.env_ids()
        ()
    """

    def __init__(self, path: Path) -> None:
        """Prefer `create` and `open`, which look at what is there."""
        self.path = path
        self._swept = False

    @classmethod
    def create(cls, path: Path | str) -> LibraryStore:
        """Make a library at `path`, or open the one that is there.

        Raises:
            StoreError: if a file is in the way, the folder is not empty and no library, or it cannot be written.
            SchemaVersionError: if a newer version of this package made the library.
        """
        store = cls(Path(path))
        if not store.path.exists() or not is_library(store.path):
            if store.path.exists() and not store.path.is_dir():
                raise StoreError(f"{path} is a file; name a folder for the library")
            require_free(path, folder=True)
            try:
                store.path.mkdir(parents=True, exist_ok=True)
                # What a writer left that was killed while it made the library is nobody's work.
                if any(not _LEFT.match(entry.name) for entry in store.path.iterdir()):
                    raise StoreError(f"{path} is not empty and no library; name a new folder or an existing library")
            except OSError as error:
                raise unwritable(path, error) from error
            write_atomic(store.path / INDEX, json_text(versioned(LibraryIndex(environments=0, scenarios=0))))
        else:
            store.read_index()
        if not os.access(store.path, os.W_OK | os.X_OK):
            raise StoreError(f"{path} cannot be written: no permission")
        for folder in (store.path / ENVIRONMENTS, store.cache_dir):
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise unwritable(folder, error) from error
        ignored = store.cache_dir / ".gitignore"
        if not ignored.exists():
            write_atomic(ignored, "*\n")
        return store

    @classmethod
    @contextmanager
    def making(cls, path: Path | str) -> Iterator[LibraryStore]:
        """`create`, for work that may come to nothing: a library that is new and without environments at the end goes.

        Raises:
            StoreError, SchemaVersionError: as `create`.
        """
        store = cls(Path(path))
        fresh, folders = not is_library(store.path), []
        for folder in (store.path, *store.path.parents):
            if folder.exists():
                break
            folders.append(folder)
        try:
            yield cls.create(path)
        finally:
            if fresh and not (is_library(store.path) and store.env_ids()):
                store._discard(folders)

    @classmethod
    def open(cls, path: Path | str) -> LibraryStore:
        """Open the library at `path`.

        Raises:
            StoreError: if there is none.
            SchemaVersionError: if a newer version of this package made it.
        """
        store = cls(Path(path))
        if not store.path.exists():
            raise StoreError(f"{path}: no such library; `envscaler synth` makes one")
        if not store.path.is_dir():
            raise StoreError(f"{path} is a file; a library is a folder")
        if not is_library(store.path):
            raise StoreError(f"{path} is no library: it has no {INDEX}")
        store.read_index()
        return store

    # -- reading --

    def env_ids(self) -> tuple[str, ...]:
        """The ids of all environments, sorted."""
        ids = set()
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self.path / ENVIRONMENTS):
                # A folder that a killed writer had moved aside still counts: it is the last complete one.
                name = entry.name[1 : -len(".old")] if _moved_aside(entry.name) else entry.name
                if _NAME.match(name) and entry.is_dir():
                    ids.add(name)
        return tuple(sorted(ids))

    def has(self, env_id: str) -> bool:
        """Whether there is an environment of that id."""
        folder = self.path / ENVIRONMENTS / _safe(env_id)
        return folder.is_dir() or folder.with_name(f".{env_id}.old").is_dir()

    def read_environment(self, env_id: str) -> EnvSkeleton:
        """One environment; hand edits of its program.py show as another digest."""
        folder = self._folder(env_id)
        content = read_bytes(folder / _PROGRAM)
        try:
            source = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise StoreError(f"{folder / _PROGRAM} is not UTF-8 (byte {error.start})") from error
        skeleton = read_record(folder / _ENVIRONMENT, EnvSkeleton, source=source)
        if skeleton.id != env_id:
            raise StoreError(f"{folder / _ENVIRONMENT} has id {skeleton.id!r}; its folder is named {env_id!r}")
        return skeleton

    def read_assessment(self, env_id: str) -> Assessment | None:
        """The environment's assessment; None when it has none."""
        path = self._folder(env_id) / _ASSESSMENT
        return read_record(path, Assessment) if path.exists() else None

    def scenarios(self, env_id: str, complain: Complaint | None = None) -> Iterator[Scenario]:
        """The environment's scenarios in file order, streamed.

        Args:
            complain: told of each broken line, which is then left out; None: the first one is an error.
        """
        path = self._folder(env_id) / _SCENARIOS
        return read_jsonl(path, Scenario, complain=complain) if path.exists() else iter(())

    def proofs(self, env_id: str, complain: Complaint | None = None) -> Iterator[Proof]:
        """The proofs of the environment's scenarios in file order, streamed; stale ones among them."""
        path = self._folder(env_id) / _PROOFS
        return read_jsonl(path, Proof, complain=complain) if path.exists() else iter(())

    def read_audit(self, env_id: str) -> EnvironmentAudit | None:
        """The environment's audit; None when it has none."""
        path = self._folder(env_id) / _AUDIT
        return read_record(path, EnvironmentAudit) if path.exists() else None

    def read_index(self) -> LibraryIndex:
        """What library.json says; `write_index` makes it agree with the folder."""
        return read_record(self.path / INDEX, LibraryIndex)

    # -- writing --

    def write_environment(
        self,
        skeleton: EnvSkeleton,
        assessment: Assessment | None = None,
        scenarios: Iterable[Scenario] = (),
        proofs: Iterable[Proof] = (),
    ) -> None:
        """Put one environment in place of whatever has its id: a kill at any moment leaves the old or the new.

        Raises:
            StoreError: if it cannot be written or its id is no name for a folder.
        """
        folder = self._environments() / _safe(skeleton.id)
        built = folder.with_name(f".{skeleton.id}.new")
        aside = folder.with_name(f".{skeleton.id}.old")
        try:
            shutil.rmtree(built, ignore_errors=True)
            built.mkdir()
            write_durably(built / _PROGRAM, skeleton.source)
            rest = {name: part for name, part in versioned(skeleton).items() if name != "source"}
            write_durably(built / _ENVIRONMENT, json_text(rest))
            if assessment is not None:
                write_durably(built / _ASSESSMENT, json_text(versioned(assessment)))
            write_durably(built / _SCENARIOS, _lines(skeleton.id, scenarios, self._split(skeleton.id)))
            if lines := _proof_lines(proofs):
                write_durably(built / _PROOFS, lines)
            sync_folder(built)
            if folder.exists():
                # A folder that is not empty cannot be replaced in one step; readers and the next writer know `.old`.
                os.rename(folder, aside)
            os.rename(built, folder)
            sync_folder(folder.parent)
            shutil.rmtree(aside, ignore_errors=True)
        except OSError as error:
            raise unwritable(folder, error) from error

    def write_assessment(self, assessment: Assessment) -> None:
        """Replace the assessment of the environment that it names."""
        write_atomic(self._existing(assessment.env_id) / _ASSESSMENT, json_text(versioned(assessment)))

    def replace_scenarios(self, env_id: str, scenarios: Iterable[Scenario]) -> None:
        """Replace all scenarios of an environment, atomically; those without a split are in that of the environment."""
        write_atomic(self._existing(env_id) / _SCENARIOS, _lines(env_id, scenarios, self._split(env_id)))

    def replace_proofs(self, env_id: str, proofs: Iterable[Proof]) -> None:
        """Replace all proofs of an environment, atomically."""
        write_atomic(self._existing(env_id) / _PROOFS, _proof_lines(proofs))

    def write_audit(self, audit: EnvironmentAudit) -> None:
        """Replace the audit of the environment that it names."""
        write_atomic(self._existing(audit.env_id) / _AUDIT, json_text(versioned(audit)))

    def append_scenarios(self, env_id: str, scenarios: Iterable[Scenario]) -> None:
        """Add scenarios after those that are there, atomically.

        Raises:
            StoreError: if an id is there already.
        """
        self.replace_scenarios(env_id, [*self.scenarios(env_id), *scenarios])

    def remove_environment(self, env_id: str) -> None:
        """Remove an environment with everything that belongs to it; nothing happens when there is none."""
        folder = self._environments() / _safe(env_id)
        gone = folder.with_name(f".{env_id}.new")
        try:
            shutil.rmtree(gone, ignore_errors=True)
            if folder.exists():
                os.rename(folder, gone)
                sync_folder(folder.parent)
                shutil.rmtree(gone, ignore_errors=True)
        except OSError as error:
            raise unwritable(folder, error) from error

    def write_index(self, provenance: Mapping[str, Any]) -> LibraryIndex:
        """Count what is there and write library.json. Splits that it told of before stay.

        Args:
            provenance: what the maker of the library wants kept of its origin; no wall-clock time.
        """
        ids = self.env_ids()
        count = 0
        before = self.read_index().splits if is_library(self.path) else {}
        splits = {split: set(members) for split, members in before.items()}
        for env_id in ids:
            path = self._folder(env_id) / _SCENARIOS
            if not path.exists():
                continue
            for number, line in enumerate(read_bytes(path).splitlines(), 1):
                count += 1
                split = json_object(line, f"{path}, line {number}").get("split")
                if isinstance(split, str):
                    splits.setdefault(split, set()).add(env_id)
        index = LibraryIndex(
            environments=len(ids),
            scenarios=count,
            provenance=dict(provenance),
            splits={split: tuple(sorted(members)) for split, members in sorted(splits.items())},
        )
        write_atomic(self.path / INDEX, json_text(versioned(index)))
        return index

    def write_splits(self, splits: Mapping[str, Iterable[str]]) -> None:
        """Put every environment into one split, library.json first: from then on nothing held out is trained on.

        Args:
            splits: the ids of the environments in each split. Others are in none afterwards.
        """
        index = self.read_index().model_copy(
            update={"splits": {split: tuple(sorted(ids)) for split, ids in sorted(splits.items())}}
        )
        write_atomic(self.path / INDEX, json_text(versioned(index)))
        assigned = by_environment(index.splits)
        for env_id in self.env_ids():
            before = list(self.scenarios(env_id))
            now = [scenario.model_copy(update={"split": assigned.get(env_id)}) for scenario in before]
            if now != before:
                self.replace_scenarios(env_id, now)

    # -- what lies beside the environments --

    def writing(self) -> AbstractContextManager[None]:
        """Held while a command writes to the library: a second one would do and pay for the same work again.

        Raises:
            StoreError: on entering, if another process writes to it.
        """
        return sole_writer(self.cache_dir / "lock", str(self.path))

    @property
    def cache_dir(self) -> Path:
        """Folder for model replies and journals; whatever is in it can be deleted."""
        return self.path / CACHE

    def rollouts(self) -> tuple[str, ...]:
        """The ids of all runs in the library, sorted."""
        with contextlib.suppress(FileNotFoundError):
            folders = os.scandir(self.path / ROLLOUTS)
            return tuple(sorted(entry.name for entry in folders if entry.is_dir() and _NAME.match(entry.name)))
        return ()

    def run(self, run_id: str) -> RunStore:
        """The run of that id; it need not exist yet."""
        return RunStore(self.path / ROLLOUTS / _safe(run_id))

    def _discard(self, folders: Iterable[Path]) -> None:
        if is_library(self.path):
            for name in (ENVIRONMENTS, CACHE, ROLLOUTS):
                shutil.rmtree(self.path / name, ignore_errors=True)
            (self.path / INDEX).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for folder in folders:
                folder.rmdir()

    # -- places --

    def _split(self, env_id: str) -> str | None:
        return splits_of(self).get(env_id) if is_library(self.path) else None

    def _folder(self, env_id: str) -> Path:
        folder = self.path / ENVIRONMENTS / _safe(env_id)
        if not folder.is_dir():
            aside = folder.with_name(f".{env_id}.old")
            if not aside.is_dir():
                raise StoreError(f"{self.path}: no environment {env_id!r}{self._nearest(env_id)}")
            return aside
        return folder

    def _existing(self, env_id: str) -> Path:
        self._environments()
        return self._folder(env_id)

    def _nearest(self, env_id: str) -> str:
        import difflib

        near = difflib.get_close_matches(env_id, self.env_ids(), 1)
        return f"; did you mean {near[0]!r}?" if near else ""

    def _environments(self) -> Path:
        """The folder of all environments, ready to be written: what a killed writer left is settled first."""
        folder = self.path / ENVIRONMENTS
        if not self._swept:
            try:
                folder.mkdir(exist_ok=True)
                for left in sorted(folder.glob(".*.old")):
                    place = left.with_name(left.name[1 : -len(".old")])
                    if not place.exists():
                        os.rename(left, place)
                for left in [*folder.glob(".*.old"), *folder.glob(".*.new")]:
                    shutil.rmtree(left, ignore_errors=True)
                for left in [*self.path.glob(".*.tmp"), *folder.glob("*/.*.tmp")]:
                    left.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(folder, error) from error
            self._swept = True
        return folder


def _lines(env_id: str, scenarios: Iterable[Scenario], split: str | None) -> bytes:
    seen: set[str] = set()
    lines = []
    for scenario in scenarios:
        if scenario.env_id != env_id:
            raise StoreError(f"scenario {scenario.id} belongs to {scenario.env_id}, not to {env_id}")
        if scenario.id in seen:
            raise StoreError(f"{env_id} has two scenarios with id {scenario.id}")
        seen.add(scenario.id)
        if scenario.split is None and split is not None:
            scenario = scenario.model_copy(update={"split": split})
        lines.append(utf8(json_line(versioned(scenario))))
    return b"".join(lines)


def _proof_lines(proofs: Iterable[Proof]) -> bytes:
    return b"".join(utf8(json_line(versioned(proof))) for proof in proofs)


def _moved_aside(name: str) -> bool:
    return name.startswith(".") and name.endswith(".old")


def _safe(name: str) -> str:
    if not _NAME.match(name):
        raise StoreError(f"{name!r} is no usable name: letters, digits, `.`, `_`, `-`, `+`, at most 120")
    return name
