"""What a chat model is: one async method from a request to a completion.

Retries, caching, metering and prices live beside this file; roles and prompts above it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from envscaler.messages import AssistantMessage, Message
from envscaler.record import JsonSchema, Record
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling, Usage

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "unknown"]

Mending = Literal[
    "JSON syntax",
    "unclosed JSON",
    "ellipsis",
    "repeated key",
    "wrapped",
    "unwrapped",
    "extra fields",
    "converted value",
    "one of several",
    "no fence",
    "unclosed fence",
    "odd fence",
    "cut tail",
]
"""What was made good in a reply that was used: quotes, commas, brackets, comments or Python's literals, with every word
kept; brackets that the end lacked; an ellipsis left out; a key given twice, of which the last counts; the field put
around a value that stood alone; a list, a text or an object taken off from around the reply; fields left out that the
reply's type has not; a value of another type that says the same (`"7"` for 7); the longest taken of several that could
be meant; code without a fence; in a fence that is not closed; in one of another language, with code on its line, or
that holds marks of fences; what was complete taken of a reply that ended at the token limit."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model.

    Endpoints are sent `messages`, `tools` and `response_schema` only. Models that are not language models
    (`offline`, `scripted`) answer from `role` and the typed `inputs`.
    """

    role: str
    """Name of the role that asks, such as `plan_tools`; also the key under which use is metered."""
    messages: tuple[Message, ...]
    inputs: Record | None = None
    """The role's typed inputs, from which `messages` were rendered."""
    tools: tuple[ToolSpec, ...] = ()
    response_schema: JsonSchema | None = None
    """Schema that a JSON reply must satisfy; None: free text."""
    sampling: Sampling = field(default_factory=Sampling)
    sends_reasoning: bool = False
    """Whether reasoning in `messages` is sent too."""
    sample: tuple[int, int] = (0, 0)
    """Sample index and attempt: part of the cache key, so that N samples stay N."""


class Completion(Record):
    """A model's answer."""

    message: AssistantMessage
    text: str | None = None
    """The content as it was written, where reasoning was taken out of it; None where it is that of the message."""
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    model: str
    """Name of the model that answered, as the endpoint gives it."""
    latency_s: float = 0.0
    cost_usd: float | None = None
    """None: price unknown."""
    cached: bool = False
    """True when it came from the reply cache and cost nothing now."""


@runtime_checkable
class ChatModel(Protocol):
    """Anything that completes a conversation.

    A model whose attribute `needs_messages` is False answers from `role` and `inputs` alone; requests to it may come
    with empty `messages`.
    """

    @property
    def name(self) -> str:
        """The model's name, for records."""
        ...

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            EndpointUnavailable: it did not answer for longer than the patience.
            EndpointRejected: it refuses for good.
            BudgetExhausted: the limits given do not allow the call.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and files; idempotent."""
        ...
