"""Test calls drawn by code, for models that cannot tell a right call from a wrong one.

What a call did is judged as ever (`judging`).

Source: ours; the paper (3.3) has a testing agent write every call.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from envscaler.assessment import CaseType
from envscaler.probe import WrongKind, valid_arguments, wrong_arguments
from envscaler.roles import types as t
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import State

_REFUSED: tuple[WrongKind, ...] = ("unknown_id", "not_in_enum", "missing", "wrong_type")
"""Kinds of wrong arguments that every tool has to refuse; an empty or extreme value may be right."""


def drawn(tool: ToolSpec, case: CaseType, state: State, entities: Sequence[Entity], seed: int) -> t.TestCallReply:
    """A call as the testing agent would have written it, and what it is to find out."""
    rng = random.Random(seed)
    if case == "positive":
        return t.TestCallReply(
            intent="drawn by code: arguments that name what is there",
            arguments=valid_arguments(tool, state, entities, rng),
        )
    kind, arguments = wrong_arguments(tool, state, entities, rng, kinds=_REFUSED)
    return t.TestCallReply(
        intent=f"drawn by code: one argument is wrong ({kind.replace('_', ' ')})", arguments=arguments
    )
