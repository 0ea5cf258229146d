"""The frame of an initial state, made by code: which ids there are, and all that exists once.

The records' values are the model's business.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.roles import staged as s
from envscaler.sandbox import DEFAULT_CLOCK
from envscaler.skeleton import Entity
from envscaler.state import State
from envscaler.synth.staged import parts

_LEAST = 3


def ids(entities: Sequence[Entity], index: int) -> dict[str, tuple[str, ...]]:
    """By container, the ids of the records of one state; states differ in number and ids."""
    first = 1 + 10 * index
    return {
        str(entity.container): tuple(
            parts.id_of(entity, number) for number in range(first, first + _LEAST + (index + place) % 2)
        )
        for place, entity in enumerate(parts.records(entities))
    }


def state(reply: s.WriteRecordsReply, entities: Sequence[Entity], known: dict[str, tuple[str, ...]]) -> State:
    """The whole state: the records asked for, each with its id, the clock, and counters above every number in use."""
    made: State = {}
    for entity in parts.records(entities):
        container, key = str(entity.container), str(entity.key)
        written = reply.records.get(container, {})
        made[container] = {one: {key: one, **written[one]} for one in known[container] if one in written}
        last = max(int(one.rpartition("_")[2]) for one in known[container])
        made[parts.counter_of(entity)] = last + 1
    made[parts.CLOCK] = DEFAULT_CLOCK
    return made
