"""`export_sft`: the episodes of runs that are worth learning from, as rows of one trainer, with a data card.

Source: paper section 5, SFT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path

from envscaler.errors import UsageError
from envscaler.export.card import (
    DataCard,
    EnvironmentOfCard,
    Lengths,
    RunOfCard,
    file_digest,
    origins_of,
    require_rows_place,
    versions,
    write_card,
)
from envscaler.export.files import Written, is_parquet, write_files
from envscaler.export.filters import SftFilters
from envscaler.export.formats import SftFormat, Unfit, sft_format
from envscaler.export.rendering import Rendered, Rendering
from envscaler.export.selection import Selection
from envscaler.export.sources import RunSource, run_sources
from envscaler.export.templates import ChatTemplate
from envscaler.export.tokens import Encode
from envscaler.record import Record
from envscaler.rollout.scores import REWARD_MODES, UNFINISHED
from envscaler.state import digest
from envscaler.store import RunStore, write_atomic
from envscaler.store.atomic import is_special
from envscaler.store.grounds import TRAJECTORIES
from envscaler.trajectory import RewardMode, Trajectory


class ExportReport(Record):
    """What an export kept and why it dropped the rest."""

    runs: tuple[Path, ...]
    out: Path
    format: str
    filters: SftFilters
    kept: int
    """Rows."""
    episodes: int
    """Episodes that they come from."""
    dropped: dict[str, int] = {}
    """Number of episodes by reason."""
    rows_too_long: int = 0
    """Rows left out of episodes of which others were kept."""
    environments: int = 0
    """Environments that the rows come from."""
    partial: tuple[str, ...] = ()
    """What the runs lack, a sentence each: they are still being played, or were not played to their end."""
    notes: tuple[str, ...] = ()
    """What else has to be known: what is held out, why a template refuses episodes."""
    agents: dict[str, int] = {}
    """Rows by who played: the model's name, or `oracle`, `random`, `noop`."""
    files: tuple[Path, ...] = ()
    """Everything that was written, the rows first."""
    card: DataCard


@dataclass
class _Tally:
    """What was written, and of what."""

    ended: Counter[int] = field(default_factory=Counter)
    """Episodes of each run that came to their end."""
    there: Counter[int] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    too_long: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    rewards: dict[RewardMode, list[float]] = field(default_factory=lambda: {mode: [] for mode in REWARD_MODES})
    environments: dict[str, tuple[RunSource, str]] = field(default_factory=dict)
    rows_of: Counter[str] = field(default_factory=Counter)
    turns: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    characters: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    details: dict[str, str] = field(default_factory=dict)
    """The first detail of each reason that has some."""

    def add(self, source: RunSource, trajectory: Trajectory, rows: Sequence[Rendered]) -> None:
        number = len(rows)
        self.agents[trajectory.model or trajectory.agent] += number
        self.modes[trajectory.mode] += 1
        self.dialects[trajectory.dialect or "native"] += 1
        self.stops[trajectory.stop.value] += 1
        for mode, rewards in self.rewards.items():
            reward = trajectory.reward(mode)
            if reward is not None:
                rewards.append(reward)
        self.environments.setdefault(trajectory.env_id, (source, trajectory.env_digest))
        self.rows_of[trajectory.env_id] += number
        self.turns.append(len(trajectory.steps))
        self.calls.append(sum(len(step.assistant.tool_calls) for step in trajectory.steps))
        self.characters += [row.characters for row in rows]
        self.tokens += [row.tokens for row in rows]

    def lengths(self) -> dict[str, Lengths]:
        parts = {
            "turns of the agent in an episode": self.turns,
            "calls in an episode": self.calls,
            "characters in a row": self.characters,
            "tokens in a row": self.tokens,
        }
        return {name: lengths for name, values in parts.items() if (lengths := Lengths.of(values)) is not None}


def export_sft(
    runs: Sequence[RunStore | Path | str] | RunStore | Path | str,
    out: Path | str,
    filters: SftFilters | None = None,
    *,
    format: str = "trl",
    split: str | None = None,
    template: ChatTemplate | None = None,
    encode: Encode | None = None,
    parquet: bool = False,
) -> ExportReport:
    """Write the rows of runs to `out`, and what they are beside it, atomically.

    The file holds exactly what the filters keep, so that it is empty when they keep nothing. The system prompt comes
    first and is, byte for byte, the one that was played. Environments that a library holds out from training are left
    out, unless their split is asked for.

    Args:
        out: Parquet where its name ends in `.parquet`. The card stands beside it as `<out>.card.json`, unless it is a
            pipe or a device.
        format: a name of `SFT_FORMATS`.
        split: export this split of the library only.
        template: cut conversations into the fewest samples that train on what serving with it shows.
        encode: the model's tokenizer, to count tokens with.
        parquet: also write a Parquet file beside one that is not.

    Raises:
        UsageError: if there is no such format or split, or the format does not go with the file or the template.
        StoreError: if there is no run, or `out` cannot be written.
    """
    chosen = sft_format(format)
    path = Path(out)
    filters = filters if filters is not None else SftFilters()
    _require_fit(chosen, path, parquet)
    named = [runs] if isinstance(runs, RunStore | Path | str) else runs
    sources = run_sources(named, split)
    rendering = Rendering(chosen, template, encode, filters.max_tokens_row)
    if template is not None and any(source.calls_natively for source in sources):
        template.require_tools()
    companions = chosen.companions(path)
    tally = _Tally()
    rows = _rows(sources, filters, rendering, tally)
    written = list(write_files(path, rows, chosen.columns, as_list=chosen.as_list, parquet=parquet))
    special = is_special(path)
    lacking = (source.standing.lack(tally.ended[number]) for number, source in enumerate(sources))
    notes = dict.fromkeys(note for source in sources for note in source.notes)
    card = _card(chosen, sources, filters, rendering, tally, written if not special else [])
    if not special:
        for place, content in companions.items():
            write_atomic(place, content)
            written.append(place)
        written.append(write_card(card, path))
    return ExportReport(
        runs=tuple(source.run.path for source in sources),
        out=path,
        format=format,
        filters=filters,
        kept=tally.agents.total(),
        episodes=tally.kept.total(),
        dropped=card.dropped,
        rows_too_long=tally.too_long,
        environments=len(tally.environments),
        partial=tuple(filter(None, lacking)),
        notes=(*notes, *card.notes),
        agents=card.played_by,
        files=tuple(written),
        card=card,
    )


def _require_fit(chosen: SftFormat, out: Path, parquet: bool) -> None:
    if chosen.parquet_only and not is_parquet(out):
        raise UsageError(f"{chosen.name} reads Parquet only; name a file that ends in .parquet, not {out}")
    if parquet and chosen.as_list and out.suffix != ".jsonl":
        raise UsageError(f"a Parquet file beside a JSON list is not made; name {out.with_suffix('.jsonl')}")
    require_rows_place(out, parquet=parquet)


def _rows(sources: Sequence[RunSource], filters: SftFilters, rendering: Rendering, tally: _Tally) -> Iterator[Written]:
    number_of = {id(source): number for number, source in enumerate(sources)}

    def rendered(source: RunSource, trajectory: Trajectory) -> tuple[list[Rendered], int] | str:
        """The rows and how many are too long, or why there are none."""
        try:
            return rendering.rows(trajectory, source.dialect(trajectory))
        except Unfit as unfit:
            if unfit.detail is not None:
                tally.details.setdefault(str(unfit), unfit.detail)
            return str(unfit)

    def fault(source: RunSource, trajectory: Trajectory) -> str | None:
        answer = rendered(source, trajectory)
        return answer if isinstance(answer, str) else None

    for source, trajectory, reason in Selection(sources, filters, fault).episodes():
        number = number_of[id(source)]
        tally.there[number] += 1
        tally.ended[number] += trajectory.stop not in UNFINISHED
        answer = rendered(source, trajectory) if reason is None else reason
        if isinstance(answer, str):
            tally.dropped[answer] += 1
            continue
        rows, too_long = answer
        tally.too_long += too_long
        tally.kept[number] += 1
        tally.add(source, trajectory, rows)
        yield from (row.written for row in rows)


def _card(
    chosen: SftFormat,
    sources: Sequence[RunSource],
    filters: SftFilters,
    rendering: Rendering,
    tally: _Tally,
    files: Sequence[Path],
) -> DataCard:
    libraries = {source.library.path: source for source in sources if source.library is not None}
    return DataCard(
        kind="sft",
        format=chosen.name,
        summary=chosen.summary,
        files={path.name: file_digest(path) for path in files},
        rows=tally.agents.total(),
        episodes=tally.kept.total(),
        environments={
            env_id: EnvironmentOfCard(
                rows=tally.rows_of[env_id], digest=played or None, split=source.division.splits.get(env_id)
            )
            for env_id, (source, played) in sorted(tally.environments.items())
        },
        split=sources[0].division.wanted,
        held_out=sum(source.division.held_out for source in libraries.values()),
        runs=tuple(
            RunOfCard(
                id=source.run.path.resolve().name,
                library=source.library.path.resolve().name if source.library is not None else None,
                trajectories=file_digest(source.run.path / TRAJECTORIES),
                episodes=tally.there[number],
                kept=tally.kept[number],
                complete=source.standing.lack(tally.ended[number]) is None,
            )
            for number, source in enumerate(sources)
        ),
        played_by=dict(sorted(tally.agents.items())),
        modes=dict(sorted(tally.modes.items())),
        dialects=dict(sorted(tally.dialects.items())),
        stops=dict(sorted(tally.stops.items())),
        rewards={mode: fsum(values) / len(values) for mode, values in tally.rewards.items() if values},
        filters=filters.model_dump(mode="json"),
        dropped=dict(sorted(tally.dropped.items())),
        rows_too_long=tally.too_long,
        lengths=tally.lengths(),
        tokens=rendering.counting,
        template=Path(rendering.template.name).name if rendering.template is not None else None,
        template_digest=_template_digest(rendering.template) if rendering.template is not None else None,
        origins=origins_of(
            (source.library, env_id)
            for env_id, (source, _) in sorted(tally.environments.items())
            if source.library is not None
        ),
        notes=tuple(tally.details.values()),
        versions=versions(),
    )


def _template_digest(template: ChatTemplate) -> str:
    return digest({"source": template.source, "variables": template.variables})
