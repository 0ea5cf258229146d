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

    def at_speed(self, slower: float) -> float | None:
        """What a machine would give that is so many times faster, if all of it were; None for what is no time."""
        if self.measured is None:
            return None
        if self.unit == "a second":
            return self.measured * slower
        return self.measured / slower if self.unit.split()[:1] in (["µs"], ["ms"]) else None


def table_of(targets: list[Target], slower: float) -> Table:
    """Targets, one a line.

    Args:
        slower: how many times slower this machine is than the one on which the targets were set.
    """
    table = Table("target", "wanted", "measured", "", f"measured, for {slower:.1f} times the speed", box=None)
    words = {True: "met", False: "missed", None: "not measured"}
    for target in targets:
        sign = "≥" if target.at_least else "≤"
        table.add_row(
            target.what,
            f"{sign} {target.wanted:,g} {target.unit}",
            _figure(target.measured),
            words[target.met],
            _figure(target.at_speed(slower)),
        )
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
