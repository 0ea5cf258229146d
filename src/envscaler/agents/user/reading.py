"""What a text says that can be compared: its words, numbers, ids, quoted and proper names; English and Chinese.

It finds what is certain and passes over the rest: who uses it holds somebody to having said or not said a thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_HAN = "\u4e00-\u9fff\u3400-\u4dbf"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_ID = re.compile(r"(?<![\w@.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![\w@])", re.ASCII)
_NO_ID = re.compile(
    # Measures, times, ordinals, and numbers in compound words.
    r"\d+(?:st|nd|rd|th|am|pm|a|p|h|hr|hrs|min|mins|s|sec|m|cm|mm|km|kg|g|mg|l|ml|x|k|gb|mb|tb|w|v|c|f|usd|eur|cny)"
    r"|x\d+|\d+(?:-[a-z]+)+|(?:mid|pre|post|non|sub|top|covid|under|over|re)-?\d+|\d+[a-z]",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"(?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,64}\.[A-Za-z0-9.-]{1,64}")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][a-zà-öø-ÿ]+(?:[ ][A-Z][a-zà-öø-ÿ]+)+(?![\w'’-])")
_CAPITAL = re.compile(r"(?<=[a-z,;:] )[A-Z][\wà-öø-ÿ'’-]*")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,80})\"|“([^”\n]{1,80})”|《([^》\n]{1,80})》"
    r"|「([^」\n]{1,80})」|『([^』\n]{1,80})』|«([^»\n]{1,80})»"
)

_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_SMALL = {word: number for number, word in enumerate(_UNITS.split())} | {"dozen": 12}
_TENTHS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * number for number, word in enumerate(_TENTHS.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 1000}
_HAN_DIGITS = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_HAN_NUMBER = re.compile(f"[{''.join(_HAN_DIGITS)}{''.join(_HAN_SCALES)}]+")


def folded(text: str) -> str:
    """A text as it is compared: one case, one kind of space, no quotation marks."""
    return " ".join(re.sub(r"[\"“”‘’《》「」『』«»]", "", text).casefold().split())


def tokens_of(text: str) -> list[str]:
    """The words of a text in one case, and the single characters of Chinese, in their order."""
    return _TOKEN.findall(text.casefold())


def is_han(token: str) -> bool:
    """Whether a token is a Chinese character."""
    return "\u3400" <= token[0] <= "\u9fff"


def telling_words(text: str) -> frozenset[str]:
    """The words that say something by themselves: those of four letters by their first five, and pairs of Chinese
    characters."""
    tokens = tokens_of(text)
    words = {token[:5] for token in tokens if len(token) > 3 and not is_han(token)}
    words.update(one + two for one, two in pairwise(tokens) if is_han(one) and is_han(two))
    return frozenset(words)


def numbers_in(text: str) -> frozenset[float]:
    """The numbers of a text, in digits or in words."""
    return frozenset((*_digits(text), *_in_words(tokens_of(text)), *_in_characters(text)))


def written_numbers(text: str) -> frozenset[float]:
    """The numbers of a text that are written in digits and are no part of an id."""
    for code in (*ids_in(text), *_EMAIL.findall(text)):
        text = text.replace(code, " ")
    return frozenset(_digits(text))


def ids_in(text: str) -> tuple[str, ...]:
    """Words that are made of letters and digits, as ids and codes are."""
    found = []
    for word in _ID.findall(_EMAIL.sub(" ", text)):
        digits = sum(char.isdigit() for char in word)
        if _NO_ID.fullmatch(word) is None and (digits >= 2 or "-" in word or "_" in word) and len(word) >= 3:
            found.append(word)
    return tuple(found)


def addresses_in(text: str) -> tuple[str, ...]:
    """Addresses of electronic mail."""
    return tuple(_EMAIL.findall(text))


def quoted_in(text: str) -> tuple[str, ...]:
    """What stands in quotation marks or marks of titles."""
    return tuple(next(part for part in match if part).strip() for match in _QUOTED.findall(text) if any(match))


def titles_in(text: str) -> tuple[str, ...]:
    """What stands in Chinese marks of titles, which are used for nothing else."""
    return tuple(part.strip() for part in re.findall(r"《([^》\n]{1,80})》", text))


def full_names_in(text: str) -> tuple[str, ...]:
    """Runs of two or more capitalized words; without the first of a sentence, which says nothing by its capital."""
    found = []
    for match in _NAME.finditer(text):
        begins = text[: match.start()].rstrip(" \t\"“”'*_-")[-1:] in ("", ".", "!", "?", ":", "\n", "…")
        found.append(match.group().split(" ", 1)[1] if begins else match.group())
    return tuple(found)


def capitalized_in(text: str) -> tuple[str, ...]:
    """Capitalized words within sentences."""
    return tuple(word for word in _CAPITAL.findall(text) if len(word) > 1)


def _digits(text: str) -> Iterator[float]:
    for found in _NUMBER.findall(text):
        yield float(found.replace(",", ""))


def _in_words(tokens: Sequence[str]) -> Iterator[float]:
    total: float | None = None
    for token in (*tokens, ""):
        if token in _TENS or token in _SMALL:
            part = _TENS.get(token, _SMALL.get(token, 0))
            # `twenty four` is one number, `two four` are two.
            if total is not None and not (part < 10 and total % 10 == 0 and total % 100 >= 20) and total % 100:
                yield total
                total = None
            total = (total or 0) + part
        elif token in _SCALES:
            total = (total or 1) * _SCALES[token]
        elif token == "and" and total is not None and total >= 100:
            continue
        elif total is not None:
            yield total
            total = None


def _in_characters(text: str) -> Iterator[float]:
    for run in _HAN_NUMBER.findall(text):
        total, digit = 0, None
        for char in run:
            if char in _HAN_DIGITS:
                digit = _HAN_DIGITS[char]
            else:
                total += (1 if digit is None else digit) * _HAN_SCALES[char]
                digit = None
        yield float(total + (digit or 0))
