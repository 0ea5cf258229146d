"""What a dialect is: how a model is told of its tools, how calls and results are written to it, and how its replies are
read.

Whether a slip is put right, answered by an error or ends the episode is `rollout.play`'s business: a reading says what
can be put right, and marks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, Message
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Slip

DialectName = Literal["native", "hermes", "qwen3.5", "llama", "mistral", "react", "schema"]
"""`native` is the endpoint's own function calling; in the others calls are text."""

Kept = Literal["none", "turn", "all"]
"""Which reasoning of earlier replies a model is shown again: none, that since the last user message, or all."""

MadeT = TypeVar("MadeT")

NO_REPLY = "(no reply)"
"""What stands for an empty message of the model, which many servers refuse."""


@dataclass(frozen=True)
class Reading:
    """What a reply comes to."""

    message: AssistantMessage
    """As it is recorded. A call that cannot be carried out is `malformed` and has its text."""
    slips: tuple[Slip, ...] = ()
    fault: str | None = None
    """Kind of the first slip that leaves nothing to be carried out; None when all calls, or the answer, are good."""


class Memory:
    """What was rendered for one episode: a conversation only grows, and is rendered again at each of its turns."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[tuple[object, ...], object]] = {}

    def kept(self, sources: tuple[object, ...], key: object, make: Callable[[], MadeT]) -> MadeT:
        """What `make` gives, made once for these very objects."""
        place = (*map(id, sources), key)
        held = self._made.get(place)
        # Kept with what it was made of, so that an id is never another object's.
        if held is None:
            held = self._made[place] = (sources, make())
        return held[1]  # type: ignore[return-value]


class Dialect(Protocol):
    """How one family of models is spoken to."""

    @property
    def name(self) -> DialectName: ...

    @property
    def form(self) -> str:
        """One sentence that tells a model how a call is written."""
        ...

    @property
    def sends_tools(self) -> bool:
        """Whether tools go to the endpoint as tools."""
        ...

    @property
    def sends_reasoning(self) -> bool:
        """Whether the endpoint is sent `reasoning_content`."""
        ...

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which the endpoint is asked to stop."""
        ...

    def tools_text(self, tools: Sequence[ToolSpec]) -> str:
        """What the system prompt says of the tools; empty where the endpoint says it."""
        ...

    def system_text(self, prompt: str, tools: Sequence[ToolSpec]) -> str:
        """The whole system message for a system prompt and tools, the same bytes for the same input."""
        ...

    def response_schema(self, tools: Sequence[ToolSpec]) -> JsonSchema | None:
        """The schema that a reply is held to; None where there is none."""
        ...

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], memory: Memory | None = None
    ) -> tuple[Message, ...]:
        """A conversation as the endpoint is sent it.

        Args:
            memory: of the episode; what was rendered once is then the same object again.
        """
        ...

    def read(self, completion: Completion, tools: Sequence[ToolSpec]) -> Reading:
        """What a completion comes to."""
        ...
