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
