"""Makes initial states that a blueprint allows, the same for the same seed."""

from __future__ import annotations

from typing import Literal

from envscaler.offline.blueprint import Blueprint
from envscaler.state import State

Purpose = Literal["assessment", "scenario"]


def make_state(blueprint: Blueprint, *, seed: int, index: int, purpose: Purpose, clock: str | None = None) -> State:
    """An initial state: a container per entity, a counter per created entity, the clock.

    Args:
        clock: time of the state, ISO 8601 to the second; None draws one.
    """
    raise NotImplementedError
