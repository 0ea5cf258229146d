"""Replies, good and broken, with what each has to come to: written by hand, from the list of slips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents.test_dialect_laws import TOOLS

from envscaler.agents.dialects import DIALECTS, LIKELY, SLIPS, DialectName, Reading, dialect_of
from envscaler.llm.chat import Completion
from envscaler.llm.wire import completion_from
from envscaler.messages import AssistantMessage

REPLIES = Path(__file__).parent / "replies"


def lines(name: str) -> list[dict[str, Any]]:
    path = REPLIES / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cases() -> list[Any]:
    return [
        pytest.param(name, line, id=f"{name}-{index}-{line['why'][:60]}")
        for name in DIALECTS
        for index, line in enumerate(lines(name))
    ]


def live_cases() -> list[Any]:
    return [
        pytest.param(line["dialect"], line, id=f"{path.stem}-{line['dialect']}-{index}")
        for path in sorted((REPLIES / "live").glob("*.jsonl"))
        for index, line in enumerate(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    ]


def read(name: DialectName, line: dict[str, Any]) -> Reading:
    reply, finish = line["reply"], line.get("finish", "stop")
    if isinstance(reply, dict):
        completion = completion_from({"choices": [{"message": reply, "finish_reason": finish}]}, model="m")
    else:
        completion = Completion(message=AssistantMessage(content=reply), finish_reason=finish, model="m")
    return dialect_of(name).read(completion, TOOLS)


@pytest.mark.parametrize(("name", "line"), [*cases(), *live_cases()])
def test_a_reply_comes_to_what_was_judged_by_hand(name: DialectName, line: dict[str, Any]) -> None:
    reading = read(name, line)
    message = reading.message
    assert reading.fault == line.get("fault")
    done = [call for call in message.tool_calls if call.malformed is None]
    if line.get("finish") == "length":
        return  # the episode ends there; what of the calls had come is only recorded
    wanted = line.get("calls", [])
    assert [call.name for call in done] == [call["name"] for call in wanted]
    for call, want in zip(done, wanted, strict=True):
        # None: the arguments are a guess, and which one it is does not matter.
        assert want["arguments"] is None or call.arguments == want["arguments"]
    assert {slip.kind for slip in reading.slips} == {*line.get("slips", []), *filter(None, [line.get("fault")])}
    if "content" in line or reading.fault is None:
        assert message.content == line.get("content", "")
    if line.get("reasoning") == "*":
        assert message.reasoning
    elif "reasoning" in line or reading.fault is None:
        assert message.reasoning == line.get("reasoning")


@pytest.mark.parametrize("name", DIALECTS)
def test_each_dialect_has_many_different_replies_each_with_its_reason(name: DialectName) -> None:
    rows = lines(name)
    assert len({json.dumps(row["reply"]) for row in rows}) >= 150
    assert all(row["why"] for row in rows)
    faulty = sum("fault" in row or "slips" in row for row in rows)
    assert 30 <= faulty <= len(rows) - 20


def test_every_kind_of_slip_is_in_some_reply() -> None:
    told = {kind for name in DIALECTS for row in lines(name) for kind in (*row.get("slips", []), row.get("fault"))}
    # Found by the policy, not by a dialect.
    assert told - {None} == SLIPS.keys() - {"second_call"}


@pytest.mark.parametrize(("name", "line"), cases())
def test_nothing_doubtful_or_cut_becomes_an_update(name: DialectName, line: dict[str, Any]) -> None:
    updates = {tool.name for tool in TOOLS if tool.effect == "update"}
    reading = read(name, line)
    doubtful = any(slip.kind in LIKELY and slip.repaired for slip in reading.slips)
    if line.get("finish") == "length":
        assert reading.fault == "cut_reply"
    elif doubtful:
        assert not [call for call in reading.message.tool_calls if call.malformed is None and call.name in updates]
