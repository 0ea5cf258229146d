"""OpenAI's chat completions on the wire: a request becomes a body, a body becomes a completion.

Nothing is sent here. What an endpoint does not support is `openai_model`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from envscaler.errors import NotJson
from envscaler.llm.chat import Completion, FinishReason, ModelRequest
from envscaler.llm.endpoint import Unreadable
from envscaler.messages import AssistantMessage, ToolCall, to_openai
from envscaler.record import JsonSchema
from envscaler.state import JsonValue, canonical
from envscaler.trajectory import Sampling, Usage

StructureLevel = Literal["json_schema", "json_object", "plain"]
"""What holds a reply to a schema: the endpoint, its JSON mode and the prompt, or the prompt alone."""

LEVELS: tuple[StructureLevel, ...] = ("json_schema", "json_object", "plain")

_FINISH: dict[Any, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
}
_THINK = re.compile(r"^[ \t]*<(think|thinking)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def combined(sampling: Sampling, defaults: Sampling) -> Sampling:
    """`sampling` where it says something, else `defaults`."""
    own = sampling.model_dump(exclude_none=True)
    return Sampling.model_validate(
        {**defaults.model_dump(exclude_none=True), **own, "extra": {**defaults.extra, **sampling.extra}}
    )


def request_body(
    request: ModelRequest,
    *,
    model: str,
    sampling: Sampling,
    level: StructureLevel,
    max_tokens_key: str = "max_tokens",
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The body of a chat completions request.

    Args:
        sampling: that of the request, defaults applied.
        level: how to ask for a reply that satisfies `request.response_schema`.
        extra: further fields, such as an endpoint's own options; those of the sampling win.
    """
    messages = [to_openai(message, reasoning=request.sends_reasoning) for message in request.messages]
    body: dict[str, Any] = {"model": model, "messages": messages, **(extra or {})}
    for key in ("temperature", "top_p", "seed"):
        if (value := getattr(sampling, key)) is not None:
            body[key] = value
    if sampling.max_tokens is not None:
        body[max_tokens_key] = sampling.max_tokens
    body.update(sampling.extra)
    if request.tools:
        body["tools"] = [tool.to_openai() for tool in request.tools]
    if request.response_schema is not None and level != "plain":
        body["response_format"] = response_format(level, request.role, request.response_schema)
    return body


def response_format(level: StructureLevel, name: str, schema: JsonSchema) -> dict[str, Any]:
    """The `response_format` of a request."""
    if level == "json_object":
        return {"type": "json_object"}
    # Without `strict`: OpenAI's strict form refuses optional fields and free-form objects, which states are made of.
    return {"type": "json_schema", "json_schema": {"name": re.sub(r"[^\w-]", "_", name)[:64], "schema": schema}}


def completion_from(reply: JsonValue, *, model: str) -> Completion:
    """The completion in the body of a reply; cost and latency are the caller's to add.

    Args:
        model: name to record when the endpoint gives none.

    Raises:
        Unreadable: if it is none.
    """
    if not isinstance(reply, dict):
        raise Unreadable(f"the reply is a JSON {type(reply).__name__}, not an object")
    if reply.get("error"):
        raise Unreadable(f"an error in a reply of status 200: {_short(reply['error'])}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Unreadable("a reply without choices")
    choice = choices[0]
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise Unreadable(f"a choice that failed: {_short(choice.get('error'))}")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Unreadable("a choice without a message")
    content, reasoning, text = _texts(message)
    calls = _tool_calls(message.get("tool_calls"))
    finish = _FINISH.get(choice.get("finish_reason"), "unknown")
    if calls and finish in ("stop", "unknown"):
        finish = "tool_calls"
    if not content and isinstance(message.get("refusal"), str) and message["refusal"]:
        content, finish = _whole(message["refusal"]), "content_filter"
    answered_by = reply.get("model")
    return Completion(
        message=AssistantMessage(content=content, reasoning=reasoning, tool_calls=calls),
        text=text,
        finish_reason=finish,
        usage=_usage(reply.get("usage")),
        model=answered_by if isinstance(answered_by, str) and answered_by else model,
    )


def split_reasoning(text: str) -> tuple[str, str | None]:
    """A text without its `<think>` blocks, and what stood in them; None without any.

    A block that was never closed is reasoning to its end. A closing tag alone ends reasoning that some chat templates
    open in the prompt.
    """
    thoughts: list[str] = []
    end = _THINK_END.search(text)
    opening = _THINK.search(text)
    if end is not None and (opening is None or end.start() < opening.start()):
        before = text[: end.start()]
        # Tags written side by side in prose or code are no reasoning.
        if "<think" not in before.lower():
            thoughts.append(before)
            text = text[end.end() :]
    for match in _THINK.finditer(text):
        thoughts.append(match.group(2))
    text = _THINK.sub("", text)
    if not thoughts:
        return text, None
    return text.strip(), "\n".join(thought.strip() for thought in thoughts if thought.strip()) or None


def _texts(message: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Content and reasoning of a message, in any of the forms that servers use, and the text that both stood in."""
    given = [message[key] for key in ("reasoning_content", "reasoning") if isinstance(message.get(key), str)]
    reasoning = [text for text in given[:1] if text.strip()]
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        reasoning += [text for part in parts if part.get("type") == "thinking" for text in _strings(part)]
        content = "".join(text for part in parts if part.get("type") != "thinking" for text in _strings(part))
    if not isinstance(content, str):
        content = ""
    text = content
    content, thoughts = split_reasoning(content)
    # Where servers have split already, what they left is the content.
    together = _whole(text) if content != text and not reasoning else None
    if thoughts:
        reasoning.append(thoughts)
    return _whole(content), _whole("\n".join(reasoning)) or None, together


def _strings(part: Mapping[str, Any]) -> list[str]:
    """The texts of one part of a content list (`text`, or a list of such parts under `thinking`)."""
    inner = part.get("thinking", part.get("text"))
    if isinstance(inner, str):
        return [inner]
    if isinstance(inner, list):
        return [text["text"] for text in inner if isinstance(text, dict) and isinstance(text.get("text"), str)]
    return []


def _tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    out: list[ToolCall] = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        # Servers that give no ids still want them back in the observations.
        call_id = call.get("id") if isinstance(call.get("id"), str) and call.get("id") else f"call_{len(out)}"
        arguments, malformed = _arguments(function.get("arguments"))
        out.append(
            ToolCall(
                name=_whole(name) if isinstance(name, str) else "", arguments=arguments, id=call_id, malformed=malformed
            )
        )
    return tuple(out)


def _arguments(given: Any) -> tuple[dict[str, JsonValue], str | None]:
    """Arguments of a call, or the text that is no JSON object."""
    if given is None or given == "":
        return {}, None
    text = _whole(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
    try:
        value = json.loads(text)
        # Numbers beyond JSON's and halves of characters parse, but nothing above could store them.
        json.dumps(canonical(value), ensure_ascii=False).encode()
    except (ValueError, RecursionError, NotJson):
        return {}, text
    return (value, None) if isinstance(value, dict) else ({}, text)


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which a reply cut in an emoji has and UTF-8 cannot hold."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _usage(usage: Any) -> Usage:
    """Tokens as reported; zeros when the endpoint reports none, and then the cost stays unknown."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    given = _count(usage.get("prompt_tokens"))
    return Usage(
        input_tokens=given,
        cached_input_tokens=min(_count(cached), given),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _short(value: JsonValue) -> str:
    return _whole(json.dumps(value, ensure_ascii=False))[:200]
