"""Arguments that are wrong in a way that has a name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State

WrongKind = Literal["missing", "wrong_type", "unknown_id", "empty", "extreme", "not_in_enum", "extra", "null"]


def wrong_arguments(
    tool: ToolSpec, state: State, entities: Sequence[Entity], rng: random.Random
) -> tuple[WrongKind, dict[str, JsonValue]]:
    """Arguments for `tool` that are wrong, and in which way."""
    raise NotImplementedError
