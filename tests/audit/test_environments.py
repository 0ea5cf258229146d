"""What the audit says of tools whose arguments it has to guess."""

from __future__ import annotations

import pytest
from env.lending import SOURCE, scenario, skeleton

from envscaler.audit.environments import audit_environment
from envscaler.sandbox import Sandbox

pytestmark = pytest.mark.anyio


async def of_lending(source: str) -> list[bool]:
    """Whether it is only suspected that no call of `lend_book` succeeds; empty where nothing is said of it."""
    desk = skeleton(source)
    async with Sandbox() as sandbox, sandbox.judge() as judge:
        found = await audit_environment(desk, [scenario(desk, index) for index in range(3)], sandbox, judge)
    return [one.suspected for one in found if (one.kind, one.place) == ("unreachable_tool", "lend_book")]


async def test_an_id_is_found_whatever_its_parameter_is_called() -> None:
    source = SOURCE.replace(
        "def lend_book(self, book_id: str, member: str)", "def lend_book(self, wanted: str, member: str)"
    )
    source = source.replace("            book_id: Id of the book.", "            wanted: What is wanted.")
    source = source.replace(
        "        book = self.books.get(book_id)", "        book_id = wanted\n        book = self.books.get(book_id)"
    )
    assert await of_lending(source) == []


async def test_what_may_only_have_been_called_wrongly_is_suspected() -> None:
    secret = (
        'if member != "Zacharias Quill":\n'
        '            return {"success": False, "error": f"{member} is unknown"}\n'
        "        book = self.books.get(book_id)"
    )
    source = SOURCE.replace("book = self.books.get(book_id)", secret)
    assert await of_lending(source) == [True]


async def test_a_tool_that_fails_whatever_it_is_given_is_found() -> None:
    source = SOURCE.replace('if book["copies"] < 1:', 'if book["copies"] < 10_000:')
    source = source.replace("{book['title']}", "it")
    assert await of_lending(source) == [False]
