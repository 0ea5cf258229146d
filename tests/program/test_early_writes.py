"""Tests of what writes to the state before a call can still be refused."""

from __future__ import annotations

import textwrap

import pytest

from envscaler.program.early_writes import early_writes

REFUSED = 'return {"success": False, "error": "no"}'


def told(body: str) -> list[str]:
    method = textwrap.indent(
        f"def act(self, key, n):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}", "    "
    )
    return list(early_writes(f"class Desk:\n{method}\n", "Desk"))


@pytest.mark.parametrize(
    "write",
    [
        "self.count += 1",
        "self.rows[key] = {}",
        "row = self.rows.get(key)\nrow['n'] = n",
        "row = self.rows[key] if key else None\nrow['tags'].append(n)",
        "del self.rows[key]",
        "self.rows.pop(key, None)",
    ],
)
def test_write_before_a_refusal_is_told(write: str) -> None:
    assert told(f"{write}\nif n < 0:\n    {REFUSED}\nreturn {{}}") == ["act"]


@pytest.mark.parametrize(
    "body",
    [
        f"if n < 0:\n    {REFUSED}\nself.count += 1\nreturn {{}}",
        f"row = dict(self.rows[key])\nrow['n'] = n\nif n < 0:\n    {REFUSED}\nreturn {{}}",
        f"self.count += 1\nif n < 0:\n    self.count -= 1\n    {REFUSED}\nreturn {{}}",
        f"if key:\n    self.count += 1\nif n < 0:\n    {REFUSED}\nreturn {{}}",
        f"self.rows.setdefault(key, {{}})\nif n < 0:\n    {REFUSED}\nreturn {{}}",
        "self.count += 1\nif n < 0:\n    return {'success': True}\nreturn {}",
    ],
)
def test_what_leaves_nothing_behind_is_not_told(body: str) -> None:
    assert told(body) == []


def test_a_text_that_does_not_parse_tells_nothing() -> None:
    assert early_writes("class Desk:\n  def", "Desk") == {}
