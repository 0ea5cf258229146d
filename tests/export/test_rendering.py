"""Samples that a template cuts, how each format leaves turns out of the loss, and lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from export.episodes import PARALLEL, PLAIN, TALK, stored, trajectory, turn

from envscaler.agents.dialects import dialect_of
from envscaler.errors import UsageError
from envscaler.export import SFT_FORMATS, SftFilters, export_sft
from envscaler.export.formats import Unfit
from envscaler.export.messages import chat_of
from envscaler.export.rendering import Rendering
from envscaler.export.segmentation import segments
from envscaler.export.templates import ChatTemplate
from envscaler.trajectory import Trajectory

FORGETFUL = ChatTemplate(
    "{%- set ns = namespace(last=-1) -%}"
    "{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}"
    "{%- for t in tools or [] -%}{{ t | tojson }}{%- endfor -%}"
    "{%- for m in messages -%}<{{ m.role }}>"
    "{%- if m.reasoning_content and loop.index0 > ns.last -%}[{{ m.reasoning_content }}]{%- endif -%}"
    "{{ m.content }}{%- for c in m.tool_calls or [] -%}{{ c.function | tojson }}{%- endfor -%}</>"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<assistant>{%- endif -%}",
    name="forgetful",
)
"""Drops reasoning before the last message of the user, as Qwen 3 does."""


def rows_of(name: str, played: Trajectory, **settings: Any) -> list[dict[str, Any]]:
    rendered, _ = Rendering(SFT_FORMATS[name], FORGETFUL, **settings).rows(played)
    return [part.row for part in rendered]


def test_a_conversation_is_one_sample_for_each_message_of_the_user() -> None:
    rows = rows_of("trl-prompt-completion", trajectory(steps=TALK))
    assert [len(row["prompt"]) for row in rows] == [2, 6]
    assert [[part["role"] for part in row["completion"]] for row in rows] == [["assistant", "tool", "assistant"]] * 2


def test_rows_with_a_template_teach_each_turn_once_on_the_prompt_that_is_served() -> None:
    played = trajectory(steps=TALK)
    whole = list(rows_of("trl-prompt-completion", played)[-1]["prompt"])
    whole += rows_of("trl-prompt-completion", played)[-1]["completion"]
    taught: list[int] = []
    for row in rows_of("trl-prompt-completion", played):
        messages, tools = row["prompt"] + row["completion"], row["tools"]
        text = FORGETFUL.render(messages, tools)
        for index in range(len(row["prompt"]), len(messages)):
            if messages[index]["role"] == "assistant":
                taught.append(index)
                assert text.startswith(FORGETFUL.render(whole[:index], tools, add_generation_prompt=True))
    assert taught == [2, 4, 6, 8]


def test_an_episode_without_a_second_message_of_the_user_is_one_row_in_every_format_that_can_be_cut() -> None:
    for name, entry in SFT_FORMATS.items():
        if entry.cut and not entry.tokens:
            assert len(rows_of(name, trajectory(steps=PLAIN))) == 1


def test_swift_and_axolotl_mark_the_turns_that_another_row_teaches() -> None:
    (first, second) = rows_of("swift", trajectory(steps=TALK))
    assert all("loss" not in part for part in first["messages"])
    losses = [(part["role"], part["loss"]) for part in second["messages"] if "loss" in part]
    assert losses == [
        *(("assistant", False), ("tool_call", False), ("assistant", False)),
        *(("assistant", True), ("tool_call", True), ("assistant", True)),
    ]
    (first, second) = rows_of("axolotl", trajectory(steps=TALK))
    assert all("training" not in part for part in first["messages"])
    assert [part["training"] for part in second["messages"] if part["role"] == "assistant"] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("name", ["trl", "llamafactory-sharegpt"])
def test_a_format_that_cannot_mark_turns_refuses_the_conversation(name: str) -> None:
    with pytest.raises(Unfit, match="not learned"):
        rows_of(name, trajectory(steps=TALK))


def test_rows_of_tokens_are_the_samples_as_served_and_teach_each_turn_once() -> None:
    chat = chat_of(trajectory(steps=TALK))
    rows = rows_of("tokens", trajectory(steps=TALK), encode=lambda text: list(map(ord, text)))
    cut = segments(chat.messages, chat.tools, FORGETFUL)
    assert ["".join(map(chr, row["input_ids"])) for row in rows] == [segment.text for segment in cut]
    taught = ["".join(chr(label) for label in row["labels"] if label != -100) for row in rows]
    assert taught == ["".join(text for text, learned in segment.parts if learned) for segment in cut]
    (first, second) = rows
    assert "[Look first.]" in "".join(map(chr, first["input_ids"]))
    assert "[Look first.]" not in "".join(map(chr, second["input_ids"]))


@pytest.mark.parametrize("settings", [{}, {"template": FORGETFUL}, {"encode": lambda text: list(map(ord, text))}])
def test_rows_of_tokens_need_a_template_and_a_tokenizer(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--format tokens needs --template and --tokenizer"):
        Rendering(SFT_FORMATS["tokens"], **settings)


@pytest.mark.parametrize("name", ["llamafactory-alpaca", "verl", "released"])
def test_a_format_that_writes_calls_itself_takes_no_template(name: str) -> None:
    with pytest.raises(UsageError, match="--template"):
        Rendering(SFT_FORMATS[name], FORGETFUL)


def test_a_template_that_refuses_an_episode_drops_it_with_one_reason_and_keeps_the_detail() -> None:
    refusing = ChatTemplate("{{ raise_exception('no tools here') if tools }}", name="refusing")
    with pytest.raises(Unfit) as caught:
        Rendering(SFT_FORMATS["trl"], refusing).rows(trajectory())
    assert str(caught.value) == "the template does not take it"
    assert "no tools here" in (caught.value.detail or "")


@pytest.mark.parametrize("filters", [SftFilters(), SftFilters(best=1)])
def test_the_detail_of_a_refusal_is_told_however_episodes_are_chosen(filters: SftFilters, tmp_path: Path) -> None:
    choosy = ChatTemplate(
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}"
        "{{ raise_exception('one call a turn') if m.tool_calls and m.tool_calls | length > 1 }}<{{ m.role }}>"
        "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    run = stored(tmp_path / "run", trajectory(), trajectory(id="u", scenario_id="u", steps=PARALLEL))
    report = export_sft(run, tmp_path / "rows.jsonl", filters, template=choosy)
    assert (report.kept, report.dropped) == (1, {"the template does not take it": 1})
    assert "one call a turn" in report.notes[-1]


def test_tokens_are_counted_where_a_tokenizer_is_given_and_estimated_else() -> None:
    def encode(text: str) -> list[int]:
        return [ord(character) for character in text]

    played = trajectory(steps=(turn(told="abcd", says="efgh"),), tools=(), system_prompt="12345678")
    (estimated,) = Rendering(SFT_FORMATS["trl"]).rows(played)[0]
    assert estimated.characters == len(json.dumps(estimated.row)) + 1
    assert estimated.tokens == -(-estimated.characters // 4)
    (counted,) = Rendering(SFT_FORMATS["trl"], FORGETFUL, encode).rows(played)[0]
    assert counted.tokens == len("<system>12345678</><user>abcd</><assistant>efgh</>")
    assert [
        Rendering(SFT_FORMATS["trl"], template, tokenizer).counting
        for template, tokenizer in ((None, None), (None, encode), (FORGETFUL, encode))
    ] == ["estimated: characters / 4", "counted over the JSON text of the row", "counted"]


def test_rows_that_are_too_long_go_and_an_episode_of_which_none_is_left_goes_with_the_reason() -> None:
    played = trajectory(steps=TALK, tools=())
    lengths = [part.tokens for part in Rendering(SFT_FORMATS["trl-prompt-completion"]).rows(played)[0]]
    assert lengths == sorted(lengths)
    kept, gone = Rendering(SFT_FORMATS["trl-prompt-completion"], max_tokens=lengths[1]).rows(played)
    assert (len(kept), gone) == (2, 2)
    with pytest.raises(Unfit, match=r"more than 1 tokens \(estimated: characters / 4\)"):
        Rendering(SFT_FORMATS["trl-prompt-completion"], max_tokens=1).rows(played)


def test_a_call_that_could_not_be_read_is_not_learned_as_one_without_arguments() -> None:
    (first, last) = (turn(("lend_book", {}), told="Go."), turn(says="Done."))
    broken = first.assistant.tool_calls[0].model_copy(update={"malformed": "{broken"})
    steps = (
        first.model_copy(update={"assistant": first.assistant.model_copy(update={"tool_calls": (broken,)})}),
        last,
    )
    with pytest.raises(Unfit, match="could not be read"):
        Rendering(SFT_FORMATS["trl"]).rows(trajectory(steps=steps))
    (spoken,), _ = Rendering(SFT_FORMATS["trl"]).rows(trajectory(steps=steps), dialect_of("hermes"))
    assert "{broken" in spoken.row["messages"][2]["content"]


def test_nested_schemas_of_tools_count_as_the_json_that_they_are() -> None:
    (part,) = Rendering(SFT_FORMATS["trl"]).rows(trajectory())[0]
    assert part.characters > len(json.dumps([tool.to_openai()["function"] for tool in trajectory().tools]))
