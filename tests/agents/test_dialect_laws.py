"""Laws of dialects: what a dialect writes it reads as the same, and nothing makes it fail or carry out half a call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from envscaler.agents.dialects import (
    DIALECTS,
    SLIPS,
    DialectName,
    Memory,
    MistralDialect,
    TextDialect,
    dialect_of,
    prompt_file_digest,
)
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.program import SchemaChecker
from envscaler.skeleton import ToolSpec

TOOLS = tuple(
    ToolSpec.model_validate(tool)
    for tool in json.loads((Path(__file__).parent / "replies" / "tools.json").read_text(encoding="utf-8"))
)
BY_NAME = {tool.name: tool for tool in TOOLS}
TEXT_DIALECTS: dict[str, TextDialect] = {
    **{name: dialect_of(name, reasoning="all") for name in DIALECTS if name != "native"},
    "mistral-args": MistralDialect(reasoning="all", written="args"),
}

AWKWARD = st.sampled_from(
    [
        "</tool_call>",
        "<tool_call>",
        '{"name": "lend_book", "arguments": {}}',
        "</parameter>",
        "\n</parameter>\n<parameter=member>\n",
        "<function=cancel_all>",
        "</function>",
        "[TOOL_CALLS]",
        "[ARGS]{",
        "<|python_tag|>",
        "<|im_end|>",
        "```json\n{",
        "```",
        "<think>",
        "</think>",
        "\nAction: cancel_all\nAction Input: {}",
        "\nFinal Answer: no",
        "\nObservation: done",
        '"',
        "'",
        "\\",
        "\\n",
        "{{",
        "}}",
        "]",
        "\n",
        "\n\n  ",
        "3",
        "true",
        "null",
        "None",
        "œuvre 书 🙂",
        "\u2028",
        "[TOOL_RESULTS]",
        "<tool_response>",
        "; {",
        "//",
    ]
)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
STRINGS = st.lists(AWKWARD | PLAIN, max_size=4).map("".join)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False, width=32)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(STRINGS, part, max_size=3),
    max_leaves=6,
)
TAGS = (
    r"<\|?/?(?:tool|function|parameter|think|im_|eot|eom|python|start|end)|</s>|<｜|\[/?TOOL|```"
    r"|^[ \t]*[*_#>-]*[ \t]*(?:thought|action|observation|final)"
)
MARKS = re.compile(rf"{TAGS}|[{{}}\[(]", re.IGNORECASE | re.MULTILINE)


def said() -> st.SearchStrategy[str]:
    """What a model says beside its calls: any text without the marks of a call or of a control token."""
    return PLAIN.map(str.strip).filter(lambda text: MARKS.search(text) is None)


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values for a parameter. In `qwen3.5` types are told apart by the schema alone, so that they follow it."""
    kinds = {"string": STRINGS, "integer": st.integers(-(2**63), 2**63 - 1), "boolean": st.booleans()}
    if not isinstance(schema, dict):
        return JSON
    if isinstance(schema.get("type"), list):
        return STRINGS | st.none()
    if schema.get("type") == "number":
        return NUMBERS
    return kinds.get(schema.get("type", ""), JSON)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    tool = draw(st.sampled_from(TOOLS))
    schemas = tool.parameters["properties"]
    names = draw(st.lists(st.sampled_from(sorted(schemas)), unique=True)) if schemas else []
    arguments = {name: draw(values(schemas[name])) for name in names}
    assume("priority" not in arguments or type(arguments["priority"]) in (int, str))
    assume("tags" not in arguments or isinstance(arguments["tags"], list))
    return ToolCall(name=tool.name, arguments=arguments)


@st.composite
def messages(draw: st.DrawFn, dialect: TextDialect) -> AssistantMessage:
    """A message that the dialect can write."""
    called = draw(st.lists(calls(), max_size=1 if dialect.name == "schema" else 3))
    reasoning = draw(st.none() | said()) or None
    content = draw(said())
    if dialect.name == "react":
        content = "" if called else content  # there, what is said beside a call is its thought
    if dialect.name == "schema":
        content = "" if called else content
    if not called:
        assume(content)
        assume(not any(name in content for name in BY_NAME))
    return AssistantMessage(content=content, reasoning=reasoning, tool_calls=tuple(called))


@pytest.mark.parametrize("name", TEXT_DIALECTS)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_what_a_dialect_writes_it_reads_as_the_same(name: str, data: st.DataObject) -> None:
    dialect = TEXT_DIALECTS[name]
    message = data.draw(messages(dialect))
    text = dialect.text_of(message, BY_NAME)
    reading = dialect.parse(text, TOOLS)
    assert reading.message == message, text
    assert (reading.fault, reading.slips) == (None, ()), text


@pytest.mark.parametrize("name", ["schema", "hermes", "mistral", "llama", "react", "qwen3.5"])
@settings(max_examples=60, deadline=None)
@given(answer=STRINGS.map(str.strip).filter(bool))
def test_an_answer_with_braces_and_quotes_calls_nothing_of_its_own(name: str, answer: str) -> None:
    assume(re.search(TAGS, answer, re.IGNORECASE | re.MULTILINE) is None)
    assume(not any(tool in answer for tool in BY_NAME))
    dialect = TEXT_DIALECTS[name]
    reading = dialect.parse(dialect.text_of(AssistantMessage(content=answer), BY_NAME), TOOLS)
    assert reading.message == AssistantMessage(content=answer)


@pytest.mark.parametrize("name", TEXT_DIALECTS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_call_that_breaks_off_anywhere_is_never_carried_out_as_another(name: str, data: st.DataObject) -> None:
    dialect = TEXT_DIALECTS[name]
    call = data.draw(calls())
    text = dialect.text_of(AssistantMessage(tool_calls=(call,)), BY_NAME)
    end = data.draw(st.integers(0, len(text) - 1))
    cut = dialect.parse(text[:end], TOOLS, "length")
    assert cut.fault is not None
    assert cut.message.tool_calls == ()
    # Also where the server does not say that it was cut: what is read is the whole call, or nothing that runs.
    for read in dialect.parse(text[:end], TOOLS).message.tool_calls:
        assert read.malformed is not None or read == call, text[:end]


@pytest.mark.parametrize(
    "arguments",
    ['{"city": "</tool_call>', '{"city": "</tool_call>", "features": n', '{"city": "}}</tool_call>", "features": "}'],
)
def test_a_closing_tag_in_a_string_that_breaks_off_closes_nothing(arguments: str) -> None:
    text = f'<tool_call>\n{{"name": "search_rooms", "arguments": {arguments}'
    reading = TEXT_DIALECTS["hermes"].parse(text, TOOLS)
    assert reading.fault is not None
    assert all(call.malformed is not None for call in reading.message.tool_calls)


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=120, deadline=None)
@given(
    text=st.lists(
        AWKWARD | PLAIN | st.sampled_from([*BY_NAME, '"name": ', '"arguments": ', "Action: ", '"tool": ', "{", "["]),
        max_size=12,
    ).map("".join)
)
def test_any_text_is_read_without_failing(name: DialectName, text: str) -> None:
    reading = dialect_of(name).read(Completion(message=AssistantMessage(content=text), model="m"), TOOLS)
    assert {slip.kind for slip in reading.slips} <= SLIPS.keys()
    faults = [slip.kind for slip in reading.slips if not slip.repaired and slip.kind != "drafted_call"]
    assert (reading.fault is not None) == bool(faults)
    assert (reading.fault is not None) == any(call.malformed is not None for call in reading.message.tool_calls)
    assert reading.fault is not None or reading.message.tool_calls or reading.message.content.strip()


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "native"])
def test_the_text_about_tools_is_the_same_for_the_same_tools_and_names_each_once(name: DialectName) -> None:
    text = dialect_of(name).system_text("PROMPT", TOOLS)
    assert text == dialect_of(name).system_text("PROMPT", tuple(TOOLS))
    assert text.startswith("PROMPT\n\n")
    for tool in TOOLS:
        assert text.count(f'"name": "{tool.name}"') == 1
    assert dialect_of(name, parallel=False).tools_text(TOOLS) != text or name == "schema"
    assert prompt_file_digest(name) is not None


def test_native_has_no_text_about_tools_and_says_nothing_of_them() -> None:
    assert dialect_of("native").system_text("PROMPT", TOOLS) == "PROMPT"
    assert prompt_file_digest("native") is None


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "native"])
def test_a_conversation_is_sent_as_text_with_every_result_after_its_call(name: DialectName) -> None:
    call = ToolCall(name="find_books", arguments={"title": "Emma"}, id="call_0_0")
    broken = ToolCall(name="", malformed="<tool_call>?", id="call_1_0")
    sent = dialect_of(name).render(
        [
            SystemMessage(content="PROMPT"),
            UserMessage(content="Is Emma in?"),
            AssistantMessage(tool_calls=(call, call.model_copy(update={"id": "call_0_1"}))),
            ToolMessage(content="RESULT A", tool_call_id="call_0_0", name="find_books"),
            ToolMessage(content="RESULT B", tool_call_id="call_0_1", name="find_books"),
            AssistantMessage(tool_calls=(broken,)),
            ToolMessage(content="Error: what?", tool_call_id="call_1_0", name="", is_error=True),
            AssistantMessage(),
        ],
        TOOLS,
    )
    assert [message.role for message in sent] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert sent[3].content.index("RESULT A") < sent[3].content.index("RESULT B")
    assert sent[4].content == "<tool_call>?"
    assert sent[6].content


def test_reasoning_is_shown_again_as_asked() -> None:
    thought = AssistantMessage(content="Which?", reasoning="early")
    later = AssistantMessage(reasoning="late", tool_calls=(ToolCall(name="list_loans", id="c"),))
    talk = [UserMessage(content="a"), thought, UserMessage(content="b"), later]
    for kept, shown in (("none", []), ("turn", ["late"]), ("all", ["early", "late"])):
        texts = " ".join(message.content for message in dialect_of("hermes", reasoning=kept).render(talk, TOOLS))
        assert [word for word in ("early", "late") if word in texts] == shown
        native = dialect_of("native", reasoning=kept).render(talk, TOOLS)
        assert [m.reasoning for m in native if isinstance(m, AssistantMessage) and m.reasoning] == shown


@pytest.mark.parametrize("name", DIALECTS)
def test_what_was_rendered_once_is_the_same_object_at_the_next_turn(name: DialectName) -> None:
    call = ToolCall(name="list_loans", id="c0")
    talk: list[Any] = [SystemMessage(content="PROMPT"), UserMessage(content="a"), AssistantMessage(tool_calls=(call,))]
    talk.append(ToolMessage(content="[]", tool_call_id="c0", name="list_loans"))
    dialect, memory = dialect_of(name), Memory()
    before = dialect.render(talk, TOOLS, memory)
    after = dialect.render([*talk, AssistantMessage(content="None."), UserMessage(content="b")], TOOLS, memory)
    assert all(one is other for one, other in zip(before, after, strict=False))
    assert after == dialect.render([*talk, AssistantMessage(content="None."), UserMessage(content="b")], TOOLS)


def test_schema_has_a_branch_for_each_tool_and_one_for_the_answer_and_references_that_lead_somewhere() -> None:
    place = {"type": "object", "properties": {"at": {"$ref": "#/$defs/Point"}}, "required": ["at"]}
    points = {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    tool = TOOLS[0].model_copy(update={"name": "go", "parameters": {**place, "$defs": points}})
    schema = dialect_of("schema").response_schema((*TOOLS, tool))
    assert schema is not None
    assert [branch["properties"].get("tool", {}).get("const") for branch in schema["anyOf"]] == [*BY_NAME, "go", None]
    checker = SchemaChecker(schema)
    assert not checker.faults({"tool": "go", "arguments": {"at": {"x": 1}}}, "reply")
    assert not checker.faults({"final_answer": "Done."}, "reply")
    for wrong in (
        {"tool": "go", "arguments": {"at": {"x": "a"}}},
        {"tool": "fly", "arguments": {}},
        {"final_answer": 1},
    ):
        assert checker.faults(wrong, "reply")
