"""`export_rl`: scenarios as the rows that trainers of reinforcement learning read, with a data card.

The system prompt is the one that episodes are collected with, byte for byte.

Source: paper section 5, RL: scenarios with checks, of environments other than those of fine-tuning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from pydantic import Field

from envscaler.agents import SystemPrompts
from envscaler.errors import UsageError
from envscaler.export.card import (
    DataCard,
    EnvironmentOfCard,
    Lengths,
    file_digest,
    origins_of,
    require_rows_place,
    versions,
    write_card,
)
from envscaler.export.files import Written, write_files
from envscaler.export.rl_formats import RlFormat, RlPrompt, rl_format
from envscaler.export.sources import Division, library_of
from envscaler.record import Record
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import digest
from envscaler.store import LibraryStore, RunStore
from envscaler.store.atomic import is_special
from envscaler.store.grounds import is_run
from envscaler.trajectory import Mode


class RlFilters(Record):
    """Which scenarios become rows. Those without checks never do: there is nothing to reward."""

    mode: Mode = "non-conversation"
    """How the task is told; in conversation the row begins with what the user says first."""
    per_env: int | None = Field(default=None, ge=1)
    """Only so many scenarios of each environment, drawn with `seed`."""
    seed: int = 0
    """Seed of that draw."""


class RlReport(Record):
    """What an export wrote."""

    library: Path
    out: Path
    format: str
    filters: RlFilters
    kept: int
    dropped: dict[str, int] = {}
    """Number of scenarios by reason."""
    environments: int
    """Environments that the rows come from."""
    notes: tuple[str, ...] = ()
    """What has to be known: what is held out, lines that could not be read."""
    files: tuple[Path, ...] = ()
    """Everything that was written, the rows first."""
    card: DataCard


@dataclass
class _Tally:
    """What was written, and of what."""

    dropped: Counter[str] = field(default_factory=Counter)
    rows_of: Counter[str] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)
    levels: Counter[str] = field(default_factory=Counter)
    tools: list[int] = field(default_factory=list)
    characters: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)

    def add(self, prompt: RlPrompt, scenario: Scenario) -> None:
        env_id = scenario.env_id
        self.rows_of[env_id] += 1
        self.digests[env_id] = scenario.env_digest
        self.levels[scenario.difficulty.level if scenario.difficulty is not None else "not known"] += 1
        self.tools.append(len(prompt.tools))
        self.characters.append(len(prompt.system) + len(prompt.task))
        self.pins.append(scenario.digest)

    def lengths(self) -> dict[str, Lengths]:
        parts = {
            "tools": self.tools,
            "characters in a prompt": self.characters,
            "tokens in a prompt": [ceil(number / 4) for number in self.characters],
        }
        return {name: lengths for name, values in parts.items() if (lengths := Lengths.of(values)) is not None}


def export_rl(
    source: LibraryStore | RunStore | Path | str | Sequence[RunStore],
    out: Path | str,
    filters: RlFilters | None = None,
    *,
    format: str = "trl",
    env_ids: Sequence[str] | None = None,
    split: str | None = None,
    parquet: bool = False,
    library_path: str | None = None,
    system_prompt: Path | None = None,
) -> RlReport:
    """Write the rows of a library's scenarios, or of those that a run played, to `out`, and what they are beside it.

    Environments that the library holds out from training are left out, unless their split is asked for.

    Args:
        out: Parquet where its name ends in `.parquet`.
        format: a name of `RL_FORMATS`.
        env_ids: only these environments.
        split: export this split of the library only.
        parquet: also write a Parquet file beside one that is not.
        library_path: where the machine that trains finds the library; None: where it is now.
        system_prompt: the file that episodes are collected with; None: what the runs were played with, else the
            package's.

    Raises:
        UsageError: if there is no such format, split or environment, or the library of a run is not at hand.
        StoreError: if there is no library or run, or `out` cannot be written.
    """
    chosen, path = rl_format(format), Path(out)
    filters = filters if filters is not None else RlFilters()
    require_rows_place(path, parquet=parquet)
    scope = _scope(source, filters, env_ids, split, SystemPrompts(system_prompt), system_prompt is None)
    library, division = scope.library, scope.division
    for env_id in env_ids or ():
        library.read_environment(env_id)
    place = library_path if library_path is not None else str(library.path.resolve())
    tally = _Tally()
    prompts = _prompts(scope, place, tally)
    rows = (Written.of(chosen.row(prompt)) for prompt in prompts)
    written = list(write_files(path, rows, chosen.columns, parquet=parquet))
    special = is_special(path)
    card = _card(chosen, library, division, filters, tally, [] if special else written)
    if not special:
        written.append(write_card(card, path))
    return RlReport(
        library=library.path,
        out=path,
        format=format,
        filters=filters,
        kept=card.rows,
        dropped=card.dropped,
        environments=len(card.environments),
        notes=(*division.notes(library), *tally.problems),
        files=tuple(written),
        card=card,
    )


@dataclass(frozen=True)
class _Scope:
    """Which scenarios are meant, and how they are put."""

    library: LibraryStore
    division: Division
    filters: RlFilters
    env_ids: Sequence[str] | None
    prompts: SystemPrompts
    played: frozenset[tuple[str, str]] | None = None
    """Environment and scenario of what was played; None: all are meant."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """System prompt by environment that runs were played with."""

    def system(self, skeleton: EnvSkeleton) -> str:
        """The system prompt of an environment."""
        return self.recorded.get(skeleton.id) or self.prompts.text(skeleton, self.filters.mode)


def _scope(
    source: LibraryStore | RunStore | Path | str | Sequence[RunStore],
    filters: RlFilters,
    env_ids: Sequence[str] | None,
    split: str | None,
    prompts: SystemPrompts,
    as_recorded: bool,
) -> _Scope:
    if isinstance(source, Path | str):
        source = RunStore.open(source) if is_run(Path(source)) else LibraryStore.open(source)
    if isinstance(source, LibraryStore):
        return _Scope(source, Division.of(source, split), filters, env_ids, prompts)
    runs = [source] if isinstance(source, RunStore) else list(source)
    libraries = {library.path.resolve(): library for run in runs if (library := library_of(run)) is not None}
    if len(libraries) != 1:
        what = "are of different libraries" if libraries else "played a library that is not at hand"
        raise UsageError(f"the runs {what}; name the library itself")
    played: set[tuple[str, str]] = set()
    recorded: dict[str, str] = {}
    for episode in (episode for run in runs for episode in run.trajectories()):
        played.add((episode.env_id, episode.scenario_id))
        if as_recorded and episode.mode == filters.mode and episode.system_prompt:
            first = recorded.setdefault(episode.env_id, episode.system_prompt)
            if first != episode.system_prompt:
                raise UsageError(
                    f"{episode.env_id} was played with different system prompts; name one with --system-prompt"
                )
    (library,) = libraries.values()
    return _Scope(library, Division.of(library, split), filters, env_ids, prompts, frozenset(played), recorded)


def _prompts(scope: _Scope, place: str, tally: _Tally) -> Iterator[RlPrompt]:
    library, division, filters, played = scope.library, scope.division, scope.filters, scope.played
    missing = set(played) if played is not None else set()
    index = 0
    for env_id in library.env_ids() if scope.env_ids is None else scope.env_ids:
        skeleton = library.read_environment(env_id)
        kept: list[Scenario] = []
        for scenario in library.scenarios(env_id, tally.problems.append):
            missing.discard((env_id, scenario.id))
            if played is not None and (env_id, scenario.id) not in played:
                continue
            reason = division.fault(env_id) or _fault(scenario, skeleton, filters.mode)
            if reason is not None:
                tally.dropped[reason] += 1
            else:
                kept.append(scenario)
        system = scope.system(skeleton)
        for scenario in _drawn(kept, filters, tally):
            prompt = RlPrompt(
                system=system,
                task=_task(scenario, filters.mode),
                tools=tuple(tool for tool in skeleton.tools if scenario.tools is None or tool.name in scenario.tools),
                reference={
                    "library": place,
                    "env_id": skeleton.id,
                    "scenario_id": scenario.id,
                    "env_digest": skeleton.digest,
                    "scenario_digest": scenario.digest,
                    "mode": filters.mode,
                    "split": division.splits.get(env_id, ""),
                },
                index=index,
            )
            index += 1
            tally.add(prompt, scenario)
            yield prompt
    if missing and scope.env_ids is None:
        tally.dropped["no longer in the library"] += len(missing)


def _task(scenario: Scenario, mode: Mode) -> str:
    """What the user says first."""
    profile = scenario.user_profile
    return profile.opening if mode == "conversation" and profile is not None else scenario.task


def _fault(scenario: Scenario, skeleton: EnvSkeleton, mode: Mode) -> str | None:
    if not scenario.checks:
        return "no checks, and so no reward"
    if scenario.env_digest != skeleton.digest:
        return "made for another version of the environment"
    if mode == "conversation" and scenario.user_profile is None:
        return "no user profile to converse with"
    return None


def _drawn(scenarios: list[Scenario], filters: RlFilters, tally: _Tally) -> list[Scenario]:
    if filters.per_env is None or len(scenarios) <= filters.per_env:
        return scenarios
    ranked = sorted(scenarios, key=lambda scenario: digest([filters.seed, scenario.env_id, scenario.id]))
    chosen = {scenario.id for scenario in ranked[: filters.per_env]}
    tally.dropped[f"beyond {filters.per_env} of its environment"] += len(scenarios) - len(chosen)
    return [scenario for scenario in scenarios if scenario.id in chosen]


def _card(
    chosen: RlFormat,
    library: LibraryStore,
    division: Division,
    filters: RlFilters,
    tally: _Tally,
    files: Sequence[Path],
) -> DataCard:
    rows: Counter[str] = tally.rows_of
    return DataCard(
        kind="rl",
        format=chosen.name,
        summary=chosen.summary,
        files={path.name: file_digest(path) for path in files},
        rows=rows.total(),
        episodes=rows.total(),
        environments={
            env_id: EnvironmentOfCard(rows=number, digest=tally.digests[env_id], split=division.splits.get(env_id))
            for env_id, number in sorted(rows.items())
        },
        split=division.wanted,
        held_out=division.held_out,
        libraries={library.path.resolve().name: digest(sorted(tally.pins))},
        modes={filters.mode: rows.total()},
        difficulty=dict(sorted(tally.levels.items())),
        filters=filters.model_dump(mode="json"),
        dropped=dict(sorted(tally.dropped.items())),
        lengths=tally.lengths(),
        tokens="estimated: characters / 4, without tools",
        origins=origins_of((library, env_id) for env_id in sorted(rows)),
        versions=versions(),
    )
