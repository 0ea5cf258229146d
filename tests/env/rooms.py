"""A small desk for rooms that is sound in all its tools, for tests that plant faults in it."""

from __future__ import annotations

from typing import Any

from envscaler.program import tool_schemas
from envscaler.skeleton import Attribute, Effect, Entity, EnvDescription, EnvSkeleton, Rule, ToolSpec

SOURCE = '''\
import copy


class RoomDesk:
    """Keeps rooms and their bookings."""

    def __init__(self, init_config: dict) -> None:
        state = copy.deepcopy(init_config)
        self.rooms: dict[str, dict] = state.get("rooms", {})
        self.bookings: dict[str, dict] = state.get("bookings", {})
        self.next_number: int = state.get("next_number", 1)

    def get_room(self, room_id: str) -> dict:
        """Get one room."""
        room = self.rooms.get(room_id)
        if room is None:
            return {"success": False, "error": "no such room"}
        return {"success": True, "data": dict(room)}

    def list_bookings(self, room_id: str | None = None) -> dict:
        """List bookings, all or those of a room."""
        bookings = list(self.bookings.values())
        if room_id is not None:
            bookings = [booking for booking in bookings if booking["room_id"] == room_id]
        return {"success": True, "data": [dict(booking) for booking in bookings]}

    def create_booking(self, room_id: str, guest: str, host: str) -> dict:
        """Book a room for a guest of a host."""
        room = self.rooms.get(room_id)
        if room is None:
            return {"success": False, "error": "no such room"}
        if sum(booking["room_id"] == room_id for booking in self.bookings.values()) >= room["places"]:
            return {"success": False, "error": "it is full"}
        booking_id = f"B{self.next_number}"
        self.next_number += 1
        self.bookings[booking_id] = {"booking_id": booking_id, "room_id": room_id, "guest": guest, "host": host}
        return {"success": True, "data": {"booking_id": booking_id}}
'''
ENTITIES = (
    Entity(
        name="Room",
        container="rooms",
        key="room_id",
        attributes=(
            Attribute(name="room_id", type="str"),
            Attribute(name="title", type="str"),
            Attribute(name="places", type="int"),
        ),
    ),
    Entity(
        name="Booking",
        container="bookings",
        key="booking_id",
        attributes=(
            Attribute(name="booking_id", type="str"),
            Attribute(name="room_id", type="str", references="Room"),
            Attribute(name="guest", type="str"),
            Attribute(name="host", type="str"),
        ),
    ),
    Entity(name="System", attributes=(Attribute(name="next_number", type="int"),)),
)
RULE = Rule(
    text="A room has no more bookings than places.",
    tools=("create_booking",),
    predicate="all(sum(b['room_id'] == r for b in state['bookings'].values()) <= room['places'] "
    "for r, room in state['rooms'].items())",
)
STATE: dict[str, Any] = {
    "rooms": {f"R{n}": {"room_id": f"R{n}", "title": f"Room {n}", "places": n} for n in (1, 2, 3)},
    "bookings": {
        "B1": {"booking_id": "B1", "room_id": "R2", "guest": "Ann", "host": "Bob"},
        "B2": {"booking_id": "B2", "room_id": "R3", "guest": "Cleo", "host": "Dan"},
    },
    "next_number": 3,
}
_EFFECTS = {
    "get_room": Effect(kind="read", entity="Room"),
    "list_bookings": Effect(kind="read", entity="Booking"),
    "create_booking": Effect(kind="create", entity="Booking"),
}


def skeleton(*edits: tuple[str, str], published: str = SOURCE) -> EnvSkeleton:
    """The desk with parts of its program replaced.

    Args:
        published: the program that the schemas of the tools are made from.
    """
    source = SOURCE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    schemas = tool_schemas(published, "RoomDesk")
    return EnvSkeleton(
        id="room-desk",
        description=EnvDescription(summary="Room desk", introduction="Keeps rooms and their bookings."),
        entities=ENTITIES,
        rules=(RULE,),
        tools=tuple(
            ToolSpec(
                name=name,
                description="",
                parameters=schemas[name],
                effect="query" if effect.kind == "read" else "update",
                effects=(effect,),
            )
            for name, effect in _EFFECTS.items()
        ),
        class_name="RoomDesk",
        source=source,
    )
