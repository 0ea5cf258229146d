"""Arguments that a schema allows, with ids and values that the state really holds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State


def valid_arguments(
    tool: ToolSpec, state: State, entities: Sequence[Entity], rng: random.Random
) -> dict[str, JsonValue]:
    """Arguments for `tool` that its schema allows and that mostly name what `state` holds."""
    raise NotImplementedError
