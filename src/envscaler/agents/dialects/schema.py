"""Schema-constrained calls: every reply is JSON that satisfies a schema with a branch for each tool and one for the
final answer. What small servers need, which take tools and give back text."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from envscaler.agents.dialects.dialect import DialectName, Reading
from envscaler.agents.dialects.lenient_json import Incomplete, Unreadable, json_text, read_json
from envscaler.agents.dialects.reply_reader import faulty
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools, shaped
from envscaler.agents.dialects.slips import slip
from envscaler.agents.dialects.text_dialect import TextDialect
from envscaler.llm.chat import FinishReason
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue
from envscaler.trajectory import Slip

ANSWER = "final_answer"
_THOUGHT = "thought"
_KEYS = Keys("tool", "arguments", silent=(_THOUGHT,))


class SchemaDialect(TextDialect):
    """`{"tool": …, "arguments": {…}}` or `{"final_answer": "…"}`, one a reply."""

    name: ClassVar[DialectName] = "schema"
    form = 'Reply with {"tool": "name", "arguments": {…}} or {"final_answer": "text"} and nothing else.'
    keys = _KEYS

    def response_schema(self, tools: Sequence[ToolSpec]) -> JsonSchema | None:
        definitions: dict[str, Any] = {}
        branches = [_branch(tool, definitions) for tool in tools]
        branches.append(
            {
                "type": "object",
                "properties": {ANSWER: {"type": "string"}},
                "required": [ANSWER],
                "additionalProperties": False,
            }
        )
        return {"anyOf": branches, "$defs": definitions} if definitions else {"anyOf": branches}

    def text_of(self, message: AssistantMessage, tools: Tools) -> str:
        thought: dict[str, JsonValue] = {_THOUGHT: message.reasoning} if message.reasoning else {}
        if not message.tool_calls:
            return json_text({**thought, ANSWER: message.content}) if message.content or thought else ""
        good = [call for call in message.tool_calls if call.malformed is None]
        written: list[str] = [message.content] if message.content else []
        objects: list[JsonValue] = [{"tool": call.name, "arguments": call.arguments} for call in good]
        if len(objects) == 1:
            written.append(json_text({**thought, **objects[0]}))
        elif objects:
            written.append(json_text(objects))
        return "\n".join([*written, *(call.malformed for call in message.tool_calls if call.malformed is not None)])

    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        return self.text_of(AssistantMessage(tool_calls=tuple(calls)), tools)

    def results_text(self, results: Sequence[ToolMessage]) -> str:
        return "\n\n".join(f"Result of {result.name}:\n{result.content}" for result in results)

    def find(self, text: str, tools: Tools) -> list[Found]:
        start = len(text) - len(text.lstrip())
        if text[start : start + 1] not in ("{", "["):
            return []
        try:
            read = read_json(text, start)
        except Incomplete:
            return self._broken(text, start, "cut_call")
        except Unreadable:
            return self._broken(text, start, "unreadable_call")
        values = read.value if isinstance(read.value, list) else [read.value]
        if not any(isinstance(value, dict) and _calls(value, tools) for value in values):
            return []
        slips = [*read.slips, *(["call_list"] if isinstance(read.value, list) else [])]
        end = read.end
        while text[end : end + 1] in ("}", "]"):
            slips.append("extra_brace")
            end += 1
        attempts = [self._attempt(value, text[start:end], tools, slips) for value in values]
        found = [Found(start, end, attempts)]
        # Several objects one after another are several calls.
        following = end + len(text[end:]) - len(text[end:].lstrip(" \t\n,;"))
        if text[following : following + 1] == "{":
            for stretch in self.find(text[following:], tools):
                for attempt in stretch.attempts:
                    attempt.slips.append("call_list")
                found.append(Found(stretch.start + following, stretch.end + following, stretch.attempts))
        return found

    def strays(self, text: str, tools: Tools) -> list[Found]:
        found = super().strays(text, tools)
        for stretch in found:
            for attempt in stretch.attempts:
                # Bare JSON is this dialect's form; what is wrong with it is the text around it.
                attempt.slips = [kind for kind in attempt.slips if kind != "missing_wrapper"]
        return found

    def answered(self, text: str, reasoning: str | None, slips: list[Slip]) -> Reading:
        read, fenced, around = _object_in(text)
        if read is None:
            if text.lstrip().startswith(("{", "```")):
                return faulty("unreadable_call", text, reasoning, slips)
            slips.append(slip("missing_answer_mark", text))
            return Reading(AssistantMessage(content=text.strip(), reasoning=reasoning), tuple(slips))
        value, kinds = read
        thought = value.get(_THOUGHT)
        if isinstance(thought, str) and thought.strip():
            reasoning = "\n".join(part for part in (reasoning, thought.strip()) if part)
        if ANSWER not in value:
            return faulty("nameless_call", text, reasoning, slips)
        slips += [slip(kind, text) for kind in kinds]
        if fenced:
            slips.append(slip("fenced_call", text))
        if around:
            slips.append(slip("text_before_call", around))
        if set(value) - {ANSWER, _THOUGHT}:
            slips.append(slip("other_keys", text))
        answer = value[ANSWER]
        if not isinstance(answer, str):
            slips.append(slip("answer_not_text", text))
            answer = json_text(answer) if answer is not None else ""
        if not answer.strip():
            return faulty("empty_reply", text, reasoning, slips)
        return Reading(AssistantMessage(content=answer, reasoning=reasoning), tuple(slips))

    def said_before(self, text: str, reasoning: str | None, slips: list[Slip]) -> tuple[str, str | None]:
        if text.strip():
            slips.append(slip("text_before_call", text))
        return text.strip(), reasoning

    def parse(self, text: str, tools: Sequence[ToolSpec], finish: FinishReason = "stop") -> Reading:
        reading = super().parse(text, tools, finish)
        if not reading.message.tool_calls or not (thought := _thought_in(text)):
            return reading
        reasoning = "\n".join(part for part in (reading.message.reasoning, thought) if part)
        return Reading(reading.message.model_copy(update={"reasoning": reasoning}), reading.slips, reading.fault)

    def _attempt(self, value: JsonValue, text: str, tools: Tools, slips: list[str]) -> Attempt:
        members = dict(value) if isinstance(value, dict) else value
        both = isinstance(members, dict) and members.get(ANSWER) not in (None, "")
        extra = isinstance(members, dict) and ANSWER in members
        if isinstance(members, dict):
            members.pop(ANSWER, None)
        attempt = shaped(members, text, tools, _KEYS, slips)
        if both:
            attempt.slips.append("call_and_answer")
        elif extra:
            attempt.slips.append("other_keys")
        return attempt

    def _broken(self, text: str, start: int, fault: str) -> list[Found]:
        return [Found(start, len(text), [Attempt(text=text[start:], fault=fault)])]


def _thought_in(text: str) -> str | None:
    """The thought in a call's JSON, which is reasoning and no argument."""
    start = text.find("{")
    try:
        value = read_json(text, start).value if start >= 0 else None
    except Unreadable:
        return None
    thought = value.get(_THOUGHT) if isinstance(value, dict) else None
    return thought.strip() or None if isinstance(thought, str) else None


def _calls(value: dict[str, JsonValue], tools: Tools) -> bool:
    """Whether an object is meant as a call; else it is an answer, or nothing."""
    if "tool" in value and value["tool"] is not None:
        return True
    names = [value.get(key) for key in ("name", "tool_name", "function", "action")]
    if any(isinstance(name, str) and (name in tools or ANSWER not in value) for name in names):
        return True
    return isinstance(value.get("function"), dict) or (len(value) == 1 and next(iter(value)) in tools)


def _object_in(text: str) -> tuple[tuple[dict[str, JsonValue], tuple[str, ...]] | None, bool, str]:
    """The first JSON object with an answer, whether a fence holds it, and what stands around it."""
    position = text.find("{")
    while position >= 0:
        try:
            read = read_json(text, position, ("\n```",))
        except Unreadable:
            return None, False, ""
        if isinstance(read.value, dict) and (ANSWER in read.value or text[:position].strip(" \n`json") == ""):
            before = text[:position].strip()
            after = text[read.end :].strip()
            fenced = before.endswith(("```", "```json"))
            around = (before.removesuffix("json").removesuffix("```") + after.removeprefix("```")).strip(" \n}")
            return (read.value, read.slips), fenced, around
        position = text.find("{", read.end)
    return None, False, ""


def _branch(tool: ToolSpec, definitions: dict[str, Any]) -> JsonSchema:
    parameters = copy.deepcopy(tool.parameters)
    for key in ("$defs", "definitions"):
        own = parameters.pop(key, None)
        if isinstance(own, dict):
            # References in a branch begin at the root of the whole schema.
            for name, part in own.items():
                definitions[f"{tool.name}.{name}"] = _moved(part, key, tool.name)
            parameters = _moved(parameters, key, tool.name)
    return {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "arguments": parameters},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def _moved(schema: Any, key: str, tool: str) -> Any:
    if isinstance(schema, list):
        return [_moved(part, key, tool) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _moved(part, key, tool) for name, part in schema.items()}
    reference = made.get("$ref")
    if isinstance(reference, str) and reference.startswith(f"#/{key}/"):
        made["$ref"] = f"#/$defs/{tool}.{reference.removeprefix(f'#/{key}/')}"
    return made
