"""`Assessment`: the record of the dual-agent quality check of an environment (paper 3.3).

How the check is carried out is `synth.assess`'s business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from envscaler.messages import ToolCall
from envscaler.record import Record
from envscaler.state import JsonValue

CaseType = Literal["positive", "negative"]
"""A call meant to succeed, or one that is wrong on purpose."""
CallVerdict = Literal["pass", "warning", "fail"]
Threshold = Literal["pass", "not_fail"]


class Finding(Record):
    """What a programmatic oracle found, without a model."""

    oracle: str
    """Name of the oracle: `query_writes`, `failure_writes`, `not_json`, `nondeterministic` …"""
    detail: str


class TestCase(Record):
    """One test call, what it did and how it was judged."""

    __test__ = False  # pytest would collect the class by its name

    round: int
    call: ToolCall
    case: CaseType
    intent: str = ""
    """What the testing agent wanted to find out."""
    result: JsonValue = None
    """What the tool returned; None when it raised."""
    error: str | None = None
    """`Type: message` when it raised or ran out of time."""
    before: str
    """State digest before the call."""
    after: str
    findings: tuple[Finding, ...] = ()
    verdict: CallVerdict
    reason: str
    judge: Literal["oracle", "model"] = "model"
    """Who settled the verdict: an oracle's finding makes it `fail` whatever the model says."""


class Assessment(Record):
    """Every test call of one environment, and the rates that follow from them."""

    env_id: str
    env_digest: str
    rounds: int
    """Rounds asked for; cases can be fewer when some calls could not be made."""
    cases: tuple[TestCase, ...]
    failures: tuple[str, ...] = ()
    """Rounds that gave no case, with the reason (a reply that could not be used …)."""
    threshold: float = 0.85
    by: Threshold = "pass"
    """Rate that is compared with the threshold. The paper speaks of the pass rate; its code uses not-fail."""

    @property
    def pass_rate(self) -> float | None:
        """Share of cases judged `pass`; None without cases."""
        return self._share(lambda case: case.verdict == "pass")

    @property
    def not_fail_rate(self) -> float | None:
        """Share of cases judged `pass` or `warning`; None without cases."""
        return self._share(lambda case: case.verdict != "fail")

    @property
    def accepted(self) -> bool:
        """Whether the environment is kept."""
        rate = self.pass_rate if self.by == "pass" else self.not_fail_rate
        return rate is not None and rate >= self.threshold

    def _share(self, holds: Callable[[TestCase], bool]) -> float | None:
        return sum(holds(case) for case in self.cases) / len(self.cases) if self.cases else None
