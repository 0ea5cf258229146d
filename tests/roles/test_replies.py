"""Replies of many kinds, as models give them, and what is made of each: read, read and marked as mended, or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from envscaler.errors import ReplyError
from envscaler.roles.code import blocks_in, code_in
from envscaler.roles.fitting import fitted
from envscaler.roles.objects import json_in
from envscaler.roles.role import ROLES

FOLDER = Path(__file__).parent / "replies"
KINDS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "kinds.yaml").read_text(encoding="utf-8"))
TYPES = {role.name: role.reply for role in ROLES}


def read(case: dict[str, Any]) -> tuple[Any, list[str]]:
    """What is read from a reply, and what had to be made good."""
    text, cut = case["reply"], case.get("cut", False)
    if case["form"] == "code":
        source, mended = code_in(text, cut=cut)
        return source, list(mended)
    if case["form"] == "blocks":
        blocks, mended = blocks_in(text, cut=cut)
        return "\n".join(blocks), list(mended)
    found = json_in(text, cut=cut)
    if "role" not in case:
        return found[0].value, list(found[0].mendings)
    reply, mended = fitted(TYPES[case["role"]], found)
    return reply.model_dump(mode="json", exclude_unset=True), list(mended)


@pytest.mark.parametrize("case", KINDS, ids=lambda case: f"{case['form']}: {case['kind']}")
def test_a_reply_of_this_kind_is_read_or_refused_as_it_should_be(case: dict[str, Any]) -> None:
    if "fault" in case:
        with pytest.raises(ReplyError) as refused:
            read(case)
        assert case["fault"] in str(refused.value)
        return
    found, mended = read(case)
    if case["form"] == "json":
        assert found == case["gives"]
    else:
        assert case["gives"] in found
    assert mended == case.get("mended", [])


def test_kinds_are_told_apart() -> None:
    names = [(case["form"], re.sub(r"\W+", " ", case["kind"])) for case in KINDS]
    assert len(set(names)) == len(names) >= 100
