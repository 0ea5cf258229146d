"""`fitted`: the reply of a role's type out of what stands in a model's reply, and what had to be made good for it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from envscaler.errors import ReplyError
from envscaler.llm.chat import Mending
from envscaler.record import Record
from envscaler.roles.objects import Found
from envscaler.roles.role import ReplyT
from envscaler.state import JsonValue, encode

_MOST_TRIED = 50


def fitted(reply: type[ReplyT], found: Sequence[Found]) -> tuple[ReplyT, tuple[Mending, ...]]:
    """The first of `found` that is a reply of that type; where others are one too, that is told.

    Raises:
        ReplyError: if there is none, with what is wrong with the first.
    """
    fits: list[tuple[ReplyT, tuple[Mending, ...]]] = []
    fault: ValidationError | None = None
    for one in found[:_MOST_TRIED]:
        for value, mendings in _forms(reply, one.value):
            try:
                fitting, more = _validated(reply, value)
            except ValidationError as error:
                fault = fault or error
            else:
                fits.append((fitting, (*one.mendings, *mendings, *more)))
                break
    if not fits:
        if fault is None:
            raise ReplyError("it holds no JSON object, but a list", "misshapen")
        raise ReplyError(_first_faults(fault), "misshapen") from fault
    chosen, told = fits[0]
    several: tuple[Mending, ...] = ("one of several",) if any(other != chosen for other, _ in fits) else ()
    return chosen, tuple(dict.fromkeys((*told, *several)))


def _forms(reply: type[Record], value: JsonValue) -> Iterator[tuple[JsonValue, tuple[Mending, ...]]]:
    """A value as it is; then without what may stand around a reply; then with what a reply has around it."""
    if isinstance(value, dict):
        yield value, ()
    around = list(value.values()) if isinstance(value, dict) else value
    if isinstance(around, list) and len(around) == 1 and isinstance(around[0], dict):
        names = reply.model_fields.keys()
        if isinstance(value, list) or not value.keys() & names:
            yield around[0], ("unwrapped",)
    if len(reply.model_fields) == 1:
        (name,) = reply.model_fields
        # Only what holds something of its own can be the whole of a reply: an error message is no state.
        if isinstance(value, list) or (name not in value and any(isinstance(part, dict) for part in value.values())):
            yield {name: value}, ("wrapped",)


def _validated(reply: type[ReplyT], value: JsonValue) -> tuple[ReplyT, tuple[Mending, ...]]:
    try:
        return _converted(reply, value)
    except ValidationError as error:
        # A field too many, such as a model's own "thoughts", is worth no second question.
        trimmed = _without_extra_fields(value, error)
        if trimmed is None:
            raise
    fitting, mendings = _converted(reply, trimmed)
    return fitting, ("extra fields", *mendings)


def _converted(reply: type[ReplyT], value: JsonValue) -> tuple[ReplyT, tuple[Mending, ...]]:
    try:
        return reply.model_validate_json(encode(value), strict=True), ()
    except ValidationError:
        return reply.model_validate(value), ("converted value",)


def _without_extra_fields(value: JsonValue, error: ValidationError) -> JsonValue:
    """A copy of `value` without the fields that no type of the reply has; None: there are none."""
    extra = [part["loc"] for part in error.errors(include_url=False) if part["type"] == "extra_forbidden"]
    if not extra:
        return None
    trimmed = copy.deepcopy(value)
    for *path, name in extra:
        holder = trimmed
        for step in path:
            holder = holder[step]
        del holder[name]
    return trimmed


def _first_faults(error: ValidationError) -> str:
    faults = [f"{'.'.join(map(str, part['loc'])) or 'the reply'}: {part['msg']}" for part in error.errors()[:3]]
    return "; ".join(faults)
