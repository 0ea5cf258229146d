"""What a run of `synth`, `assess` or `scenarios` did, as records. How they are shown is the command line's business."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from envscaler.assessment import Assessment, Counts, Threshold
from envscaler.models import Faults
from envscaler.record import Record
from envscaler.skeleton import ModelUse
from envscaler.synth.replies import MendedReplies, Unusable
from envscaler.synth.settings import Scaffold

Reason = Literal[
    "equal to an earlier text",
    "not stateful",
    "scores too low",
    "no usable reply",
    "does not load",
    "too few working tools",
    "part of an environment",
    "not accepted",
    "no scenario",
    "scenario",
    "scenario without proof",
    "infrastructure, tried again by the next run",
]
"""Why a unit is given up: all kinds that there are."""


class Dropped(Record):
    """Units that one stage gave up for one reason."""

    stage: str
    reason: Reason
    count: int
    examples: tuple[str, ...] = ()
    """The first few, each with what exactly was wrong."""


class Merged(Record):
    """Descriptions that count as one environment that was there before them."""

    into: str
    """Id of the environment."""
    count: int
    by_summary: int
    """How many of them had the same summary."""
    by_structure: int = 0
    """How many of them became programs that differ from it only in names; the others had similar descriptions."""
    examples: tuple[str, ...] = ()
    """The first few: summary, and similarity or `same structure as ENV`."""


class Funnel(Record):
    """How many units each stage passed on."""

    tasks: int = 0
    """Tasks (or descriptions) read."""
    stateful: int = 0
    described: int = 0
    """Environments inferred."""
    useful: int = 0
    """Those useful and modelable enough."""
    distinct: int = 0
    """Those that are not merged into another one."""
    designed: int = 0
    """Environments that have entities, rules and tools."""
    loads: int = 0
    """Environments whose program, or a first version of it, could be loaded."""
    programmed: int = 0
    """Environments with query and update tools that stood their first calls."""
    assessed: int = 0
    """Environments that were put to the test."""
    accepted: int = 0
    """Environments that passed the assessment."""
    written: int = 0
    """Scenarios that could be written."""
    scenarios: int = 0
    """Those that were kept."""
    solved: int = 0
    """Kept ones with a recorded solution."""
    proved: int = 0
    """Kept ones whose proof reaches what was asked for."""


class Testing(Record):
    """The test calls of assessments, added up over environments."""

    __test__ = False  # pytest would collect the class by its name

    positive: Counts = Counts()
    """Calls meant to succeed."""
    negative: Counts = Counts()
    """Calls that are wrong on purpose."""
    saved: int = 0
    """Rounds not made because the verdict was settled before."""
    repaired: int = 0
    """Methods that were repaired."""
    dropped: int = 0
    """Tools given up because their calls failed."""

    @classmethod
    def of(cls, assessment: Assessment) -> Testing:
        """Those of one environment."""
        kinds = assessment.by_case
        return cls(
            positive=kinds["positive"],
            negative=kinds["negative"],
            saved=assessment.saved,
            repaired=sum(one.accepted > 0 and one.dropped is None for one in assessment.repairs),
            dropped=sum(one.dropped is not None for one in assessment.repairs),
        )

    def __add__(self, other: Testing) -> Testing:
        return Testing(
            positive=self.positive + other.positive,
            negative=self.negative + other.negative,
            saved=self.saved + other.saved,
            repaired=self.repaired + other.repaired,
            dropped=self.dropped + other.dropped,
        )

    @property
    def counts(self) -> Counts:
        """All of them."""
        return self.positive + self.negative


class Average(Record):
    """What one environment took on average."""

    calls: float
    tokens: float
    """Input and output tokens together."""
    cost_usd: float | None
    """None where a price is unknown."""


class EnvironmentUse(Record):
    """What one environment took after discovery, whatever became of it."""

    env_id: str
    accepted: bool
    use: dict[str, ModelUse]
    """By stage, replies that could not be used included."""


class Target(Record):
    """How far a run came that was to go on until so many environments are accepted."""

    environments: int
    """So many were asked for."""
    accepted: int
    tasks_left: int
    """Tasks that were not looked at, because it was enough without them."""
    waiting: int = 0
    """Environments that infrastructure kept from being made; no other ones are made in their place."""

    @property
    def reached(self) -> bool:
        """Whether there are as many as asked for."""
        return self.accepted >= self.environments


class SynthReport(Record):
    """What one run of `synth` did. Counts cover all of its tasks, also those done by an earlier run."""

    library: Path
    scaffold: Scaffold | None = None
    """How environments were asked for; None: none had to be."""
    scaffold_reason: str = ""
    environments: tuple[str, ...]
    """Ids of the environments that these tasks have in the library, in input order."""
    funnel: Funnel
    testing: Testing = Testing()
    """The test calls of all environments that were assessed, also of those that were not accepted."""
    resumed: int = 0
    """Environments that an earlier run had finished."""
    dropped: tuple[Dropped, ...] = ()
    unusable: tuple[Unusable, ...] = ()
    """Replies that could not be used, by stage, role and kind; the same whenever the command is run."""
    mended: tuple[MendedReplies, ...] = ()
    """Replies that were used after something in their form was made good, likewise."""
    merged: tuple[Merged, ...] = ()
    target: Target | None = None
    problems: tuple[str, ...] = ()
    """Lines of the input file that could not be read."""
    use: dict[str, ModelUse] = {}
    """Calls, tokens and cost of all replies, by stage, those that could not be used included; the same whenever the
    command is run."""
    per_designed: dict[str, Average] = {}
    """That, divided by the environments that have a design."""
    per_accepted: dict[str, Average] = {}
    """That, divided by the environments that were accepted: what is given up is paid for by what is kept."""
    uses: tuple[EnvironmentUse, ...] = ()
    """Each environment that was begun, in input order."""
    spent: ModelUse = ModelUse()
    """What this run spent; replies from the cache cost nothing."""
    reused: ModelUse = ModelUse()
    """Replies that came from the cache in this run, with what they had cost when they were made."""
    faults: Faults = Faults()
    """What went wrong with the models in this run."""
    record: Path | None = None
    """File that this report is kept in."""
    output: Path | None = None
    """File with what the last stage made, when that is no environment."""


class Assessed(Record):
    """The outcome of one environment's assessment."""

    env_id: str
    rounds: int
    pass_rate: float | None
    not_fail_rate: float | None
    interval: tuple[float, float] | None = None
    """The 95% interval of the rate that is compared with the threshold."""
    oracle_share: float | None = None
    """Share of verdicts that oracles settled; the model settled the others."""
    made: int | None = None
    """Rounds after which the verdict was settled; None: all were made."""
    accepted: bool
    fresh: bool
    """False: the stored assessment was still valid and was kept."""
    failures: int = 0
    """Rounds that gave no case."""
    at_fault: dict[str, str] = {}
    """What was found of a tool without test calls, by tool, one sentence each."""
    error: str | None = None
    """Why there is no assessment."""


class AssessReport(Record):
    """What one run of `assess` did."""

    library: Path
    threshold: float
    by: Threshold
    assessed: tuple[Assessed, ...]
    use: dict[str, ModelUse] = {}
    spent: ModelUse = ModelUse()
    faults: Faults = Faults()


class ScenariosMade(Record):
    """The scenarios of one environment after the run."""

    env_id: str
    asked: int
    present: int
    made: int
    solved: int
    proved: int = 0
    """Those among the present ones whose proof reaches what was asked for."""
    unproved: int = 0
    """Those that were written now and do not reach it."""
    renewed: int = 0
    """Those that had been made for another version of the program and do the same in this one."""
    stale: int = 0
    """Those among the present ones that were made for another version of the program."""
    dropped: tuple[str, ...] = ()
    """Why a scenario could not be made, one sentence each."""


class ScenariosReport(Record):
    """What one run of `scenarios` did."""

    library: Path
    environments: tuple[ScenariosMade, ...]
    renewing: bool = False
    """Whether stale scenarios were to be renewed."""
    skipped: tuple[str, ...] = ()
    """Environments passed over, with the reason."""
    use: dict[str, ModelUse] = {}
    spent: ModelUse = ModelUse()
    faults: Faults = Faults()
