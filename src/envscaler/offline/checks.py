"""The checklist of a plan and its check functions, from the state before and the state that the plan leads to.

A goal asks for what is to be brought about, a guard for what has to stay as it was; time stamps and counters are asked
for by no check.
"""

from __future__ import annotations

from collections.abc import Collection

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.difference import Difference
from envscaler.offline.goal_checks import GoalChecks
from envscaler.offline.goals import Evidence
from envscaler.offline.guard_checks import GuardChecks
from envscaler.offline.wording import Wording
from envscaler.scenario import Check
from envscaler.state import State

_GUARDS = (2, 5)
"""Guards at least and at most; else as many as there are goals."""


def make_checks(
    blueprint: Blueprint, initial: State, final: State, wording: Wording, *, spared: Collection[Evidence] = ()
) -> tuple[Check, ...]:
    """Goal checks first, then guards; all hold of `final`.

    Args:
        spared: what a wrong decision would change.
    """
    difference = Difference(blueprint, initial, final, wording)
    goals = tuple(GoalChecks(difference).checks())
    guards = GuardChecks(difference, spared).checks(most=max(_GUARDS[0], min(_GUARDS[1], len(goals))))
    checks = {check.description: check for check in (*goals, *guards)}
    return tuple(checks.values())
