"""The kinds of slips that models make when they write calls, and the words in which a model is told of one.

Finding them in a reply is the business of the modules beside this one, what follows of them `rollout.play`'s.
"""

from __future__ import annotations

from collections.abc import Iterable

from envscaler.trajectory import Slip

EMPTY_REPLY = "empty_reply"

SLIPS: dict[str, str] = {
    # The meaning is certain; put right and played under `repair`.
    "unclosed_tag": "the call is not closed",
    "missing_wrapper": "the call stands without what has to enclose it",
    "fenced_call": "the call stands in a code fence",
    "other_dialect": "the call is written in the form of another model family",
    "other_keys": "the call has other keys than it should have",
    "other_form": "the parts of the call are not written as they should be",
    "call_in_content": "the call was written as text instead of being made as a tool call",
    "native_call": "the call was made as a tool call instead of being written as text",
    "call_list": "the calls are written as one list",
    "mended_json": "the JSON of the call is not valid",
    "missing_brace": "a closing brace is missing in the call",
    "extra_brace": "the call has a closing brace too many",
    "arguments_as_text": "the arguments are a string instead of an object",
    "null_arguments": "the arguments are missing; write an empty object where there are none",
    "flat_arguments": "the arguments stand beside the name instead of in an object of their own",
    "python_call": "the call is written as Python code",
    "text_after_call": "text follows the call; write nothing after it, because its result is not known yet",
    "text_before_call": "text stands before the call",
    "leaked_token": "a control token of the model stands in the reply",
    "invented_turn": "the reply goes on with a result or message that only others can give",
    "missing_answer_mark": "the final answer is not marked as one",
    "answer_not_text": "the final answer is not a text",
    # The meaning is likely, not certain; played where the tool only looks things up, else a fault.
    "guessed_json": "the JSON of the call is broken, and what it means is not certain",
    "duplicate_key": "the call gives the same key twice",
    "call_in_prose": "the call stands in other text, without the form that marks it as one",
    "bare_argument": "the argument stands without the name of its parameter",
    "call_and_answer": "the reply makes a call and gives a final answer at once; do one of them",
    # Noted; nothing is wrong with what is played.
    "drafted_call": "a call was drafted in the reasoning, where it is none",
    # Faults: there is nothing that could be carried out.
    "second_call": "only one call a reply is carried out, the first",
    "cut_call": "the call breaks off in the middle",
    "cut_reply": "the reply was cut off at the token limit",
    "unreadable_call": "the call cannot be read",
    "unreadable_arguments": "the arguments are not a JSON object",
    "echoed_tool": "the definition of a tool is repeated instead of a call with values",
    "nameless_call": "the call does not name a tool",
    "no_action": "the reply neither makes a call nor gives a final answer",
    "unclosed_thinking": "the reasoning was never closed, and nothing follows it",
    EMPTY_REPLY: "the reply is empty: neither text nor a tool call",
}
"""Every kind, with what a model is told about it."""

LIKELY = frozenset({"guessed_json", "duplicate_key", "call_in_prose", "bare_argument", "call_and_answer"})
"""Kinds that leave doubt about what was meant: such a call is carried out only where it changes nothing."""

_SHOWN = 200


def slip(kind: str, words: str = "", *, repaired: bool = True) -> Slip:
    """A slip of a kind, with the words that it is about, shortened."""
    assert kind in SLIPS, kind
    text = words.strip()
    return Slip(kind=kind, detail=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…", repaired=repaired)


def complaint(slips: Iterable[Slip], form: str) -> str:
    """What a model is told of its slips, and how it should have written instead."""
    told = dict.fromkeys(SLIPS[found.kind] for found in slips if found.kind != "drafted_call")
    return "; ".join(told) + (f". {form}" if form else "")
