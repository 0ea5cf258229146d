"""`ask`: one question to a model in a role, until the reply parses, validates and satisfies the caller.

A reply that does not is sent back with the fault named, a bounded number of times; then `ReplyError` makes it a
recorded failure of that unit. Transport faults are `llm`'s business and never reach this loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic

from envscaler.errors import ReplyError, ReplyFault
from envscaler.llm.around import needs_messages
from envscaler.llm.chat import ChatModel, Completion, Mending, ModelRequest
from envscaler.messages import AssistantMessage, Message, UserMessage
from envscaler.record import JsonSchema, Record
from envscaler.roles.code import blocks_in, code_in
from envscaler.roles.fitting import fitted
from envscaler.roles.objects import json_in
from envscaler.roles.role import Prompts, ReplyT, Role
from envscaler.roles.types import reply_schema
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Sampling


@dataclass(frozen=True)
class Answer(Generic[ReplyT]):
    """A usable reply and what it took to get it."""

    reply: ReplyT
    use: ModelUse
    """All attempts together."""
    attempts: int
    mended: tuple[Mending, ...] = ()
    """What had to be made good in its text."""
    reasoning: str | None = None
    """What the model thought before it replied, where the endpoint kept it apart."""


@dataclass(frozen=True)
class Attempt:
    """One question, the reply to it, and what was wrong with that."""

    request: ModelRequest
    completion: Completion
    kind: ReplyFault | None
    """None where the reply could be used."""
    fault: str = ""
    mended: tuple[Mending, ...] = ()
    """What had to be made good in its text, also where it was then rejected; empty where nothing was read."""


Doubt = Callable[[ReplyT], str | Awaitable[str | None] | None]
"""Says what is wrong with a reply that validates, or None; may try the reply out before it answers."""


async def ask(
    model: ChatModel,
    role: Role[ReplyT],
    inputs: Record,
    *,
    prompts: Prompts,
    doubt: Doubt[ReplyT] | None = None,
    sample: int = 0,
    attempts: int = 3,
    again_if_cut: bool = True,
    schema: JsonSchema | None = None,
    sampling: Sampling | None = None,
    on_attempt: Callable[[Attempt], None] | None = None,
) -> Answer[ReplyT]:
    """Ask `model` in `role`.

    Args:
        doubt: a check of the caller's beyond the reply's type; what it says goes back to the model.
        sample: tells apart equal requests of which several answers are wanted.
        attempts: questions at most, the first one included.
        again_if_cut: ask again also after a reply that ran into the token limit and cannot be used.
        schema: what the reply has to satisfy, narrower than the role's; None: that of the role.
        on_attempt: told of each reply as soon as it is known whether it can be used.

    Raises:
        ReplyError: if no attempt gave a usable reply; the message is the last fault.
    """
    # A model that answers from the typed inputs is spared the rendering, which costs more than most of its answers.
    rendered = prompts.render(role, inputs) if needs_messages(model) else ()
    messages: tuple[Message, ...] = rendered
    use = ModelUse()
    fault, kind = "", ReplyError("").kind
    for attempt in range(attempts):
        request = ModelRequest(
            role=role.name,
            inputs=inputs,
            messages=messages,
            response_schema=(schema or reply_schema(role.reply)) if role.form == "json" else None,
            sampling=sampling or Sampling(),
            sample=(sample, attempt),
        )
        completion = await model.complete(request)
        use = use + use_of(completion)
        mended: tuple[Mending, ...] = ()
        try:
            reply, mended = read(role, completion)
        except ReplyError as error:
            fault, kind = str(error), error.kind
        else:
            said = doubt(reply) if doubt is not None else None
            fault, kind = (await said if isinstance(said, Awaitable) else said) or "", "rejected"
            if not fault:
                if on_attempt is not None:
                    on_attempt(Attempt(request, completion, None, mended=mended))
                reasoning = completion.message.reasoning
                return Answer(reply=reply, use=use, attempts=attempt + 1, mended=mended, reasoning=reasoning)
        if on_attempt is not None:
            on_attempt(Attempt(request, completion, kind, fault, mended))
        if completion.finish_reason == "length" and not again_if_cut:
            break
        # Only the last reply goes back: a chain of bad ones teaches a model to write more of them.
        messages = (
            *rendered,
            AssistantMessage(content=_quoted(completion)),
            UserMessage(content=f"That reply cannot be used: {fault}\nReply again, complete, in the same form."),
        )
    raise ReplyError(f"{role.name}: {fault} (after {use.calls} attempt{'' if use.calls == 1 else 's'})", kind)


def _quoted(completion: Completion) -> str:
    """The text of a bad reply as it goes back: tool calls left out (nothing would answer them), never empty, and
    of one that ran into the token limit the head only, because repeating it would leave no room for a better one.
    """
    text = completion.message.content.strip() or "(no reply)"
    return f"{text[:2000]} …" if completion.finish_reason == "length" and len(text) > 2000 else text


def use_of(completion: Completion) -> ModelUse:
    """What one completion cost, as a record of use."""
    usage = completion.usage
    return ModelUse(
        calls=1,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=completion.cost_usd,
    )


def read(role: Role[ReplyT], completion: Completion) -> tuple[ReplyT, tuple[Mending, ...]]:
    """The reply in a completion, and what had to be made good in its text.

    Raises:
        ReplyError: if it cannot be used.
    """
    text = completion.message.content
    if completion.finish_reason == "content_filter":
        raise ReplyError("the endpoint's content filter withheld it", "withheld")
    if not text.strip():
        raise ReplyError("it is empty", "empty")
    cut = completion.finish_reason == "length"
    if role.form == "text":
        return role.reply.model_validate({"text": text}), ()
    if role.form == "code":
        source, mended = code_in(text, cut=cut)
        return role.reply.model_validate({"source": source}), mended
    if role.form == "blocks":
        blocks, mended = blocks_in(text, cut=cut)
        return role.reply.model_validate({"blocks": blocks}), mended
    return fitted(role.reply, json_in(text, cut=cut))
