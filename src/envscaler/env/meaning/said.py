"""`Said`: collects what is found of one call, and what only a judge can tell."""

from __future__ import annotations

from envscaler.assessment import Finding

_SHOWN = 80
_LISTED = 3


class Said:
    """What is said of a call so far."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.findings: list[Finding] = []
        self.remarks: list[Finding] = []
        self.doubts: list[str] = []

    def finds(self, oracle: str, what: str) -> None:
        """Say that something is certainly wrong."""
        self.findings.append(Finding(oracle=oracle, detail=f"{self.tool} {what}"))

    def remarks_on(self, oracle: str, what: str) -> None:
        """Say that something is not as declared, which may be the declaration's fault: a judge has to tell."""
        self.remarks.append(Finding(oracle=oracle, detail=f"{self.tool} {what}"))
        self.doubts.append(f"whether it may be that it {what}")

    def doubts_whether(self, what: str) -> None:
        """Say that something cannot be told without a judge."""
        self.doubts.append(what)


def shown(value: object) -> str:
    """A value as a sentence shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def listed(names: list[str]) -> str:
    """Names as a sentence shows them, the first few."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"
