from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapters.desk import DESKS, MEMBERS, as_text, lend, solution_calls, untagged, write_library

from envscaler.adapters.random_reply import random_reply
from envscaler.adapters.sources import LIBRARIES, named_libraries
from envscaler.adapters.text import TextEnv
from envscaler.agents import SystemPrompts
from envscaler.agents.dialects import dialect_of
from envscaler.errors import SandboxError, UsageError
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.store import LibraryStore


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_library(tmp_path_factory.mktemp("adapters") / "desk")


@pytest.fixture
def desk(folder: Path) -> Iterator[TextEnv]:
    desk = TextEnv(folder, "lending-desk", reward="gained")
    yield desk
    desk.close()


def play_solution(env: TextEnv) -> Any:
    list(solution_calls(env.env.scenario, lambda call: untagged(env.step(as_text(call))[0])))
    return env.step("Done.")


def test_recorded_solution_earns_the_whole_reward_and_nothing_the_floor(desk: TextEnv) -> None:
    for seed in range(len(MEMBERS)):
        desk.reset(seed)
        _, reward, terminated, truncated, info = play_solution(desk)
        assert (reward, terminated, truncated, info["solved"]) == (1.0, True, False, True)
        desk.reset(seed)
        assert desk.step("I have nothing to do.")[1:4] == (0.0, True, False)


def test_first_observation_tells_of_tools_and_task_with_the_prompt_of_rollouts(desk: TextEnv) -> None:
    observation, info = desk.reset(0)
    prompt = SystemPrompts().text(desk.env.skeleton, "non-conversation")
    assert observation.startswith(prompt)
    assert observation.endswith("Lend Emma to Ann.")
    assert '"lend_book"' in observation
    assert (info["system_prompt"], info["task"]) == (prompt, "Lend Emma to Ann.")
    assert [tool["function"]["name"] for tool in info["tools"]] == ["find_books", "lend_book", "return_book"]


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>\n{"name": "burn_book", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "lend_book", "arguments": {"book_id": "B1"}}\n</tool_call>',
        '<tool_call>\n{"name": "return_book", "arguments": {"loan_id": "L9"}}\n</tool_call>',
        '<tool_call>\n{"name": "lend_book", "arguments": {"book',
        "<tool_call>\nlend it\n</tool_call>",
        "",
    ],
)
def test_errors_are_texts_and_end_nothing(desk: TextEnv, reply: str) -> None:
    _, before = desk.reset(0)
    observation, reward, terminated, truncated, info = desk.step(reply)
    assert untagged(observation).startswith("Error: ")
    assert (reward, terminated, truncated, info["is_error"]) == (0.0, False, False, True)
    assert info["state_digest"] == before["state_digest"]
    assert play_solution(desk)[1] == 1.0


def test_slips_of_form_are_put_right_or_answered_or_end_the_episode_as_in_rollouts(folder: Path) -> None:
    unclosed = as_text(lend("Ann")).removesuffix("\n</tool_call>")
    outcomes = []
    for on_slip in ("repair", "error", "stop"):
        env = TextEnv(folder, "lending-desk", on_slip=on_slip)
        env.reset(0)
        _, _, terminated, truncated, info = env.step(unclosed)
        assert info["slips"] == ["unclosed_tag"]
        outcomes.append((info["is_error"], terminated, truncated, info["stop_reason"]))
    assert outcomes == [
        (False, False, False, None),
        (True, False, False, None),
        (False, False, True, "invalid_action"),
    ]


def test_several_calls_of_one_reply_are_carried_out_in_order_and_all_answered(desk: TextEnv) -> None:
    desk.reset(0)
    back = ToolCall(name="return_book", arguments={"loan_id": "L1"})
    observation, *_ = desk.step("\n".join(as_text(call) for call in (lend("Bob"), back, lend("Ann"))))
    assert observation.count("<tool_response>") == 3
    assert desk.step("Done.")[1] == 1.0


def test_message_with_tool_calls_is_taken_as_well(desk: TextEnv) -> None:
    desk.reset(0)
    function = {"name": "lend_book", "arguments": json.dumps(lend("Ann").arguments)}
    broken = {"name": "lend_book", "arguments": '{"book_id'}
    desk.step({"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": broken}]})
    desk.step({"role": "assistant", "tool_calls": [{"id": "b", "type": "function", "function": function}]})
    assert desk.step({"role": "assistant", "content": "Done."})[1:4] == (1.0, True, False)


def test_conversation_form_holds_every_message_as_it_was_written(folder: Path) -> None:
    env = TextEnv(folder, "lending-desk", observations="messages")
    messages, info = env.reset(0)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "lend_book" not in messages[0]["content"]  # the chat template tells of info["tools"]
    assert info["tools"]
    reply = f"Let me see.\n{as_text(lend('Ann'))}"
    messages, *_ = env.step(reply)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[2]["content"] == reply
    assert json.loads(messages[3]["content"])["success"] is True
    env.close()


@pytest.mark.parametrize("dialect", ["hermes", "qwen3.5", "llama", "mistral", "react", "schema"])
def test_solution_written_in_any_dialect_is_played(folder: Path, dialect: Any) -> None:
    env = TextEnv(folder, "lending-desk", dialect=dialect, reward="solved")
    env.reset(1)
    words = dialect_of(dialect)
    tools = {tool.name: tool for tool in env.env.tools}
    env.step(words.calls_text((lend("Bob"),), tools))
    last = words.render((AssistantMessage(content="Done."),), env.env.tools)[-1].content
    assert env.step(last)[1:4] == (1.0, True, False)
    env.close()


def test_seed_chooses_the_scenario_and_the_next_reset_goes_on(folder: Path) -> None:
    env = TextEnv(folder, list(DESKS))
    seen = [env.reset(seed)[1]["scenario_id"] for seed in range(8)]
    assert len(set(seen)) == 8
    assert [env.reset(seed)[1]["scenario_id"] for seed in (3, 3, 11)] == [seen[3]] * 3
    assert env.reset()[1]["scenario_id"] == seen[12 % 8]
    assert TextEnv(folder, list(DESKS), seed=5).reset()[1]["scenario_id"] == seen[5]


def test_options_and_settings_choose_the_scenario(folder: Path) -> None:
    env = TextEnv(folder)
    chosen = env.reset(0, {"environment": "other-desk", "scenario": 2})[1]
    assert chosen["scenario_id"] == "other-desk-s002"
    assert env.reset(0, {"environment": "other-desk"})[1]["scenario_id"] == "other-desk-s000"
    fixed = TextEnv(folder, "lending-desk", scenario="lending-desk-s003")
    assert {fixed.reset(seed)[1]["scenario_id"] for seed in (0, 1, 7)} == {"lending-desk-s003"}
    assert fixed.reset(7)[1]["seed"] == 7
    with pytest.raises(UsageError, match="none of the environments"):
        env.reset(0, {"environment": "nowhere"})
    with pytest.raises(UsageError, match="single environment"):
        TextEnv(folder, scenario=0)
    with pytest.raises(UsageError, match="give one of hermes"):
        TextEnv(folder, dialect="native")


def test_step_limit_truncates_and_judges(folder: Path) -> None:
    env = TextEnv(folder, "lending-desk", max_steps=2, reward="gained")
    env.reset(0)
    assert env.step(as_text(lend("Ann")))[1:4] == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step("<tool_call>")
    assert (reward, terminated, truncated, info["stop_reason"]) == (1.0, False, True, "step_limit")
    with pytest.raises(UsageError, match="over"):
        env.step("more")


def test_reply_that_is_none_truncates_and_judges(desk: TextEnv) -> None:
    desk.reset(0)
    desk.step(as_text(lend("Ann")))
    assert desk.step(None)[1:4] == (1.0, False, True)


def test_closing_twice_is_fine_and_another_reset_begins_anew(desk: TextEnv) -> None:
    desk.close()
    desk.reset(0)
    desk.step(as_text(lend("Bob")))
    desk.close()
    desk.close()
    desk.reset(0)
    assert play_solution(desk)[1] == 1.0


def test_failure_of_the_machinery_raises_or_truncates_and_is_never_a_reward(folder: Path) -> None:
    raising = TextEnv(folder, "lending-desk")
    raising.reset(0)
    lose(raising)
    with pytest.raises(SandboxError):
        raising.step(as_text(lend("Ann")))

    going_on = TextEnv(folder, "lending-desk", on_failure="truncate")
    going_on.reset(0)
    lose(going_on)
    _, reward, terminated, truncated, info = going_on.step("Done.")
    assert math.isnan(reward)
    assert (terminated, truncated, info["stop_reason"]) == (False, True, "infrastructure")
    assert "SandboxError" in info["infrastructure"]
    assert "verdict" not in info
    going_on.reset(0)
    assert play_solution(going_on)[1] == 1.0


def test_reset_that_fails_says_so_and_the_next_one_tries_again(folder: Path) -> None:
    env = TextEnv(folder, "lending-desk", on_failure="truncate", observations="messages")
    env.reset(0)
    library = env._source.open()
    assert library._sandbox is not None
    library._sandbox.open = refuse  # type: ignore[method-assign]
    observation, info = env.reset(0)
    assert (observation, env.env_reset_failed, info["tools"]) == ([], True, [])
    assert "no worker" in info["infrastructure"]
    with pytest.raises(UsageError, match="over"):
        env.step("Done.")
    del library._sandbox.open
    env.reset(0)
    assert not env.env_reset_failed


def test_scenario_whose_checks_say_nothing_has_no_reward(folder: Path) -> None:
    env = TextEnv(folder, "awkward-desk", reward="gained")
    env.reset(0)
    assert math.isnan(env.step("Done.")[1])


def test_spawn_has_the_same_settings_and_can_go_on_from_the_present_moment(desk: TextEnv) -> None:
    desk.reset(0)
    desk.step(as_text(lend("Ann")))
    twin, fresh = desk.spawn(same_state=True), desk.spawn(reward="fraction")
    assert twin.step("Done.")[1] == 1.0
    assert desk.step(as_text(ToolCall(name="return_book", arguments={"loan_id": "L1"})))[1] == 0.0
    assert desk.step("Done.")[1] == 0.0
    assert fresh.reset()[1]["scenario_id"] == "lending-desk-s001"


def test_drawn_replies_are_calls_that_the_schema_allows(desk: TextEnv) -> None:
    desk.reset(0)
    for seed in range(20):
        reply = random_reply(desk.env, dialect_of("hermes"), random.Random(seed))
        reading = dialect_of("hermes").parse(reply, desk.env.tools)
        assert (reading.slips, reading.fault) == ((), None)
        for call in reading.message.tool_calls:
            assert "was not called" not in desk.env.carry_out(call).content


def test_libraries_are_named_by_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARIES, f"by-variable={folder}; other = ")
    with pytest.raises(UsageError, match="write name=path"):
        named_libraries()
    monkeypatch.setenv(LIBRARIES, f"by-variable={folder};")
    assert named_libraries()["by-variable"] == folder
    assert TextEnv("by-variable", "lending-desk").reset(0)[1]["scenario_id"] == "lending-desk-s000"


def test_what_is_held_out_is_not_played_by_accident(tmp_path: Path) -> None:
    store = LibraryStore.open(write_library(tmp_path / "L"))
    store.write_splits({"train": ["lending-desk"], "test": ["other-desk", "awkward-desk"]})
    env = TextEnv(store.path)
    assert {env.reset()[1]["environment"] for _ in range(6)} == {"lending-desk"}
    with pytest.raises(UsageError, match="held out"):
        TextEnv(store.path, "other-desk")
    assert TextEnv(store.path, "other-desk", held_out=True).reset(0)[1]["environment"] == "other-desk"


def lose(env: TextEnv) -> None:
    """What a lost worker looks like from here: its session is no more."""
    session = env.env._session
    assert session is not None
    session.close()


def refuse(*_: Any, **__: Any) -> Any:
    raise SandboxError("no worker can be started")
