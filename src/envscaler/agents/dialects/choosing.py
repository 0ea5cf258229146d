"""`choose_dialect`: which dialect an endpoint's model can be played in, found out by asking it."""

from __future__ import annotations

from envscaler.agents.dialects.dialect import DialectName
from envscaler.agents.dialects.lenient_json import Unreadable, read_json
from envscaler.errors import ReplyError
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import UserMessage
from envscaler.models.settings import OFFLINE
from envscaler.program import argument_faults
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec

_QUESTION = "What is the weather in Oslo? Use the tool."
_TOOL = ToolSpec(
    name="look_up_weather",
    description="Looks up today's weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    effect="query",
)
_ROLE = "probe"


async def choose_dialect(model: ChatModel) -> DialectName:
    """`native` where an offered tool comes back as a call, else `schema` where a reply is held to a schema, else
    `hermes`.

    At most two small requests. Many servers take tools and give back text, so that only asking tells.

    Raises:
        EndpointUnavailable: the endpoint did not answer.
        EndpointRejected: it refuses for good.
        BudgetExhausted: the limits given do not allow the call.
    """
    if model.name == OFFLINE:
        return "native"
    reply = await _asked(model, ModelRequest(role=_ROLE, messages=(UserMessage(content=_QUESTION),), tools=(_TOOL,)))
    if reply is not None and any(call.name == _TOOL.name for call in reply.message.tool_calls):
        return "native"
    # Asked for nothing that the words alone would bring about, so that what comes was brought about by the schema.
    schema: JsonSchema = {
        "type": "object",
        "properties": {"tool": {"const": _TOOL.name}, "arguments": _TOOL.parameters},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
    question = UserMessage(content="What is the weather in Oslo?")
    reply = await _asked(model, ModelRequest(role=_ROLE, messages=(question,), response_schema=schema))
    return "schema" if reply is not None and _satisfies(reply.message.content, schema) else "hermes"


async def _asked(model: ChatModel, request: ModelRequest) -> Completion | None:
    try:
        return await model.complete(request)
    except ReplyError:
        return None  # refused as it stands: tools, or schemas, are not supported


def _satisfies(text: str, schema: JsonSchema) -> bool:
    try:
        read = read_json(text.strip(), 0)
    except Unreadable:
        return False
    whole = not read.slips and not text.strip()[read.end :]
    return whole and isinstance(read.value, dict) and not argument_faults(schema, read.value)
