"""`Assessment`: the record of the dual-agent quality check of an environment (paper 3.3).

How the check is carried out is `synth.assess`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from envscaler.messages import ToolCall
from envscaler.rates import Side, settled, wilson
from envscaler.record import Record
from envscaler.state import JsonValue

CaseType = Literal["positive", "negative"]
"""A call meant to succeed, or one that is wrong on purpose."""
CallVerdict = Literal["pass", "warning", "fail"]
Threshold = Literal["pass", "not_fail"]
Judging = Literal["auto", "all"]
"""Calls that the checking agent is asked about: those that no oracle settles, or all in which none finds a fault."""


class Finding(Record):
    """What a programmatic oracle found, without a model."""

    oracle: str
    """Name of the oracle: `query_writes`, `failure_writes`, `not_json`, `nondeterministic` …"""
    detail: str
    call: ToolCall | None = None
    """The call that shows it, where it is found by several; None where it stands with its call, or needs none."""


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


class Counts(Record):
    """How many test calls were judged how, and by whom."""

    passed: int = 0
    warned: int = 0
    failed: int = 0
    by_oracle: int = 0
    """Those among them that oracles settled; the model settled the others."""

    @classmethod
    def of(cls, cases: Iterable[TestCase]) -> Counts:
        """The counts of these calls."""
        counted = list(cases)
        verdicts = [case.verdict for case in counted]
        return cls(
            passed=verdicts.count("pass"),
            warned=verdicts.count("warning"),
            failed=verdicts.count("fail"),
            by_oracle=sum(case.judge == "oracle" for case in counted),
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            passed=self.passed + other.passed,
            warned=self.warned + other.warned,
            failed=self.failed + other.failed,
            by_oracle=self.by_oracle + other.by_oracle,
        )

    @property
    def calls(self) -> int:
        """All of them."""
        return self.passed + self.warned + self.failed

    def good(self, by: Threshold) -> int:
        """Those that count for the rate."""
        return self.passed if by == "pass" else self.passed + self.warned

    def rate(self, by: Threshold) -> float | None:
        """Share of calls that were good; None without calls."""
        return self.good(by) / self.calls if self.calls else None

    def interval(self, by: Threshold) -> tuple[float, float] | None:
        """The 95% interval of that share (Wilson); None without calls."""
        return wilson(self.good(by), self.calls)

    @property
    def oracle_share(self) -> float | None:
        """Share of verdicts that oracles settled; the rest is the model's. None without calls."""
        return self.by_oracle / self.calls if self.calls else None


class Repair(Record):
    """What was tried to mend one tool, some calls of which failed."""

    tool: str
    attempts: int
    """Versions of its method that were asked for."""
    accepted: int
    """Versions that took the place of the one before."""
    refused: tuple[str, ...] = ()
    """Why other versions did not, one sentence each."""
    before: tuple[TestCase, ...] = ()
    """Calls of versions that are no longer there; those of the present one are among the cases of the assessment."""
    found: tuple[Finding, ...] = ()
    """Faults that the examination found in versions that are no longer there."""
    dropped: str | None = None
    """Why the tool was given up; None: the environment has it."""


class Examined(Record):
    """What many calls of one tool told without a model and without test calls."""

    tool: str
    calls: int
    succeeded: int
    settled: int
    """Calls of which nothing was left for a judge."""
    faults: tuple[Finding, ...] = ()
    """What is certainly wrong, one of each kind."""
    remarks: tuple[Finding, ...] = ()
    """What is not as it should be and is no fault of what the tool does here: told, and held against nothing."""
    doubts: tuple[str, ...] = ()
    """What only a judge can tell, a clause each."""

    @property
    def verdict(self) -> Literal["pass", "fail"] | None:
        """`fail` with a fault; `pass` where it was seen at work and nothing is left to a judge; None: needs a judge."""
        if self.faults:
            return "fail"
        return "pass" if self.succeeded and not self.doubts else None


class Assessment(Record):
    """Every test call of one environment, and the rates that follow from them."""

    env_id: str
    env_digest: str
    rounds: int
    """Rounds asked for; cases can be fewer when some calls could not be made."""
    made: int | None = None
    """Rounds after which the verdict was settled and no more were made; None: all that were asked for."""
    cases: tuple[TestCase, ...]
    """Test calls of the program as it is. Calls of methods that were repaired since are in `repairs`."""
    examined: tuple[Examined, ...] | None = None
    """What was found of each tool without a model, in the order of the tools; None: not examined, as before there was
    such an examination."""
    failures: tuple[str, ...] = ()
    """Rounds that gave no case, with the reason (a reply that could not be used …)."""
    threshold: float = 0.85
    by: Threshold = "pass"
    """Rate that is compared with the threshold. The paper speaks of the pass rate; its code uses not-fail."""
    judging: Judging = "all"
    repairs: tuple[Repair, ...] = ()
    """One for each tool that was to be repaired, in the order of the tools."""

    @property
    def counts(self) -> Counts:
        """All cases counted, and each tool in which the examination found a fault as one that failed."""
        return Counts.of(self.cases) + _failed(len(self.at_fault))

    @property
    def at_fault(self) -> tuple[Examined, ...]:
        """The tools in which the examination found a fault."""
        return tuple(one for one in self.examined or () if one.faults)

    @property
    def by_tool(self) -> dict[str, Counts]:
        """As `counts`, for each tool of which there is anything to count."""
        at_fault = [one.tool for one in self.at_fault]
        names = dict.fromkeys([*(case.call.name for case in self.cases), *at_fault])
        return {
            name: Counts.of(case for case in self.cases if case.call.name == name) + _failed(at_fault.count(name))
            for name in names
        }

    @property
    def by_case(self) -> dict[CaseType, Counts]:
        """Cases counted for calls meant to succeed and for wrong ones."""
        kinds: tuple[CaseType, ...] = ("positive", "negative")
        return {kind: Counts.of(case for case in self.cases if case.case == kind) for kind in kinds}

    @property
    def pass_rate(self) -> float | None:
        """Share of cases judged `pass`; None without cases."""
        return self.counts.rate("pass")

    @property
    def not_fail_rate(self) -> float | None:
        """Share of cases judged `pass` or `warning`; None without cases."""
        return self.counts.rate("not_fail")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the rate that is compared with the threshold."""
        return self.counts.interval(self.by)

    @property
    def settled(self) -> Side | None:
        """On which side of the threshold the rate is for certain, as `rates.settled` says; None: it is near to it."""
        counts = self.counts
        return settled(counts.good(self.by), counts.calls, self.threshold)

    @property
    def saved(self) -> int:
        """Rounds asked for and not made, because the verdict was settled before."""
        return self.rounds - self.made if self.made is not None else 0

    @property
    def accepted(self) -> bool:
        """Whether the environment is kept."""
        rate = self.counts.rate(self.by)
        return rate is not None and rate >= self.threshold


def _failed(tools: int) -> Counts:
    """What so many tools count for in which the examination found a fault."""
    return Counts(failed=tools, by_oracle=tools)
