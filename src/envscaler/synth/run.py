"""`run_synth`: from a file of tasks to a library; it resumes, and ends with a report.

Stages overlap: an environment is built while later tasks are still looked at, and no result depends on which of
them is done first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.engine import NullProgress, Progress, bounded_map
from envscaler.errors import BudgetExhausted, EndpointUnavailable
from envscaler.language import language_of
from envscaler.llm import MeterReport
from envscaler.llm.tracing import about
from envscaler.skeleton import EnvDescription
from envscaler.state import JsonValue
from envscaler.store import Journal, LibraryStore, read_descriptions, read_tasks, write_atomic
from envscaler.store.atomic import json_line, utf8
from envscaler.synth.admission import Admission
from envscaler.synth.asking import Asking
from envscaler.synth.benches import Bench, open_bench
from envscaler.synth.building import Builder, Built
from envscaler.synth.choosing import Candidate, Chooser, Chosen
from envscaler.synth.discover import Discovered, discover
from envscaler.synth.merge import embedded
from envscaler.synth.record import SynthRecord, record_path, write_record
from envscaler.synth.report import SynthReport
from envscaler.synth.resume import Keys, SynthJournal
from envscaler.synth.scaffold import Scaffolder
from envscaler.synth.settings import BUILDING, SynthSettings
from envscaler.synth.structures import Structures
from envscaler.synth.tally import Tally, short
from envscaler.synth.target import Gate, drawn

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts

_MAX_PROBLEMS = 100
_WINDOW = 100_000
"""Environments that may be finished while an earlier one is not: what is kept of each is a short record."""
_TASKS_WINDOW = 256
"""Tasks that are looked at beyond the last one of which it is known what becomes of it."""


async def run_synth(
    settings: SynthSettings, models: Models, prompts: Prompts, progress: Progress | None = None
) -> SynthReport:
    """Make or extend a library from task texts.

    Killed at any moment, the same call goes on where it was and ends with the same library. Other tasks extend the
    library; environments that are there are never replaced.

    Raises:
        StoreError: the task file or the library cannot be used.
        BudgetExhausted: a limit was reached; what is finished is kept.
        EndpointUnavailable: the endpoint stayed down; what is finished is kept.
    """
    source = _Source.read(settings)
    store = LibraryStore.create(settings.library)
    with store.writing(), Journal(store.cache_dir / "synth.jsonl") as journal:
        async with open_bench(settings, models, prompts) as bench:
            run = _Run(settings, models, prompts, progress or NullProgress(), store, SynthJournal(journal), bench)
            report: SynthReport | None = None
            try:
                with models.tracer.span("synth", {"envscaler.library": str(settings.library)}):
                    report = await run.run(source)
                return report
            finally:
                spent = _record_spent(store, run.keys.command(), models)
                record = SynthRecord(
                    command=run.keys.provenance(),
                    ended="stopped" if report is None else "complete",
                    report=report or run.report(source),
                    spent=spent,
                )
                write_record(run.record, record)


class _Source:
    """The texts or descriptions to begin from."""

    def __init__(
        self, texts: tuple[str, ...], descriptions: tuple[EnvDescription, ...], problems: tuple[str, ...], equal: int
    ) -> None:
        self.texts = texts
        self.descriptions = descriptions
        self.problems = problems
        self.equal = equal

    @classmethod
    def read(cls, settings: SynthSettings) -> _Source:
        """
        Raises:
            StoreError: if the file cannot be used.
        """
        if settings.tasks is not None:
            found = read_tasks(settings.tasks, settings.limit)
            texts = tuple(task.text for task in found.tasks)
            if settings.draws:
                texts = drawn(texts, settings.seed)
            return cls(texts, (), tuple(map(str, found.problems)), found.duplicates)
        assert settings.descriptions is not None
        described = read_descriptions(settings.descriptions, settings.limit)
        descriptions = described.descriptions
        if settings.draws:
            descriptions = drawn(descriptions, settings.seed)
        return cls((), descriptions, tuple(map(str, described.problems)), described.duplicates)

    def __len__(self) -> int:
        return len(self.texts) or len(self.descriptions)


class _Run:
    """One run on one library."""

    def __init__(
        self,
        settings: SynthSettings,
        models: Models,
        prompts: Prompts,
        progress: Progress,
        store: LibraryStore,
        journal: SynthJournal,
        bench: Bench,
    ) -> None:
        self.settings = settings
        self.models = models
        self.prompts = prompts
        self.progress = progress
        self.store = store
        self.journal = journal
        self.keys = Keys(settings, models, prompts)
        structures = Structures(store, journal, keep_equal=settings.keep_equal_structures)
        self.chooser = Chooser(store, journal, self.keys, models.embedder, similarity=settings.similarity)
        self.scaffolder = Scaffolder(settings, journal=journal, keys=self.keys, models=models, prompts=prompts)
        self.builder = Builder(
            settings,
            store=store,
            journal=journal,
            keys=self.keys,
            models=models,
            prompts=prompts,
            bench=bench,
            structures=structures,
            progress=progress,
            scaffolder=self.scaffolder,
        )
        self.admission = Admission(models, bench.at_once or settings.environments_at_once, settings.concurrency)
        self.tally = Tally()
        self.gate = Gate(settings.target or settings.environments, refill=settings.environments is None)
        self.record = record_path(store, self.keys.command())
        self.structures = structures
        self.seed_tasks: dict[str, list[tuple[int, str]]] = {}
        """Task texts by the environment that they were found to be about, each with its place in the input."""
        self.decided = 0
        self.summaries: dict[str, str] = {}
        self.originals: dict[str, str] = {}
        """Copies that were left out, each with the environment that has their structure."""
        self.settling = True
        """False once an environment is missing: whether a later one is a copy of it cannot be told in this run."""
        self.made: list[JsonValue] = []
        """What the last stage made, when that is no environment."""
        self.distinct = 0

    async def run(self, source: _Source) -> SynthReport:
        if source.equal:
            self.tally.drop("read", "equal to an earlier text", "", source.equal)
        for problem in source.problems[:_MAX_PROBLEMS]:
            self.progress.note(problem)
        try:
            async with aclosing(self._wanted(source)) as wanted:
                if self.settings.reaches("design"):
                    await self._build(wanted)
                else:
                    async for one in wanted:
                        self.made.append(one.candidate.description.model_dump(mode="json"))
                        self.gate.end()
        except (BudgetExhausted, EndpointUnavailable, asyncio.CancelledError):
            self._write_index()
            raise
        self._keep_merged_tasks()
        self._write_index()
        return self.report(source, output=self._write_output())

    def report(self, source: _Source, *, output: Path | None = None) -> SynthReport:
        """What was settled so far."""
        use = self.models.meter.report()
        return self.tally.report(
            self.settings.library,
            problems=source.problems[:_MAX_PROBLEMS],
            scaffolding=self.scaffolder.found,
            spent=use.spent,
            reused=use.reused,
            faults=self.models.faults,
            target=self.gate.target(len(source) - self.tally.tasks),
            record=self.record,
            output=output,
        )

    # -- the stream: candidates, decisions, environments --

    async def _candidates(self, source: _Source) -> AsyncGenerator[Candidate, None]:
        if source.descriptions:
            for description in source.descriptions:
                text = f"{description.summary}. {description.introduction}"
                language = "en" if self.settings.language == "en" else language_of(text)
                unit = self.keys.unit(description, language)
                self.tally.given()
                yield Candidate(unit=unit, description=description, seed_tasks=(), language=language)
            return
        self.progress.stage("discover", len(source.texts))
        # With a target, what is looked at ahead may turn out not to be needed.
        window = min(_TASKS_WINDOW, 2 * (self.gate.wanted or _TASKS_WINDOW))
        looked = bounded_map(self._discovered, source.texts, limit=self.admission.tasks, window=window)
        async with aclosing(looked) as found:
            async for text, discovered, candidate in found:
                self.progress.advance("discover")
                self.tally.discovered(text, discovered, useful=candidate is not None)
                if candidate is not None:
                    yield candidate

    async def _discovered(self, text: str) -> tuple[str, Discovered, Candidate | None]:
        settings = self.settings
        language = "en" if settings.language == "en" else language_of(text)
        key = self.keys.task(text, language)
        discovered = self.journal.discovered(key)
        if discovered is None:
            with about(f"task: {short(text)}"), self.models.tracer.span("discover", {"envscaler.stage": "discover"}):
                discovered = await discover(text, language, Asking(self.models, self.prompts, settings.attempts))
            self.journal.put(key, discovered)
        description = discovered.description
        if description is None or not self._is_useful(discovered):
            return text, discovered, None
        unit = self.keys.unit(text, language)
        vector = None
        if settings.clusters is None and self.chooser.needs_vector(unit):
            # Here, where tasks are looked at side by side, an embedding model that is far away costs no time.
            vector = (await embedded(self.models.embedder, [description]))[0]
        return (
            text,
            discovered,
            Candidate(
                unit=unit,
                description=description,
                seed_tasks=(text,),
                language=language,
                score=(discovered.usefulness or 0) + (discovered.modelability or 0),
                use=discovered.use,
                vector=vector,
            ),
        )

    def _is_useful(self, discovered: Discovered) -> bool:
        return (discovered.usefulness or 0) >= self.settings.min_usefulness and (
            discovered.modelability or 0
        ) >= self.settings.min_modelability

    async def _chosen(self, source: _Source) -> AsyncGenerator[Chosen, None]:
        async with aclosing(self._candidates(source)) as candidates:
            if self.settings.clusters is None:
                decided = self.chooser.choose(candidates)
            else:
                everything = [candidate async for candidate in candidates]
                decided = self.chooser.choose_clusters(everything, self.settings.clusters, self.settings.seed)
            async with aclosing(decided):
                async for chosen in decided:
                    self._note(chosen)
                    yield chosen

    async def _wanted(self, source: _Source) -> AsyncGenerator[Chosen, None]:
        """The environments to make, each as soon as it is known to be needed."""
        async with aclosing(self._chosen(source)) as chosen:
            while await self.gate.opens():
                one = await anext(chosen, None)
                if one is None:
                    return
                if one.decision.how == "new":
                    self.gate.begin()
                    yield one

    def _note(self, chosen: Chosen) -> None:
        candidate, decision = chosen.candidate, chosen.decision
        self.tally.decided(candidate.description.summary, decision)
        self.decided += 1
        kept = self.seed_tasks.setdefault(decision.env_id, [])
        if len(kept) < self.settings.max_seed_tasks:
            kept.extend((self.decided, text) for text in candidate.seed_tasks)
        if decision.how == "new":
            self.distinct += 1
            self.summaries[decision.env_id] = candidate.description.summary
            for stage in BUILDING:
                if self.settings.reaches(stage):
                    self.progress.stage(stage, self.distinct)

    async def _build(self, wanted: AsyncGenerator[Chosen, None]) -> None:
        async def build(one: Chosen) -> Built:
            env_id = one.decision.env_id
            span = self.models.tracer.span(f"environment {env_id}", {"envscaler.environment": env_id})
            with self.admission.in_play(), about(env_id), span:
                built = await self.builder.build(one)
            if built.unit.failed is not None and not built.lost:
                self.gate.give_up(built.unit.env_id)
            return built

        outcomes = bounded_map(build, wanted, limit=self.admission.room, window=_WINDOW)
        async with aclosing(outcomes):
            async for outcome in outcomes:
                self._count(outcome)
                self.gate.end(lost=outcome.lost)

    def _count(self, outcome: Built) -> None:
        unit = outcome.unit
        self.settling = self.settling and not outcome.lost
        if unit.failed is None and self.settings.reaches("program"):
            if self.settling:
                original = self.structures.settle(unit.env_id, outcome.structure)
            else:
                original = self.structures.original_of(unit.env_id)
            if original is not None:
                self.originals[unit.env_id] = original
                self.gate.give_up(unit.env_id)
                self.tally.repeated(unit, self.summaries[unit.env_id], original)
                return
        self.tally.built(unit, lost=outcome.lost)
        self.tally.resumed += outcome.resumed
        if outcome.lost:
            self.progress.note(
                f"{outcome.unit.env_id}: infrastructure failed ({outcome.unit.failed}); run again to retry"
            )
        if outcome.design is not None:
            self.made.append(outcome.design.model_dump(mode="json"))

    # -- the end --

    def _keep_merged_tasks(self) -> None:
        """Name the tasks that were merged into an environment among its seed tasks."""
        placed: dict[str, list[tuple[int, str]]] = {}
        for env_id, tasks in self.seed_tasks.items():
            placed.setdefault(self.originals.get(env_id, env_id), []).extend(tasks)
        for env_id, found in placed.items():
            own_alone = env_id in self.summaries and len(found) == 1
            if own_alone or not self.store.has(env_id):
                continue
            texts = [text for _, text in sorted(found)]
            skeleton = self.store.read_environment(env_id)
            known = skeleton.origin.seed_tasks
            seed_tasks = tuple(dict.fromkeys((*known, *texts)))[: max(len(known), self.settings.max_seed_tasks)]
            if seed_tasks != known:
                origin = skeleton.origin.model_copy(update={"seed_tasks": seed_tasks})
                self.store.write_environment(
                    skeleton.model_copy(update={"origin": origin}),
                    self.store.read_assessment(env_id),
                    list(self.store.scenarios(env_id)),
                    list(self.store.proofs(env_id)),
                )

    def _write_index(self) -> None:
        before = self.store.read_index().provenance
        commands = list(before.get("commands", []))
        own = self.keys.provenance()
        if own not in commands:
            commands.append(own)
        self.store.write_index({**before, "commands": commands})

    def _write_output(self) -> Path | None:
        """Write what was made when that is no environment: a file that a person can edit and begin from."""
        if self.settings.reaches("program"):
            return None
        name = "designs.jsonl" if self.settings.reaches("design") else "descriptions.jsonl"
        path = self.store.path / name
        write_atomic(path, b"".join(utf8(json_line(record)) for record in self.made))
        return path


def _record_spent(store: LibraryStore, command: str, models: Models) -> MeterReport:
    """Keep what all runs of a command spent, repeats included, beside the library."""
    report = models.meter.report()
    with Journal(store.cache_dir / "spent.jsonl") as spent:
        total = MeterReport.model_validate(spent.get(command) or {}) + report
        if report.spent.calls:
            spent.put(command, total.model_dump(mode="json"))
    return total
