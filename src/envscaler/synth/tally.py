"""Counts what becomes of the units of a run and puts the report together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from envscaler.models import Faults
from envscaler.skeleton import ModelUse
from envscaler.synth.asking import merged
from envscaler.synth.discover import Discovered
from envscaler.synth.report import MAX_EXAMPLES, Dropped, Funnel, Merged, SynthReport, Testing
from envscaler.synth.resume import Decision, Unit
from envscaler.synth.settings import STAGES


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
        self._dropped: dict[tuple[str, str], tuple[int, list[str]]] = {}
        self._merged: dict[str, _Merging] = {}
        self._use: dict[str, ModelUse] = {}
        self._environments: list[str] = []
        self._testing = Testing()
        self.resumed = 0

    def drop(self, stage: str, reason: str, example: str, count: int = 1) -> None:
        """Count units that a stage gave up."""
        before, examples = self._dropped.get((stage, reason), (0, []))
        if len(examples) < MAX_EXAMPLES and example:
            examples = [*examples, example]
        self._dropped[stage, reason] = (before + count, examples)

    def discovered(self, text: str, found: Discovered, *, useful: bool) -> None:
        """Count one task."""
        self._counts["tasks"] += 1
        self._use = merged(self._use, found.use)
        if found.description is None:
            self.drop("discover", found.outcome, f"{short(text)}: {found.reason}")
        else:
            self._counts["stateful"] += 1
            self._counts["described"] += 1
            if useful:
                self._counts["useful"] += 1
            else:
                scores = f"usefulness {found.usefulness}, modelability {found.modelability}"
                self.drop("discover", "scores too low", f"{found.description.summary}: {scores}")

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
        self._use = merged(self._use, unit.use)
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
        self._use = merged(self._use, unit.use)
        programmed = STAGES.index(unit.reached) > STAGES.index("program") or (
            unit.reached == "program" and unit.failed is None
        )
        self._counts["programmed"] += programmed
        self._testing += unit.testing
        for dropped in unit.dropped_tools if programmed else ():
            self.drop("program", "part of an environment", f"{unit.env_id}: {dropped}")
        if unit.failed is not None:
            reason = "infrastructure, tried again by the next run" if lost else _REASONS[unit.reached]
            self.drop(unit.reached, reason, f"{unit.env_id}: {unit.failed}")
            return
        if programmed:
            self._environments.append(unit.env_id)
        self._counts["accepted"] += unit.assessed_by is not None
        self._counts["scenarios"] += unit.scenarios
        self._counts["solved"] += unit.solved
        self._counts["proved"] += unit.proved
        self._counts["written"] += unit.scenarios + unit.rejected
        for dropped in unit.dropped_scenarios:
            self.drop("scenarios", "scenario", dropped)
        for reason in unit.unproved:
            self.drop("scenarios", "scenario without proof", reason)

    def report(
        self, library: Path, *, problems: tuple[str, ...], spent: ModelUse, faults: Faults, output: Path | None = None
    ) -> SynthReport:
        """The report of everything that was told."""
        return SynthReport(
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
            use=self._use,
            spent=spent if spent.calls else ModelUse(cost_usd=0.0),
            faults=faults,
            output=output,
        )


_REASONS = {
    "discover": "no usable reply",
    "design": "no usable plan",
    "program": "no working program",
    "assess": "not accepted",
    "scenarios": "no scenario",
}


def _order(stage: str) -> int:
    return ("read", *STAGES).index(stage)


def short(text: str, limit: int = 100) -> str:
    """A text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
