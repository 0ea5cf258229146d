"""Replies that models really wrote in the roles of a synthesis, read as they come from an endpoint, against what was
judged of each by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envscaler.errors import ReplyError
from envscaler.llm.wire import completion_from
from envscaler.roles.ask import read
from envscaler.roles.role import ROLES

LIVE = Path(__file__).parent / "replies" / "live"
BY_NAME = {role.name: role for role in ROLES}


def cases() -> list[Any]:
    return [
        pytest.param(line, id=f"{path.stem}-{line['role']}-{index}-{line['why'][:40]}")
        for path in sorted(LIVE.glob("*.jsonl"))
        for index, line in enumerate(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    ]


@pytest.mark.parametrize("line", cases())
def test_a_recorded_reply_comes_to_what_was_judged_by_hand(line: dict[str, Any]) -> None:
    choice = {"message": {"role": "assistant", "content": line["reply"]}, "finish_reason": line["finish"]}
    completion = completion_from({"choices": [choice]}, model="recorded")
    role = BY_NAME[line["role"]]
    if "fault" in line:
        with pytest.raises(ReplyError) as refused:
            read(role, completion)
        assert refused.value.kind == line["fault"]
        return
    reply, mended = read(role, completion)
    assert list(mended) == line.get("mended", [])
    given = reply.model_dump(mode="json", exclude_unset=True)
    if role.form == "json":
        assert given == line["gives"]
    else:
        sources = given["blocks"] if role.form == "blocks" else [given["source"]]
        assert [[source.split("\n")[0], source.rstrip().split("\n")[-1]] for source in sources] == line["gives"]
