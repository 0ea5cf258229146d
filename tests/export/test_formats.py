"""Each format against the rules of its trainer, and against the traps that each of them has."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from env.lending import scenario
from export.episodes import ENVIRONMENT, NESTED, PARALLEL, PLAIN, TALK, stored, trajectory, turn
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import StoreError, UsageError
from envscaler.export import SFT_FORMATS, export_released, export_sft
from envscaler.export.formats import Unfit
from envscaler.export.formats.qwen import plain_chat
from envscaler.export.messages import chat_of
from envscaler.export.rendering import Rendering
from envscaler.ingest import ReleasedFiles, import_released
from envscaler.store import LibraryStore
from envscaler.trajectory import Trajectory

TEXT_FORMATS = tuple(name for name, entry in SFT_FORMATS.items() if not entry.parquet_only and not entry.tokens)


def rows_of(name: str, played: Trajectory) -> list[dict[str, Any]]:
    rendered, too_long = Rendering(SFT_FORMATS[name]).rows(played)
    assert too_long == 0
    return [part.row for part in rendered]


def row_of(name: str, played: Trajectory) -> dict[str, Any]:
    (row,) = rows_of(name, played)
    return row


def calls_in(name: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Name and arguments of the calls in a row, as the trainer comes to them."""
    if name == "llamafactory-sharegpt":
        values = [turn["value"] for turn in row["conversations"] if turn["from"] == "function_call"]
        return [call for value in values for call in sharegpt_calls(value)]
    if name == "swift":
        return [json.loads(part["content"]) for part in row["messages"] if part["role"] == "tool_call"]
    messages = row["messages"] if "messages" in row else [*row["prompt"], *row["completion"]]
    messages = json.loads(messages) if isinstance(messages, str) else messages
    calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    return [{**call, "arguments": json.loads(call["arguments"])} if name == "axolotl" else call for call in calls]


def sharegpt_calls(value: str) -> list[dict[str, Any]]:
    """As LLaMA-Factory finds them: between the marks where there are some, else all but the thought."""
    if "<tool_call>" in value:
        text = value.split("<tool_call>", 1)[1].split("</tool_call>", 1)[0]
    else:
        text = value.split("</think>\n\n", 1)[-1]
    found = json.loads(text)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("name", ["trl", "llamafactory-sharegpt", "swift", "axolotl", "released"])
def test_calls_keep_exactly_the_arguments_that_they_had(name: str) -> None:
    calls = calls_in(name, row_of(name, trajectory()))
    assert calls == [
        {"name": "find_books", "arguments": {"title": "Emma"}},
        {"name": "lend_book", "arguments": NESTED},
    ]
    assert list(calls[1]["arguments"]) == list(NESTED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8) | st.just("<tool_call></think>"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), JSON, max_size=4), st.booleans())
def test_any_arguments_survive_in_every_format_that_has_calls(arguments: dict[str, Any], talks: bool) -> None:
    said = "I lend it." if talks else ""
    steps = (turn(("lend_book", arguments), told="Go.", says=said, thinks="So be it."), turn(says="Done."))
    played = trajectory(steps=steps)
    for name in ("trl", "llamafactory-sharegpt", "swift", "axolotl", "released"):
        stored_row = json.loads(json.dumps(row_of(name, played)))
        assert calls_in(name, stored_row) == [{"name": "lend_book", "arguments": arguments}]


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_files_are_readable_and_hold_no_nulls_that_were_not_there(name: str, tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory(), trajectory(steps=PARALLEL))
    export_sft(run, tmp_path / "rows.jsonl", format=name)
    text = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    assert "Œ 图" in text
    assert "\\u" not in text
    without = text.replace('"phone": null', "").replace('\\"phone\\": null', "")
    assert "null" not in without


@pytest.mark.parametrize("name", [name for name, entry in SFT_FORMATS.items() if not entry.tokens])
def test_the_system_prompt_that_was_played_begins_every_row(name: str) -> None:
    for row in rows_of(name, trajectory()):
        if "system" in row:
            assert row["system"].startswith("You are an agent.\n")
            continue
        messages = row["messages"] if "messages" in row else row["prompt"]
        messages = json.loads(messages) if isinstance(messages, str) else messages
        assert messages[0]["role"] == "system"
        assert messages[0]["content"].startswith("You are an agent.\n")


# -- TRL ----------------------------------------------------------------------------------------------------


def test_prompt_and_completion_are_a_row_for_each_turn_without_a_template() -> None:
    rows = rows_of("trl-prompt-completion", trajectory(steps=TALK))
    whole = list(chat_of(trajectory(steps=TALK)).messages)
    assert [len(row["completion"]) for row in rows] == [1, 1, 1, 1]
    assert [row["prompt"] + row["completion"] for row in rows] == [whole[: len(row["prompt"]) + 1] for row in rows]
    assert [row["completion"][0]["role"] for row in rows] == ["assistant"] * 4


# -- LLaMA-Factory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [PLAIN, TALK, PARALLEL])
def test_sharegpt_turns_alternate_as_llamafactory_asks(steps: Any) -> None:
    row = row_of("llamafactory-sharegpt", trajectory(steps=steps))
    roles = [turn["from"] for turn in row["conversations"]]
    assert len(roles) % 2 == 0
    assert all(role in ("human", "observation") for role in roles[::2])
    assert all(role in ("gpt", "function_call") for role in roles[1::2])
    assert [tool["function"]["name"] for tool in json.loads(row["tools"])] == [tool.name for tool in ENVIRONMENT.tools]


def test_sharegpt_keeps_reasoning_as_a_thought_before_the_json_and_words_before_the_marks() -> None:
    values = [turn["value"] for turn in row_of("llamafactory-sharegpt", trajectory())["conversations"]]
    assert values[1] == '{"name": "find_books", "arguments": {"title": "Emma"}}'
    assert values[3].startswith('<think>\nB1 it is\n</think>\n\nFound it.\n<tool_call>{"name": "lend_book"')
    assert values[5] == "<think>\nAll done.\n</think>\n\nDone."
    silent = trajectory(steps=(turn(("find_books", {}), told="Go.", thinks="Look."), turn(says="Done.")))
    assert row_of("llamafactory-sharegpt", silent)["conversations"][1]["value"] == (
        '<think>\nLook.\n</think>\n\n{"name": "find_books", "arguments": {}}'
    )


def test_sharegpt_joins_parallel_calls_and_what_they_returned() -> None:
    turns = row_of("llamafactory-sharegpt", trajectory(steps=PARALLEL))["conversations"]
    assert [part["from"] for part in turns] == ["human", "function_call", "observation", "gpt"]
    assert [call["arguments"] for call in json.loads(turns[1]["value"])] == [{"title": "Emma"}, {"title": "Œ"}]
    assert turns[2]["value"] == '{"success":true}\n</tool_response>\n<tool_response>\n{"success":true}1'


def test_sharegpt_of_an_episode_that_was_cut_ends_with_the_agent() -> None:
    turns = row_of("llamafactory-sharegpt", trajectory(steps=PLAIN[:2]))["conversations"]
    assert [part["from"] for part in turns] == ["human", "function_call", "observation", "function_call"]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((turn(told="Hi.", says="Yes."), turn(says="More.")), "do not alternate"),
        ((turn(("find_books", {}), told="Go.", thinks="I write <tool_call> now"), turn(says="Done.")), "<tool_call>"),
        ((turn(told="Go.", says="Done.", thinks="a </think> b"),), "</think>"),
    ],
)
def test_sharegpt_refuses_by_name_what_llamafactory_would_misread(steps: Any, reason: str) -> None:
    with pytest.raises(Unfit, match=reason):
        rows_of("llamafactory-sharegpt", trajectory(steps=steps))


def test_alpaca_is_a_row_a_turn_with_a_history_that_has_no_reasoning() -> None:
    rows = rows_of("llamafactory-alpaca", trajectory(steps=TALK))
    assert [len(row["history"]) for row in rows] == [0, 1, 2, 3]
    assert [row["output"].startswith("<think>\n") for row in rows] == [True] * 4
    assert "think" not in json.dumps([row["history"] for row in rows])
    assert [row["instruction"] for row in rows] == [
        "Hello.",
        '<tool_response>\n{"success":true}\n</tool_response>',
        "For Ann.",
        '<tool_response>\n{"success":true}\n</tool_response>',
    ]
    for earlier, later in itertools.pairwise(rows):
        answer = earlier["output"].split("</think>\n\n")[1]
        assert later["history"] == [*earlier["history"], [earlier["instruction"], answer]]
    assert rows[0]["output"].endswith(
        '<tool_call>\n{"name": "find_books", "arguments": {"title": "Emma"}}\n</tool_call>'
    )


def test_entries_of_other_data_sets_stay_in_dataset_info(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    (tmp_path / "dataset_info.json").write_text('{"theirs": {"file_name": "x.json"}}')
    for name in ("llamafactory-sharegpt", "llamafactory-alpaca"):
        export_sft(run, tmp_path / f"{name}.jsonl", format=name)
    entries = json.loads((tmp_path / "dataset_info.json").read_text())
    assert set(entries) == {"theirs", "llamafactory-sharegpt", "llamafactory-alpaca"}
    assert entries["llamafactory-sharegpt"]["file_name"] == "llamafactory-sharegpt.jsonl"
    for name in ("llamafactory-sharegpt", "llamafactory-alpaca"):
        row = json.loads((tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[0])
        assert set(entries[name]["columns"].values()) == set(row)


def test_a_dataset_info_that_is_something_else_is_not_overwritten(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    for content in ("{broken", "[]"):
        (tmp_path / "dataset_info.json").write_text(content)
        with pytest.raises(StoreError, match=r"dataset_info\.json"):
            export_sft(run, tmp_path / "rows.jsonl", format="llamafactory-sharegpt")
        assert (tmp_path / "dataset_info.json").read_text() == content
        assert not (tmp_path / "rows.jsonl").exists()


# -- ms-swift, Axolotl, verl, the authors ---------------------------------------------------------------------


def test_swift_has_calls_and_observations_as_messages_and_reasoning_before_the_call() -> None:
    messages = row_of("swift", trajectory())["messages"]
    assert [part["role"] for part in messages] == [
        *("system", "user", "tool_call", "tool_response"),
        *("assistant", "tool_call", "tool_response", "assistant"),
    ]
    assert messages[4]["content"] == "<think>\nB1 it is\n</think>\n\nFound it.\n"
    assert all(set(part) == {"role", "content"} and isinstance(part["content"], str) for part in messages)
    parallel = row_of("swift", trajectory(steps=PARALLEL))["messages"]
    assert [part["role"] for part in parallel][2:6] == ["tool_call", "tool_call", "tool_response", "tool_response"]


def test_axolotl_has_the_configuration_that_reads_its_rows(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    export_sft(run, tmp_path / "rows.jsonl", format="axolotl")
    (dataset,) = yaml.safe_load((tmp_path / "rows.axolotl.yaml").read_text())["datasets"]
    row = json.loads((tmp_path / "rows.jsonl").read_text(encoding="utf-8"))
    assert (dataset["path"], dataset["ds_type"], dataset["type"]) == ("rows.jsonl", "json", "chat_template")
    assert {dataset["field_messages"], dataset["field_tools"]} == set(row)
    assert any(dataset["field_thinking"] in message for message in row["messages"])
    # Arguments as text: every null is taken out of rows before texts are decoded.
    assert all(
        isinstance(call["function"]["arguments"], str)
        for message in row["messages"]
        for call in message.get("tool_calls", ())
    )


def test_verl_has_nothing_but_text_and_asks_for_parquet(tmp_path: Path) -> None:
    messages = row_of("verl", trajectory(steps=PARALLEL))["messages"]
    assert [part["role"] for part in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert messages[2]["content"].count("<tool_call>") == 2
    assert messages[3]["content"].count("<tool_response>") == 2
    assert '"name": "find_books"' in messages[0]["content"]
    with pytest.raises(UsageError, match=r"\.parquet"):
        export_sft(stored(tmp_path / "run", trajectory()), tmp_path / "rows.jsonl", format="verl")


def test_text_of_calls_is_the_one_that_the_dialect_of_qwen_is_played_in() -> None:
    dialects = pytest.importorskip("envscaler.agents.dialects")
    played = trajectory(steps=(*PARALLEL[:1], *PLAIN[1:]))
    dialect = dialects.dialect_of("hermes", reasoning="none")
    messages = plain_chat(chat_of(played)).messages
    by_name = {tool.name: tool for tool in played.tools}
    replies = [part["content"] for part in messages if part["role"] == "assistant"]
    spoken = [dialect.text_of(step.assistant.model_copy(update={"reasoning": None}), by_name) for step in played.steps]
    assert replies == spoken
    results = [part["content"] for part in messages if part["role"] == "user"][1:]
    assert results == [dialect.results_text(step.observations) for step in played.steps if step.observations]


def test_the_authors_script_reads_rows_in_their_form(tmp_path: Path) -> None:
    export_sft(stored(tmp_path / "run", trajectory(steps=TALK)), tmp_path / "rows.json", format="released")
    (entry,) = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert entry["traj_type"] == "non_conv"
    assert entry["task_info"]["env_id"] == ENVIRONMENT.id
    messages = json.loads(entry["messages"])
    assert [part["reasoning_content"] for part in messages if part["role"] == "assistant"] == [
        step.assistant.reasoning for step in TALK
    ]
    assert isinstance(json.loads(entry["tools"]), list)
    assert json.loads(entry["user_messages"]) == []
    assert (entry["steps"], entry["total_reward"]) == (4, 1.0)


@pytest.mark.parametrize("steps", [PLAIN, TALK])
def test_rows_in_the_authors_form_are_imported_and_come_back_the_same(steps: Any, tmp_path: Path) -> None:
    mode = "conversation" if steps is TALK else "non-conversation"
    store = LibraryStore.create(tmp_path / "L")
    store.write_environment(ENVIRONMENT, None, [scenario(ENVIRONMENT, id="s")])
    export_released(store, tmp_path)
    export_sft(stored(tmp_path / "run", trajectory(steps=steps, mode=mode)), tmp_path / "sft.json", format="released")
    files = ReleasedFiles(tmp_path / "environments.json", tmp_path / "scenarios.json", tmp_path / "sft.json")
    asyncio.run(import_released(files, tmp_path / "again", check=False))
    run = LibraryStore.open(tmp_path / "again").run("released-sft")
    (back,) = run.trajectories()
    assert (back.mode, back.system_prompt) == (mode, "You are an agent.\n")
    assert [step.assistant.reasoning for step in back.steps] == [step.assistant.reasoning for step in steps]
    export_sft(run, tmp_path / "back.json", format="released")
    assert (tmp_path / "back.json").read_bytes() == (tmp_path / "sft.json").read_bytes()


def test_an_unknown_format_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="llamafactory-sharegpt"):
        export_sft("nowhere", "rows.jsonl", format="alpaca")
