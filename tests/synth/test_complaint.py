"""Tests of what the writer of a method is told: calls with what they did, where they raised, what was found."""

from __future__ import annotations

import pytest
from env.rooms import STATE, skeleton

from envscaler.assessment import Finding
from envscaler.env.examination import examine_tools
from envscaler.env.tool_examination import ToolExamination
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton
from envscaler.synth.complaint import complaint


async def examined(environment: EnvSkeleton, name: str) -> ToolExamination:
    async with Sandbox() as sandbox:
        return (await examine_tools(environment, STATE, sandbox, rounds=1))[name]


@pytest.mark.anyio
async def test_an_exception_is_told_with_its_text_and_the_line_at_which_it_was_raised() -> None:
    wrong_key = skeleton(('"data": dict(room)', '"data": {"room_id": room["id"]}'))
    told = complaint([], [], await examined(wrong_key, "get_room"))
    assert "KeyError: 'id'" in told
    line = next(line for line in told.splitlines() if "at the line: " in line)
    assert 'room["id"]' in line
    assert 'get_room(**{"room_id":' in told


@pytest.mark.anyio
async def test_what_was_found_is_told_with_the_call_that_shows_it_and_what_it_changed() -> None:
    writing = skeleton(("bookings = list(", "self.next_number += 1\n        bookings = list("))
    told = complaint([], ["it is no better"], await examined(writing, "list_bookings"))
    assert "changed the state: changed /next_number" in told
    assert "what is wrong: the query tool list_bookings changed the state" in told
    assert "Another version was refused: it is no better" in told
    assert "test call" not in told


def test_a_finding_without_a_call_is_told_alone_and_harmless_ones_only_beside_faults() -> None:
    seen = ToolExamination()
    seen.add([Finding(oracle="early_write", detail="it writes before a test")])
    assert "before a test" not in complaint([], [], seen)
    seen.add([Finding(oracle="query_writes", detail="the query writes")])
    assert "- it writes before a test\n" in complaint([], [], seen)
