from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton
from export.episodes import stored
from hypothesis import given
from hypothesis import strategies as st

from envscaler.env import open_library
from envscaler.errors import StoreError
from envscaler.export import SftFilters, chat_row, export_sft, format_fault
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import CheckResult, Step, StopReason, Trajectory, Verdict

ENVIRONMENT = skeleton()
CALL = ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Œ 图"}, id="c0")


def verdict(*passed: bool) -> Verdict:
    return Verdict(
        checks=tuple(CheckResult(description="?", kind="goal", passed=ok, held_at_reset=False) for ok in passed)
    )


def steps(call: ToolCall = CALL) -> tuple[Step, ...]:
    return (
        Step(
            turn=0,
            user=UserMessage(content="Lend Emma."),
            assistant=AssistantMessage(reasoning="B1 it is", tool_calls=(call,)),
            observations=(ToolMessage(content='{"success":true}', tool_call_id="c0", name=call.name),),
        ),
        Step(turn=0, assistant=AssistantMessage(content="Done.")),
    )


def trajectory(**changes: Any) -> Trajectory:
    fields: dict[str, Any] = {
        "id": "t",
        "env_id": "lending-desk",
        "scenario_id": "s",
        "env_digest": "",
        "scenario_digest": "",
        "agent": "model",
        "model": "m",
        "system_prompt": "You are an agent.\n",
        "tools": ENVIRONMENT.tools,
        "steps": steps(),
        "stop": StopReason.FINISHED,
        "verdict": verdict(True, True),
    }
    return Trajectory(**{**fields, **changes})


def test_row_is_a_chat_with_tools_as_trainers_read_it() -> None:
    row = chat_row(trajectory())
    assert row["messages"] == [
        {"role": "system", "content": "You are an agent.\n"},
        {"role": "user", "content": "Lend Emma."},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "B1 it is",
            "tool_calls": [
                {
                    "id": "c0",
                    "type": "function",
                    "function": {"name": "lend_book", "arguments": {"book_id": "B1", "member": "Œ 图"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c0", "name": "lend_book", "content": '{"success":true}'},
        {"role": "assistant", "content": "Done."},
    ]
    assert [tool["function"]["name"] for tool in row["tools"]] == [tool.name for tool in ENVIRONMENT.tools]


def test_file_keeps_characters_and_holds_no_nulls(tmp_path: Path) -> None:
    export_sft(stored(tmp_path / "run", trajectory()), tmp_path / "sft.jsonl")
    text = (tmp_path / "sft.jsonl").read_text(encoding="utf-8")
    assert "Œ 图" in text
    assert "\\u" not in text
    assert "null" not in text
    assert text.endswith("}\n")


ARGUMENTS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(ARGUMENTS)
def test_nested_arguments_survive_as_they_are(arguments: dict[str, Any]) -> None:
    played = trajectory(steps=steps(CALL.model_copy(update={"arguments": arguments})))
    row = json.loads(json.dumps(chat_row(played)))
    assert row["messages"][2]["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_call_that_was_put_right_is_learned_as_it_was_carried_out() -> None:
    first, last = steps(CALL.model_copy(update={"arguments": {"book_id": 1, "member": "Œ 图"}}))
    refused = ToolCall(name="lend_book", arguments={"book_id": None}, id="c1")
    first = first.model_copy(
        update={
            "assistant": first.assistant.model_copy(update={"tool_calls": (*first.assistant.tool_calls, refused)}),
            "observations": (
                first.observations[0].model_copy(update={"arguments": {"book_id": "1", "member": "Œ 图"}}),
                ToolMessage(content="Error: …", tool_call_id="c1", name="lend_book", is_error=True),
            ),
        }
    )
    played = trajectory(steps=(first, last))
    calls = chat_row(played)["messages"][2]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == [{"book_id": "1", "member": "Œ 图"}, {"book_id": None}]
    assert [call["id"] for call in calls] == ["c0", "c1"]
    cut = played.model_copy(update={"steps": (first.model_copy(update={"observations": first.observations[:1]}),)})
    assert len(chat_row(cut)["messages"][2]["tool_calls"]) == 2
    assert played.steps[0].assistant.tool_calls[0].arguments["book_id"] == 1


FAULTS: list[tuple[str, Callable[[], Trajectory]]] = [
    ("a call without its observation", lambda: trajectory(steps=(steps()[0].model_copy(update={"observations": ()}),))),
    ("no final message", lambda: trajectory(steps=steps()[:1])),
    ("a call to a tool that does not exist", lambda: trajectory(steps=steps(ToolCall(name="nonsense", id="c0")))),
    (
        "a call whose arguments are no JSON object",
        lambda: trajectory(steps=steps(ToolCall(name="lend_book", id="c0", malformed="{"))),
    ),
    ("no conversation", lambda: trajectory(steps=())),
    ("no system prompt", lambda: trajectory(system_prompt="")),
    (
        "an empty message",
        lambda: trajectory(steps=(steps()[0], Step(turn=0, assistant=AssistantMessage(content=" ")))),
    ),
    ("two assistant messages in a row", lambda: trajectory(steps=(*steps(), steps()[1]))),
]


@pytest.mark.parametrize(("fault", "made"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_malformed_conversation_is_named(fault: str, made: Callable[[], Trajectory]) -> None:
    assert format_fault(made()) == fault


def test_well_formed_conversation_has_no_fault() -> None:
    assert format_fault(trajectory()) is None


@pytest.mark.parametrize(
    ("filters", "dropped"),
    [
        (SftFilters(), {"not finished: step_limit": 1, "cut short: infrastructure": 1}),
        (SftFilters(finished=False), {"cut short: infrastructure": 1}),
        (
            SftFilters(solved=True),
            {"not finished: step_limit": 1, "cut short: infrastructure": 1, "not solved": 1},
        ),
        (
            SftFilters(reward_at_least=0.6),
            {"not finished: step_limit": 1, "cut short: infrastructure": 1, "fraction reward below 0.6": 1},
        ),
        (
            SftFilters(max_steps=1),
            {"not finished: step_limit": 1, "cut short: infrastructure": 1, "more than 1 steps": 2},
        ),
        (
            SftFilters(min_steps=3),
            {"not finished: step_limit": 1, "cut short: infrastructure": 1, "fewer than 3 steps": 2},
        ),
    ],
)
def test_filters_drop_and_count_by_reason(tmp_path: Path, filters: SftFilters, dropped: dict[str, int]) -> None:
    run = stored(
        tmp_path / "run",
        trajectory(),
        trajectory(verdict=verdict(True, False)),
        trajectory(stop=StopReason.STEP_LIMIT),
        trajectory(stop=StopReason.INFRASTRUCTURE, verdict=None),
    )
    report = export_sft(run, tmp_path / "sft.jsonl", filters)
    assert report.dropped == dropped
    assert report.kept == 4 - sum(dropped.values())
    assert len((tmp_path / "sft.jsonl").read_text(encoding="utf-8").splitlines()) == report.kept
    assert report.agents == ({"m": report.kept} if report.kept else {})


def test_episode_without_reward_does_not_pass_a_reward_filter(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory(verdict=Verdict(checks=())))
    report = export_sft(run, tmp_path / "sft.jsonl", SftFilters(reward_at_least=0.0))
    assert report.dropped == {"no fraction reward": 1}


def test_missing_run_and_folder_in_the_way_are_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no run"):
        export_sft(tmp_path / "nowhere", tmp_path / "sft.jsonl")
    run = stored(tmp_path / "run", trajectory())
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="folder"):
        export_sft(run, tmp_path / "folder")


@pytest.mark.anyio
async def test_system_prompt_is_byte_for_byte_the_one_that_was_played(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    store.write_environment(ENVIRONMENT, None, [scenario(ENVIRONMENT)])
    report = await run_rollout(open_library(store.path), RolloutSettings(agent="oracle"))
    export_sft(report.run, tmp_path / "sft.jsonl")
    (played,) = RunStore(report.run).trajectories()
    row = json.loads((tmp_path / "sft.jsonl").read_text(encoding="utf-8"))
    assert row["messages"][0] == {"role": "system", "content": played.system_prompt}
    assert [message["role"] for message in row["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
