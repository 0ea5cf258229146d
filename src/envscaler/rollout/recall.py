"""`EpisodeReplies`: the models of one episode, which answer first what they had answered before the run was killed.

The episode is played from its beginning again, tool calls included, which do the same again; only the models are not
asked twice. A reply counts where the same is asked as then. The journal belongs to one run: nothing else is answered
from it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from pydantic import ValidationError

from envscaler.llm.around import ModelAround
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import Message
from envscaler.state import JsonValue
from envscaler.store import ReplyJournal

OnReuse = Callable[[str, Completion], None]
"""Told role and reply."""


class _Reply(NamedTuple):
    asked: str
    """Digest of the question."""
    completion: Completion


class EpisodeReplies:
    """What the models of one episode answer, kept as it comes.

    Args:
        episode: its key in the journal.
        on_reuse: told of each reply that is not asked for again; `Meter.count_reused` fits.
    """

    def __init__(self, journal: ReplyJournal, episode: str, on_reuse: OnReuse) -> None:
        self._journal = journal
        self._episode = episode
        self._on_reuse = on_reuse
        self._before = deque(_replies(journal.take(episode)))
        self._given: list[_Reply] = []

    def model(self, model: ChatModel) -> ChatModel:
        """The model as the episode is to ask it."""
        return _RecallingModel(model, self)

    def rewind(self) -> None:
        """The episode begins again, with all that was answered in it so far."""
        self._before, self._given = deque([*self._given, *self._before]), []

    def recalled(self, asked: str, role: str) -> Completion | None:
        """The reply that was given to this before; replies to what is not asked again are forgotten."""
        while self._before:
            reply = self._before.popleft()
            if reply.asked == asked:
                self._given.append(reply)
                self._on_reuse(role, reply.completion)
                return reply.completion
        return None

    def keep(self, asked: str, completion: Completion) -> None:
        """Write a reply down."""
        self._given.append(_Reply(asked, completion))
        try:
            reply = completion.model_dump_json()
        except ValueError:  # half of a surrogate pair, which pydantic does not write
            self._journal.append(self._episode, {"asked": asked, "reply": completion.model_dump()})
        else:
            self._journal.append_text(self._episode, f'{{"asked": "{asked}", "reply": {reply}}}')


class _RecallingModel(ModelAround):
    def __init__(self, model: ChatModel, replies: EpisodeReplies) -> None:
        super().__init__(model)
        self._replies = replies
        self._conversation = _Conversation()

    async def complete(self, request: ModelRequest) -> Completion:
        asked = self._conversation.digest(request)
        completion = self._replies.recalled(asked, request.role)
        if completion is None:
            completion = await self._model.complete(request)
            self._replies.keep(asked, completion)
        return completion

    async def aclose(self) -> None:
        return None  # the model is the run's


class _Conversation:
    """Digests of requests that mostly go on where the one before ended: only what is new is looked at."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._hash = blake2b(digest_size=16)

    def digest(self, request: ModelRequest) -> str:
        messages, seen = request.messages, self._seen
        # A conversation only grows; where messages are rendered anew at every turn, the last one is another object.
        if seen and (
            len(messages) < len(seen) or messages[len(seen) - 1] is not seen[-1] or messages[0] is not seen[0]
        ):
            seen, self._hash = (), blake2b(digest_size=16)
        for message in messages[len(seen) :]:
            # Of what the model said the content is enough: it follows from the replies before, which are told apart.
            self._hash.update(f"{message.role} {message.content}\0".encode("utf-8", "backslashreplace"))
        self._seen = messages
        asked = self._hash.copy()
        asked.update(f"{request.role}{request.sample}".encode())
        return asked.hexdigest()


def _replies(lines: list[JsonValue]) -> Iterator[_Reply]:
    for line in lines:
        # What is of another version is asked for again; guessing at it would not be right.
        with contextlib.suppress(KeyError, TypeError, ValidationError):
            yield _Reply(line["asked"], Completion.model_validate(line["reply"]))
