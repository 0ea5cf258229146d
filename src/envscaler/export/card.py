"""`DataCard`: what a file of rows holds and where it comes from, for whoever trains on it or publishes it.

It holds no wall-clock time and no path, so that the same inputs give the same card. How it reads is `report`'s
business.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from envscaler.export.files import is_parquet, parquet_beside, require_parquet
from envscaler.record import SCHEMA_VERSION, Record
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore, json_text, require_replaceable, write_atomic
from envscaler.store.atomic import versioned


class Lengths(Record):
    """How long something is over all rows or episodes."""

    count: int
    total: int
    smallest: int
    median: int
    p90: int
    largest: int

    @classmethod
    def of(cls, values: Iterable[int]) -> Lengths | None:
        """The lengths; None of nothing."""
        ordered = sorted(values)
        if not ordered:
            return None
        return cls(
            count=len(ordered),
            total=sum(ordered),
            smallest=ordered[0],
            median=ordered[(len(ordered) - 1) // 2],
            p90=ordered[(len(ordered) - 1) * 9 // 10],
            largest=ordered[-1],
        )


class RunOfCard(Record):
    """One run that rows come from."""

    id: str
    """Name of its folder."""
    library: str | None
    """Name of the library's folder; None when it is not at hand."""
    trajectories: str
    """SHA-256 of its trajectories.jsonl."""
    episodes: int
    """All in it."""
    kept: int
    complete: bool
    """Whether it was played to its end."""


class EnvironmentOfCard(Record):
    """One environment that rows come from."""

    rows: int
    digest: str | None = None
    """Of the program and interface that was played."""
    split: str | None = None


class OriginOfCard(Record):
    """What some of the environments were made from."""

    source: str
    """The file or data set, as the library names it."""
    models: tuple[str, ...] = ()
    """Models that made them."""
    environments: int
    licence: str | None = None
    """None: the library does not say."""


class DataCard(Record):
    """What stands beside an exported file."""

    kind: Literal["sft", "rl"]
    format: str
    summary: str
    """What the format is, in one sentence."""
    files: dict[str, str] = {}
    """SHA-256 by name of each file with rows."""
    rows: int
    episodes: int
    """Episodes, or scenarios, that the rows come from."""
    environments: dict[str, EnvironmentOfCard] = {}
    split: str | None = None
    """The split that was asked for."""
    held_out: int = 0
    """Environments that were left out because nothing may train on them."""
    runs: tuple[RunOfCard, ...] = ()
    libraries: dict[str, str] = {}
    """Digest by name of each library whose scenarios the rows tell of."""
    played_by: dict[str, int] = {}
    """Rows by who played: a model's name, or `oracle`, `random`, `noop`."""
    modes: dict[str, int] = {}
    """Episodes by mode."""
    dialects: dict[str, int] = {}
    """Episodes by how calls were written."""
    stops: dict[str, int] = {}
    """Episodes by how they ended."""
    rewards: dict[str, float] = {}
    """Mean reward by mode, over the episodes that have one."""
    difficulty: dict[str, int] = {}
    """Scenarios by how hard they are."""
    filters: dict[str, Any] = {}
    dropped: dict[str, int] = {}
    """Episodes, or scenarios, that were left out, by reason."""
    rows_too_long: int = 0
    """Rows that were left out of episodes of which others were kept."""
    lengths: dict[str, Lengths] = {}
    """Of turns, calls, characters and tokens."""
    tokens: str = ""
    """How tokens were counted."""
    template: str | None = None
    """Name of the chat template that cut conversations into samples."""
    template_digest: str | None = None
    """Of its text and its variables."""
    origins: tuple[OriginOfCard, ...] = ()
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}


def card_path(out: Path, suffix: str) -> Path:
    """Where the card of a file of rows stands."""
    return out.with_name(f"{out.name}.card{suffix}")


def require_rows_place(out: Path, *, parquet: bool) -> None:
    """
    Args:
        parquet: whether a Parquet file is written beside them.

    Raises:
        StoreError: if rows may not be written there, because somebody else's file is: ours have a card beside them.
        UsageError: if a Parquet file is to be written, and what that needs is not installed.
    """
    for place in filter(None, (out, parquet_beside(out, parquet))):
        require_replaceable(place, lambda _: card_path(out, ".json").is_file())
        if is_parquet(place):
            require_parquet()


def write_card(card: DataCard, out: Path) -> Path:
    """Write the card of a file as JSON beside it."""
    path = card_path(out, ".json")
    write_atomic(path, json_text(versioned(card)))
    return path


def versions() -> dict[str, str]:
    """What decides the bytes of a file of rows, beside its inputs."""
    from importlib.metadata import version

    return {"envscaler": version("envscaler"), "schema": str(SCHEMA_VERSION)}


def file_digest(path: Path) -> str:
    """SHA-256 of a file; of one that is not there that of nothing."""
    if not path.is_file():
        return hashlib.sha256().hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def origins_of(environments: Iterable[tuple[LibraryStore, str]]) -> tuple[OriginOfCard, ...]:
    """What environments were made from, as far as their library says."""
    counts: Counter[tuple[str, tuple[str, ...], str | None]] = Counter()
    provenance: dict[Path, Mapping[str, Any]] = {}
    for store, env_id in environments:
        if not store.has(env_id):
            counts["an environment that is no longer in its library", (), None] += 1
            continue
        if store.path not in provenance:
            provenance[store.path] = store.read_index().provenance
        skeleton = store.read_environment(env_id)
        models = tuple(sorted(set(skeleton.origin.models.values())))
        counts[_source(skeleton, provenance[store.path]), models, _licence(skeleton)] += 1
    return tuple(
        OriginOfCard(source=source, models=models, environments=number, licence=licence)
        for (source, models, licence), number in sorted(counts.items(), key=lambda part: (-part[1], str(part[0])))
    )


def _source(skeleton: EnvSkeleton, provenance: Mapping[str, Any]) -> str:
    if skeleton.origin.source is not None:
        return skeleton.origin.source
    commands = provenance.get("commands")
    named = {str(command.get("source")) for command in commands or () if isinstance(command, dict)}
    files = sorted(named - {"None"})
    return f"task texts of {', '.join(files)}" if files else "task texts; the library does not say of what file"


def _licence(skeleton: EnvSkeleton) -> str | None:
    return "MIT, (c) 2026 RUC-NLPIR: the paper's authors' published data" if skeleton.released is not None else None
