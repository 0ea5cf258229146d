"""Tests of the examination of whole programs: one planted fault of each kind, and a sound program."""

from __future__ import annotations

import pytest
from env.rooms import SOURCE, STATE, skeleton

from envscaler.assessment import Examined
from envscaler.env.examination import examine_tools, needing_judge
from envscaler.program import tool_schemas
from envscaler.sandbox import Limits, Sandbox
from envscaler.skeleton import Effect, EnvSkeleton, ToolSpec

LISTED = "bookings = list(self.bookings.values())"
INIT = 'self.next_number: int = state.get("next_number", 1)'


async def oracles(environment: EnvSkeleton) -> set[str]:
    async with Sandbox() as sandbox:
        examined = await examine_tools(environment, STATE, sandbox, rounds=2)
    return {oracle for seen in examined.values() for oracle in seen.findings}


@pytest.mark.anyio
async def test_nothing_is_found_of_a_sound_program_and_its_queries_need_no_judge() -> None:
    async with Sandbox() as sandbox:
        examined = await examine_tools(skeleton(), STATE, sandbox, rounds=2)
        assert examined == await examine_tools(skeleton(), STATE, sandbox, rounds=2)
    assert {name: list(seen.findings) for name, seen in examined.items()} == {key: [] for key in examined}
    assert all(seen.succeeded for seen in examined.values())
    assert list(needing_judge(examined)) == ["create_booking"]
    assert all(examined[name].passed for name in ("get_room", "list_bookings"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "edits", "oracle"),
    [
        ("write in a query", [(LISTED, f"{LISTED}\n        self.next_number += 1")], "query_writes"),
        (
            "partial write before an error",
            [('        if sum(booking["room_id"]', '        self.next_number += 1\n        if sum(booking["room_id"]')],
            "failure_writes",
        ),
        ("aliasing of returned state", [('"data": dict(room)', '"data": room')], "aliased_result"),
        ("wrong key", [('"data": dict(room)', '"data": {"room_id": room["id"]}')], "raised"),
        (
            "nondeterminism",
            [
                ("import copy", "import copy\n\nSEEN = []"),
                (LISTED, f"{LISTED}\n        SEEN.append(0)"),
                ('"data": [dict(booking)', '"seen": len(SEEN), "data": [dict(booking)'),
            ],
            "nondeterministic",
        ),
        ("off-by-one", [(">= room", "> room")], "rule_broken"),
        ("off-by-one", [("for booking in bookings]}", "for booking in bookings[1:]]}")], "list_incomplete"),
        ("swapped arguments", [('"guest": guest, "host": host', '"guest": host, "host": guest')], "other_value"),
        (
            "stale index",
            [
                (INIT, f"{INIT}\n        self.order = list(self.bookings)"),
                (LISTED, "bookings = [self.bookings[key] for key in self.order]"),
            ],
            "list_incomplete",
        ),
        ("ignored filter", [('if booking["room_id"] == room_id]', "]")], "filter_ignored"),
    ],
)
async def test_a_fault_of_each_kind_is_found(kind: str, edits: list[tuple[str, str]], oracle: str) -> None:
    assert oracle in await oracles(skeleton(*edits)), kind


@pytest.mark.anyio
async def test_a_rule_that_is_missing_is_found() -> None:
    refusal = SOURCE[SOURCE.index("        if sum(booking") : SOURCE.index("        booking_id = f")]
    assert "rule_broken" in await oracles(skeleton((refusal, "")))


@pytest.mark.anyio
async def test_a_schema_that_its_method_does_not_have_is_found() -> None:
    published = SOURCE.replace("host: str)", "host: str, notes: str)")
    assert "schema" in await oracles(skeleton(published=published))


@pytest.mark.anyio
async def test_a_program_that_ends_its_own_process_is_examined_to_the_end() -> None:
    environment = skeleton(("import copy", "import copy, os"), (LISTED, f"os._exit(3)\n        {LISTED}"))
    async with Sandbox() as sandbox:
        examined = await examine_tools(environment, STATE, sandbox, rounds=1)
    assert examined["get_room"].passed
    assert not examined["list_bookings"].passed


HALVES = '''
    def update_booking(self, booking_id: str, guest: str | None = None, host: str | None = None) -> dict:
        """Change the guest or the host of a booking."""
        booking = self.bookings.get(booking_id)
        if booking is None:
            return {"success": False, "error": "no such booking"}
        if guest is not None:
            booking["guest"] = guest
        if host is not None:
            if not host.strip():
                return {"success": False, "error": "a host has a name"}
            booking["host"] = host
        return {"success": True, "message": "it was changed"}
'''


def with_tool(code: str, name: str, effect: Effect) -> EnvSkeleton:
    source = f"{SOURCE}{code}"
    schema = tool_schemas(source, "RoomDesk")[name]
    added = ToolSpec(name=name, description="", parameters=schema, effect="update", effects=(effect,))
    plain = skeleton()
    return plain.model_copy(update={"source": source, "tools": (*plain.tools, added)})


@pytest.mark.anyio
async def test_half_a_change_shows_where_a_later_argument_is_wrong_and_the_first_would_change_something() -> None:
    environment = with_tool(HALVES, "update_booking", Effect(kind="update", entity="Booking"))
    async with Sandbox() as sandbox:
        examined = await examine_tools(environment, STATE, sandbox, rounds=1)
    fault = examined["update_booking"].faults["failure_writes"]
    assert fault.call is not None
    assert fault.call.arguments["host"] == ""
    assert {name for name, seen in examined.items() if seen.faults} == {"update_booking"}


@pytest.mark.anyio
async def test_a_tool_that_does_not_come_back_is_called_once_more_at_most() -> None:
    endless = skeleton((LISTED, f"while True:\n            pass\n        {LISTED}"))
    async with Sandbox(Limits(cpu_s=0.2, cpu_kill_s=0.4)) as sandbox:
        examined = await examine_tools(endless, STATE, sandbox, rounds=2)
    assert list(examined["list_bookings"].faults) == ["unbounded"]
    assert examined["list_bookings"].calls <= 2
    assert examined["get_room"].passed


@pytest.mark.anyio
async def test_what_the_text_alone_tells_and_shared_results_are_remarks() -> None:
    async with Sandbox() as sandbox:
        environment = skeleton(('"data": dict(room)', '"data": room'))
        record = (await examine_tools(environment, STATE, sandbox, rounds=1))["get_room"].record("get_room")
    assert (record.faults, record.verdict) == ((), "pass")
    assert [remark.oracle for remark in record.remarks] == ["aliased_result"]
    assert record.remarks[0].call is not None
    assert Examined.model_validate(record.model_dump()) == record
