"""Scores of trajectories: rewards in each mode, pass@k and pass^k with intervals, floors, steps, calls, slips, tokens.

In all and by environment, difficulty and stop reason. Episodes that the machinery cut short, and those that are
masked, are counted and left out of every mean. Floors by other agents are `floors`' business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from envscaler.record import Record
from envscaler.rollout.estimates import Mean, flattened, mean_of, pass_all, pass_at, powers_of_two
from envscaler.rollout.results import REWARD_MODES, UNFINISHED, Place, Result, Rewards, result_of
from envscaler.skeleton import ModelUse
from envscaler.trajectory import RewardMode, Trajectory

__all__ = ["REWARD_MODES", "UNFINISHED", "Mean", "ScoreTable", "Scores", "score_table", "scores"]

NO_DIFFICULTY = "unknown"
"""Under which scenarios stand whose difficulty is not recorded."""


class Scores(Record):
    """What a set of trajectories is worth."""

    episodes: int = 0
    """All, the unfinished and the masked ones included."""
    judged: int = 0
    """Those that count and have a verdict over at least one check."""
    masked: int = 0
    """Those that came to their end and count for nothing, as their simulated user spoiled them."""
    scenarios: int = 0
    """Scenarios of the judged ones."""
    stops: dict[str, int] = {}
    """Number of episodes by stop reason."""
    rewards: dict[RewardMode, Mean] = {}
    solved_rate: float | None = None
    """Share of episodes in which every check holds, as a mean over scenarios."""
    pass_at: dict[int, Mean] = {}
    """pass@k: the chance that one of k episodes of a scenario is solved, over scenarios with at least k of them."""
    pass_all: dict[int, Mean] = {}
    """pass^k: the chance that all of k episodes are."""
    idle: dict[RewardMode, Mean] = {}
    """What doing nothing earns in the same scenarios, by what held at their reset."""
    mean_steps: float | None = None
    """Of the episodes that count."""
    calls: int = 0
    """Tool calls of the episodes that count."""
    invalid_calls: int = 0
    """Those of them that were refused or raised."""
    slips: dict[str, int] = {}
    """What agents wrote against the form asked for, by kind, in the episodes that count."""
    user_slips: dict[str, int] = {}
    """What simulated users did that they should not, by kind, in all episodes that came to their end."""
    use: ModelUse = ModelUse()
    """Tokens and cost of the replies used; a cost of None means unknown."""

    @property
    def invalid_call_rate(self) -> float | None:
        """Share of tool calls that were refused or raised; None without calls."""
        return self.invalid_calls / self.calls if self.calls else None


class ScoreTable(Record):
    """Scores together and by environment, difficulty and stop reason."""

    total: Scores = Scores()
    environments: dict[str, Scores] = {}
    difficulties: dict[str, Scores] = {}
    """By level of difficulty, the easy ones first; empty where nobody asked for it."""
    stops: dict[str, Scores] = {}


def scores(trajectories: Iterable[Trajectory], levels: Mapping[Place, str] | None = None) -> ScoreTable:
    """Score a stream of trajectories, in any order.

    Args:
        levels: how difficult each scenario is; None: nothing is told by difficulty.
    """
    return score_table(map(result_of, trajectories), levels)


def score_table(results: Iterable[Result], levels: Mapping[Place, str] | None = None) -> ScoreTable:
    """As `scores`, of what was read off the trajectories before."""
    every = list(results)
    by_env: dict[str, list[Result]] = {}
    by_level: dict[str, list[Result]] = {}
    by_stop: dict[str, list[Result]] = {}
    for result in every:
        by_env.setdefault(result.env_id, []).append(result)
        by_stop.setdefault(result.stop.value, []).append(result)
        if levels is not None:
            by_level.setdefault(levels.get(result.place, NO_DIFFICULTY), []).append(result)
    order = ("easy", "medium", "hard", NO_DIFFICULTY)
    return ScoreTable(
        total=_scores(every),
        environments={env_id: _scores(own) for env_id, own in sorted(by_env.items())},
        difficulties={level: _scores(by_level[level]) for level in order if level in by_level},
        stops={stop: _scores(own) for stop, own in sorted(by_stop.items())},
    )


def _scores(results: Sequence[Result]) -> Scores:
    counted = [result for result in results if result.counts]
    judged = [result for result in counted if result.rewards["fraction"] is not None]
    rewards = {mode: _mean(mode, judged, [result.rewards for result in judged]) for mode in REWARD_MODES}
    at_least_one, every_one = _pass(judged)
    ended = [result for result in results if result.stop not in UNFINISHED]
    return Scores(
        episodes=len(results),
        judged=len(judged),
        masked=sum(result.masked for result in ended),
        scenarios=rewards["fraction"].scenarios,
        stops=dict(sorted(Counter(result.stop.value for result in results).items())),
        rewards=rewards,
        solved_rate=rewards["solved"].value,
        pass_at=at_least_one,
        pass_all=every_one,
        idle={mode: _mean(mode, judged, [result.idle for result in judged]) for mode in REWARD_MODES},
        mean_steps=sum(result.steps for result in counted) / len(counted) if counted else None,
        calls=sum(result.calls for result in counted),
        invalid_calls=sum(result.invalid_calls for result in counted),
        slips=_kinds(result.slips for result in counted),
        user_slips=_kinds(result.user_slips for result in ended),
        use=_total([part for result in results for part in result.use]),
    )


def _mean(mode: RewardMode, results: Sequence[Result], rewards: Sequence[Rewards]) -> Mean:
    values: dict[str, dict[str, list[float]]] = {}
    count = 0
    for result, one in zip(results, rewards, strict=True):
        reward = one.get(mode)
        if reward is not None:
            values.setdefault(result.env_id, {}).setdefault(_version(result), []).append(reward)
            count += 1
    return mean_of(flattened(values), count)


def _pass(judged: Sequence[Result]) -> tuple[dict[int, Mean], dict[int, Mean]]:
    """pass@k and pass^k by k, over the scenarios with at least k judged episodes."""
    solved: dict[str, dict[str, list[bool]]] = {}
    for result in judged:
        solved.setdefault(result.env_id, {}).setdefault(_version(result), []).append(bool(result.rewards["solved"]))
    most = max((len(each) for inner in solved.values() for each in inner.values()), default=0)
    out: tuple[dict[int, Mean], dict[int, Mean]] = ({}, {})
    for k in powers_of_two(most):
        able = {
            env_id: {name: each for name, each in inner.items() if len(each) >= k} for env_id, inner in solved.items()
        }
        episodes = sum(len(each) for inner in able.values() for each in inner.values())
        for means, estimate in zip(out, (pass_at, pass_all), strict=True):
            values = {
                env_id: {name: estimate(len(each), sum(each), k) for name, each in inner.items()}
                for env_id, inner in able.items()
            }
            means[k] = mean_of(values, episodes)
    return out


def _version(result: Result) -> str:
    """What tells scenarios of one environment apart: an edited one is another one."""
    return f"{result.scenario_id}/{result.scenario_digest}"


def _kinds(slips: Iterable[Sequence[str]]) -> dict[str, int]:
    return dict(sorted(Counter(kind for kinds in slips for kind in kinds).items()))


def _total(parts: list[ModelUse]) -> ModelUse:
    parts = [part for part in parts if part.calls]
    costs = [part.cost_usd for part in parts]
    return ModelUse(
        calls=sum(part.calls for part in parts),
        input_tokens=sum(part.input_tokens for part in parts),
        cached_input_tokens=sum(part.cached_input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cost_usd=None if None in costs else fsum(cost for cost in costs if cost is not None),
    )
