"""`parse_user_turn`: what a simulated user says, out of what its model wrote; whether it ends the conversation.

Reasoning, labels of roles and the stop token are taken out here. Whether what is left is fit to be said is the business
of `slips`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from envscaler.llm.wire import split_reasoning
from envscaler.messages import ToolCall
from envscaler.trajectory import Slip

STOP_TOKEN = "###STOP###"

_GAP = r"[^\w#＃\n]{0,3}"
# Bounded: a model that repeats itself writes thousands of them.
_HASHES = r"(?:[#＃][ \t\u200b]?){2,12}"
_WORD = r"(?:S[ .\-_*]?T[ .\-_*]?O[ .\-_*]?P|停\s?止|结\s?束|終\s?了)"
_TOKEN = re.compile(
    rf"{_HASHES}{_GAP}{_WORD}{_GAP}{_HASHES}"
    # One side alone stands for the token only where the message ends, or is nothing else.
    rf"|(?:[#＃][ \t]?){{3,12}}{_GAP}{_WORD}(?=[^\w#＃]*\Z)"
    rf"|(?<![\w]){_WORD}{_GAP}(?:[#＃][ \t]?){{3,12}}(?=[^\w#＃]*\Z)",
    re.IGNORECASE,
)
_BARE = re.compile(r"[<\[【(（*_`\"“「#＃\s]*STOP[>\]】)）*_`\"”」#＃\s]*[.!。！]?\s*")

_MARKS = "*_`\"'“”‘’「」『』【】()（）[]<>~"
_MIRRORED = dict(zip("“‘「『【(（[<", "”’」』】)）]>", strict=True))
_FENCE_END = re.compile(r"\s*(?:`{3,}\w*|~{3,}\w*)\s*\Z")
_FENCE_START = re.compile(r"\s*(?:`{3,}|~{3,})")

_SPEAKS_OF_IT = re.compile(
    r"\b(?:(?:i'll|i’ll|will|would|to|should|could|can|please|i|just|you)\s+(?:write|say|type|send|reply|respond|answer|use)"
    r"(?:\s+with)?|writing|saying|typing|sending|using|(?:reply|respond|answer|replying|message|end)\s+with"
    r"|token|code|signal|phrase|marker|the|a|not|is|word)[\s:,]*\Z"
    r"|(?:写上?|说|输入|发送?|发出|回复|打出|使用|标记|口令|信号|先不|不要|暂不|词|句)[\s:：，,]*\Z",
    re.IGNORECASE,
)
_HAS_NO_MORE = re.compile(r"\b(?:nothing|more|else|all)\b[^,]*\Z|没有?[^，,]*\Z|(?:再|多)[^，,]{0,4}\Z", re.IGNORECASE)
_GOES_ON = re.compile(
    r"[ \t]*[,，]?[ \t]*(?:(?<=[ ,])(?:when|once|if|until|as soon as|after|before|yet|right away|only|later|to end)\b"
    r"|(?:之后|以后|之前|的时候|才|来结束|表示|如果|等))",
    re.IGNORECASE,
)

_OWN_LABEL = re.compile(r"\s*[*_#\[]*(?:user|you|human|用户|你)[*_\]]*\s*[:：][*_]*\s*", re.IGNORECASE)
_OTHERS_LABEL = re.compile(
    r"^[ \t]*[*_#\[]*(?:the )?(?:assistant|ai|助手|助理|智能助手)[*_\]]*\s*[:：]", re.IGNORECASE | re.MULTILINE
)
_ENOUGH = re.compile(r"(?:\S+\s+){2}\S+|[\u4e00-\u9fff]{3,}")
"""What follows a label when it is one, and no detail such as `User: ann`."""


@dataclass(frozen=True)
class UserTurn:
    """What the simulated user said."""

    text: str
    """Without the stop token; may be empty when the user only stopped."""
    stopped: bool
    slips: tuple[Slip, ...] = ()
    """What was wrong with it."""
    reasoning: str | None = None
    """What stood in a reasoning block of the text."""
    call: ToolCall | None = None
    """The call of a tool of its own that it makes instead of saying something."""


def parse_user_turn(text: str) -> UserTurn:
    """Separates the stop token from the text, also where it is glued to it, broken by spaces, case or punctuation, or
    wrapped in markdown. In a reasoning block it stops nothing, nor where the user only speaks of it.
    """
    said, reasoning = split_reasoning(text)
    said, slips = _without_labels(said.strip())
    shown: Slip | None = None
    for match in _TOKEN.finditer(said):
        if _is_spoken_of(said, match):
            shown = shown or Slip(kind="shows_token", detail=_around(said, match))
            continue
        return UserTurn(_before(said, match), True, slips, reasoning)
    if _BARE.fullmatch(said):
        return UserTurn("", True, slips, reasoning)
    return UserTurn(said, False, (*slips, shown) if shown is not None else slips, reasoning)


def _without_labels(text: str) -> tuple[str, tuple[Slip, ...]]:
    """A text without the label of the user's own role before it, and without the assistant's turn after it."""
    slips: list[Slip] = []
    own = _OWN_LABEL.match(text)
    if own is not None and (_ENOUGH.match(text, own.end()) or _TOKEN.match(text, own.end())):
        slips.append(Slip(kind="speaks_as_agent", detail=text[: own.end()].strip(), repaired=True))
        text = text[own.end() :]
    other = _OTHERS_LABEL.search(text)
    if other is not None and text[: other.start()].strip():
        slips.append(Slip(kind="speaks_as_agent", detail=text[other.start() :][:80], repaired=True))
        text = text[: other.start()].rstrip()
    return text, tuple(slips[:1])


def _is_spoken_of(text: str, match: re.Match[str]) -> bool:
    before = text[: match.start()].rstrip(_MARKS + " \t")
    after = text[match.end() :].lstrip(_MARKS)
    sentence = re.split(r"[.!?。！？\n]", before)[-1]
    if not sentence.strip():
        return False
    speaks = _SPEAKS_OF_IT.search(sentence) is not None and _HAS_NO_MORE.search(sentence) is None
    return speaks or _GOES_ON.match(after) is not None


def _before(text: str, match: re.Match[str]) -> str:
    """The text before the token, without the marks that only wrapped the token."""
    before, after = text[: match.start()], text[match.end() :]
    fence = _FENCE_END.search(before)
    if fence is not None and _FENCE_START.match(after):
        return before[: fence.start()].strip()
    while before and after and _MIRRORED.get(before[-1], before[-1] if before[-1] in _MARKS else None) == after[0]:
        before, after = before[:-1], after[1:]
    return before.rstrip("#＃ \t").strip()


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - 40) : match.end() + 40].strip()
