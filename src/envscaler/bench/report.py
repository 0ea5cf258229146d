"""`bench_report`: what runs of benchmarks came to, with floors, ceilings, violations and what is known to be wrong.

How it is shown is the business of `envscaler.report.bench` and of the command line.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from pathlib import Path
from statistics import stdev
from typing import Any

from envscaler.bench.catalogue import HELD_OUT, Benchmark, benchmark_named
from envscaler.bench.held_out import held_out_of
from envscaler.bench.installation import Installed, folder_of, read_installed
from envscaler.bench.known import Faulty, PublishedRow, faulty_tasks, published
from envscaler.bench.outcomes import Outcome, outcomes_of
from envscaler.errors import UsageError
from envscaler.record import Record
from envscaler.rollout.estimates import Mean, mean_of_parts, pass_all, powers_of_two
from envscaler.rollout.report import RunRecord
from envscaler.rollout.results import UNFINISHED
from envscaler.rollout.scores import score_table
from envscaler.rollout.settings import Folder
from envscaler.rollout.standing import Standing
from envscaler.skeleton import ModelUse
from envscaler.store import LibraryStore, RunStore
from envscaler.store.grounds import is_library


class Part(Record):
    """What one part of a benchmark came to, or all of it."""

    tasks: int
    """Tasks that it rests on."""
    episodes: int
    official: Mean
    """The benchmark's own score."""
    clean: Mean
    """The same, where an episode with a violation does not pass."""
    floor: float | None = None
    """What doing nothing is worth in the same tasks; None: not known here."""
    ceiling: float | None = None
    """What the recorded solutions are worth in them."""
    pass_all: dict[int, Mean] = {}
    """pass^k: the chance that all of k episodes of a task pass."""
    further: dict[str, Mean] = {}
    """What else the benchmark tells, by name."""


class Violated(Record):
    """How often a rule was broken that the benchmark's checker does not look at."""

    calls: int
    episodes: int
    passed: int
    """Of these episodes, those that the checker took all the same."""
    tasks: tuple[str, ...]


class RunCard(Record):
    """One run."""

    run: Folder
    benchmark: str
    agent: str
    model: str | None = None
    settings: dict[str, Any]
    """What decides the score beside the model."""
    total: Part
    parts: dict[str, Part]
    whole: int | None = None
    """Tasks of the whole benchmark; None: not known."""
    thinking: float | None = None
    """Share of the model's replies with reasoning; None where no model played."""
    repeats: tuple[float, ...] = ()
    """The score of each sample by itself, where there are several."""
    deviation: float | None = None
    """Their standard deviation."""
    faulty: tuple[str, ...] = ()
    """Tasks of the run that are known to be wrong."""
    without_faulty: Part
    violations: dict[str, Violated] = {}
    stops: dict[str, int] = {}
    left_out: int = 0
    """Episodes that the machinery cut short: in no score, and played again by the same command."""
    recorded: dict[str, int] = {}
    """Calls of the recorded solutions that failed as they were carried out beside the agent's, by kind."""
    mean_steps: float | None = None
    calls: int = 0
    invalid_calls: int = 0
    use: ModelUse = ModelUse()
    lack: str | None = None
    """What the run lacks, where it was not played to its end."""


class BenchReport(Record):
    """Runs of benchmarks side by side."""

    runs: tuple[RunCard, ...]
    differences: dict[str, str] = {}
    """For each run after the first of its benchmark, how it was played otherwise."""
    faulty: tuple[Faulty, ...] = ()
    published: dict[str, tuple[PublishedRow, ...]] = {}
    """Results of others, by benchmark."""


def bench_report(runs: Sequence[Path]) -> BenchReport:
    """Report on runs.

    Raises:
        UsageError: if one of them is no run of a benchmark.
        StoreError: if one cannot be read.
    """
    cards = []
    faulty: dict[str, Faulty] = {}
    rows: dict[str, tuple[PublishedRow, ...]] = {}
    firsts: dict[str, RunRecord] = {}
    differences: dict[str, str] = {}
    for folder in runs:
        run = RunStore.open(folder)
        record = record_of(run)
        benchmark, installed = known_of(record)
        wrong = faulty_tasks(benchmark.name, installed)
        card = run_card(run, record, benchmark, installed, wrong)
        cards.append(card)
        faulty |= {task: wrong[task] for task in card.faulty}
        assert record.played is not None
        if benchmark.published_with.items() <= record.played.options.items():
            rows[benchmark.name] = published(benchmark.column)
        first = firsts.setdefault(benchmark.name, record)
        if first is not record and (told := unlike(first, record)):
            differences[str(card.run)] = told
    return BenchReport(runs=tuple(cards), differences=differences, faulty=tuple(faulty.values()), published=rows)


def record_of(run: RunStore) -> RunRecord:
    """The record of a run of a benchmark.

    Raises:
        UsageError: if it is no such run.
    """
    record = run.read_run(RunRecord)
    if record is None or record.played is None:
        raise UsageError(f"{run.path} is no run of a benchmark; `envscaler scores` tells those of libraries")
    return record


def known_of(record: RunRecord) -> tuple[Benchmark, Installed | None]:
    """The benchmark of a run, and what is installed of it, if that is what was played."""
    assert record.played is not None
    benchmark = benchmark_named(record.played.benchmark)
    there, installed = benchmark, None
    if benchmark != HELD_OUT:
        installed = read_installed(folder_of(benchmark))
    elif record.library is not None and is_library(record.library):
        with contextlib.suppress(UsageError):
            there, installed = held_out_of(LibraryStore.open(record.library))
    # What has changed since says nothing of the run, not even which parts it has.
    return (
        (there, installed) if installed is not None and installed.digest == record.played.digest else (benchmark, None)
    )


def run_card(
    run: RunStore, record: RunRecord, benchmark: Benchmark, installed: Installed | None, faulty: Mapping[str, Faulty]
) -> RunCard:
    """What one run came to."""
    tasks = {task.id: task for task in installed.tasks} if installed is not None else {}
    outcomes = outcomes_of(run, tasks, of_library=record.library is not None)
    judged = [outcome for outcome in outcomes if outcome.judged]
    used = score_table([outcome.result for outcome in outcomes]).total
    samples = sorted({outcome.result.sample for outcome in judged})
    repeats = tuple(
        score
        for sample in samples
        if (score := _part([one for one in judged if one.result.sample == sample], None, ()).official.value) is not None
    )
    further = tuple(benchmark.further)
    ended = sum(outcome.result.stop not in UNFINISHED for outcome in outcomes)
    return RunCard(
        run=run.path,
        benchmark=benchmark.name,
        agent=record.settings.agent,
        model=record.models.get("agent"),
        settings=fair_settings(record),
        total=_part(judged, installed, further),
        parts={
            split: _part([one for one in judged if one.split == split], installed, further)
            for split in benchmark.splits or dict.fromkeys(one.split for one in judged)
            if any(one.split == split for one in judged)
        },
        whole=sum(benchmark.tasks.values()) or None,
        thinking=_thinking(judged) if record.settings.agent == "model" else None,
        repeats=repeats if len(repeats) > 1 else (),
        deviation=stdev(repeats) if len(repeats) > 1 else None,
        faulty=tuple(sorted({one.task for one in judged} & faulty.keys())),
        without_faulty=_part([one for one in judged if one.task not in faulty], installed, further),
        violations=_violations(judged),
        stops=used.stops,
        left_out=len(outcomes) - len(judged),
        recorded=_recorded(judged),
        mean_steps=used.mean_steps,
        calls=used.calls,
        invalid_calls=used.invalid_calls,
        use=used.use,
        lack=Standing.of(run).lack(ended),
    )


def fair_settings(record: RunRecord) -> dict[str, Any]:
    """What decides a score beside the agent and its model; what does not concern the agent is left out."""
    pins = record.pins()
    played = pins.pop("benchmark")
    # For the oracle only; it says nothing of how others are measured.
    options = {name: value for name, value in played["options"].items() if name != "play"}
    models = {family: name for family, name in pins.pop("models").items() if family != "agent"}
    for name in ("agent", "seed", "mode", "random_calls", "oracle", "observations", "coerce"):
        pins.pop(name)
    if record.settings.agent != "model":
        pins.pop("user_slips")
    sampling = pins.pop("sampling") if record.settings.agent == "model" else None
    pins |= {"prompts": pins["prompts"] or None, "models": models or None}
    told = {"tasks": played["digest"], "packages": list(played["packages"]), **options, **pins}
    return {name: value for name, value in {**told, "sampling": sampling}.items() if value is not None}


def unlike(first: RunRecord, second: RunRecord) -> str | None:
    """In which settings two runs of a benchmark differ, in words; None where in none that concern both."""
    ours, theirs = fair_settings(first), fair_settings(second)
    both = [record.settings.agent == "model" for record in (first, second)]
    names = dict.fromkeys((*ours, *theirs))
    differences = [
        f"{name} is {_told(ours.get(name))} in the first and {_told(theirs.get(name))} in the second"
        for name in names
        if ours.get(name) != theirs.get(name) and (all(both) or (name in ours and name in theirs))
    ]
    return "; ".join(differences) or None


def _told(value: Any) -> str:
    return "not set" if value is None else f"{value!r}"


def _thinking(outcomes: Iterable[Outcome]) -> float | None:
    replies, thought = 0, 0
    for outcome in outcomes:
        replies, thought = replies + outcome.replies, thought + outcome.thought
    return thought / replies if replies else None


def _part(outcomes: Sequence[Outcome], installed: Installed | None, further: Sequence[str]) -> Part:
    tasks = {outcome.task for outcome in outcomes}
    known = installed.recorded if installed is not None else {}
    splits = {outcome.task: outcome.split for outcome in outcomes}

    def share(passes: Callable[[str], bool]) -> float | None:
        """The mean of the parts' shares; None unless all tasks are known."""
        if not tasks or not tasks <= known.keys():
            return None
        parts: dict[str, list[bool]] = {}
        for task in tasks:
            parts.setdefault(splits[task], []).append(passes(task))
        return fsum(sum(one) / len(one) for one in parts.values()) / len(parts)

    return Part(
        tasks=len(tasks),
        episodes=len(outcomes),
        official=_mean(outcomes, lambda own: fsum(one.passed for one in own) / len(own)),
        clean=_mean(outcomes, lambda own: fsum(one.passed and not one.violations for one in own) / len(own)),
        floor=share(lambda task: known[task].noop),
        ceiling=share(lambda task: known[task].passes),
        pass_all=_pass_all(outcomes),
        further={name: _mean(outcomes, lambda own, name=name: _further(own, name)) for name in further},  # type: ignore[misc]
    )


def _further(outcomes: Sequence[Outcome], name: str) -> float | None:
    values = [value for one in outcomes if (value := one.further(name)) is not None]
    return fsum(values) / len(values) if values else None


def _pass_all(outcomes: Sequence[Outcome]) -> dict[int, Mean]:
    most = max(Counter(outcome.task for outcome in outcomes).values(), default=0)

    def chance(own: Sequence[Outcome], k: int) -> float | None:
        return pass_all(len(own), sum(one.passed for one in own), k) if len(own) >= k else None

    ks = dict.fromkeys((*powers_of_two(most), most)) if most > 1 else ()
    return {k: _mean(outcomes, lambda own, k=k: chance(own, k)) for k in ks}  # type: ignore[misc]


def _mean(outcomes: Iterable[Outcome], value: Callable[[Sequence[Outcome]], float | None]) -> Mean:
    """The mean over the parts of the mean over their tasks of a value of each task's episodes."""
    by_task: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_task.setdefault(outcome.task, []).append(outcome)
    parts: dict[str, dict[str, dict[str, float]]] = {}
    episodes = 0
    for task, own in by_task.items():
        one = value(own)
        if one is not None:
            parts.setdefault(own[0].split, {}).setdefault(own[0].group, {})[task] = one
            episodes += len(own)
    return mean_of_parts(parts, episodes)


def _violations(outcomes: Sequence[Outcome]) -> dict[str, Violated]:
    kinds = sorted({kind for outcome in outcomes for kind in outcome.violations})
    out = {}
    for kind in kinds:
        own = [outcome for outcome in outcomes if kind in outcome.violations]
        out[kind] = Violated(
            calls=sum(outcome.violations[kind] for outcome in own),
            episodes=len(own),
            passed=sum(outcome.passed for outcome in own),
            tasks=tuple(sorted({outcome.task for outcome in own})),
        )
    return out


def _recorded(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Of each task once."""
    by_task = {outcome.task: outcome.recorded for outcome in outcomes}
    totals: Counter[str] = Counter()
    for recorded in by_task.values():
        totals.update(recorded)
    return dict(sorted(totals.items()))
