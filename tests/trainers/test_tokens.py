"""Segmentation by the tokens of a real tokenizer and the templates that TRL carries, against transformers' own.

The tokenizer is SmolLM2's with the added tokens of Qwen and Llama: their vocabularies are in no package, and what is
proved does not hang on which words are one token.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="make test-trainers makes the place for it")

from trainers.conversations import SHAPES, SINGLE_CALLS
from transformers import AutoTokenizer

from envscaler.export.messages import chat_of
from envscaler.export.segmentation import segments
from envscaler.export.templates import DAY, ChatTemplate
from envscaler.export.tokens import load_tokenizer

pytestmark = pytest.mark.trainers

QWEN3 = {"plain": 1, "talk": 2, "long-talk": 3, "silent": 1, "parallel": 1}
"""Samples by shape: reasoning before the last message of the user is dropped."""
ONE = dict.fromkeys(SHAPES, 1)
SAMPLES = {
    "qwen3": QWEN3,
    # It asks with an open block of reasoning and a line break; an empty one ends with another, and in the history both
    # are one token, which no model has written after the first.
    "qwen3_5_think": {**QWEN3, "plain": 2, "silent": 3, "parallel": 2},
    "qwen3_training": ONE,
    "qwen3_instruct_2507": ONE,
    "qwen2_5": ONE,
    "llama3_1": dict.fromkeys(SINGLE_CALLS, 1),
    "llama3_2": dict.fromkeys(SINGLE_CALLS, 1),
}
CASES = [(template, shape) for template, shapes in SAMPLES.items() for shape in shapes]
SWITCHES: dict[str, dict[str, Any]] = {"llama": {"bos_token": "<|begin_of_text|>"}}
MARKS = ("<|im_end|>", "<|eot_id|>")


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tokenizer_folder)


def template_of(name: str, **variables: Any) -> ChatTemplate:
    return ChatTemplate.load(name, variables={**(SWITCHES["llama"] if name.startswith("llama") else {}), **variables})


def ids_of(text: str, tokenizer: Any) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def served(messages: list[Any], tools: list[Any], template: ChatTemplate, tokenizer: Any, **settings: Any) -> str:
    """As a server writes it, by transformers, on the day that ours is."""
    written: str = tokenizer.apply_chat_template(
        messages,
        tools=tools,
        chat_template=template.source,
        tokenize=False,
        **template.variables,
        **settings,
    )
    return written.replace(datetime.datetime.now().strftime("%d %b %Y"), DAY.strftime("%d %b %Y"))


def test_the_tokenizer_is_the_same_read_by_either_package(tokenizer: Any, tokenizer_folder: Path) -> None:
    encode = load_tokenizer(tokenizer_folder)
    text = '<|im_start|>user\nŒ 图  \n\n<think>\n\n</think>\n\n<tool_call>\n{"a": [1, 2]}<|im_end|>\n'
    assert tuple(encode(text)) == ids_of(text, tokenizer)
    assert len(encode("<|im_end|><think></tool_call><|eot_id|>")) == 4
    for name, shape in CASES:
        chat = chat_of(SHAPES[shape])
        written = template_of(name).render(chat.messages, chat.tools)
        assert tuple(encode(written)) == ids_of(written, tokenizer)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_text_is_written_as_transformers_writes_it(name: str, shape: str, tokenizer: Any) -> None:
    template, chat = template_of(name), chat_of(SHAPES[shape])
    template.require_tools()
    messages, tools = list(chat.messages), list(chat.tools)
    assert template.render(messages, tools) == served(messages, tools, template, tokenizer)
    for turn in chat.turns:
        asked = template.render(messages[:turn], tools, add_generation_prompt=True)
        assert asked == served(messages[:turn], tools, template, tokenizer, add_generation_prompt=True)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_samples_are_token_by_token_what_serving_shows_and_what_is_written(
    name: str, shape: str, tokenizer: Any
) -> None:
    template, chat = template_of(name), chat_of(SHAPES[shape])
    messages, tools = list(chat.messages), list(chat.tools)
    cut = segments(messages, tools, template, lambda text: ids_of(text, tokenizer))
    assert sorted(turn for segment in cut for turn in segment.turns) == list(chat.turns)
    assert len(cut) == SAMPLES[name][shape]
    for segment in cut:
        assert segment.token_ids is not None
        assert segment.token_spans is not None
        assert template.render(messages[: segment.shown], tools).rstrip() == segment.text
        assert tokenizer.decode(segment.token_ids) == segment.text
        for turn, (start, end) in zip(segment.turns, segment.token_spans, strict=True):
            prompt = template.render(messages[:turn], tools, add_generation_prompt=True)
            assert segment.token_ids[:start] == ids_of(prompt, tokenizer)
            written = tokenizer.decode(segment.token_ids[start:end])
            assert written.endswith(MARKS)
            message = messages[turn]
            if not (name.startswith("llama") and "tool_calls" in message):
                # Llama's templates leave out what is said beside a call.
                assert message["content"] in written
            for call in message.get("tool_calls", ()):
                assert call["function"]["name"] in written
            if name.startswith("qwen3") and "instruct" not in name:
                assert message.get("reasoning_content", "") in written


@pytest.mark.parametrize("shape", SHAPES)
def test_without_thinking_every_turn_is_asked_with_an_empty_block_and_shown_without(shape: str, tokenizer: Any) -> None:
    chat = chat_of(SHAPES[shape])
    messages = [{key: part for key, part in row.items() if key != "reasoning_content"} for row in chat.messages]
    template = template_of("qwen3", enable_thinking=False)
    cut = segments(messages, chat.tools, template, lambda text: ids_of(text, tokenizer))
    assert [segment.turns for segment in cut] == [(turn,) for turn in chat.turns]
    for segment in cut:
        assert segment.text[: segment.spans[0][0]].endswith("<think>\n\n</think>\n\n")
        assert segment.text.count("<think>") == 1
