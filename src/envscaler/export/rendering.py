"""`Rendering`: an episode as rows of one format, cut by a chat template where one is given, with their lengths.

Which episodes become rows is the business of `selection`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from envscaler.agents.dialects import TextDialect
from envscaler.errors import TemplateError, UsageError
from envscaler.export.files import Written
from envscaler.export.formats import SftFormat, Unfit
from envscaler.export.messages import Chat, Row, chat_of
from envscaler.export.segmentation import segments
from envscaler.export.speech import spoken_chats
from envscaler.export.templates import ChatTemplate
from envscaler.export.tokens import Encode
from envscaler.trajectory import Trajectory

_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Rendered:
    """One row with its length."""

    written: Written
    tokens: int
    """As `Rendering.counting` says."""

    @property
    def row(self) -> Row:
        """What is written."""
        return self.written.row

    @property
    def characters(self) -> int:
        """Of the row's JSON text."""
        return len(self.written.line)


@dataclass(frozen=True)
class Rendering:
    """How episodes become rows."""

    format: SftFormat
    template: ChatTemplate | None = None
    encode: Encode | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.template is not None and not self.format.cut:
            raise UsageError(
                f"--format {self.format.name} writes tools and calls itself, and no template has a say in it; "
                "leave --template out"
            )
        if self.format.tokens and (self.template is None or self.encode is None):
            raise UsageError(f"--format {self.format.name} needs --template and --tokenizer")

    @property
    def counting(self) -> str:
        """How tokens are counted, in words."""
        if self.encode is None:
            return f"estimated: characters / {_CHARACTERS_A_TOKEN}"
        return "counted" if self.template is not None else "counted over the JSON text of the row"

    def rows(self, trajectory: Trajectory, dialect: TextDialect | None = None) -> tuple[list[Rendered], int]:
        """The rows of an episode, and how many more there would be if they were not too long.

        Args:
            dialect: in which it was played; None: calls were no text.

        Raises:
            Unfit: if the format has no place for the episode, or all of its rows are too long.
        """
        rendered = [self._rendered(chat, trajectory) for chat in self._parts(trajectory, dialect)]
        if not rendered:
            raise Unfit("nothing that could be learned")
        limit = self.max_tokens
        kept = rendered if limit is None else [row for row in rendered if row.tokens <= limit]
        if not kept:
            raise Unfit(f"more than {limit} tokens ({self.counting})")
        return kept, len(rendered) - len(kept)

    def _parts(self, trajectory: Trajectory, dialect: TextDialect | None) -> Iterator[Chat]:
        """What is to be one row each."""
        if dialect is None or self.format.structured:
            if any(call.malformed is not None for step in trajectory.steps for call in step.assistant.tool_calls):
                raise Unfit("a call that could not be read, and cannot be written as one")
            conversations: Sequence[Chat] = (chat_of(trajectory),)
        else:
            conversations = spoken_chats(trajectory, dialect)
        if self.format.prepare is not None:
            conversations = [self.format.prepare(conversation) for conversation in conversations]
        for chat in (part for conversation in conversations for part in self._cut(conversation)):
            if self.format.splitting == "whole":
                yield chat
            elif self.format.splitting == "stretches" and self.template is not None:
                yield from chat.stretches()
            else:
                yield from (chat.upto((turn,)) for turn in chat.learned or chat.turns)

    def _cut(self, chat: Chat) -> Iterable[Chat]:
        if self.template is None:
            return (chat,)
        try:
            cut = segments(chat.messages, chat.tools, self.template, self.encode)
        except TemplateError as error:
            raise Unfit("the template does not take it", str(error)) from error
        taught = set(chat.turns if chat.learned is None else chat.learned)
        kept = ((segment, tuple(turn for turn in segment.turns if turn in taught)) for segment in cut)
        return [replace(chat.upto(turns), tokens=segment.tokens(turns)) for segment, turns in kept if turns]

    def _rendered(self, chat: Chat, trajectory: Trajectory) -> Rendered:
        written = Written.of(self.format.row(chat, trajectory))
        if self.template is None and self.encode is None:
            return Rendered(written, ceil(len(written.line) / _CHARACTERS_A_TOKEN))
        if self.format.tokens:
            return Rendered(written, len(chat.tokens))
        text = self.template.render(chat.messages, chat.tools) if self.template is not None else written.line
        tokens = len(self.encode(text)) if self.encode is not None else ceil(len(text) / _CHARACTERS_A_TOKEN)
        return Rendered(written, tokens)
