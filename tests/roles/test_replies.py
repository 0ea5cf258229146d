"""Replies of many kinds, as models give them, and what is made of each: read, read and marked as mended, or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from envscaler.errors import ReplyError
from envscaler.roles.parse import blocks_in, code_in, json_in

REPLIES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "replies.yaml").read_text(encoding="utf-8"))
READERS: dict[str, Any] = {"json": json_in, "code": code_in, "blocks": blocks_in}


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: f"{case['form']}: {case['kind']}")
def test_a_reply_of_this_kind_is_read_or_refused_as_it_should_be(case: dict[str, Any]) -> None:
    read = READERS[case["form"]]
    cut = case.get("cut", False)
    if "fault" in case:
        with pytest.raises(ReplyError) as refused:
            read(case["reply"], cut=cut)
        assert case["fault"] in str(refused.value)
        return
    found, mended = read(case["reply"], cut=cut)
    if case["form"] == "json":
        assert found == case["gives"]
    else:
        assert case["gives"] in "\n".join([found] if case["form"] == "code" else found)
    assert mended == case.get("mended", False)


def test_kinds_are_told_apart() -> None:
    names = [(case["form"], re.sub(r"\W+", " ", case["kind"])) for case in REPLIES]
    assert len(set(names)) == len(names) >= 40
