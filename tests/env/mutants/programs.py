"""`Sound`: programs of the embedded generator for different domains, with a state to try them from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.design import entities_of, program_of, rules_of, tools_of
from envscaler.offline.model import blueprint_of_task
from envscaler.offline.states import make_state
from envscaler.program import class_name_of
from envscaler.skeleton import EnvDescription, EnvSkeleton
from envscaler.state import State

TASKS = (
    "Borrow the book Emma for the member Ann at the town library.",
    "Transfer 50 euros from my bank account to my sister's savings account.",
    "Register me for the conference session on robotics.",
    "Book a room in the hotel for two nights.",
    "Close support ticket 17 and assign the next to Mia in the helpdesk.",
    "Assign a driver to the delivery van of the fleet.",
    "Approve the building permit application of Mr Lee.",
    "Move the file report.txt to the folder archive and delete old files.",
    "Reserve a table for four at the restaurant tonight.",
    "Cancel the gym membership of Ann.",
    "Book an appointment for the patient at the clinic.",
    "Schedule an interview with the candidate for the job opening.",
)
"""One task for each program."""
_SEED = 4


@dataclass(frozen=True)
class Sound:
    """A sound program and a state."""

    skeleton: EnvSkeleton
    state: State
    clock: str


@cache
def programs(count: int = len(TASKS)) -> tuple[Sound, ...]:
    """The first programs; made once in a process."""
    return tuple(_sound(task) for task in TASKS[:count])


def _sound(task: str) -> Sound:
    blueprint = blueprint_of_task(task)
    assert isinstance(blueprint, Blueprint)
    source = program_of(blueprint)
    skeleton = EnvSkeleton(
        id=blueprint.summary.lower().replace(" ", "-"),
        description=EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        entities=entities_of(blueprint),
        rules=rules_of(blueprint),
        tools=tools_of(blueprint),
        class_name=class_name_of(source),
        source=source,
    )
    state = make_state(blueprint, seed=_SEED, index=0, purpose="assessment")
    return Sound(skeleton, state, state["current_time"])
