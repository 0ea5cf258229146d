"""Counts what becomes of the units of a run and puts the report together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from envscaler.models import Faults
from envscaler.skeleton import ModelUse
from envscaler.synth.asking import merged
from envscaler.synth.discover import Discovered
from envscaler.synth.replies import MAX_EXAMPLES, MendedReplies, Unusable, added_up, mended_in_all
from envscaler.synth.report import (
    Average,
    Dropped,
    EnvironmentUse,
    Funnel,
    Merged,
    Reason,
    SynthReport,
    Target,
    Testing,
)
from envscaler.synth.resume import Decision, Scaffolding, Unit
from envscaler.synth.settings import STAGES, Stage


@dataclass
class _Merging:
    """What was merged into one environment."""

    ways: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    """Examples of environments that were made first; apart, since they are known later than descriptions are."""


class Tally:
    """Told of every unit in input order."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._dropped: dict[tuple[str, Reason], tuple[int, list[str]]] = {}
        self._merged: dict[str, _Merging] = {}
        self._use: dict[str, ModelUse] = {}
        self._unusable: list[Unusable] = []
        self._mended: list[MendedReplies] = []
        self._uses: list[EnvironmentUse] = []
        self._environments: list[str] = []
        self._testing = Testing()
        self.resumed = 0

    def drop(self, stage: str, reason: Reason, example: str, count: int = 1) -> None:
        """Count units that a stage gave up."""
        before, examples = self._dropped.get((stage, reason), (0, []))
        if len(examples) < MAX_EXAMPLES and example:
            examples = [*examples, example]
        self._dropped[stage, reason] = (before + count, examples)

    def discovered(self, text: str, found: Discovered, *, useful: bool) -> None:
        """Count one task."""
        self._counts["tasks"] += 1
        self._use = merged(self._use, found.use)
        self._count_replies(found.replies, found.mended)
        self._counts["stateful"] += bool(found.stateful) or found.description is not None
        if found.description is None:
            assert found.outcome != "described"
            self.drop("discover", found.outcome, f"{short(text)}: {found.reason}")
        else:
            self._counts["described"] += 1
            if useful:
                self._counts["useful"] += 1
            else:
                scores = f"usefulness {found.usefulness}, modelability {found.modelability}"
                self.drop("discover", "scores too low", f"{found.description.summary}: {scores}")

    def given(self) -> None:
        """Count one description that nobody had to find."""
        for name in ("tasks", "stateful", "described", "useful"):
            self._counts[name] += 1

    def decided(self, summary: str, decision: Decision) -> None:
        """Count one description."""
        if decision.how == "new":
            self._counts["distinct"] += 1
            return
        merging = self._merged.setdefault(decision.env_id, _Merging())
        merging.ways[decision.how] += 1
        if len(merging.examples) < MAX_EXAMPLES:
            merging.examples.append(f"{summary} ({decision.similarity:.2f})")

    def repeated(self, unit: Unit, summary: str, original: str) -> None:
        """Count an environment that was made and has the structure of an earlier one."""
        self._used_by(unit, accepted=False)
        self._counts["distinct"] -= 1
        merging = self._merged.setdefault(original, _Merging())
        merging.ways["structure"] += 1
        if len(merging.copies) < MAX_EXAMPLES:
            merging.copies.append(f"{summary}: same structure as {original}")

    def built(self, unit: Unit, *, lost: bool = False) -> None:
        """Count one environment.

        Args:
            lost: infrastructure failed, and the next run tries again.
        """
        accepted = unit.failed is None and unit.assessed_by is not None
        self._used_by(unit, accepted=accepted)
        programmed = _is_past("program", unit)
        self._counts["designed"] += _is_past("design", unit)
        self._counts["loads"] += unit.loads or programmed
        self._counts["programmed"] += programmed
        self._testing += unit.testing
        self._counts["assessed"] += unit.assessed_by is not None and not (unit.reached == "assess" and unit.unanswered)
        for dropped in unit.dropped_tools if programmed else ():
            self.drop("program", "part of an environment", f"{unit.env_id}: {dropped}")
        if unit.failed is not None:
            reason = _reason(unit, lost=lost)
            self.drop(unit.reached, reason, f"{unit.env_id}: {unit.failed}")
            return
        if programmed:
            self._environments.append(unit.env_id)
        self._counts["accepted"] += accepted
        self._counts["scenarios"] += unit.scenarios
        self._counts["solved"] += unit.solved
        self._counts["proved"] += unit.proved
        self._counts["written"] += unit.scenarios + unit.rejected
        for dropped in unit.dropped_scenarios:
            self.drop("scenarios", "scenario", dropped)
        for shortfall in unit.unproved:
            self.drop("scenarios", "scenario without proof", shortfall)

    @property
    def tasks(self) -> int:
        """Tasks told of so far."""
        return self._counts["tasks"]

    def _used_by(self, unit: Unit, *, accepted: bool) -> None:
        self._use = merged(self._use, unit.use)
        self._count_replies(unit.replies, unit.mended)
        self._uses.append(EnvironmentUse(env_id=unit.env_id, accepted=accepted, use=unit.use))

    def _count_replies(self, replies: tuple[Unusable, ...], mended: tuple[MendedReplies, ...]) -> None:
        if replies:
            self._unusable = list(added_up([*self._unusable, *replies]))
        if mended:
            self._mended = list(mended_in_all([*self._mended, *mended]))

    def report(
        self,
        library: Path,
        *,
        problems: tuple[str, ...],
        scaffolding: Scaffolding | None = None,
        spent: ModelUse,
        reused: ModelUse,
        faults: Faults,
        target: Target | None = None,
        record: Path | None = None,
        output: Path | None = None,
    ) -> SynthReport:
        """The report of everything that was told.

        Args:
            scaffolding: None: not known. What finding it out took is counted too.
        """
        use, unusable, mended = self._use, self._unusable, self._mended
        if scaffolding is not None:
            use, unusable = merged(use, scaffolding.use), list(added_up([*unusable, *scaffolding.replies]))
            mended = list(mended_in_all([*mended, *scaffolding.mended]))
        return SynthReport(
            scaffold=scaffolding.scaffold if scaffolding is not None else None,
            scaffold_reason=scaffolding.reason if scaffolding is not None else "",
            library=library,
            environments=tuple(self._environments),
            funnel=Funnel(**self._counts),
            testing=self._testing,
            resumed=self.resumed,
            dropped=tuple(
                Dropped(stage=stage, reason=reason, count=count, examples=tuple(examples))
                for (stage, reason), (count, examples) in sorted(
                    self._dropped.items(), key=lambda entry: _order(entry[0][0])
                )
            ),
            merged=tuple(
                Merged(
                    into=env_id,
                    count=merging.ways.total(),
                    by_summary=merging.ways["summary"],
                    by_structure=merging.ways["structure"],
                    examples=tuple([*merging.examples, *merging.copies][:MAX_EXAMPLES]),
                )
                for env_id, merging in sorted(self._merged.items())
            ),
            problems=problems,
            unusable=tuple(unusable),
            mended=tuple(mended),
            target=target,
            use=use,
            per_designed=_averages(use, self._counts["designed"]),
            per_accepted=_averages(use, self._counts["accepted"]),
            uses=tuple(self._uses),
            spent=spent if spent.calls else ModelUse(cost_usd=0.0),
            reused=reused if reused.calls else ModelUse(cost_usd=0.0),
            faults=faults,
            record=record,
            output=output,
        )


def _is_past(stage: Stage, unit: Unit) -> bool:
    """Whether an environment came through a stage."""
    reached, passed = STAGES.index(unit.reached), STAGES.index(stage)
    return reached > passed or (reached == passed and unit.failed is None)


def _reason(unit: Unit, *, lost: bool) -> Reason:
    if lost:
        return "infrastructure, tried again by the next run"
    if unit.unanswered or unit.reached in ("discover", "design"):
        return "no usable reply"
    if unit.reached == "program":
        return "too few working tools" if unit.loads else "does not load"
    return "not accepted" if unit.reached == "assess" else "no scenario"


def _averages(use: dict[str, ModelUse], environments: int) -> dict[str, Average]:
    if not environments:
        return {}
    return {
        stage: Average(
            calls=round(one.calls / environments, 2),
            tokens=round((one.input_tokens + one.output_tokens) / environments, 1),
            cost_usd=None if one.cost_usd is None else round(one.cost_usd / environments, 6),
        )
        for stage, one in use.items()
    }


def _order(stage: str) -> int:
    return ("read", *STAGES).index(stage)


def short(text: str, limit: int = 100) -> str:
    """A text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
