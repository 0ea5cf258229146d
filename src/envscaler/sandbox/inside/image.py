"""`Image`: the attributes of an instance as they are at one moment: a copy to go back to, and their canonical text.

An image is taken of every state, and one call changes little of it, so what an earlier image knows of an attribute that
is still the same is taken over. What is to be done with an image is the instance's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from marshal import dumps, loads
from types import MappingProxyType
from typing import Any

from envscaler.canonical import JsonValue, canonical_text, decoded_text, member_text, plain_text

_DICT, _LIST = b"\xfb", b"\xdb"
_KEY_BEGINS = frozenset(b"zZaAutr0\xfa\xda\xe1\xc1\xf5\xf4")
"""What follows `_DICT` where it is a dictionary and no byte of a number or of a text: the type of a key, or the end."""
_SIZE_BYTES = 4
_UNSHAREABLE = frozenset({type(None), bool, int, float, str})


NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


class _Part:
    """One attribute."""

    __slots__ = ("alone", "mark", "model", "text")

    def __init__(self, mark: bytes, text: bytes, model: JsonValue, alone: bool) -> None:
        self.mark = mark
        """What marshal makes of it: equal marks, equal values, also in types and in the order of keys."""
        self.text = text
        self.model = model
        """Plain JSON data that were equal to it once."""
        self.alone = alone
        """Whether nothing in it is known to anybody else, another attribute for one."""


class Image:
    """Attributes at one moment; without any, of nothing.

    Attributes are kept one by one where no two of them share an object, else all in one, because an object that two of
    them share is to be one object again. marshal keeps tuples, sets, and what is shared within what it is given.
    """

    __slots__ = ("_marks", "_names", "_parts", "_together")

    def __init__(
        self,
        names: list[str] | None = None,
        marks: list[bytes] | None = None,
        parts: dict[str, _Part] | None = None,
        together: bytes | None = None,
    ) -> None:
        self._names = names
        self._marks = marks
        """What marshal makes of each attribute, where they are kept one by one."""
        self._parts = parts
        """Where the text of all is made of that of each."""
        self._together = together

    @property
    def restorable(self) -> bool:
        """Whether it can be gone back to; not with what marshal cannot hold."""
        return self._marks is not None or self._together is not None

    def shows(self, attributes: dict[str, Any]) -> bool:
        """Whether the attributes are to the letter what they were, as far as can be told; they are not, if not."""
        if self._together is not None:
            return marshalled(attributes) == self._together
        return self._marks is not None and self._has(attributes, _marks(attributes))

    def _has(self, attributes: dict[str, Any], marks: list[bytes] | None) -> bool:
        """Whether these are the attributes that are kept one by one; `marks` is what marshal makes of each.

        That two of them have become one object cannot be seen in what marshal makes of either.
        """
        return marks == self._marks and list(attributes) == self._names and not _is_shared(attributes)

    def restore(self, attributes: dict[str, Any]) -> None:
        """Make the attributes what they were."""
        if self._together is not None:
            before = loads(self._together)
        else:
            before = dict(zip(self._names or (), map(loads, self._marks or ()), strict=True))
        attributes.clear()
        attributes.update(before)

    def next(
        self, attributes: dict[str, Any], decoded: Mapping[str, JsonValue] = NOTHING
    ) -> tuple[Image, bytes | None]:
        """The image of attributes as they are now, this one if it shows them, and their canonical text.

        Args:
            decoded: attributes as they were read from a JSON text, and nobody has changed them since.

        Returns:
            None for the text where it is that of this image too.

        Raises:
            NotJson: as `canonical_text`.
        """
        together = None
        if self._together is not None:
            together = marshalled(attributes)
            if together == self._together:
                return self, None
        marks = _marks(attributes)
        if marks is not None and self._has(attributes, marks):
            return self, None
        found = None if marks is None else self._parts_of(attributes, marks, decoded)
        if found is None:
            text = canonical_text(attributes)
            return Image(together=together or marshalled(attributes)), text
        parts, apart, same = found
        image = Image(list(parts), marks, parts) if apart else Image(parts=parts)
        if not apart:
            image._together = together or marshalled(attributes)
        return image, None if same else b"{" + b",".join([parts[name].text for name in sorted(parts)]) + b"}"

    def _parts_of(
        self, attributes: dict[str, Any], marks: list[bytes], decoded: Mapping[str, JsonValue]
    ) -> tuple[dict[str, _Part], bool, bool] | None:
        """The parts, whether no two of them share anything, and whether their texts are those of this image.

        Returns:
            None where the text of the whole is not made of that of its parts, or there is none.
        """
        known = self._parts or {}
        parts: dict[str, _Part] = {}
        containers = set()
        apart, same = True, self._parts is not None and len(known) == len(marks)
        for (name, value), mark in zip(attributes.items(), marks, strict=True):
            before = known.get(name)
            if before is not None and before.mark == mark:
                part = before
            else:
                changed = _part(name, value, mark, before, decoded.get(name))
                if changed is None:
                    return None
                part = changed
                same = same and before is not None and part.text == before.text
            parts[name] = part
            apart = apart and part.alone and id(value) not in containers
            if type(value) not in _UNSHAREABLE:
                containers.add(id(value))
        return parts, apart, same


def _part(name: str, value: object, mark: bytes, before: _Part | None, decoded: JsonValue) -> _Part | None:
    simple = type(value) in _UNSHAREABLE
    plain = None
    if decoded is value:
        plain = decoded_text(value)
    elif not simple:
        # A model takes memory: only for what was seen to change.
        plain = plain_text(value) if before is None else plain_text(value, before.model, keep=True)
    text = member_text(name, value, None if plain is None else plain[0])
    if text is None:
        return None
    if plain is None:
        return _Part(mark, text, None, simple)
    return _Part(mark, text, plain[1], not _known_elsewhere(mark))


def _known_elsewhere(mark: bytes) -> bool:
    """Whether plain JSON data may hold a list or dictionary, itself not counted, that has more than one owner.

    marshal sets a bit in the type of what has several. Such a byte can be part of a number or a text as well; most of
    these are told by what follows, and a false alarm costs time only.
    """
    place = mark.find(_DICT, 1)
    while place >= 0:
        if mark[place + 1 : place + 2] and mark[place + 1] in _KEY_BEGINS:
            return True
        place = mark.find(_DICT, place + 1)
    place = mark.find(_LIST, 1)
    while place >= 0:
        if int.from_bytes(mark[place + 1 : place + 1 + _SIZE_BYTES], "little") <= len(mark):
            return True
        place = mark.find(_LIST, place + 1)
    return False


def _marks(attributes: dict[str, Any]) -> list[bytes] | None:
    """None where the attributes are not kept one by one, or cannot be kept."""
    if type(attributes) is not dict or not set(map(type, attributes)) <= {str}:
        return None
    try:
        return list(map(dumps, attributes.values()))
    except ValueError:
        return None


def _is_shared(attributes: dict[str, Any]) -> bool:
    """Whether two attributes are one object."""
    owned = [id(value) for value in attributes.values() if type(value) not in _UNSHAREABLE]
    return len(set(owned)) < len(owned)


def marshalled(value: Any) -> bytes | None:
    """What marshal makes of a value; None where it cannot hold it."""
    try:
        return dumps(value)
    except ValueError:
        return None
