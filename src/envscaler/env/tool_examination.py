"""`ToolExamination`: what many calls of one tool have told so far.

Which calls are made is `examination`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from envscaler.assessment import Examined, Finding
from envscaler.env.aliasing import ALIASED
from envscaler.env.meaning import Meaning
from envscaler.env.oracles import ExaminedCall

HARMLESS = frozenset({ALIASED, "early_write", "schema"})
"""Oracles whose findings are told and held against nothing. In a sandbox results leave as JSON, so that nobody reaches
the state through one; a write before a test may be one that no call meets; published schemas differ from methods, and
an environment holds to the methods."""


@dataclass
class ToolExamination:
    """What was seen of one tool."""

    calls: int = 0
    succeeded: int = 0
    settled: int = 0
    """Calls of which nothing is left for a judge."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """The first finding of each oracle."""
    remarks: dict[str, Finding] = field(default_factory=dict)
    """The first remark of each oracle."""
    shown: dict[str, ExaminedCall] = field(default_factory=dict, compare=False)
    """The call that shows a finding, by oracle."""
    doubts: list[str] = field(default_factory=list)
    """What only a judge can tell, each clause once."""
    tried: set[bytes] = field(default_factory=set)
    """Arguments, all of them given, with which an update succeeded."""
    given: set[str] = field(default_factory=set)
    """Parameters that were given, not null, in a call that succeeded."""
    effective: bool = False
    """Whether an update ever changed the state."""
    hung: bool = False
    """Whether a call did not come back."""

    def add(self, findings: Iterable[Finding], examined: ExaminedCall | None = None) -> None:
        """Take up what was found.

        Args:
            examined: the call that shows it.
        """
        for finding in findings:
            if finding.oracle in self.findings:
                continue
            if examined is not None:
                finding = finding.model_copy(update={"call": examined.call})
                self.shown[finding.oracle] = examined
            self.findings[finding.oracle] = finding

    def add_meaning(self, meaning: Meaning, examined: ExaminedCall) -> None:
        """Take up what a call has to mean."""
        self.add(meaning.findings, examined)
        for remark in meaning.remarks:
            self.remarks.setdefault(remark.oracle, remark.model_copy(update={"call": examined.call}))
        self.settled += meaning.settled
        self.doubts += [doubt for doubt in meaning.doubts if doubt not in self.doubts]

    @property
    def faults(self) -> dict[str, Finding]:
        """The findings that make the tool a faulty one."""
        return {oracle: finding for oracle, finding in self.findings.items() if oracle not in HARMLESS}

    @property
    def needs_judge(self) -> bool:
        """Whether something is left that only a judge can tell, or nothing was seen of it at work."""
        return not self.findings and (bool(self.doubts) or not self.succeeded)

    @property
    def passed(self) -> bool:
        """Whether it worked, and everything that there is to say of it holds."""
        return not self.findings and not self.needs_judge

    def record(self, tool: str) -> Examined:
        """What is kept of it."""
        harmless = [finding for oracle, finding in self.findings.items() if oracle in HARMLESS]
        return Examined(
            tool=tool,
            calls=self.calls,
            succeeded=self.succeeded,
            settled=self.settled,
            faults=tuple(self.faults.values()),
            remarks=(*harmless, *self.remarks.values()),
            doubts=tuple(self.doubts),
        )
