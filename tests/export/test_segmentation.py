from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envscaler.errors import TemplateError
from envscaler.export.segmentation import Segment, segments
from envscaler.export.templates import ChatTemplate

Row = dict[str, Any]

_LOOP = (
    "{{% set ns = namespace(user=-1) %}}"
    "{{% for m in messages %}}{{% if m.role == 'user' %}}{{% set ns.user = loop.index0 %}}{{% endif %}}{{% endfor %}}"
    "{{% set n = messages | length - (1 if messages[-1].role == 'assistant' else 0) %}}{head}"
    "{{% for m in messages %}}<{{{{ m.role }}}}>"
    "{{% if m.reasoning_content and ({kept}) %}}[{{{{ m.reasoning_content }}}}]{{% endif %}}"
    "{{{{ m.content }}}}"
    "{{% for c in m.tool_calls or [] %}}({{{{ c.function.name }}}} {{{{ c.function.arguments | tojson }}}})"
    "{{% endfor %}}"
    "</s>{{{{ '\\n' }}}}{{% endfor %}}{{% if add_generation_prompt %}}<assistant>{{% endif %}}"
)


def template(kept: str, head: str = "") -> ChatTemplate:
    return ChatTemplate(_LOOP.format(kept=kept, head=head), name=kept)


TEMPLATES = {
    "keeps reasoning": template("true"),
    "drops it after the next user message": template("loop.index0 > ns.user"),
    "drops it from all history": template("loop.last"),
    "never writes it": template("false"),
    "writes a history that is new each time": template("true", head="{{ n }}"),
    "writes by a whim": template("loop.last or n % 3 == 0"),
}

FEW = settings(max_examples=40, deadline=None)
"""Every turn is rendered twice, by six templates."""

TEXT = st.text(st.sampled_from("ab <>s/\n图"), max_size=4)


@st.composite
def conversations(draw: st.DrawFn) -> list[Row]:
    ids = count()
    messages: list[Row] = [{"role": "system", "content": "S"}]
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(TEXT)})
        for calls in [*draw(st.lists(st.integers(1, 2), max_size=3)), 0]:
            message: Row = {"role": "assistant", "content": draw(TEXT)}
            if draw(st.booleans()):
                message["reasoning_content"] = "r" + draw(TEXT)
            names = [f"c{next(ids)}" for _ in range(calls)]
            if calls:
                message["tool_calls"] = [
                    {"id": name, "type": "function", "function": {"name": "look", "arguments": {"key": name}}}
                    for name in names
                ]
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": name, "name": "look", "content": draw(TEXT)} for name in names
            ]
    return messages


def turns_of(messages: Sequence[Row]) -> list[int]:
    return [index for index, message in enumerate(messages) if message["role"] == "assistant"]


def prompt_of(messages: Sequence[Row], turn: int, chat_template: ChatTemplate) -> str:
    return chat_template.render(messages[:turn], add_generation_prompt=True)


def fewest_chains(before: dict[int, set[int]]) -> int:
    """Nodes less the largest matching of each with one that follows it (Dilworth, Fulkerson)."""
    follower: dict[int, int] = {}

    def matched(node: int, tried: set[int]) -> bool:
        for later in before[node] - tried:
            tried.add(later)
            if later not in follower or matched(follower[later], tried):
                follower[later] = node
                return True
        return False

    return len(before) - sum(matched(node, set()) for node in before)


@pytest.mark.parametrize("name", TEMPLATES)
@FEW
@given(messages=conversations())
def test_each_turn_is_learned_once_on_the_prompt_that_serving_shows(name: str, messages: list[Row]) -> None:
    chat_template = TEMPLATES[name]
    cut = segments(messages, (), chat_template)
    assert sorted(turn for segment in cut for turn in segment.turns) == turns_of(messages)
    for segment in cut:
        for turn, (start, end) in zip(segment.turns, segment.spans, strict=True):
            assert segment.text[:start] == prompt_of(messages, turn, chat_template)
            newest = chat_template.render(messages[: turn + 1])
            assert newest == segment.text[:end] + "\n"
            assert segment.text[start:end].endswith("</s>")
        assert segment.spans[-1][1] == len(segment.text)
        assert segment.shown == segment.turns[-1] + 1


@pytest.mark.parametrize("name", TEMPLATES)
@FEW
@given(messages=conversations())
def test_there_is_no_way_to_need_fewer_samples(name: str, messages: list[Row]) -> None:
    chat_template = TEMPLATES[name]
    cut = segments(messages, (), chat_template)
    turns = turns_of(messages)
    written = {turn: chat_template.render(messages[: turn + 1]).rstrip() for turn in turns}
    prompts = {turn: prompt_of(messages, turn, chat_template) for turn in turns}
    follows = {turn: {later for later in turns if prompts[later].startswith(written[turn])} for turn in turns}
    assert len(cut) == fewest_chains(follows)


@FEW
@given(conversations())
def test_number_of_samples_is_known_for_templates_that_are(messages: list[Row]) -> None:
    reasoned = [
        any(turn.get("reasoning_content") for turn in part if turn["role"] == "assistant")
        for part in _user_segments(messages)
    ]
    assert len(segments(messages, (), TEMPLATES["keeps reasoning"])) == 1
    assert len(segments(messages, (), TEMPLATES["never writes it"])) == 1
    assert len(segments(messages, (), TEMPLATES["drops it after the next user message"])) == 1 + sum(reasoned[:-1])
    every = TEMPLATES["writes a history that is new each time"]
    assert len(segments(messages, (), every)) == len(turns_of(messages))


def _user_segments(messages: list[Row]) -> list[list[Row]]:
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    return [messages[start:end] for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]


@FEW
@given(conversations())
def test_parts_put_together_are_the_text(messages: list[Row]) -> None:
    for segment in segments(messages, (), TEMPLATES["drops it from all history"]):
        assert "".join(text for text, _ in segment.parts) == segment.text
        learned = [segment.text[start:end] for start, end in segment.spans]
        assert [text for text, is_learned in segment.parts if is_learned] == learned


def characters(text: str) -> list[int]:
    return list(map(ord, text))


@FEW
@given(conversations())
def test_tokens_of_single_characters_cut_as_the_text_does(messages: list[Row]) -> None:
    for chat_template in TEMPLATES.values():
        plain = segments(messages, (), chat_template)
        cut = segments(messages, (), chat_template, characters)
        assert [segment.turns for segment in cut] == [segment.turns for segment in plain]
        for segment in cut:
            assert segment.token_ids == tuple(characters(segment.text))
            assert segment.token_spans == segment.spans
            assert "".join(chr(token) for token, learned in segment.tokens() if learned) == "".join(
                text for text, learned in segment.parts if learned
            )
            (start, end) = segment.spans[0]
            assert segment.tokens(segment.turns[:1]) == (
                *((ord(letter), False) for letter in segment.text[:start]),
                *((ord(letter), True) for letter in segment.text[start:end]),
            )


def words(*units: str) -> Any:
    """A tokenizer that takes some character sequences as one token."""
    pattern = re.compile("|".join([*map(re.escape, units), "."]), re.DOTALL)
    return lambda text: [hash(unit) for unit in pattern.findall(text)]


@FEW
@given(conversations())
@example([{"role": "user", "content": "?"}, *({"role": r, "content": "a"} for r in ("assistant", "user", "assistant"))])
def test_turns_are_apart_where_a_token_runs_across_their_end(messages: list[Row]) -> None:
    keeps = TEMPLATES["keeps reasoning"]
    assert len(segments(messages, (), keeps, words("</s>", "\n<"))) == 1
    # What the model wrote ends with `</s>`; as soon as something follows, a server shows it another token there.
    assert len(segments(messages, (), keeps, words("</s>\n", "</s>"))) == len(turns_of(messages))


EMPTY = ChatTemplate(
    TEMPLATES["drops it after the next user message"].source.replace(
        "{{ m.content }}",
        "{% if loop.last and m.role == 'assistant' and not m.reasoning_content %}[]{% endif %}{{ m.content }}",
    ),
    name="writes an empty block of reasoning in the newest turn",
)


@FEW
@given(conversations())
def test_an_empty_block_of_reasoning_costs_no_sample(messages: list[Row]) -> None:
    cut = segments(messages, (), EMPTY)
    as_without = segments(messages, (), TEMPLATES["drops it after the next user message"])
    assert [segment.turns for segment in cut] == [segment.turns for segment in as_without]
    for segment in cut:
        # What a trainer makes of the messages of the sample.
        assert segment.text == EMPTY.render(messages[: segment.shown]).rstrip()
        for turn, (start, end) in zip(segment.turns, segment.spans, strict=True):
            assert segment.text[:start] == prompt_of(messages, turn, EMPTY)
            written = EMPTY.render(messages[: turn + 1]).rstrip()[start:]
            assert segment.text[start:end] in (written, written.removeprefix("[]"))


def test_a_turn_that_ends_otherwise_once_it_is_followed_stays_as_it_is_generated() -> None:
    harmony = ChatTemplate(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{{ '<return>' if loop.last and m.role == 'assistant' else '<end>' }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    messages: list[Row] = [{"role": r, "content": r} for r in ("user", "assistant", "user", "assistant")]
    cut = segments(messages, (), harmony)
    assert [segment.parts[-1] for segment in cut] == [("assistant<return>", True)] * 2


def test_tokens_of_a_sample_are_those_of_its_prompt_and_of_what_is_written_after_it() -> None:
    messages: list[Row] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
    encode = words(">a", "</s>")
    (segment,) = segments(messages, (), TEMPLATES["keeps reasoning"], encode)
    # A server makes tokens of the prompt alone, so `>a` cannot be one, though it is in the text as a whole.
    assert segment.token_ids == (*encode("<user>?</s>\n<assistant>"), *encode("a</s>"))
    assert len(segment.token_ids) == len(encode(segment.text)) + 1


def test_tools_are_part_of_every_prompt() -> None:
    shows = ChatTemplate("{{ tools | tojson }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}")
    messages: list[Row] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
    (segment,) = segments(messages, [{"type": "function", "function": {"name": "look"}}], shows)
    assert segment.text.startswith('[{"type": "function", "function": {"name": "look"}}]<user>')


def test_a_turn_that_the_template_begins_otherwise_is_refused_in_one_sentence() -> None:
    thinks = ChatTemplate(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>{% endif %}",
        name="thinks",
    )
    messages: list[Row] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
    with pytest.raises(TemplateError, match=r"^thinks begins a turn with '<think>' but writes message 1 with 'a</s>'"):
        segments(messages, (), thinks)


def test_a_turn_that_is_not_written_is_refused() -> None:
    mute = ChatTemplate("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", name="mute")
    with pytest.raises(TemplateError, match="mute writes nothing for message 1"):
        segments([{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}], (), mute)


def test_white_space_ends_a_turn_where_nothing_else_does() -> None:
    plain = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}", name="plain")
    messages: list[Row] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
    assert segments(messages, (), plain) == (Segment(turns=(1,), text="user: ?\n\nassistant: a\n\n", spans=((9, 23),)),)
