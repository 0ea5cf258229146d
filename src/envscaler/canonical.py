"""The canonical JSON form of a value, its text and its digest, with nothing but msgspec needed to compute them.

It stands apart from `state` because workers load it too, and they must start fast and stay small. Everybody else
imports these names from `state`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from envscaler.errors import NotJson

JsonValue = Any
"""`None`, `bool`, `int` (64 bits), `float` (finite), `str`, `list` of these, or `dict` from `str` to these."""

State = dict[str, JsonValue]
"""Maps each attribute of the program's instance to its JSON value."""

_ENCODER = msgspec.json.Encoder(order="deterministic")
_IN_ORDER = msgspec.json.Encoder()
_decode = msgspec.json.Decoder().decode
_MAX_DEPTH = 200
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_USUAL_DEPTH = 16
_WORTH_A_MODEL = 4
_NOTHING = object()


def canonical(value: object) -> JsonValue:
    """Return `value` as plain JSON data that shares nothing with it.

    Tuples become lists, sets become lists sorted by their JSON text, keys become strings as in `json.dumps`.

    Raises:
        NotJson: with a pointer to the first part that has no exact JSON form.
    """
    return _canonical(value, "", 0)


def _canonical(value: object, pointer: str, depth: int) -> JsonValue:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _checked_int(value, pointer)  # type: ignore[arg-type]
    if kind is float:
        return _checked_float(value, pointer)  # type: ignore[arg-type]
    if depth >= _MAX_DEPTH:
        raise NotJson(f"{pointer or 'the value'} is nested deeper than {_MAX_DEPTH} levels or contains itself")
    if isinstance(value, Mapping):
        out: dict[str, JsonValue] = {}
        for key, part in value.items():
            text = _key(key, pointer)
            out[text] = _canonical(part, f"{pointer}/{escape(text)}", depth + 1)
        return out
    if isinstance(value, (list, tuple)):
        return [_canonical(part, f"{pointer}/{index}", depth + 1) for index, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        parts = [_canonical(part, f"{pointer}/*", depth + 1) for part in value]
        return sorted(parts, key=encode)
    # Subclasses (IntEnum, a str with methods of its own) are reduced to the plain value they stand for.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _checked_int(int.__int__(value), pointer)
    if isinstance(value, float):
        return _checked_float(float.__float__(value), pointer)
    raise NotJson(f"{pointer or 'the value'} is a {kind.__name__}, which JSON cannot hold")


def _checked_int(value: int, pointer: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise NotJson(f"{pointer or 'the value'} is an integer beyond 64 bits")
    return value


def _checked_float(value: float, pointer: str) -> float:
    if not math.isfinite(value):
        raise NotJson(f"{pointer or 'the value'} is {value}, which JSON cannot hold")
    return value


def _key(key: object, pointer: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        return str(key)
    raise NotJson(f"{pointer or 'the value'} has a key of type {type(key).__name__}, which JSON cannot hold")


def encode(value: JsonValue) -> bytes:
    """Canonical JSON text of canonical data: sorted keys, no spaces, UTF-8. Equal data give equal bytes."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which imported states hold now and then, has no UTF-8 form but a JSON escape.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return text.encode("utf-8", "backslashreplace")


def to_json(value: JsonValue) -> bytes:
    """JSON text of canonical data with keys in their own order, in ASCII where it holds half of a surrogate pair.

    Raises:
        NotJson: if the data is not canonical.
    """
    try:
        return _IN_ORDER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotJson(f"a part has no JSON form: {error}") from error


def canonical_text(value: object) -> bytes:
    """As `encode(canonical(value))`, at a tenth of the cost where the value is plain JSON data already.

    Raises:
        NotJson: as `canonical`.
    """
    text = _written(_ENCODER, value)
    return text if text is not None else encode(canonical(value))


def json_text_of(value: object) -> bytes:
    """As `to_json(canonical(value))`, likewise.

    Raises:
        NotJson: as `canonical`.
    """
    text = _written(_IN_ORDER, value)
    return text if text is not None else to_json(canonical(value))


def _written(encoder: msgspec.json.Encoder, value: object) -> bytes | None:
    """What the encoder makes of a value, where that says all that the value says; None where it cannot be told."""
    try:
        text = encoder.encode(value)
        # Whatever is no JSON (a tuple, a key that is a number, a date) reads as something else.
        return text if _is_modest(text) and _decode(text) == value else None
    except Exception:  # noqa: BLE001 - also what a part of the value raises when it is compared
        return None


def plain_text(value: object, model: JsonValue = None, *, keep: bool = False) -> tuple[bytes, JsonValue] | None:
    """The canonical text of a value that is plain JSON data already; None where it is not, or that cannot be told.

    Args:
        value: in which every part is exactly of a type that Python has built in.
        model: what was returned with the text of an earlier form of the value. It is brought up to date: only what
            has changed is read back.
        keep: whether a model is of use where there is none.

    Returns:
        The text, and the model for the next time.
    """
    try:
        text = _ENCODER.encode(value)
        if model is not None and type(model) is type(value):
            # A number that is equal to a modest one may be a large one: 10**20 is equal to 1e20.
            return (text, model) if not _has_long_number(text) and _follows(model, value) else None
        read = _decode(text) if _is_modest(text) else _NOTHING
        if read != value:
            return None
        return text, read if keep and isinstance(read, (dict, list)) and len(read) >= _WORTH_A_MODEL else None
    except Exception:  # noqa: BLE001 - as in `_written`
        return None


def decoded_text(value: JsonValue) -> tuple[bytes, None] | None:
    """As `plain_text`, for what was read from a JSON text."""
    try:
        text = _ENCODER.encode(value)
    except UnicodeEncodeError:
        return None
    return (text, None) if _is_modest(text) else None


def _follows(model: JsonValue, value: Any) -> bool:
    """Make a model equal to a value of its type; False, and the model of no more use, if that is no plain JSON data."""
    if isinstance(model, list):
        del model[len(value) :]
        for index, (known, part) in enumerate(zip(model, value, strict=False)):
            if known != part:
                model[index] = _read_back(part)
        model += map(_read_back, value[len(model) :])
        return True
    known_of = model.get
    for key, part in value.items():
        if known_of(key, _NOTHING) != part:
            if type(key) is not str:
                return False
            model[key] = _read_back(part)
    if len(model) > len(value):
        for key in model.keys() - value.keys():
            del model[key]
    return True


def _read_back(part: object) -> JsonValue:
    text = _ENCODER.encode(part)
    read = _decode(text) if _is_modest(text) else _NOTHING
    if read != part:
        raise NotJson("a part is no plain JSON data")
    return read


def member_text(key: str, value: object, text: bytes | None) -> bytes | None:
    """What stands for a key and its value in the canonical text of a dictionary that is part of no other.

    Args:
        text: canonical text of the value, if it is known.

    Returns:
        None where the value has none, or one that depends on what stands beside it in the dictionary.
    """
    try:
        if text is None:
            text = _ENCODER.encode(_canonical(value, "", 1))
        return _ENCODER.encode(key) + b":" + text
    except (NotJson, UnicodeEncodeError):
        return None


def _is_modest(text: bytes) -> bool:
    """Whether a JSON text holds no integer beyond 64 bits and no nesting that is too deep, as far as a look at it tells
    that takes no time."""
    if _has_long_number(text):
        return False
    if text.count(b"[") + text.count(b"{") <= _USUAL_DEPTH:
        return True
    brackets = text.translate(None, _NOT_BRACKETS)
    for _ in range(_USUAL_DEPTH):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return not brackets


def _has_long_number(text: bytes) -> bool:
    return len(text) >= len(_LONG_NUMBER) and _LONG_NUMBER in text.translate(_DIGITS_ALIKE)


def from_json(text: bytes) -> JsonValue:
    """The value of a JSON text, also where it holds half of a surrogate pair.

    Raises:
        NotJson: if it is none.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        try:
            return json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise NotJson(f"not a JSON text: {error}") from error


def from_untrusted_json(text: bytes) -> JsonValue:
    """As `from_json`, for a text that somebody else may have written.

    Raises:
        NotJson: also if the value is nested deeper, or holds larger integers, than canonical data may.
    """
    value = from_json(text)
    # Only where it could: looking at each part costs more than decoding.
    return value if _is_modest(text) else canonical(value)


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def digest(value: JsonValue) -> str:
    """A short hexadecimal digest (blake2b, 128 bits) of canonical data."""
    return bytes_digest(encode(value))


def bytes_digest(text: bytes) -> str:
    """The digest of canonical data whose text is at hand already."""
    return blake2b(text, digest_size=16).hexdigest()


def text_digest(text: str) -> str:
    """The digest of a text, of the same form as that of a state."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def escape(token: str) -> str:
    """One path component in the form that a JSON pointer needs."""
    return token.replace("~", "~0").replace("/", "~1")
