"""Turns of a conversation: the agent that plays a recorded solution, and the simulated user.

Both read nothing but the conversation so far, so that an episode can be resumed at any turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from envscaler.offline.interpret import is_moment
from envscaler.offline.wording import Wording, telling_words, wording, words_of
from envscaler.roles.types import AgentTurnInputs, TextReply, UserTurnInputs
from envscaler.scenario import SolutionCall
from envscaler.state import JsonValue

_PATIENCE = 3
"""User messages that bring nothing new before the agent acts on what it has, and the user ends the conversation."""


def agent_turn(inputs: AgentTurnInputs) -> tuple[str, ToolCall | None]:
    """What the agent says next: content and, unless it waits or has finished, one tool call.

    In a conversation a call is made once the user has told all that it and the queries behind it need.
    """
    said = wording(inputs.language)
    if inputs.solution is None:
        return said.say("agent_no_solution"), None
    observations = [message for message in inputs.conversation if isinstance(message, ToolMessage)]
    done = len(observations)
    if done >= len(inputs.solution):
        return _closing(inputs, observations, said), None
    if not _may_go_on(inputs, done):
        # An offer of more help ends a conversation in which all is told: where no value is missing, it is asked.
        missing = any(_needs(inputs.solution, _next_update(inputs.solution, done), done))
        if done and missing:
            return said.say("agent_progress"), None
        variants = said.phrases["agent_ask"]
        return variants[_questions(inputs.conversation) % len(variants)], None
    step = inputs.solution[done]
    results = [_result(message.content) for message in observations]
    return said.say("agent_call"), ToolCall(name=step.name, arguments=step.resolved(results))


def _closing(inputs: AgentTurnInputs, observations: Sequence[ToolMessage], said: Wording) -> str:
    if not inputs.solution:
        return said.say("agent_nothing")
    errors = [error for message in observations if (error := _error(message)) is not None]
    if errors:
        return said.say("agent_done_in_part", errors="; ".join(dict.fromkeys(errors)))
    return said.say("agent_done")


def _result(content: str) -> JsonValue:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _error(message: ToolMessage) -> str | None:
    result = _result(message.content)
    if message.is_error or not isinstance(result, dict):
        return message.content if message.is_error else None
    return str(result.get("error")) if result.get("success") is False else None


def _may_go_on(inputs: AgentTurnInputs, done: int) -> bool:
    """Whether the user has told what the next update needs, or has nothing more to tell."""
    told = [message.content for message in inputs.conversation if isinstance(message, UserMessage)]
    if not told or any(inputs.task.strip() in text for text in told):
        return True
    solution = inputs.solution or ()
    heard, known = words_of(" ".join(told)), words_of(inputs.task)
    # What the task has in other words, if at all, cannot be waited for.
    needs = [value for value in _needs(solution, _next_update(solution, done), done) if value <= known]
    if all(value <= heard for value in needs) and (needs or _told_of_it(inputs, done)):
        return True
    # Somebody who words things differently is not asked for ever.
    return _questions(inputs.conversation) >= len(solution) + _PATIENCE or _silent(told) >= _PATIENCE


def _told_of_it(inputs: AgentTurnInputs, done: int) -> bool:
    """Whether the user can have told of calls that need no value: something was said since the calls before them."""
    solution = inputs.solution or ()
    if done == 0:
        return sum(isinstance(message, UserMessage) for message in inputs.conversation) > 1
    used = any(binding.call == done - 1 for call in solution[done:] for binding in call.bindings.values())
    if used or solution[done].name == solution[done - 1].name:
        return True
    return any(isinstance(message, UserMessage) for message in inputs.conversation[_last_result(inputs) :])


def _last_result(inputs: AgentTurnInputs) -> int:
    places = [index for index, message in enumerate(inputs.conversation) if isinstance(message, ToolMessage)]
    return places[-1]


def _next_update(solution: Sequence[SolutionCall], done: int) -> int:
    """Index of the call that the coming ones lead to: the first one whose result no call in between needs."""
    needed_by = {binding.call: index for index, call in enumerate(solution) for binding in call.bindings.values()}
    index = done
    while index in needed_by and needed_by[index] > index and index < len(solution) - 1:
        index = min(needed_by[index], len(solution) - 1)
    return index


def _needs(solution: Sequence[SolutionCall], last: int, done: int) -> Iterator[frozenset[str]]:
    """The words of each value that the calls up to `last` take from the user and not from results."""
    for call in solution[done : last + 1]:
        bound = {pointer.split("/")[1] for pointer in call.bindings}
        for name, value in call.arguments.items():
            if name not in bound:
                yield from map(words_of, _spoken_values(value))


def _spoken_values(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _spoken_values(part)
    elif isinstance(value, float):
        yield f"{value:g}" if value == int(value) else f"{value:.2f}"
    elif isinstance(value, str) and not any(is_moment(kind, value) for kind in ("date", "time", "datetime")):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


def _questions(conversation: Sequence[Message]) -> int:
    return sum(isinstance(message, AssistantMessage) and not message.tool_calls for message in conversation)


def _silent(told: Sequence[str]) -> int:
    """How many of the last user messages brought no new word."""
    heard: set[str] = set()
    count = 0
    for text in told:
        words = words_of(text)
        count = count + 1 if words <= heard else 0
        heard |= words
    return count


# -- the simulated user -------------------------------------------------------------------------------------


def user_turn(inputs: UserTurnInputs) -> TextReply:
    """What the user says next: the opening, then facts, then the stop token.

    The token comes once everything was told and the agent asks for nothing more.
    """
    said = wording(inputs.language)
    opening = inputs.profile.opening if inputs.profile is not None else said.say("user_opening_plain")
    facts = inputs.profile.facts if inputs.profile is not None and inputs.profile.facts else _sentences(inputs.task)
    own = [message.content for message in inputs.transcript if isinstance(message, UserMessage)]
    if not own:
        return TextReply(text=opening)
    untold = [fact for fact in facts if not any(fact in text for text in own)]
    last = next((message for message in reversed(inputs.transcript) if isinstance(message, AssistantMessage)), None)
    heard = last.content if last is not None else ""
    if untold:
        return TextReply(text=untold[0])
    after_all = len(own) - len(facts) - 1
    if not _asks(heard, said) or after_all >= _PATIENCE:
        return TextReply(text=inputs.stop_token)
    return TextReply(text=_answer(heard, facts, said))


def _sentences(task: str) -> tuple[str, ...]:
    """A task in parts, where no profile says what its facts are."""
    return tuple(part.strip() for part in re.split(r"(?<=[.!?。！？])\s+", task) if part.strip())


def _asks(text: str, said: Wording) -> bool:
    """Whether the agent waits for an answer; an offer of further help is none."""
    question = text.rstrip().endswith(("?", "？"))
    offer = any(phrase in text.casefold() for phrase in said.phrases["offers"])
    return question and not offer


def _answer(question: str, facts: Sequence[str], said: Wording) -> str:
    """The fact that the question is about, or leave to go ahead."""
    asked = telling_words(question)
    likeness = [len(asked & words_of(fact)) for fact in facts]
    if likeness and max(likeness) > 1:
        return facts[likeness.index(max(likeness))]
    return said.say("user_go_ahead")
