"""Tests of what one call must mean: each oracle finds its fault, and leaves alone what may be right."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from envscaler.env.meaning import Known, Meaning, findings_of, meaning_of
from envscaler.messages import ToolCall
from envscaler.sandbox import Outcome, Sandbox, ToolFault
from envscaler.skeleton import Attribute, Effect, Entity, Forbidden, Initial, Rule, ToolSpec
from envscaler.state import State

ROOM = Entity(
    name="Room",
    container="rooms",
    key="room_id",
    attributes=(
        Attribute(name="room_id", type="str"),
        Attribute(name="title", type="str"),
        Attribute(name="floor", type="int"),
        Attribute(name="status", type="str", enum=("free", "taken", "closed")),
    ),
)
BOOKING = Entity(
    name="Booking",
    container="bookings",
    key="booking_id",
    attributes=(
        Attribute(name="booking_id", type="str"),
        Attribute(name="room_id", type="str", references="Room"),
        Attribute(name="guest", type="str"),
        Attribute(name="host", type="str"),
    ),
)
RULE = Rule(
    text="A room has one booking at most.",
    tools=("create_booking",),
    predicate="len({b['room_id'] for b in state['bookings'].values()}) == len(state['bookings'])",
)
KNOWN = Known((ROOM, BOOKING))
STATE: State = {
    "rooms": {
        "R1": {"room_id": "R1", "title": "Blue room", "floor": 1, "status": "free"},
        "R2": {"room_id": "R2", "title": "Red room", "floor": 2, "status": "taken"},
        "R3": {"room_id": "R3", "title": "Red hall", "floor": 3, "status": "free"},
    },
    "bookings": {"B1": {"booking_id": "B1", "room_id": "R2", "guest": "Ann", "host": "Bob"}},
    "next_booking": 2,
}
TEXT = {"type": "string"}


def tool(name: str, effects: tuple[Effect, ...] | None = None, /, **parameters: Any) -> ToolSpec:
    is_query = name.split("_")[0] in ("get", "list", "find", "count")
    schema = {
        "type": "object",
        "properties": {part: schema for part, (schema, _) in parameters.items()},
        "required": [part for part, (_, required) in parameters.items() if required],
        "additionalProperties": False,
    }
    return ToolSpec(
        name=name, description="", parameters=schema, effect="query" if is_query else "update", effects=effects
    )


GET = tool("get_room", room_id=(TEXT, True))
LIST = tool("list_rooms", status=(TEXT, False), floor=({"type": "integer"}, False), limit=({"type": "integer"}, False))
FIND = tool("find_rooms_by_title", title=(TEXT, True))
CREATE = tool(
    "create_booking",
    (Effect(kind="create", entity="Booking"),),
    room_id=(TEXT, True),
    guest=(TEXT, True),
    host=(TEXT, True),
)
SET = tool(
    "set_room_status",
    (Effect(kind="update", entity="Room", attributes=("status",)),),
    room_id=(TEXT, True),
    status=(TEXT, True),
)
DELETE_ROOM = tool("delete_room", (Effect(kind="delete", entity="Room"),), room_id=(TEXT, True))
DELETE = tool("delete_booking", (Effect(kind="delete", entity="Booking"),), booking_id=(TEXT, True))


def meant(
    spec: ToolSpec, arguments: dict[str, Any], result: Any, after: State = STATE, known: Known = KNOWN
) -> Meaning:
    outcome = Outcome(result=result, fault=None, digest="", changed=after is not STATE)
    return findings_of(known, spec, ToolCall(name=spec.name, arguments=arguments), outcome, STATE, after)


def oracles(meaning: Meaning) -> list[str]:
    return [finding.oracle for finding in meaning.findings]


def found(*keys: str) -> dict[str, Any]:
    return {"success": True, "data": [STATE["rooms"][key] for key in keys]}


def changed(**places: Any) -> State:
    """The state with other values, such as `rooms__R1__status="taken"`; None removes a record."""
    after = copy.deepcopy(STATE)
    for place, value in places.items():
        *path, last = place.split("__")
        part = after
        for name in path:
            part = part[name]
        if value is None:
            del part[last]
        else:
            part[last] = value
    return after


BOOKED = {"booking_id": "B2", "room_id": "R1", "guest": "Cleo", "host": "Dan"}
ASKED = {"room_id": "R1", "guest": "Cleo", "host": "Dan"}
OK = {"success": True}


def test_sound_calls_are_settled() -> None:
    settled = [
        meant(GET, {"room_id": "R1"}, {"success": True, "data": STATE["rooms"]["R1"]}),
        meant(LIST, {}, found("R1", "R2", "R3")),
        meant(LIST, {"status": "free"}, found("R1", "R3")),
        meant(LIST, {"status": "closed"}, {"success": True, "data": []}),
        meant(FIND, {"title": "red"}, found("R2", "R3")),
        meant(GET, {"room_id": "R9"}, {"success": False, "error": "no such room"}),
        meant(SET, {"room_id": "R1", "status": "taken"}, OK, changed(rooms__R1__status="taken")),
        meant(CREATE, ASKED, OK, changed(bookings__B2=BOOKED, next_booking=3)),
        meant(SET, {"room_id": "R1", "status": "free"}, OK),  # which it is
        meant(DELETE, {"booking_id": "B1"}, OK, changed(bookings__B1=None)),
    ]
    assert [oracles(meaning) for meaning in settled] == [[]] * len(settled)
    assert all(meaning.settled for meaning in settled), [meaning.doubts for meaning in settled]


@pytest.mark.parametrize(
    ("spec", "arguments", "result", "after", "oracle"),
    [
        (GET, {"room_id": "R1"}, {"success": True, "data": STATE["rooms"]["R2"]}, STATE, "returned_other"),
        (
            GET,
            {"room_id": "R1"},
            {"success": True, "data": {**STATE["rooms"]["R1"], "floor": 7}},
            STATE,
            "returned_other",
        ),
        (GET, {"room_id": "R1"}, {"success": False, "error": "no such room"}, STATE, "refused_existing"),
        (LIST, {"status": "free"}, found("R1", "R2", "R3"), STATE, "filter_ignored"),
        (LIST, {"floor": 2}, found("R1", "R2", "R3"), STATE, "filter_ignored"),
        (LIST, {}, found("R1", "R2"), STATE, "list_incomplete"),
        (LIST, {}, found("R1", "R2", "R3", "R3"), STATE, "returned_twice"),
        (LIST, {"limit": 2}, found("R1", "R2", "R3"), STATE, "limit_exceeded"),
        (FIND, {"title": "blue"}, found("R1", "R2"), STATE, "filter_ignored"),
        (CREATE, ASKED, OK, STATE, "created_none"),
        (
            CREATE,
            ASKED,
            OK,
            changed(bookings__B2=BOOKED, bookings__B3={**BOOKED, "booking_id": "B3"}),
            "created_many",
        ),
        (CREATE, ASKED, OK, changed(bookings__B2={**BOOKED, "guest": "Dan", "host": "Cleo"}), "other_value"),
        (CREATE, ASKED, OK, changed(bookings__B2={**BOOKED, "booking_id": "b2"}), "state_broken"),
        (CREATE, ASKED, OK, changed(bookings__B2=BOOKED, rooms__R3__status="taken"), "changed_other"),
        (CREATE, {**ASKED, "room_id": "R9"}, OK, changed(bookings__B2={**BOOKED, "room_id": "R9"}), "state_broken"),
        (SET, {"room_id": "R1", "status": "taken"}, OK, STATE, "other_value"),
        (SET, {"room_id": "R1", "status": "taken"}, OK, changed(rooms__R3__status="taken"), "changed_other"),
        (SET, {"room_id": "R1", "status": "taken"}, OK, changed(rooms__R1__floor=9), "other_value"),
        (SET, {"room_id": "R9", "status": "taken"}, OK, STATE, "unknown_accepted"),
        (DELETE, {"booking_id": "B1"}, OK, STATE, "deleted_none"),
        (DELETE, {"booking_id": "B1"}, OK, changed(rooms__R1=None, bookings__B1=None), "deleted_other"),
    ],
)
def test_each_oracle_finds_its_fault(
    spec: ToolSpec, arguments: dict[str, Any], result: Any, after: State, oracle: str
) -> None:
    meaning = meant(spec, arguments, result, after)
    assert oracle in oracles(meaning)
    assert meaning.settled


@pytest.mark.parametrize(
    ("spec", "arguments", "after", "oracle"),
    [
        # The room that is booked is taken.
        (CREATE, ASKED, changed(bookings__B2=BOOKED, rooms__R1__status="taken"), "changed_other"),
        # A booking of the room whose status is set.
        (
            SET,
            {"room_id": "R1", "status": "taken"},
            changed(rooms__R1__status="taken", bookings__B2=BOOKED),
            "created_other",
        ),
        # A room goes with its bookings, a booking with its room.
        (DELETE_ROOM, {"room_id": "R2"}, changed(rooms__R2=None, bookings__B1=None), "deleted_other"),
        (DELETE, {"booking_id": "B1"}, changed(bookings__B1=None, rooms__R2=None), "deleted_other"),
        (
            CREATE,
            ASKED,
            changed(bookings__B2=BOOKED, bookings__B3={**BOOKED, "booking_id": "B3", "host": "Eve"}),
            "created_many",
        ),
    ],
)
def test_what_no_effect_names_is_remarked_on_where_it_has_to_do_with_the_call(
    spec: ToolSpec, arguments: dict[str, Any], after: State, oracle: str
) -> None:
    meaning = meant(spec, arguments, OK, after)
    assert oracles(meaning) == []
    assert [remark.oracle for remark in meaning.remarks] == [oracle]
    assert not meaning.settled


def test_a_key_that_does_not_exist_may_be_that_of_what_is_made_or_one_of_several() -> None:
    add = tool("add_room_to_house", room_id=(TEXT, True))
    several = tool("close_rooms", room_id=({"type": "array", "items": TEXT}, True))
    room = {**STATE["rooms"]["R1"], "room_id": "R9"}
    assert oracles(meant(add, {"room_id": "R9"}, OK, changed(rooms__R9=room))) == []
    assert oracles(meant(add, {"room_id": "R9"}, OK)) == ["unknown_accepted"]
    assert oracles(meant(several, {"room_id": ["R1", "R9"]}, OK, changed(rooms__R1__status="closed"))) == []


def test_the_time_of_a_change_may_change_where_the_value_is_there_already() -> None:
    room = ROOM.model_copy(update={"attributes": (*ROOM.attributes, Attribute(name="changed_at", type="str"))})
    close = tool("close_room", (Effect(kind="update", entity="Room", attributes=("status",)),), room_id=(TEXT, True))

    def closing(name: str, value: Any) -> Meaning:
        return meant(close, {"room_id": "R1"}, OK, changed(**{f"rooms__R1__{name}": value}), Known((room, BOOKING)))

    assert oracles(closing("changed_at", "2025-01-06T09:00:00Z")) == []
    assert oracles(closing("title", "Closed room")) == ["changed_other"]


def test_what_may_be_right_is_left_to_a_judge() -> None:
    doubtful = [
        meant(tool("count_rooms"), {}, {"success": True, "data": 3}),
        meant(LIST, {}, found("R1", "R3")),  # may hide what is taken
        meant(LIST, {"floor": 2}, found("R2", "R3")),  # may mean "at least"
        meant(tool("list_quiet_rooms"), {}, found("R1")),
        meant(SET, {"room_id": "R1", "status": "taken"}, {"success": False, "error": "it is being cleaned"}),
        meant(tool("lend_key", room_id=(TEXT, True)), {"room_id": "R1"}, OK),
    ]
    assert [oracles(meaning) for meaning in doubtful] == [[]] * len(doubtful)
    assert not any(meaning.settled for meaning in doubtful)


def test_a_filter_by_another_entity_is_doubtful_where_a_third_refers_to_both() -> None:
    person = Entity(
        name="Person", container="people", key="person_id", attributes=(Attribute(name="person_id", type="str"),)
    )
    guest = Attribute(name="person_id", type="str", references="Person")
    stay = Entity(
        name="Stay",
        container="stays",
        attributes=(guest, Attribute(name="booking_id", type="str", references="Booking")),
    )
    owned = BOOKING.model_copy(
        update={"attributes": (*BOOKING.attributes[:2], Attribute(name="owner", type="str", references="Person"))}
    )
    state = {**STATE, "people": {"P1": {"person_id": "P1"}}, "stays": {}}
    state["bookings"] = {"B1": {"booking_id": "B1", "room_id": "R2", "owner": "P9"}}
    listing = tool("list_bookings_of_person", person_id=(TEXT, True))
    call = ToolCall(name=listing.name, arguments={"person_id": "P1"})
    outcome = Outcome({"success": True, "data": [state["bookings"]["B1"]]}, None, "", False)

    def findings(*entities: Entity) -> list[str]:
        return oracles(findings_of(Known(entities), listing, call, outcome, state, state))

    assert findings(ROOM, owned, person) == ["filter_ignored"]
    assert findings(ROOM, owned, person, stay) == []


def test_slips_of_a_program_are_found_and_what_it_raises_on_purpose_is_not() -> None:
    def raised(kind: str, arguments: dict[str, Any]) -> Meaning:
        outcome = Outcome(None, ToolFault("raised", kind, "'x'"), "", False)
        return findings_of(KNOWN, GET, ToolCall(name="get_room", arguments=arguments), outcome, STATE, STATE)

    assert oracles(raised("KeyError", {"room_id": "R1"})) == ["raised"]
    assert oracles(raised("ValueError", {"room_id": "R1"})) == []
    assert oracles(raised("TypeError", {"room_id": 7})) == []


STAMPED = BOOKING.model_copy(
    update={
        "attributes": (
            *BOOKING.attributes,
            Attribute(name="status", type="str", initial=Initial(value="open")),
            Attribute(name="made_on", type="str", initial=Initial(clock="now")),
        )
    }
)


@pytest.mark.parametrize(
    ("begun", "expected", "settled"),
    [
        ({"status": "open", "made_on": "2025-03-04"}, [], True),
        ({"status": "open", "made_on": "2025-03-04T09:00:00"}, [], True),
        ({"status": "shut", "made_on": "2025-03-04"}, ["other_value"], True),
        ({"status": "open", "made_on": "2025-03-05"}, ["other_value"], True),
        ({"status": "open", "made_on": "2025-03-04", "note": ""}, [], False),
    ],
)
def test_what_nobody_gives_a_new_record_begins_as_its_attribute_says(
    begun: dict[str, Any], expected: list[str], settled: bool
) -> None:
    before = {**STATE, "now": "2025-03-04T09:00:00"}
    after = copy.deepcopy(before)
    after["bookings"]["B2"] = {**BOOKED, **begun}
    outcome = Outcome(result=OK, fault=None, digest="", changed=True)
    known = Known((ROOM, STAMPED))
    meaning = findings_of(known, CREATE, ToolCall(name=CREATE.name, arguments=ASKED), outcome, before, after)
    assert oracles(meaning) == expected
    assert meaning.settled is settled
    # An argument that may be the same thing under another name says what it is.
    elsewhere = tool(CREATE.name, CREATE.effects, state=(TEXT, False), **dict.fromkeys(ASKED, (TEXT, True)))
    call = ToolCall(name=CREATE.name, arguments={**ASKED, "state": "shut"})
    assert not findings_of(known, elsewhere, call, outcome, before, after).findings


CLOSED = Rule(
    text="set_room_status refuses a room that is taken.",
    tools=("set_room_status",),
    forbidden=Forbidden(entity="Room", attribute="status", value="taken"),
)


@pytest.mark.parametrize(
    ("room", "success", "expected", "settled"),
    [
        ("R1", True, [], True),
        ("R2", True, ["rule_broken"], True),
        ("R1", False, [], False),
        ("R2", False, [], True),
    ],
)
def test_what_a_rule_forbids_is_refused_and_nothing_else_is_settled(
    room: str, success: bool, expected: list[str], settled: bool
) -> None:
    arguments = {"room_id": room, "status": "closed"}
    result = {"success": success, "error" if not success else "message": "It is said why."}
    after = changed(**{f"rooms__{room}__status": "closed"}) if success else STATE
    meaning = meant(SET, arguments, result, after, known=Known((ROOM, BOOKING), (CLOSED,)))
    assert oracles(meaning) == expected
    assert meaning.settled is settled


def test_rules_that_could_be_evaluated_and_were_not_are_left_to_a_judge() -> None:
    meaning = meant(CREATE, ASKED, OK, changed(bookings__B2=BOOKED), Known((ROOM, BOOKING), (RULE,)))
    assert not meaning.settled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("room", "enforced", "expected"), [("R2", None, ["rule_broken"]), ("R1", None, []), ("R2", False, [])]
)
async def test_a_rule_that_held_and_is_broken_is_found(room: str, enforced: bool | None, expected: list[str]) -> None:
    known = Known((ROOM, BOOKING), (RULE.model_copy(update={"enforced": enforced}),))
    after = changed(bookings__B2={**BOOKED, "room_id": room})
    call = ToolCall(name="create_booking", arguments={**ASKED, "room_id": room})
    async with Sandbox() as sandbox:
        meaning = await meaning_of(sandbox, known, CREATE, call, Outcome(OK, None, "", True), STATE, after)
    assert oracles(meaning) == expected
    assert meaning.settled
