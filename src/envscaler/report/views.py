"""Records of what is shown of a library, an environment and an episode, the same for terminal, JSON and HTML.

How they look is the business of the command line and of the page; how an episode is replayed that of `replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envscaler.assessment import Assessment, CaseType, Counts, Examined, Repair, TestCase
from envscaler.record import Record
from envscaler.rollout import RunRecord, Scores, scores
from envscaler.rollout.scores import REWARD_MODES, UNFINISHED
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import Change, State
from envscaler.trajectory import Step, StopReason, Trajectory


class EnvironmentSummary(Record):
    """One line of a library's table."""

    id: str
    summary: str
    queries: int
    updates: int
    rules: int
    entities: int
    scenarios: int
    solutions: int
    """Scenarios whose recorded solution was executed and satisfied every check."""
    test_calls: int
    pass_rate: float | None
    not_fail_rate: float | None
    interval: tuple[float, float] | None = None
    """The 95% interval of the rate that is compared with the threshold."""
    oracle_share: float | None = None
    """Share of verdicts that oracles settled; the model settled the others."""
    accepted: bool | None
    """None when it was not assessed."""
    stale: bool = False
    """Whether the assessment is of another program: this one was changed since."""
    stale_scenarios: int = 0
    """Scenarios that were made for another version of the program."""


class RunSummary(Record):
    """One run, as its episodes tell."""

    id: str
    path: str
    agents: tuple[str, ...]
    models: tuple[str, ...]
    scores: Scores
    note: str | None = None
    """What a reader of the scores has to know."""


class LibraryView(Record):
    """A library at a glance."""

    path: str
    environments: tuple[EnvironmentSummary, ...]
    runs: tuple[RunSummary, ...] = ()


class ToolRates(Record):
    """How the test calls of one tool were judged."""

    tool: str
    passed: int
    warned: int
    failed: int
    interval: tuple[float, float] | None = None
    """The 95% interval of the share that passed."""


class CaseRates(Record):
    """How the test calls of one kind were judged."""

    case: CaseType
    counts: Counts
    interval: tuple[float, float] | None = None
    """The 95% interval of the share that passed."""


class EnvironmentView(Record):
    """One environment with its assessment and its scenarios."""

    summary: EnvironmentSummary
    skeleton: EnvSkeleton
    rates: tuple[ToolRates, ...]
    cases: tuple[CaseRates, ...] = ()
    saved: int = 0
    """Rounds not made because the verdict was settled before."""
    repairs: tuple[Repair, ...] = ()
    examined: tuple[Examined, ...] = ()
    """What was found of each tool without a model; empty where it was not examined so."""
    failing: tuple[TestCase, ...]
    """Test calls judged `fail`, in their order."""
    scenarios: tuple[Scenario, ...]


class StepView(Record):
    """One step, with what each of its calls changed."""

    step: Step
    changes: tuple[tuple[Change, ...], ...] | None = None
    """One tuple per tool call; None when the calls could not be played again."""
    agrees: bool | None = None
    """Whether playing it again led to the recorded state; None when it cannot be told."""


class EpisodeView(Record):
    """An episode step by step."""

    trajectory: Trajectory
    task: str | None
    """None when the scenario is not at hand."""
    steps: tuple[StepView, ...]
    replay: str | None = None
    """Why there are no state changes, in one sentence; None when they are there."""

    @property
    def agrees(self) -> bool | None:
        """Whether every step that can be compared led to the recorded state."""
        told = [step.agrees for step in self.steps if step.agrees is not None]
        return all(told) if told else None


class EpisodeSummary(Record):
    """One line of a run's table."""

    index: int
    id: str
    env_id: str
    scenario_id: str
    sample: int
    steps: int
    calls: int
    stop: StopReason
    rewards: dict[str, float | None]
    solved: bool | None
    error: str | None = None


class RunView(Record):
    """A run with its episodes at a glance."""

    summary: RunSummary
    record: RunRecord | None
    """What `run.json` says; None when it is missing."""
    episodes: tuple[EpisodeSummary, ...]

    @property
    def missing(self) -> int:
        """Episodes that were asked for and are not there, or were cut short by the machinery."""
        cut_short = sum(self.summary.scores.stops.get(stop.value, 0) for stop in UNFINISHED)
        planned = self.record.planned if self.record is not None else 0
        return max(0, planned - len(self.episodes) + cut_short)


def summarize_environment(
    skeleton: EnvSkeleton, assessment: Assessment | None, scenarios: Iterable[Scenario]
) -> EnvironmentSummary:
    """The line of one environment."""
    total = solutions = stale = 0
    for scenario in scenarios:
        total += 1
        solutions += scenario.solution is not None
        stale += scenario.env_digest != skeleton.digest
    queries = sum(tool.effect == "query" for tool in skeleton.tools)
    return EnvironmentSummary(
        id=skeleton.id,
        summary=skeleton.description.summary,
        queries=queries,
        updates=len(skeleton.tools) - queries,
        rules=len(skeleton.rules),
        entities=len(skeleton.entities),
        scenarios=total,
        solutions=solutions,
        test_calls=len(assessment.cases) if assessment else 0,
        pass_rate=assessment.pass_rate if assessment else None,
        not_fail_rate=assessment.not_fail_rate if assessment else None,
        interval=assessment.interval if assessment else None,
        oracle_share=assessment.counts.oracle_share if assessment else None,
        accepted=assessment.accepted if assessment else None,
        stale=assessment is not None and assessment.env_digest != skeleton.digest,
        stale_scenarios=stale,
    )


def view_environment(
    skeleton: EnvSkeleton, assessment: Assessment | None, scenarios: Iterable[Scenario]
) -> EnvironmentView:
    """The whole view of one environment."""
    kept = tuple(scenarios)
    cases = assessment.cases if assessment else ()
    by_tool = assessment.by_tool if assessment else {}
    rates = []
    for tool in skeleton.tools:
        counts = by_tool.get(tool.name, Counts())
        rates.append(
            ToolRates(
                tool=tool.name,
                passed=counts.passed,
                warned=counts.warned,
                failed=counts.failed,
                interval=counts.interval("pass"),
            )
        )
    by_case = assessment.by_case if assessment else {}
    return EnvironmentView(
        summary=summarize_environment(skeleton, assessment, kept),
        skeleton=skeleton,
        rates=tuple(rates) if cases else (),
        cases=tuple(
            CaseRates(case=case, counts=counts, interval=counts.interval("pass")) for case, counts in by_case.items()
        ),
        saved=assessment.saved if assessment else 0,
        repairs=assessment.repairs if assessment else (),
        examined=(assessment.examined if assessment else None) or (),
        failing=tuple(case for case in cases if case.verdict == "fail"),
        scenarios=kept,
    )


def summarize_episode(index: int, trajectory: Trajectory) -> EpisodeSummary:
    """The line of one episode."""
    return EpisodeSummary(
        index=index,
        id=trajectory.id,
        env_id=trajectory.env_id,
        scenario_id=trajectory.scenario_id,
        sample=trajectory.sample,
        steps=len(trajectory.steps),
        calls=sum(len(step.assistant.tool_calls) for step in trajectory.steps),
        stop=trajectory.stop,
        rewards={mode: trajectory.reward(mode) for mode in REWARD_MODES},
        solved=trajectory.verdict.solved if trajectory.verdict is not None else None,
        error=trajectory.error,
    )


def view_run(run_id: str, path: str, record: RunRecord | None, trajectories: Iterable[Trajectory]) -> RunView:
    """A run from its trajectories, streamed: memory holds one line an episode."""
    episodes: list[EpisodeSummary] = []
    agents: dict[str, None] = {}
    models: dict[str, None] = {}

    def noted() -> Iterator[Trajectory]:
        for index, trajectory in enumerate(trajectories):
            episodes.append(summarize_episode(index, trajectory))
            agents[trajectory.agent] = None
            if trajectory.model:
                models[trajectory.model] = None
            yield trajectory

    table = scores(noted())
    return RunView(
        summary=RunSummary(
            id=run_id,
            path=path,
            agents=tuple(agents),
            models=tuple(models),
            scores=table.total,
            note=record.note if record is not None else None,
        ),
        record=record,
        episodes=tuple(episodes),
    )


def size_of_state(state: State) -> dict[str, int | None]:
    """Records in each container of a state; None for a key that holds a single value."""
    return {key: len(value) if isinstance(value, dict | list) else None for key, value in state.items()}
