from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from env.lending import EFFECTS, SOURCE, STATE, scenario, skeleton
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.env import ToolEnv
from envscaler.errors import ProgramError, UsageError
from envscaler.messages import ToolCall, as_carried_out
from envscaler.sandbox import BlockingSandbox
from envscaler.scenario import Check
from envscaler.skeleton import EnvSkeleton, Origin

LEND = ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"})


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BlockingSandbox]:
    with BlockingSandbox() as opened:
        yield opened


def make(sandbox: BlockingSandbox, **options: Any) -> ToolEnv:
    environment = skeleton()
    return ToolEnv(environment, scenario(environment), sandbox, **options)


def test_an_episode_goes_from_task_to_reward(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        observation, info = env.reset()
        assert observation == "Lend Emma to Ann."
        assert "A book is lent only" in info["doc"]
        assert [tool["function"]["name"] for tool in info["tools"]] == list(EFFECTS)
        observation, reward, terminated, truncated, info = env.step(LEND)
        assert json.loads(observation) == {"success": True, "data": {"loan_id": "L1"}}
        assert (reward, terminated, truncated) == (0.0, False, False)
        _, reward, terminated, truncated, info = env.step("Done.")
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert info["verdict"].solved


def test_doing_nothing_earns_the_checks_that_hold_at_reset_and_gains_nothing(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        env.reset()
        verdict = env.verify()
        assert [check.held_at_reset for check in verdict.checks] == [False, False, True]
        assert verdict.reward("fraction") == pytest.approx(1 / 3)
        assert verdict.reward("gained") == 0.0


def test_reward_mode_decides_the_reward_of_the_last_step(sandbox: BlockingSandbox) -> None:
    with make(sandbox, reward="gained") as env:
        env.reset()
        env.step(LEND)
        env.step(ToolCall(name="lend_book", arguments={"book_id": "B2", "member": "Ann"}))
        assert env.step("Done.")[1] == 0.0  # a guard was broken


def test_last_step_allowed_truncates_and_is_judged(sandbox: BlockingSandbox) -> None:
    with make(sandbox, max_steps=1) as env:
        env.reset()
        _, reward, terminated, truncated, info = env.step(LEND)
        assert (reward, terminated, truncated) == (1.0, False, True)
        assert info["verdict"].solved
        with pytest.raises(UsageError, match="over"):
            env.step("Done.")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("lend_bok", {}, "did you mean lend_book?"),
        ("__init__", {}, "no tool named"),
        ("lend_book", {"book_id": "B1"}, "member"),
        ("lend_book", {"book_id": "B1", "membr": "Ann"}, "did you mean `member`?"),
        ("lend_book", {"book_id": 1, "member": "Ann"}, "must be a string"),
        ("return_book", {"loan_id": "L9"}, "KeyError"),
    ],
)
def test_wrong_call_is_a_readable_observation_that_ends_and_changes_nothing(
    sandbox: BlockingSandbox, name: str, arguments: dict[str, Any], says: str
) -> None:
    with make(sandbox) as env:
        env.reset()
        before = env.digest
        observation, reward, terminated, truncated, info = env.step(ToolCall(name=name, arguments=arguments))
        assert info["is_error"]
        assert observation.startswith("Error: ")
        assert says in observation
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert env.digest == before
        assert env.step("Done.")[2]


def test_malformed_arguments_are_an_observation(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        env.reset()
        message = env.carry_out(ToolCall(name="lend_book", malformed="{book", id="c7"))
        assert message.is_error
        assert message.tool_call_id == "c7"
        assert "{book" in message.content


def test_failure_that_a_tool_reports_is_no_error(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        env.reset()
        message = env.call("lend_book", {"book_id": "B9", "member": "Ann"})
        assert not message.is_error
        assert json.loads(message.content) == {"success": False, "error": "no book B9"}


def test_tool_that_runs_forever_is_an_observation(sandbox: BlockingSandbox) -> None:
    endless = (
        SOURCE
        + '\n    def count(self) -> Dict[str, Any]:\n        """Count."""\n        while True:\n            pass\n'
    )
    environment = skeleton(endless, {**EFFECTS, "count": "query"})
    with ToolEnv(environment, scenario(environment), sandbox) as env:
        env.reset()
        message = env.call("count", {})
        assert message.is_error
        assert "did not finish in time" in message.content
        assert not env.call("find_books", {}).is_error


def test_reset_forgets_everything_of_the_episode_before(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        _, info = env.reset()
        env.step(LEND)
        assert env.state() != STATE
        _, again = env.reset()
        assert env.state() == STATE
        assert again["state_digest"] == info["state_digest"]
        assert again["steps"] == 0


def test_state_is_a_copy(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        env.reset()
        env.state()["books"].clear()
        assert env.state() == STATE


def test_restore_undoes_steps_and_counts(sandbox: BlockingSandbox) -> None:
    with make(sandbox, max_steps=2) as env:
        env.reset()
        moment = env.snapshot()
        env.step(LEND)
        env.step(LEND)
        env.restore(moment)
        assert env.state() == STATE
        assert not env.step(LEND)[3]


def test_fork_goes_its_own_way(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env:
        env.reset()
        with env.fork() as twin:
            twin.step(LEND)
            assert twin.verify().solved
        assert env.state() == STATE
        assert not env.verify().solved


def test_closing_twice_is_no_error_and_the_sandbox_stays_open(sandbox: BlockingSandbox) -> None:
    env = make(sandbox)
    env.reset()
    env.close()
    env.close()
    with pytest.raises(UsageError, match="reset"):
        env.state()
    with make(sandbox) as other:
        other.reset()


def test_step_before_reset_says_what_to_do(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env, pytest.raises(UsageError, match=r"reset\(\)"):
        env.step("Done.")


def test_program_that_does_not_load_leaves_no_half_open_episode(sandbox: BlockingSandbox) -> None:
    broken = skeleton().model_copy(update={"source": "class LendingDesk:\n    x = undefined_name\n"})
    with ToolEnv(broken, scenario(broken), sandbox) as env:
        with pytest.raises(ProgramError, match="undefined_name"):
            env.reset()
        with pytest.raises(UsageError, match="reset"):
            env.state()


def test_seed_of_a_reset_holds_until_another_is_given(sandbox: BlockingSandbox) -> None:
    with make(sandbox, seed=5) as env:
        assert env.reset()[1]["seed"] == 5
        assert env.reset(seed=9)[1]["seed"] == 9
        assert env.reset()[1]["seed"] == 9


def test_environment_without_a_sandbox_brings_its_own() -> None:
    environment = skeleton()
    with ToolEnv(environment, scenario(environment)) as env:
        env.reset()
        assert not env.step(LEND)[4]["is_error"]


def test_works_inside_a_running_loop(sandbox: BlockingSandbox) -> None:
    async def play() -> float | None:
        with make(sandbox) as env:
            env.reset()
            env.step(LEND)
            return env.step("Done.")[1]

    assert asyncio.run(play()) == 1.0


def test_scenario_without_checks_has_no_reward_instead_of_zero(sandbox: BlockingSandbox) -> None:
    environment = skeleton()
    with ToolEnv(environment, scenario(environment, checks=()), sandbox) as env:
        env.reset()
        assert env.step("Done.")[1] is None


def test_check_that_raises_fails_and_says_why(sandbox: BlockingSandbox) -> None:
    environment = skeleton()
    broken = Check(description="Broken?", source="def check_func(final_state):\n    return final_state['nope'] > 1\n")
    with ToolEnv(environment, scenario(environment, checks=(broken,)), sandbox) as env:
        env.reset()
        (result,) = env.verify().checks
        assert not result.passed
        assert result.held_at_reset is None
        assert result.error is not None
        assert "KeyError" in result.error


def test_tools_that_a_scenario_hides_do_not_exist_for_the_agent(sandbox: BlockingSandbox) -> None:
    environment = skeleton()
    with ToolEnv(environment, scenario(environment, tools=("find_books",)), sandbox) as env:
        _, info = env.reset()
        assert len(info["tools"]) == 1
        assert env.call("lend_book", LEND.arguments).is_error


def test_imported_environment_is_held_to_its_signature_not_to_its_published_schema(sandbox: BlockingSandbox) -> None:
    own = skeleton()
    wrong = tuple(
        tool.model_copy(update={"parameters": {"type": "object", "properties": {"nonsense": {"type": "integer"}}}})
        for tool in own.tools
    )
    imported = skeleton(tools=wrong, origin=Origin(source="release"), released={})
    with ToolEnv(imported, scenario(imported), sandbox, observations="released") as env:
        env.reset()
        message = env.carry_out(LEND)
        assert message.content == "{'success': True, 'data': {'loan_id': 'L1'}}"
        assert env.call("lend_book", {"nonsense": 1}).is_error


def test_scenario_of_another_environment_is_refused(sandbox: BlockingSandbox) -> None:
    environment = skeleton()
    with pytest.raises(UsageError, match="belongs to"):
        ToolEnv(environment, scenario(environment, env_id="other"), sandbox)


ACTIONS = st.lists(
    st.one_of(
        st.builds(
            lambda book, member: ToolCall(name="lend_book", arguments={"book_id": book, "member": member}),
            st.sampled_from(["B1", "B2", "B3"]),
            st.sampled_from(["Ann", "Bob"]),
        ),
        st.builds(
            lambda loan: ToolCall(name="return_book", arguments={"loan_id": loan}), st.sampled_from(["L1", "L2"])
        ),
        st.just(ToolCall(name="find_books")),
        st.just(ToolCall(name="nonsense")),
    ),
    max_size=6,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_same_calls_give_same_observations_digests_and_rewards_in_range(
    sandbox: BlockingSandbox, actions: list[ToolCall]
) -> None:
    trails = []
    for _ in range(2):
        with make(sandbox) as env:
            env.reset()
            trail = []
            for action in actions:
                observation, _, _, _, info = env.step(action)
                trail.append((observation, info["state_digest"]))
            verdict = env.verify()
            trails.append((trail, verdict))
            for mode in ("fraction", "gained", "gained_soft", "solved"):
                reward = verdict.reward(mode)
                assert reward is not None
                assert 0.0 <= reward <= 1.0
    assert trails[0] == trails[1]


def test_arguments_are_put_into_the_types_asked_for_only_where_that_is_wanted() -> None:
    source = SOURCE.replace("def return_book(self, loan_id: str)", "def renew(self, loan_id: str, days: int)")
    desk = skeleton(source, {"find_books": "query", "lend_book": "update", "renew": "update"})
    call = ToolCall(name="renew", arguments={"loan_id": 7, "days": "3"})
    with ToolEnv(desk, scenario(desk)) as strict, ToolEnv(desk, scenario(desk), coerce=True) as lenient:
        strict.reset()
        refused = strict.carry_out(call)
        assert refused.is_error
        assert refused.arguments is None
        assert "`days` must be an integer" in refused.content
        lenient.reset()
        observation = lenient.carry_out(call)
        assert observation.arguments == {"loan_id": "7", "days": 3}
        assert "was not called" not in observation.content
        assert lenient.fork().carry_out(call).arguments is not None
        assert lenient.call("renew", {"loan_id": "7", "days": "soon"}).is_error
        replayed = strict.carry_out(as_carried_out(call, observation))
        assert (replayed.content, replayed.is_error) == (observation.content, observation.is_error)


@pytest.mark.parametrize("coerce", [False, True])
@pytest.mark.parametrize(
    ("parameters", "written", "called"),
    [
        ({"properties": {"title": {"$ref": "#/properties/title"}}}, "Emma", True),
        ({"properties": {"title": {"type": "string"}}, "required": 5}, "Emma", True),
        ({"properties": [1], "additionalProperties": True}, "Emma", True),
        ({"properties": {"title": {"type": "number"}}}, "1e-9999999999999999999999", False),
        ({"properties": {"title": {"type": "array"}}}, "[NaN]", False),
    ],
)
def test_no_schema_and_no_arguments_end_an_episode(
    parameters: dict[str, Any], written: str, called: bool, coerce: bool
) -> None:
    desk = skeleton()
    tools = tuple(
        tool.model_copy(update={"parameters": parameters}) if tool.name == "find_books" else tool for tool in desk.tools
    )
    desk = EnvSkeleton(**{**{name: getattr(desk, name) for name in EnvSkeleton.model_fields}, "tools": tools})
    with ToolEnv(desk, scenario(desk), coerce=coerce) as env:
        env.reset()
        observation = env.call("find_books", {"title": written})
        assert observation.is_error is not called
        assert observation.arguments is None
        assert not env.call("find_books", {}).is_error


def test_an_imported_tool_is_held_to_names_only_and_its_arguments_still_take_the_types_of_the_method() -> None:
    source = SOURCE.replace("def return_book(self, loan_id: str)", "def renew(self, loan_id: str, days: int)")
    desk = skeleton(source, {"find_books": "query", "lend_book": "update", "renew": "update"})
    published = tuple(tool.model_copy(update={"parameters": {"type": "object"}}) for tool in desk.tools)
    changes = {"tools": published, "origin": desk.origin.model_copy(update={"source": "environments.json"})}
    desk = EnvSkeleton(**{**{name: getattr(desk, name) for name in EnvSkeleton.model_fields}, **changes})
    with ToolEnv(desk, scenario(desk), coerce=True) as env:
        env.reset()
        assert env.call("renew", {"loan_id": "7", "days": "3"}).arguments == {"loan_id": "7", "days": 3}
        kept = env.call("renew", {"loan_id": "7", "days": "soon"})
        assert kept.arguments is None
        assert "was not called" not in kept.content
        assert "unknown argument `day`" in env.call("renew", {"loan_id": "7", "day": "3"}).content


@pytest.mark.parametrize(
    ("options", "said"), [({"reward": "frac"}, "fraction"), ({"observations": "zz"}, "json")], ids=["reward", "style"]
)
def test_a_name_that_there_is_not_is_refused(sandbox: BlockingSandbox, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make(sandbox, **options)


def test_a_snapshot_of_another_scenario_is_refused(sandbox: BlockingSandbox) -> None:
    with make(sandbox) as env, ToolEnv(skeleton(), scenario(skeleton(), 2), sandbox) as other:
        env.reset()
        other.reset()
        before = other.state()
        with pytest.raises(UsageError, match="snapshot is of"):
            other.restore(env.snapshot())
        assert other.state() == before


@pytest.mark.parametrize("arguments", [None, "{}", [1], {1: 2}])
def test_arguments_that_are_no_object_are_an_observation(sandbox: BlockingSandbox, arguments: Any) -> None:
    with make(sandbox) as env:
        env.reset()
        observation = env.call("lend_book", arguments)
        assert observation.is_error
        assert "not a JSON object" in observation.content


def test_an_isolation_that_there_is_not_is_refused() -> None:
    for isolation in ("requird", "in_process", None):
        with pytest.raises(UsageError, match="in-process"):
            BlockingSandbox(isolation=isolation).__enter__()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda env: env.step(None), "an action is"),
        (lambda env: env.step({"name": "lend_book"}), "an action is"),
        (lambda env: env.restore(None), "restore takes"),
        (lambda env: env.carry_out("lend_book"), "a call to carry out is"),
        (lambda env: env.reset(seed="x"), "seed is an integer"),
        (lambda env: env.reset(seed=True), "seed is an integer"),
        (lambda env: env.reset(seed=1.5), "seed is an integer"),
        (lambda env: env.reset(seed=2**70), "integer of 64 bits"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_a_sentence(
    sandbox: BlockingSandbox, act: Callable[[Any], object], said: str
) -> None:
    with make(sandbox) as env:
        env.reset()
        with pytest.raises(UsageError, match=said):
            act(env)
        assert env.state()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": "x"}, "seed is an integer"),
        ({"seed": -(2**63) - 1}, "integer of 64 bits"),
        ({"max_steps": 0}, "max_steps is 0; give a number from 1 on"),
        ({"max_steps": "3"}, "max_steps is an integer"),
        ({"coerce": "no"}, "coerce is True or False"),
    ],
)
def test_options_of_another_kind_are_refused_with_a_sentence(
    sandbox: BlockingSandbox, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        make(sandbox, **options)


def test_an_integer_of_numpy_is_a_seed(sandbox: BlockingSandbox) -> None:
    numpy = pytest.importorskip("numpy")
    with make(sandbox) as env:
        assert env.reset(seed=numpy.int64(7))[1]["seed"] == 7
