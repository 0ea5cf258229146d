"""What the proof of a scenario has to reach, as options of every command that proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from envscaler.evidence import Thresholds

PANEL = "Proof of scenarios"


@dataclass(frozen=True)
class ProofFlags:
    """Shares that a proof has to reach for its scenario to be accepted."""

    min_mutation_score: Annotated[
        float,
        typer.Option(
            "--min-mutation-score",
            min=0.0,
            max=1.0,
            help="Share of wrong final states that a scenario's checks notice at least.",
            rich_help_panel=PANEL,
        ),
    ] = 0.8
    min_over_edits_caught: Annotated[
        float,
        typer.Option(
            "--min-over-edits-caught",
            min=0.0,
            max=1.0,
            help="Share of edits too many that a scenario's guards notice at least.",
            rich_help_panel=PANEL,
        ),
    ] = 0.8
    min_variants_passed: Annotated[
        float,
        typer.Option(
            "--min-variants-passed",
            min=0.0,
            max=1.0,
            help="Share of equally right ways after which every check holds at least.",
            rich_help_panel=PANEL,
        ),
    ] = 1.0

    def thresholds(self, max_leaks: int | None = None) -> Thresholds:
        """The same as a proof is held against.

        Args:
            max_leaks: what a task may give away; None: it is told and does not count.
        """
        from envscaler.evidence import Thresholds

        return Thresholds(
            mutation_score=self.min_mutation_score,
            over_edits_caught=self.min_over_edits_caught,
            variants_passed=self.min_variants_passed,
            max_leaks=max_leaks,
        )
