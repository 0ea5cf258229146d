"""The detectors of slips against messages that were judged before (user_messages.yaml)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from envscaler.agents import SLIP_KINDS
from envscaler.agents.user import parse_user_turn
from envscaler.agents.user.brief import Brief
from envscaler.agents.user.slips import slips_of
from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from envscaler.scenario import Scenario, UserProfile

CORPUS = yaml.safe_load((Path(__file__).parent / "user_messages.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Judged:
    """One message of the corpus."""

    scenario: Scenario
    before: tuple[Message, ...]
    says: str
    slips: frozenset[str]
    stops: bool


def scenario(name: str) -> Scenario:
    given: dict[str, Any] = dict(CORPUS["scenarios"][name])
    task = given.pop("task")
    profile = UserProfile(**given) if given else None
    return Scenario(id=name, env_id="e", env_digest="", initial_state={}, task=task, user_profile=profile)


def conversation(lines: list[str]) -> tuple[Message, ...]:
    out: list[Message] = []
    for line in lines:
        who, text = line.split(":", 1)
        if who == "U":
            out.append(UserMessage(content=text))
        elif who == "A":
            out.append(AssistantMessage(content=text))
        else:
            call = ToolCall(name="work", id=f"c{len(out)}")
            out += [
                AssistantMessage(tool_calls=(call,)),
                ToolMessage(content="{}", tool_call_id=f"c{len(out)}", name="work"),
            ]
    return tuple(out)


JUDGED = [
    Judged(
        scenario(case["scenario"]),
        conversation(case.get("before", [])),
        case["says"],
        frozenset(case["slips"]),
        case.get("stops", False),
    )
    for case in CORPUS["messages"]
]


def found(case: Judged) -> frozenset[str]:
    turn = parse_user_turn(case.says)
    return frozenset(slip.kind for slip in slips_of(turn, Brief(case.scenario), case.before))


def test_the_corpus_covers_every_kind_in_both_languages() -> None:
    assert len(JUDGED) >= 100
    kinds = Counter(kind for case in JUDGED for kind in case.slips)
    assert set(kinds) == set(SLIP_KINDS)
    assert min(kinds.values()) >= 3
    assert sum(case.scenario.id == "library" for case in JUDGED) >= 25
    assert sum(not case.slips for case in JUDGED) >= 50


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case.scenario.id}: {case.says[:40]!r}")
def test_no_message_is_held_to_have_a_slip_that_it_has_not(case: Judged) -> None:
    assert found(case) <= case.slips


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: f"{case.scenario.id}: {case.says[:40]!r}")
def test_a_message_stops_exactly_where_a_reader_says_so(case: Judged) -> None:
    assert parse_user_turn(case.says).stopped == case.stops


@pytest.mark.parametrize("kind", SLIP_KINDS)
def test_nine_of_ten_slips_of_each_kind_are_found(kind: str) -> None:
    having = [case for case in JUDGED if kind in case.slips]
    missed = [case.says for case in having if kind not in found(case)]
    assert len(missed) <= len(having) / 10, missed


@pytest.mark.parametrize(
    "piece", ["#", "# ", "*", "x_", "a.", "a-", "a@b.", "1,234,", "Aa ", '"a', "STOP ", "请把书", "\n"]
)
def test_a_message_that_repeats_itself_to_the_token_limit_is_read_in_the_end(piece: str) -> None:
    # Each of them took minutes where a pattern tried every beginning with every end.
    turn = parse_user_turn(piece * 8_000 + "!")
    slips_of(turn, Brief(scenario("shop")), ())
    assert not turn.stopped
