from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout.episodes import episode, outcomes

from envscaler.messages import AssistantMessage, ToolMessage
from envscaler.rollout import scores
from envscaler.rollout.scores import ScoreTable, score_table
from envscaler.skeleton import ModelUse
from envscaler.trajectory import (
    CheckResult,
    Slip,
    Step,
    StopReason,
    Trajectory,
    UserRecord,
    UserUtterance,
    Verdict,
)


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


@settings(deadline=None)
@given(EPISODES, st.randoms())
def test_scores_do_not_depend_on_the_order_of_episodes(episodes: list[Trajectory], random: object) -> None:
    shuffled = list(episodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert scores(shuffled) == scores(episodes)


@settings(deadline=None)
@given(EPISODES)
def test_environments_add_up_to_the_total(episodes: list[Trajectory]) -> None:
    table = scores(episodes)
    assert sum(part.episodes for part in table.environments.values()) == table.total.episodes
    assert sum(part.judged for part in table.environments.values()) == table.total.judged
    for mean in table.total.rewards.values():
        assert mean.value is None or 0.0 <= mean.value <= 1.0


def test_each_scenario_counts_the_same_however_often_it_was_played() -> None:
    table = score_table(outcomes({"a": {"1": "++++", "2": "-"}})).total
    assert (table.solved_rate, table.judged, table.scenarios) == (0.5, 5, 2)
    assert (table.rewards["solved"].count, table.rewards["solved"].scenarios) == (5, 2)


def test_pass_at_k_is_over_the_scenarios_with_k_judged_episodes() -> None:
    table = score_table(outcomes({"a": {"1": "+--!", "2": "+!!!"}, "b": {"1": "++++", "2": "----"}})).total
    assert sorted(table.pass_at) == sorted(table.pass_all) == [1, 2, 4]
    assert table.pass_at[1].scenarios == 4
    assert table.pass_at[1].value == pytest.approx((1 / 3 + 1 + 1 + 0) / 4)
    assert table.pass_at[1].value == table.pass_all[1].value == table.solved_rate
    assert table.pass_at[2].scenarios == 3
    assert table.pass_at[2].value == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert table.pass_all[2].value == pytest.approx((0 + 1 + 0) / 3)
    assert (table.pass_at[4].scenarios, table.pass_at[4].count, table.pass_at[4].value) == (2, 8, 0.5)


def test_masked_episodes_are_counted_apart_and_in_no_mean() -> None:
    table = scores([episode("a", "1", True), episode("a", "1", False, sample=1, masked="the user gave it away")]).total
    assert (table.episodes, table.judged, table.masked, table.solved_rate) == (2, 1, 1, 1.0)
    assert table.stops == {"finished": 2}
    assert scores([episode("a", "1", stop=StopReason.BUDGET, masked="?")]).total.masked == 0


def test_what_doing_nothing_earns_is_read_off_the_reset() -> None:
    checks = (
        CheckResult(description="", kind="goal", passed=True, held_at_reset=False),
        CheckResult(description="", kind="guard", passed=False, held_at_reset=True),
    )
    table = scores([episode("a", "1", verdict=Verdict(checks=checks))]).total
    assert {mode: mean.value for mode, mean in table.idle.items()} == {
        "fraction": 0.5,
        "gained": 0.0,
        "gained_soft": 0.0,
        "solved": 0.0,
    }
    untried = scores([episode("a", "1", True, held=None)]).total
    assert untried.idle["fraction"].value is None


def test_slips_are_counted_by_kind() -> None:
    step = Step(turn=0, assistant=AssistantMessage(), slips=(Slip(kind="unclosed_tag"), Slip(kind="fence")))
    user = UserRecord(model="u", utterances=(UserUtterance(text="", slips=(Slip(kind="leak"),)),))
    table = scores(
        [
            episode("a", "1", True, steps=(step, step)),
            episode("a", "1", True, sample=1, steps=(step,), user=user, masked="leak"),
        ]
    ).total
    assert table.slips == {"fence": 2, "unclosed_tag": 2}
    assert table.user_slips == {"leak": 1}


def test_scores_are_told_by_difficulty_and_stop_reason() -> None:
    results = outcomes({"a": {"1": "+", "2": "-", "3": "!"}})
    table = score_table(results, {("a", "1"): "hard", ("a", "2"): "easy"})
    assert list(table.difficulties) == ["easy", "hard", "unknown"]
    assert table.difficulties["hard"].solved_rate == 1.0
    assert {stop: part.episodes for stop, part in table.stops.items()} == {"finished": 2, "infrastructure": 1}
    assert table.stops["infrastructure"].solved_rate is None
    assert score_table(results).difficulties == {}


@settings(deadline=None)
@given(EPISODES)
def test_a_table_is_read_back_as_it_was_written(episodes: list[Trajectory]) -> None:
    table = scores(episodes)
    assert ScoreTable.model_validate_json(table.model_dump_json()) == table
