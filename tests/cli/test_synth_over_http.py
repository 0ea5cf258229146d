"""`envscaler synth` with a model behind a server: whatever goes wrong on the way, the library is the same.

The server answers with what the offline model said to the same prompts, so that the replies are a strong model's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import pytest
from cli.conftest import Answer, Command
from cli.recorded_synthesis import FLAGS, SCENARIOS, answer_to
from servers.chat_server import (
    EVERY_FAULT,
    Body,
    ChatServer,
    Fault,
    rate_limited,
    slow,
    tool_call,
)
from synth.conftest import tree

TIMEOUT_S = 5.0

ONE_OF_EACH = (*EVERY_FAULT, rate_limited(0.05), slow(TIMEOUT_S + 0.5))
REFUSAL = "I'm sorry, but I can't help with that."


def refusal() -> Fault:
    """A polite sentence instead of the answer."""

    def change(reply: Body) -> Body:
        (choice,) = reply["choices"]
        return {**reply, "choices": [{**choice, "message": {"role": "assistant", "content": REFUSAL}}]}

    return Fault("refusal", change=change)


def called_a_tool() -> Fault:
    """A call of a tool that was never offered instead of the answer."""

    def change(reply: Body) -> Body:
        (choice,) = reply["choices"]
        message = {"role": "assistant", "content": None, "tool_calls": [tool_call("submit_answer", {"value": 1})]}
        return {**reply, "choices": [{**choice, "message": message, "finish_reason": "tool_calls"}]}

    return Fault("called_a_tool", change=change)


def half_the_text() -> Fault:
    """The first half of the answer, stopped at the token limit."""

    def change(reply: Body) -> Body:
        (choice,) = reply["choices"]
        content = choice["message"]["content"]
        message = {**choice["message"], "content": content[: len(content) // 2]}
        return {**reply, "choices": [{**choice, "message": message, "finish_reason": "length"}]}

    return Fault("half_the_text", change=change)


FAULTS: tuple[Fault, ...] = (*ONE_OF_EACH, refusal(), called_a_tool(), half_the_text())


class Disturbance:
    """Every so often a request fails that was not sent before, in each way in turn; a repaired one never does."""

    def __init__(self, one_in: int) -> None:
        self._one_in = one_in
        self._seen: set[str] = set()
        self._kinds = cycle(FAULTS)
        self._lock = Lock()

    def __call__(self, index: int, body: Body) -> Fault | None:
        key = json.dumps(body["messages"])
        with self._lock:
            if key in self._seen or len(body["messages"]) > 2:
                return None
            self._seen.add(key)
            return next(self._kinds) if len(self._seen) % self._one_in == 0 else None


COUNTED_AS = {
    "rate_limited": "rate_limited",
    "status_500": "server_error",
    "status_503": "server_error",
    "slow": "timeout",
    "cut": "connection",
    "hung_up": "connection",
    "truncated_json": "unreadable",
    "malformed_json": "unreadable",
    "error_object": "unreadable",
    "no_choices": "unreadable",
}
"""Faults of the transport by the kind under which the report counts them."""
UNUSABLE = {"empty_reply", "withheld", "refusal", "called_a_tool", "half_the_text"}

Run = Callable[..., Answer]


@pytest.fixture
def synth(cli: Command, synth_tasks: Path, tmp_path: Path) -> Run:
    def run(server: ChatServer, library: Path, *more: object) -> Answer:
        flags = ("--model", "test-model", "--base-url", server.base_url)
        return cli("synth", synth_tasks, "--library", library, *flags, *FLAGS, *more, "--json")

    return run


def without_use(library: Path) -> dict[str, Any]:
    """The records and sources of a library, without the tokens that their replies took: a second try takes more."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: stripped(part) for name, part in value.items() if name != "use"}
        return [stripped(part) for part in value] if isinstance(value, list) else value

    return {
        name: [stripped(json.loads(line)) for line in content.decode().splitlines()]
        if name.endswith(".jsonl")
        else stripped(json.loads(content))
        if name.endswith(".json")
        else content
        for name, content in tree(library).items()
    }


@pytest.fixture
def answer(replies: Mapping[str, str]) -> Callable[[Body], str]:
    return lambda body: answer_to(replies, body)


@pytest.fixture
def calm(synth: Run, answer: Callable[[Body], str], tmp_path: Path) -> tuple[Any, dict[str, bytes]]:
    """Report and library of an undisturbed run, and proof that it asks nothing twice."""
    library = tmp_path / "calm"
    with ChatServer(answer) as server:
        report = synth(server, library).json
        made, served = tree(library), server.served
        assert synth(server, library).json["spent"]["calls"] == 0
        assert server.served == served
    assert tree(library) == made
    assert len(report["environments"]) == 3
    assert report["funnel"]["scenarios"] == report["funnel"]["solved"] == 3 * SCENARIOS
    assert report["faults"] == {"requests": {}, "replies": 0, "mended": {}}
    return report, made


def test_whatever_goes_wrong_on_the_way_the_library_is_the_same(
    synth: Run, answer: Callable[[Body], str], calm: tuple[Any, dict[str, bytes]], tmp_path: Path
) -> None:
    report, _ = calm
    config = tmp_path / "envscaler.toml"
    config.write_text(f"timeout_s = {TIMEOUT_S}\n", encoding="utf-8")
    with ChatServer(answer, faults=Disturbance(one_in=3)) as server:
        disturbed = synth(server, tmp_path / "rough", "--config", config).json
    assert set(server.injected) == {fault.name for fault in FAULTS}
    assert without_use(tmp_path / "rough") == without_use(tmp_path / "calm")
    for part in ("environments", "funnel", "dropped", "merged"):
        assert disturbed[part] == report[part]
    expected = Counter[str]()
    for name, number in server.injected.items():
        if name in COUNTED_AS:
            expected[COUNTED_AS[name]] += number
    requests = disturbed["faults"]["requests"]
    # On a busy machine a good answer may come too late as well.
    assert requests.pop("timeout") >= expected.pop("timeout")
    assert requests == expected
    bad = sum(server.injected[name] for name in UNUSABLE)
    assert disturbed["spent"]["calls"] == report["spent"]["calls"] + bad
    # Two units that ask the same share the bad reply as they share the good one.
    assert disturbed["faults"]["replies"] >= bad


def test_a_server_that_goes_away_for_a_while_is_waited_for(
    synth: Run, answer: Callable[[Body], str], calm: tuple[Any, dict[str, bytes]], tmp_path: Path
) -> None:
    def goes_away(index: int, body: Body) -> None:
        if index == 40:
            server.down()
            Timer(1.5, server.up).start()

    with ChatServer(answer, faults=goes_away) as server:
        report = synth(server, tmp_path / "away").json
    assert report["faults"]["requests"]["connection"] > 0
    assert tree(tmp_path / "away") == calm[1]


def test_what_no_reply_can_be_used_for_is_lost_alone_and_counted(
    synth: Run, answer: Callable[[Body], str], calm: tuple[Any, dict[str, bytes]], tmp_path: Path
) -> None:
    refused = []

    def refuses(body: Body) -> str:
        system, user = body["messages"][:2]
        if not system["content"].startswith("You write methods") or "expense claim" not in user["content"]:
            return answer(body)
        refused.append(body)
        return REFUSAL

    library = tmp_path / "refused"
    with ChatServer(refuses) as server:
        # Else it would be asked for in small questions instead.
        report = synth(server, library, "--scaffold", "whole").json
    dental, library_desk = report["environments"]
    assert dental == "dental-cleaning-appointment-booking-desk"
    assert library_desk == "public-library-lending-desk"
    # Nothing that was lost elsewhere touched it: not even what its own replies cost differs.
    kept = {name: content for name, content in calm[1].items() if name.startswith(f"environments/{dental}/")}
    assert kept.items() <= tree(library).items()
    (lost,) = (dropped for dropped in report["dropped"] if dropped["stage"] == "program")
    assert lost["count"] == 1
    assert REFUSAL in lost["examples"][0]
    assert report["faults"]["replies"] == len(refused) > 3
