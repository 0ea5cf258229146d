"""`probe_endpoint`: what an endpoint can do, found out with a few tiny requests, for `envscaler doctor`."""

from __future__ import annotations

import time
from typing import Any

from envscaler.errors import EndpointRejected, UsageError
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.endpoint import Endpoint, RequestRefused, public_url
from envscaler.llm.openai_model import PATH
from envscaler.llm.transport import Fault
from envscaler.llm.wire import completion_from, request_body, response_format
from envscaler.messages import UserMessage
from envscaler.models.settings import ModelSettings
from envscaler.record import Record
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue

_SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
_TOOL = ToolSpec(
    name="look_up_weather",
    description="Looks up today's weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    effect="query",
)


class EndpointReport(Record):
    """What was found out; None: not found out, because something before it failed."""

    base_url: str
    """Without credentials."""
    model: str
    reachable: bool
    """Whether anything answered at that URL."""
    error: str | None = None
    """Why the model gave no reply; None when it did."""
    models: tuple[str, ...] | None = None
    """Names that the endpoint lists; None when it lists none."""
    model_listed: bool | None = None
    json_schema: bool | None = None
    """Whether a `response_format` with a schema is accepted and gives JSON."""
    json_mode: bool | None = None
    tools: bool | None = None
    """Whether an offered tool comes back as a parsed call. Small servers accept tools and return text."""
    reasoning: bool | None = None
    """Whether the reply came with reasoning."""
    usage: bool | None = None
    """Whether tokens are reported."""
    latency_s: float | None = None
    """Seconds for the first reply."""


async def probe_endpoint(settings: ModelSettings, *, timeout_s: float = 60.0) -> EndpointReport:
    """Try the common model of the settings; at most five requests, none repeated.

    Raises:
        UsageError: if the settings name no base URL.
    """
    if settings.base_url is None:
        raise UsageError("no endpoint to try: give --base-url URL and --model NAME")
    endpoint = Endpoint(
        settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        headers={name: value.get_secret_value() for name, value in settings.headers.items()},
        timeout_s=min(timeout_s, settings.timeout_s),
    )
    try:
        return await _probed(settings, endpoint)
    finally:
        await endpoint.aclose()


async def _probed(settings: ModelSettings, endpoint: Endpoint) -> EndpointReport:
    found: dict[str, Any] = {"base_url": public_url(endpoint.base_url), "model": settings.model}
    try:
        listed = await endpoint.get_once("/models")
    except (EndpointRejected, RequestRefused) as error:
        # Many servers list nothing, or only to other keys; the model may answer all the same.
        found["error"] = str(error)
    else:
        if isinstance(listed, Fault):
            if listed.status is None and listed.kind != "unreadable":
                return EndpointReport(**found, reachable=False, error=listed.detail)
        else:
            found["models"] = names = _listed_names(listed)
            found["model_listed"] = settings.model in names if names else None
    started = time.monotonic()
    plain = await _asked(endpoint, settings, "Reply with the word: ok")
    if isinstance(plain, str):
        return EndpointReport(**{**found, "error": plain}, reachable=True)
    found |= {
        "error": None,
        "latency_s": time.monotonic() - started,
        "reasoning": plain.message.reasoning is not None,
        "usage": plain.usage.output_tokens > 0,
    }
    question = 'Reply with this JSON object and nothing else: {"ok": true}'
    for name, level in (("json_schema", "json_schema"), ("json_mode", "json_object")):
        reply = await _asked(endpoint, settings, question, response_format=response_format(level, "probe", _SCHEMA))  # type: ignore[arg-type]
        found[name] = not isinstance(reply, str) and reply.message.content.lstrip().startswith("{")
    reply = await _asked(endpoint, settings, "What is the weather in Oslo? Use the tool.", tools=[_TOOL.to_openai()])
    found["tools"] = not isinstance(reply, str) and any(call.name == _TOOL.name for call in reply.message.tool_calls)
    return EndpointReport(**found, reachable=True)


async def _asked(endpoint: Endpoint, settings: ModelSettings, text: str, **fields: Any) -> Completion | str:
    """The reply to one question, or why there is none."""
    request = ModelRequest(role="probe", messages=(UserMessage(content=text),))
    body = request_body(
        request, model=settings.model, sampling=settings.sampling, level="plain", extra={**settings.body, **fields}
    )
    try:
        reply = await endpoint.post_once(PATH, body, lambda reply: completion_from(reply, model=settings.model))
    except (EndpointRejected, RequestRefused) as error:
        return str(error)
    return reply.detail if isinstance(reply, Fault) else reply


def _listed_names(listed: JsonValue) -> tuple[str, ...] | None:
    rows = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list):
        return None
    return tuple(row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str))
