"""`slips_of`: what is wrong with a simulated user's message, found by program.

A slip may cost an episode its place in the results, so that only what is certain counts: a message that can be read as
right is right. Each kind and its limits stand in docs/conversation.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from envscaler.agents.user.brief import Brief, Heard
from envscaler.agents.user.claims import invented
from envscaler.agents.user.phrases import AS_AGENT, CLOSING, DIRECTING, GIVING_UP, NOTHING, OFFER
from envscaler.agents.user.reading import is_han, tokens_of
from envscaler.agents.user.stopping import UserTurn
from envscaler.messages import AssistantMessage, Message, ToolMessage, UserMessage
from envscaler.trajectory import Slip

SlipKind = Literal[
    "tells_everything",
    "repeats_task",
    "invents",
    "stops_early",
    "never_stops",
    "speaks_as_agent",
    "empty",
    "shows_token",
]
SLIP_KINDS: tuple[SlipKind, ...] = get_args(SlipKind)

FAULTS: dict[SlipKind, str] = {
    "tells_everything": "it tells everything at once; write only your concern, or one or two details",
    "repeats_task": "it copies the description of what you want; say it in your own words, and only a part of it",
    "invents": "it names what you cannot know ({detail}); say only what you were told, or that you do not know",
    "stops_early": "you have not told everything yet: {detail}; tell that before you end the conversation",
    "never_stops": "it says again what was said before; tell what has not been told, or write only the stop token",
    "speaks_as_agent": "it is written as if you were the assistant or used tools; write what the user says",
    "empty": "it says nothing; write what the user says",
    "shows_token": "it speaks of the stop token; write the token alone when you are done, and never otherwise",
}
"""What is said to the model of each kind when it is asked again."""

_RUN_WORDS, _RUN_CHARACTERS = 12, 20
"""Words, and characters of Chinese, that nobody repeats in the same order by chance."""
_COPIED = 0.5
"""Share of the task from which a run of its words is a copy."""
_ALL = 3
"""Parts that are everything at once where they come after a first message that told nothing."""
_CLOSINGS = 3
"""Farewells in a row that are one too many; the very same message so often, too, while there is more to tell."""

_CLOSING_LENGTH = 30
"""Words of a farewell at most."""


def slips_of(
    turn: UserTurn, brief: Brief, conversation: Sequence[Message], seen: Sequence[str] = ()
) -> tuple[Slip, ...]:
    """What is wrong with the user's next message.

    Args:
        conversation: everything before it, also what the user did not hear.
        seen: what came of calls of its own.
    """
    return (*turn.slips, *_found(turn, brief, conversation, seen))


def _found(turn: UserTurn, brief: Brief, conversation: Sequence[Message], seen: Sequence[str]) -> Iterator[Slip]:
    text = turn.text
    told = [message.content for message in conversation if isinstance(message, UserMessage)]
    replies = [
        message.content for message in conversation if isinstance(message, AssistantMessage) and not message.tool_calls
    ]
    if turn.stopped:
        yield from _early(turn, brief, told, replies)
    elif NOTHING.fullmatch(text):
        yield Slip(kind="empty", detail=text[:80])
        return
    if not text:
        return
    speech = AS_AGENT.search(text)
    # What the assistant wrote may be repeated to it.
    if speech is not None and not any(speech.group().strip() in reply for reply in replies):
        yield Slip(kind="speaks_as_agent", detail=speech.group().strip()[:80])
    if not turn.stopped:
        yield from _copied(text, brief)
        yield from _all_at_once(text, brief, told)
        yield from _endless(text, brief, conversation)
    values = invented(text, Heard((*brief.known, *told, *replies, *seen)))
    if values:
        yield Slip(kind="invents", detail=", ".join(values)[:80])


def _early(turn: UserTurn, brief: Brief, told: Sequence[str], replies: Sequence[str]) -> Iterator[Slip]:
    # An assistant that says that it cannot go on ends the conversation itself, and has to answer for that.
    if replies and GIVING_UP.search(replies[-1]):
        return
    untold = brief.untold(Heard((*told, turn.text, *replies)))
    if untold:
        yield Slip(kind="stops_early", detail=untold[0].text[:80])


def _all_at_once(text: str, brief: Brief, told: Sequence[str]) -> Iterator[Slip]:
    parts = brief.tellable
    if len(parts) < 2:
        return
    now = Heard([text])
    if not all(part.is_told(now) for part in parts):
        return
    before = Heard(told)
    if not told or (len(parts) >= _ALL and not any(before.has(value) for part in parts for value in part.details)):
        yield Slip(kind="tells_everything", detail=text[:80])


def _copied(text: str, brief: Brief) -> Iterator[Slip]:
    task, said = tokens_of(brief.task), tokens_of(text)
    least = _RUN_CHARACTERS if sum(map(is_han, task)) > len(task) / 2 else _RUN_WORDS
    run = _longest_run(said, task, least)
    if len(run) < max(least, _COPIED * len(task)):
        return
    # What the profile says in the words of the task may be said in them.
    for own in (brief.opening, *(brief.facts or [part.text for part in brief.parts])):
        if len(_longest_run(run, tokens_of(own), least)) >= 0.8 * len(run):
            return
    yield Slip(kind="repeats_task", detail=text[:80])


def _longest_run(said: Sequence[str], task: Sequence[str], least: int) -> list[str]:
    """The longest run of words that two texts share, if it has at least so many."""
    places: dict[tuple[str, ...], int] = {}
    for start in range(len(task) - least + 1):
        places.setdefault(tuple(task[start : start + least]), start)
    best: list[str] = []
    for start in range(len(said) - least + 1):
        place = places.get(tuple(said[start : start + least]))
        if place is None or len(said) - start <= len(best):
            continue
        length = least
        while (
            start + length < len(said) and place + length < len(task) and said[start + length] == task[place + length]
        ):
            length += 1
        if length > len(best):
            best = list(said[start : start + length])
    return best


def _endless(text: str, brief: Brief, conversation: Sequence[Message]) -> Iterator[Slip]:
    told = [message.content for message in conversation if isinstance(message, UserMessage)]
    if _is_stuck(text, told, conversation) and brief.untold(Heard(told)):
        yield Slip(kind="never_stops", detail=text[:80])
        return
    exchange = [text, *_idle_exchange(conversation)]
    if len(exchange) < _CLOSINGS:
        return
    if not all(_is_farewell(said, brief) for said in exchange[:_CLOSINGS]):
        return
    if not brief.untold(Heard((*told, text))):
        yield Slip(kind="never_stops", detail=text[:80])


def _is_stuck(text: str, told: Sequence[str], conversation: Sequence[Message]) -> bool:
    """Whether the same is said once more to an assistant that did nothing meanwhile."""
    if told[-_CLOSINGS + 1 :] != [text] * (_CLOSINGS - 1):
        return False
    first = [index for index, message in enumerate(conversation) if isinstance(message, UserMessage)][-_CLOSINGS + 1]
    return not any(isinstance(message, ToolMessage) for message in conversation[first:])


def _idle_exchange(conversation: Sequence[Message]) -> Iterator[str]:
    """The user's messages that the assistant answered by words alone, and by no question; the last one first."""
    for message in reversed(conversation):
        if isinstance(message, UserMessage):
            yield message.content
        elif not isinstance(message, AssistantMessage) or message.tool_calls or _is_question(message.content):
            return


def _is_question(reply: str) -> bool:
    return reply.rstrip(" *_\"”'").endswith(("?", "？")) and OFFER.search(reply) is None


def _is_farewell(text: str, brief: Brief) -> bool:
    if len(tokens_of(text)) > _CLOSING_LENGTH or CLOSING.search(text) is None or DIRECTING.search(text):
        return False
    heard = Heard([text])
    return not any(heard.has(detail) for part in brief.parts for detail in part.details)
