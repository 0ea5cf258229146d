"""What an explanation of an episode says, as records. How it is found, and how it is shown, is others' business."""

from __future__ import annotations

from typing import Literal

from envscaler.record import Record
from envscaler.scenario import CheckKind
from envscaler.state import Change, JsonValue
from envscaler.trajectory import StopReason

FaultKind = Literal[
    "missing call", "wrong entity", "wrong value", "call failed", "undone later", "extra edit", "rule broken"
]
"""`missing call`: a call that the recorded solution makes was not made, or nothing changed what had to change.
`wrong entity`, `wrong value`: it was made with the id of another record, with another argument.
`call failed`: it was made and refused. `undone later`: the check held, until a later call.
`extra edit`: a call changed what was to stay. `rule broken`: the same, and a rule of the environment is broken since.
"""


FoundIn = Literal["solution", "reset", "episode", "text"]
"""Where values that would satisfy a check come from: the state that the recorded solution leaves, the state at reset,
a moment of the episode at which the check held, or the text of the check."""


class CallMade(Record):
    """A tool call of the episode."""

    step: int
    """From 1, as `show` counts."""
    number: int = 1
    """From 1, among the calls of the step."""
    of: int = 1
    """Calls of the step."""
    turn: int = 0
    """Index of the user message that the agent was working on."""
    name: str
    arguments: dict[str, JsonValue] = {}
    malformed: str | None = None
    """Text of the arguments where it was no JSON object."""
    refused: bool = False
    """Whether it was not carried out, raised, or reported a failure."""
    changed: bool = False
    """Whether the state was another one after it."""
    observation: str = ""
    """What the agent saw, cut where it is long."""


class Turned(Record):
    """A call after which a check said something else than before."""

    call: CallMade
    holds: bool


class PlaceChange(Record):
    """A call that changed the value at a place."""

    call: CallMade
    change: Change


class Place(Record):
    """A place of the state that a check reads."""

    pointer: str
    label: str | None = None
    """What people call the record that it is in."""
    at_reset: JsonValue = None
    in_reset: bool
    """Whether there was such a place at reset; else `at_reset` is None."""
    at_end: JsonValue = None
    in_end: bool
    decides: bool
    """Whether another value there was seen to change what the check says; else its text only names the place."""
    changes: tuple[PlaceChange, ...] = ()
    attempts: tuple[CallMade, ...] = ()
    """Where nothing changed it: calls about the same record that were refused."""


class AlsoRead(Record):
    """Further places that a check reads, none of them changed in the episode."""

    pattern: str
    """Container and field: `/bookings/*/status`."""
    count: int


class SolutionStep(Record):
    """A call of the recorded solution, held against the episode."""

    number: int
    """From 1, in the solution."""
    name: str
    arguments: dict[str, JsonValue] = {}
    made: Literal["as recorded", "with other arguments", "not made"]
    instead: CallMade | None = None
    """The call of the episode that stands in its place; None when there is none."""
    differing: tuple[str, ...] = ()
    """Parameters whose values differ."""


class Remedy(Record):
    """A smallest set of changes found under which a check would hold of the final state."""

    changes: tuple[Change, ...]
    found_in: FoundIn
    calls: tuple[SolutionStep, ...] = ()
    """Calls of the recorded solution that make these changes."""


class Fault(Record):
    """What went wrong, and which checks do not hold for it."""

    kind: FaultKind
    says: str
    """One sentence."""
    call: CallMade | None = None
    """The call that did it; None where it is the lack of one."""
    expected: SolutionStep | None = None
    """The call of the recorded solution that was to be made."""
    checks: tuple[int, ...] = ()
    """Numbers of the checks, from 1."""


class CheckOutline(Record):
    """What one check of the scenario said."""

    number: int
    """From 1."""
    description: str
    kind: CheckKind | None
    is_guard: bool
    """As it counts for the reward."""
    held_at_reset: bool | None
    holds: bool
    error: str | None = None
    """Why it gave no boolean of the final state; then it does not hold."""


class CheckReading(Record):
    """One check, explained."""

    check: CheckOutline
    source: str
    held_after: tuple[bool | None, ...]
    """What it said after each call of the episode; None where it gave no boolean."""
    turned: tuple[Turned, ...]
    places: tuple[Place, ...]
    also_read: tuple[AlsoRead, ...] = ()
    untried: int = 0
    """Places that there was no time to try, which it may read as well."""
    remedy: Remedy | None = None
    """None when the check holds, or when nothing was found under which it would."""
    fault: Fault | None = None
    """None when the check holds, or where it cannot be told."""


class RuleBroken(Record):
    """A rule of the environment that held at reset and does not at the end."""

    text: str
    predicate: str
    call: CallMade
    """The call that broke it."""


class EpisodeReading(Record):
    """Why an episode was worth what it was."""

    trajectory_id: str
    env_id: str
    scenario_id: str
    task: str
    stop: StopReason
    rewards: dict[str, float | None]
    """As the final state is worth when the calls are played again."""
    recorded_rewards: dict[str, float | None]
    """As recorded; of an imported episode only `fraction` is."""
    notes: tuple[str, ...] = ()
    """What a reader has to know first: what has changed since, where playing it again led elsewhere."""
    calls: tuple[CallMade, ...]
    outlines: tuple[CheckOutline, ...]
    """All checks of the scenario."""
    checks: tuple[CheckReading, ...]
    """The check that was asked for, else those that do not hold."""
    rules: tuple[RuleBroken, ...] = ()
    faults: tuple[Fault, ...] = ()
    """What went wrong, in the order of the calls; checks that one fault explains stand together."""
