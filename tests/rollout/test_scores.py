from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.messages import AssistantMessage, ToolMessage
from envscaler.rollout import scores
from envscaler.skeleton import ModelUse
from envscaler.trajectory import CheckResult, Step, StopReason, Trajectory, Verdict


def trajectory(
    stop: StopReason = StopReason.FINISHED,
    *passed: bool,
    env_id: str = "desk",
    sample: int = 0,
    cost: float | None = 0.5,
    errors: int = 0,
) -> Trajectory:
    judged = stop not in (StopReason.INFRASTRUCTURE, StopReason.BUDGET)
    checks = tuple(CheckResult(description="?", kind="goal", passed=ok, held_at_reset=False) for ok in passed)
    seen = tuple(
        ToolMessage(content="x", tool_call_id=str(number), name="t", is_error=number < errors) for number in range(2)
    )
    return Trajectory(
        id=f"{env_id}.{sample}",
        env_id=env_id,
        scenario_id="s",
        env_digest="",
        scenario_digest="",
        agent="model",
        model="m",
        sample=sample,
        stop=stop,
        verdict=Verdict(checks=checks) if judged else None,
        steps=(Step(turn=0, assistant=AssistantMessage(), observations=seen),),
        use={"agent_turn": ModelUse(calls=1, input_tokens=7, output_tokens=3, cost_usd=cost)},
    )


def test_infrastructure_and_budget_are_counted_and_left_out_of_every_mean() -> None:
    table = scores(
        [
            trajectory(StopReason.FINISHED, True, True),
            trajectory(StopReason.STEP_LIMIT, True, False),
            trajectory(StopReason.INFRASTRUCTURE),
            trajectory(StopReason.BUDGET),
        ]
    ).total
    assert table.episodes == 4
    assert table.judged == 2
    assert table.stops == {"budget": 1, "finished": 1, "infrastructure": 1, "step_limit": 1}
    assert table.rewards["fraction"].value == pytest.approx(0.75)
    assert table.solved_rate == 0.5
    assert table.mean_steps == 1.0


def test_nothing_judged_has_no_mean_instead_of_zero() -> None:
    table = scores([trajectory(StopReason.INFRASTRUCTURE), trajectory(StopReason.FINISHED)]).total
    assert table.rewards["fraction"].value is None
    assert table.solved_rate is None
    assert scores([]).total.mean_steps is None


def test_unknown_cost_of_one_episode_makes_the_sum_unknown() -> None:
    assert scores([trajectory(cost=0.5), trajectory(cost=0.25)]).total.use.cost_usd == 0.75
    assert scores([trajectory(cost=0.5), trajectory(cost=None)]).total.use.cost_usd is None


def test_invalid_calls_are_counted() -> None:
    table = scores([trajectory(errors=1), trajectory()]).total
    assert (table.calls, table.invalid_calls, table.invalid_call_rate) == (4, 1, 0.25)


EPISODES = st.lists(
    st.builds(
        lambda stop, passed, env_id: trajectory(stop, *passed, env_id=env_id, cost=0.1),
        st.sampled_from(StopReason),
        st.lists(st.booleans(), max_size=7),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
)


@given(EPISODES, st.randoms())
def test_scores_do_not_depend_on_the_order_of_episodes(episodes: list[Trajectory], random: object) -> None:
    shuffled = list(episodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert scores(shuffled) == scores(episodes)


@given(EPISODES)
def test_environments_add_up_to_the_total(episodes: list[Trajectory]) -> None:
    table = scores(episodes)
    assert sum(part.episodes for part in table.environments.values()) == table.total.episodes
    assert sum(part.judged for part in table.environments.values()) == table.total.judged
    for mean in table.total.rewards.values():
        assert mean.value is None or 0.0 <= mean.value <= 1.0
