"""Tests of methods that return copies: what is returned is copied where it can be a part of the state, once each."""

from __future__ import annotations

import copy
import textwrap
from typing import Any

import pytest

from envscaler.program.copied_results import with_copied_results


def written(body: str) -> str:
    return "def method(self, room_id: str) -> dict:\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"


@pytest.mark.parametrize(
    ("returned", "copied"),
    [
        ('{"success": True, "data": room}', '{"success": True, "data": copy.deepcopy(room)}'),
        ("self.rooms[room_id]", "copy.deepcopy(self.rooms[room_id])"),
        (
            '{"success": True, "count": len(found), "data": [one for one in found]}',
            '{"success": True, "count": len(found), "data": copy.deepcopy([one for one in found])}',
        ),
        ('{"success": True, **room}', '{"success": True, **copy.deepcopy(room)}'),
    ],
)
def test_what_can_be_a_part_of_the_state_is_copied(returned: str, copied: str) -> None:
    assert with_copied_results(written(f"return {returned}")) == written(f"return {copied}")


@pytest.mark.parametrize(
    "returned",
    [
        '{"success": False, "error": f"There is no room {room_id}."}',
        '{"success": True, "data": len(self.rooms)}',
        '{"success": True, "data": -1}',
        "None",
    ],
)
def test_a_method_that_returns_no_part_of_the_state_is_left_alone(returned: str) -> None:
    assert with_copied_results(written(f"return {returned}")) is None


def test_functions_inside_a_method_return_what_they_returned() -> None:
    method = written(
        """
        def key(room):
            return room["floor"]
        rooms = sorted(self.rooms.values(), key=key)
        return rooms
        """
    )
    changed = with_copied_results(method) or ""
    assert 'return room["floor"]' in changed
    assert "return copy.deepcopy(rooms)" in changed


def test_the_method_returns_the_same_and_shares_nothing() -> None:
    method = written('return {"success": True, "data": self.rooms[room_id], "all": list(self.rooms.values())}')
    names: dict[str, Any] = {"copy": copy}
    exec(with_copied_results(method) or "", names)  # noqa: S102 - a method written in this test

    class House:
        rooms: dict[str, Any] = {"R1": {"floor": 1}}

    result = names["method"](House(), "R1")
    assert result == {"success": True, "data": {"floor": 1}, "all": [{"floor": 1}]}
    assert result["data"] is not House.rooms["R1"]
    assert result["all"][0] is not House.rooms["R1"]
