"""Episodes that were played in a text dialect: rows are what the model was sent, and each turn is learned once."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from export.episodes import PARALLEL, PLAIN, TALK, stored, trajectory, turn

from envscaler.agents.dialects import DIALECTS, dialect_of
from envscaler.errors import TemplateError
from envscaler.export import SFT_FORMATS, export_sft
from envscaler.export.messages import Chat, chat_of
from envscaler.export.rendering import Rendering
from envscaler.export.speech import spoken_chats
from envscaler.export.templates import ChatTemplate
from envscaler.messages import SystemMessage
from envscaler.rollout import RolloutSettings, RunRecord
from envscaler.store import RunStore
from envscaler.trajectory import Trajectory

TEXT_DIALECTS = [name for name in DIALECTS if name != "native"]
KEPT = ["none", "turn", "all"]


def conversation(played: Trajectory) -> list[Any]:
    messages: list[Any] = [SystemMessage(content=played.system_prompt)]
    for step in played.steps:
        messages += [step.user] if step.user is not None else []
        messages += [step.assistant, *step.observations]
    return messages


@pytest.mark.parametrize("reasoning", KEPT)
@pytest.mark.parametrize("name", TEXT_DIALECTS)
@pytest.mark.parametrize("steps", [PLAIN, TALK, PARALLEL])
def test_each_turn_is_learned_once_on_the_messages_that_the_model_was_sent(
    name: Any, reasoning: Any, steps: Any
) -> None:
    played = trajectory(steps=steps)
    dialect = dialect_of(name, reasoning=reasoning)
    said = conversation(played)
    places = [index for index, message in enumerate(said) if message.role == "assistant"]
    sent = [
        [{"role": part.role, "content": part.content} for part in dialect.render(said[:place], played.tools)]
        for place in places
    ]
    by_name = {tool.name: tool for tool in played.tools}
    replies = [dialect.text_of(said[place], by_name) for place in places]
    taught = [
        (list(chat.messages[:place]), chat.messages[place]["content"])
        for chat in spoken_chats(played, dialect)
        for place in chat.learned or ()
    ]
    assert sorted(taught, key=str) == sorted(zip(sent, replies, strict=True), key=str)


def test_an_episode_is_as_few_conversations_as_the_dialect_allows() -> None:
    def number(reasoning: Any, steps: Any) -> int:
        return len(spoken_chats(trajectory(steps=steps), dialect_of("hermes", reasoning=reasoning)))

    assert [number(kept, TALK) for kept in ("all", "turn", "none")] == [1, 2, 4]
    assert number("none", PARALLEL) == 1


def test_a_call_that_was_put_right_is_learned_as_it_was_carried_out() -> None:
    (first, last) = (turn(("lend_book", {"book_id": 1}), told="Go."), turn(says="Done."))
    seen = first.observations[0].model_copy(update={"arguments": {"book_id": "B1"}})
    played = trajectory(steps=(first.model_copy(update={"observations": (seen,), "raw": "<tool_call>{"}), last))
    (chat,) = spoken_chats(played, dialect_of("hermes"))
    assert '"book_id": "B1"' in chat.messages[2]["content"]


@pytest.mark.parametrize(
    "name", [name for name, entry in SFT_FORMATS.items() if not entry.structured and not entry.tokens]
)
def test_no_format_gives_a_spoken_episode_tools_or_calls(name: str) -> None:
    played = trajectory(dialect="hermes")
    rendered, _ = Rendering(SFT_FORMATS[name]).rows(played, dialect_of("hermes"))
    for part in rendered:
        tools = part.row.get("tools")
        assert tools in (None, [], "[]", "")
        text = json.dumps(part.row)
        assert "tool_calls" not in text
        assert '"role": "tool' not in text
        assert "function_call" not in text
        assert "<tool_call>" in text


def test_a_run_says_in_which_dialect_and_with_which_reasoning_it_was_played(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run", trajectory(steps=TALK, dialect="hermes"))
    settings = RolloutSettings(dialect="hermes", reasoning="none", parallel_calls=False)
    RunStore(folder).write_run(RunRecord(id="run", library=tmp_path / "L", settings=settings))
    report = export_sft(folder, tmp_path / "rows.jsonl", format="trl-prompt-completion")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert report.card.dialects == {"hermes": 1}
    assert all("think" not in json.dumps(row["prompt"][1:]) for row in rows)
    assert all("Make one call at a time." in row["prompt"][0]["content"] for row in rows)


def test_a_template_without_tools_will_do_where_calls_are_text(tmp_path: Path) -> None:
    plain = ChatTemplate(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    folder = stored(tmp_path / "run", trajectory(dialect="hermes"))
    with pytest.raises(TemplateError, match="tools"):
        export_sft(folder, tmp_path / "rows.jsonl", template=plain)
    RunStore(folder).write_run(
        RunRecord(id="run", library=tmp_path / "L", settings=RolloutSettings(dialect="hermes"), planned=1)
    )
    assert export_sft(folder, tmp_path / "rows.jsonl", template=plain).kept == 1


def test_the_authors_form_keeps_calls_as_calls(tmp_path: Path) -> None:
    rendered, _ = Rendering(SFT_FORMATS["released"]).rows(trajectory(dialect="react"), dialect_of("react"))
    assert json.loads(rendered[0].row["messages"])[2]["tool_calls"]


def test_a_conversation_can_be_cut_at_what_is_learned() -> None:
    chat = chat_of(trajectory(steps=TALK))
    assert [part.learned for part in Chat(chat.messages, (), (2, 4, 8)).stretches()] == [(2, 4), (8,)]
    assert [len(part.messages) for part in Chat(chat.messages, (), (2, 4, 8)).stretches()] == [5, 9]
    assert chat.all_learned
    assert not Chat(chat.messages, (), (2,)).all_learned
    assert [(a.learned, b.learned) for a, b in itertools.pairwise(chat.stretches())] == []


def test_native_calls_are_no_text(tmp_path: Path) -> None:
    report = export_sft(stored(tmp_path / "run", trajectory(dialect="native")), tmp_path / "rows.jsonl")
    assert report.kept == 1
    assert '"tool_calls"' in (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
