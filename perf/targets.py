"""`Target`: what a figure should reach, and whether it does. A target that is missed is reported, not an error."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Target:
    """One figure beside what it should be."""

    what: str
    measured: float | None
    """None where this machine does not tell."""
    wanted: float
    unit: str
    at_least: bool = False
    """Whether more is better."""

    @property
    def met(self) -> bool | None:
        """None when nothing was measured."""
        if self.measured is None:
            return None
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted


def table_of(targets: list[Target]) -> Table:
    """Targets, one a line."""
    table = Table("target", "wanted", "measured", "", box=None)
    words = {True: "met", False: "missed", None: "not measured"}
    for target in targets:
        measured = "" if target.measured is None else f"{target.measured:,.3g}" if target.measured < 1000 else ""
        if target.measured is not None and target.measured >= 1000:
            measured = f"{target.measured:,.0f}"
        sign = "≥" if target.at_least else "≤"
        table.add_row(target.what, f"{sign} {target.wanted:,g} {target.unit}", measured, words[target.met])
    return table
