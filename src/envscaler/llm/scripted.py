"""`ScriptedModel`: a chat model that answers from a script, for tests of anything that asks a model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from envscaler.errors import UsageError
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.messages import AssistantMessage
from envscaler.record import Record

Scripted = Completion | AssistantMessage | Record | str | Exception
"""What a script gives: a completion, a message, a typed reply (sent as its JSON), a text, or an error to raise."""

Answer = Callable[[ModelRequest], Scripted | Awaitable[Scripted]]
"""A function of the request, plain or async."""

Script = Answer | Sequence[Scripted] | Scripted
"""A function; a sequence, used up from its start; or one reply that is given every time."""


class ScriptedModel:
    """A chat model that answers from a script and records what it was asked. It costs nothing.

    Example:
        >>> import asyncio
        >>> from envscaler.messages import UserMessage
        >>> model = ScriptedModel({"judge_call": ["first", "second"], "user_turn": lambda request: "hello"})
        >>> request = ModelRequest(role="judge_call", messages=(UserMessage(content="?"),))
        >>> asyncio.run(model.complete(request)).message.content
        'first'
        >>> [asked.role for asked in model.requests]
        ['judge_call']
    """

    def __init__(self, script: Script | Mapping[str, Script], *, name: str = "scripted") -> None:
        """
        Args:
            script: for all roles, or by role name.
        """
        self._scripts: dict[str | None, Script] = {}
        if isinstance(script, Mapping):
            self._scripts.update(script)
        else:
            self._scripts[None] = script
        self._positions: dict[str | None, Iterator[Scripted]] = {}
        self._name = name
        self.requests: list[ModelRequest] = []
        """Every request so far, in order."""

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            UsageError: if the script has no reply for it.
        """
        self.requests.append(request)
        key = request.role if request.role in self._scripts else None
        if key not in self._scripts:
            raise UsageError(f"the script has no reply for role {request.role}")
        script = self._scripts[key]
        if callable(script):
            given = script(request)
            reply = await given if inspect.isawaitable(given) else given
        elif isinstance(script, Sequence) and not isinstance(script, str):
            try:
                reply = next(self._positions.setdefault(key, iter(script)))
            except StopIteration:
                raise UsageError(f"the script for role {request.role} is used up after {len(script)} replies") from None
        else:
            reply = script
        return self._completion(reply)

    async def aclose(self) -> None:
        return None

    def _completion(self, reply: Scripted) -> Completion:
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        if isinstance(reply, str):
            reply = AssistantMessage(content=reply)
        elif not isinstance(reply, AssistantMessage):
            reply = AssistantMessage(content=reply.model_dump_json())
        finish = "tool_calls" if reply.tool_calls else "stop"
        return Completion(message=reply, finish_reason=finish, model=self._name, cost_usd=0.0)
