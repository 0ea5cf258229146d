"""`invented`: a value in a user's message that stands nowhere in what that user can know.

What is a value is read narrowly: a word that might be plain language is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

from envscaler.agents.user.brief import Heard
from envscaler.agents.user.reading import (
    addresses_in,
    folded,
    full_names_in,
    ids_in,
    is_han,
    quoted_in,
    telling_words,
    titles_in,
    tokens_of,
    written_numbers,
)

_COUNTS = 12
"""Whole numbers up to this are counts, hours or months that a person says in passing."""
_COMBINED = 40
"""Known numbers up to which their sums and products are known too."""
_TIME = re.compile(r"(?<!\d)([01]?\d|2[0-3])[:：]([0-5]\d)(?::[0-5]\d)?(?!\d)")
_IDIOMS = re.compile(r"\b24/7\b|\b(?:100|101|110|1000)\s?%|\b911\b|\b9-5\b|百分之百|\b4ever\b", re.IGNORECASE)
_SHORT_YEAR = re.compile(r"(?<=\d[/.])(\d{2})(?!\d)(?<=\d[/.]\d\d[/.]\d\d)")
_DENIED = re.compile(
    r"(?:\b(?:not|instead of|rather than|no longer)(?: the| a| for)?|不是|而不是|不要|并非)\s*[$€¥£]?\d[\d,.]*",
    re.IGNORECASE,
)
"""A number that is said not to be meant."""
_BULLET = re.compile(r"^\s*\(?\d{1,2}[.)、:]\s", re.MULTILINE)
_NAMED = re.compile(
    r"\b(?:(?:my|the|his|her|their|whose)(?: \w+)? name is|name's|under the name(?: of)?|call me|on behalf of)"
    r"\s+(?-i:([A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*))"
    r"|(?:我叫|我的名字是|名字叫|我姓)([\u4e00-\u9fff]{2,3})(?![\u4e00-\u9fff])",
    re.IGNORECASE,
)
_COURTESIES = """
thank thanks you good great morning afternoon evening night day hello hi hey dear best kind warm regards yours sincerely
cheers sounds perfect okay ok yes no please sorry i we it that this the and or of for to in on at by sir madam team
assistant agent customer support service monday tuesday wednesday thursday friday saturday sunday january february march
april may june july august september october november december spring summer autumn winter english chinese happy new
year christmas easter all done many much so very just also really course never mind not right now as soon possible let
me know way looks like everything nothing mr mrs ms dr got understood alright fine excellent wonderful amazing awesome
will can could would should do did is are was
"""
_NOT_NAMES = frozenset(_COURTESIES.split())


def invented(message: str, known: Heard) -> tuple[str, ...]:
    """The ids, numbers and proper values in a message that are not known, as they are written there.

    Args:
        known: all that the user can know: task, profile, and what was said before.
    """
    return tuple(dict.fromkeys(_invented(message, known)))


def _invented(message: str, known: Heard) -> Iterator[str]:
    for address in addresses_in(message):
        if address.casefold() not in known.folded:
            yield address
    for code in ids_in(message):
        if re.sub(r"[\W_]+", "", code.casefold()) not in known.bare:
            yield code
    yield from _numbers(message, known)
    for quoted in quoted_in(message):
        if _is_value(quoted, message) and not _is_said(quoted, known):
            yield quoted
    for name in full_names_in(message):
        # Words of courtesy begin sentences; what is left must be unknown from its first word to its last.
        words = [word for word in name.split() if word.casefold() not in _NOT_NAMES]
        if len(words) >= 2 and not any(_is_word_of(word, known) for word in words):
            yield name
    for match in _NAMED.findall(message):
        given = next(part for part in match if part)
        words = [word for word in tokens_of(given) if not is_han(word)]
        fresh = folded(given) not in known.folded and not any(word in known.tokens for word in words)
        if fresh and not all(word in _NOT_NAMES for word in words or ("",)) and not re.search("[了你他她的]", given):
            yield given


def _numbers(message: str, known: Heard) -> Iterator[str]:
    text = _DENIED.sub(" ", _BULLET.sub(" ", _IDIOMS.sub(" ", message)))
    text = _SHORT_YEAR.sub(lambda match: f"20{match.group()}", text)
    for hour, minute in _TIME.findall(text):
        hours = {float(hour), (float(hour) + 12) % 24}
        if not (hours & known.numbers and (int(minute) % 15 == 0 or float(minute) in known.numbers)):
            yield f"{hour}:{minute}"
    text = _TIME.sub(" ", text)
    fresh = [number for number in sorted(written_numbers(text)) if not _is_known(number, known)]
    if fresh:
        derived = _derived(known.numbers)
        yield from (
            f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}" for number in fresh if number not in derived
        )


def _is_known(number: float, known: Heard) -> bool:
    if number in known.numbers or (number.is_integer() and number <= _COUNTS):
        return True
    # An hour in the afternoon.
    return number + 12 in known.numbers or number - 12 in known.numbers


def _derived(numbers: Iterable[float]) -> frozenset[float]:
    few = sorted(numbers)[:_COMBINED]
    out: set[float] = set()
    for one, other in combinations_with_replacement(few, 2):
        out.update((round(one + other, 2), round(abs(one - other), 2), round(one * other, 2)))
    return frozenset(out)


def _is_value(quoted: str, message: str) -> bool:
    """Whether what is quoted is a name or a value, and no word with a reservation."""
    if quoted in titles_in(message):
        return True
    tokens = tokens_of(quoted)
    if any(is_han(token) for token in tokens):
        return len(tokens) >= 3
    if any(token.isdigit() for token in tokens):
        return True
    return quoted[:1].isupper() and len(quoted) >= 3 and any(token not in _NOT_NAMES for token in tokens)


def _is_said(quoted: str, known: Heard) -> bool:
    if known.has(quoted):
        return True
    words = telling_words(quoted)
    return bool(words) and 2 * len(words & known.words) >= len(words)


def _is_word_of(word: str, known: Heard) -> bool:
    token = word.casefold()
    return token in known.tokens or token.rstrip("s") in known.tokens or f"{token}s" in known.tokens
