"""What the sentence of a check names: values in quotation marks, numbers, dates, and records of the state.

Pure, and only as far as letters go: whether a sentence *means* something is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from envscaler.state import JsonValue, State

_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|‘([^’]+)’|`([^`]+)`|「([^」]+)」|『([^』]+)』|(?<!\w)'([^']+)'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.-])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w-])|(?<![\w.-])[-+]?\d+(?:\.\d+)?(?![\w-])")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_WORD = re.compile(r"[\w.@+/:#-]*\w")
_SHORTEST_NAME = 3

NEW = re.compile(r"\b(?:new|newly|added|created|another|additional)\b|新增|新建|创建|添加", re.IGNORECASE)
"""Words that say that something was made."""
GONE = re.compile(
    r"\b(?:removed?|deleted?|cancell?ed|no longer|cleared|unregistered|revoked|purged|gone|not exist)\b|删除|移除|取消",
    re.IGNORECASE,
)
"""Words that say that something is not there any more."""
DENIED = re.compile(
    r"\b(?:not|no|never|without|none|neither|other than|except|remain\w*|only|still|unchanged|unaffected)\b"
    r"|不|未|没|无|仍|保持",
    re.IGNORECASE,
)
"""Words that turn a sentence round, or say that something stays."""
PART = re.compile(
    r"\b(?:mention\w*|includ\w*|contain\w*|referenc\w*|not(?:e|es|ed|ing) that|explicit\w*|stat(?:e|es|ing)|indicat\w*"
    r"|describ\w*|word\w*|append\w*)\b|包含|提到|注明",
    re.IGNORECASE,
)
"""Words that ask for a part of a text."""
BOUND = re.compile(
    r"\b(?:at least|at most|less than|more than|greater|fewer|below|above|under|over|exceed\w*|between|within|up to)\b"
    r"|[<>≤≥]|不超过|至少|最多|低于|高于",
    re.IGNORECASE,
)
"""Words that set a bound and no value."""
EACH = re.compile(r"\b(?:each|every|all|both|any)\b|每|所有|全部|都", re.IGNORECASE)
"""Words that speak of several."""


@dataclass(frozen=True)
class Mentions:
    """What one sentence names."""

    texts: tuple[str, ...]
    """In quotation marks."""
    numbers: tuple[float, ...]
    words: frozenset[str]
    """Its words outside quotation marks, folded."""
    quoted: frozenset[str]
    """`texts`, folded."""
    bare: str
    """The sentence without what stands in quotation marks, folded."""

    def names(self, value: JsonValue) -> bool:
        """Whether the sentence names a value literally."""
        if isinstance(value, bool) or value is None:
            return False
        if isinstance(value, (int, float)):
            return float(value) in self.numbers
        text = folded(str(value))
        if text in self.quoted:
            return True
        if len(text) < _SHORTEST_NAME:
            return text in self.words and any(character.isdigit() for character in text)
        # Inside a longer quotation it is a word like others.
        return _whole(text, self.bare) or _whole(text.replace("_", " "), self.bare)


@lru_cache(maxsize=8192)
def mentions(sentence: str) -> Mentions:
    """What a sentence names."""
    quoted = tuple(next(group for group in found.groups() if group) for found in _QUOTED.finditer(sentence))
    dates = tuple(_DATE.findall(sentence))
    bare = _DATE.sub(" ", sentence)
    numbers = tuple(float(number.replace(",", "")) for number in _NUMBER.findall(bare))
    plain = folded(_QUOTED.sub(" ", sentence))
    texts = (*quoted, *dates)
    return Mentions(texts, numbers, frozenset(_WORD.findall(plain)), frozenset(map(folded, texts)), plain)


def named_records(sentence: Mentions, state: State) -> Iterator[tuple[str, str]]:
    """The records whose id, or one of whose telling texts, the sentence names: container and key.

    A text that several records of a container share tells none of them.
    """
    for container, records in state.items():
        if not isinstance(records, dict):
            continue
        by_text: dict[str, set[str]] = {}
        for key, record in records.items():
            if sentence.names(key):
                yield container, key
            if isinstance(record, dict):
                for value in record.values():
                    if isinstance(value, str) and len(value) >= _SHORTEST_NAME and _is_name(value):
                        by_text.setdefault(folded(value), set()).add(key)
        for text, keys in by_text.items():
            if len(keys) == 1 and sentence.names(text):
                yield container, next(iter(keys))


def _is_name(text: str) -> bool:
    """Whether a text can be what something is called, and not one of its states."""
    return text[:1].isupper() or any(character.isdigit() for character in text) or not text.isascii()


def folded(text: str) -> str:
    """A text without case and with single spaces."""
    return " ".join(text.casefold().split())


def _whole(text: str, inside: str) -> bool:
    """Whether a text stands in another one as whole words."""
    if text not in inside:
        return False
    if not text.isascii():
        return True
    return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", inside) is not None
