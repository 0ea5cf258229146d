"""A model behind an endpoint plays a benchmark: what it is sent, budgets, and a kill in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from servers.chat_server import ChatServer, tool_call
from typer.testing import CliRunner

from envscaler.bench.installation import Installation
from envscaler.cli.app import app
from envscaler.rollout.report import RunRecord
from envscaler.store import RunStore
from envscaler.trajectory import Trajectory

CALLS = {
    "Desk to 7.": ("dim", {"lamp": "desk", "level": 7}),
    "To 7.": ("dim", {"lamp": "desk", "level": 7}),
    "Hall to 1.": ("dim", {"lamp": "hall", "level": 1}),
    "There are more functions now.": ("note", {"text": "dark"}),
}
"""What the model does at which words of the user; at others it only talks."""


def plays(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
    time.sleep(0.05)
    last = body["messages"][-1]
    if last["role"] == "user" and last["content"] in CALLS:
        return {"content": None, "tool_calls": [tool_call(*CALLS[last["content"]])]}
    return "That is done."


def words(server: ChatServer, out: Path) -> list[str]:
    model = ["--model", "test-model", "--base-url", server.base_url, "--dialect", "native"]
    return ["bench", "run", "bfcl", "--out", str(out), "--quiet", *model]


def scored(run: Path) -> dict[str, float]:
    return {one.scenario_id: one.scores["official"] for one in episodes(run)}


def episodes(run: Path) -> list[Trajectory]:
    return list(RunStore(run).trajectories())


EXPECTED = {
    "multi_turn_base_0": 1.0,
    "multi_turn_base_1": 0.0,  # it does not know what to write down
    "multi_turn_miss_func_0": 1.0,
    "multi_turn_miss_param_0": 1.0,
    "multi_turn_long_context_0": 1.0,
}


def test_a_model_is_sent_messages_and_tools_only_and_goes_on_after_a_budget(
    lamps: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "run"
    with ChatServer(plays) as server:
        stopped = CliRunner().invoke(app, [*words(server, out), "--max-calls", "7"])
        assert stopped.exit_code == 3, stopped.output
        done = CliRunner().invoke(app, words(server, out))
        assert done.exit_code == 0, done.output
        asked = list(server.requests)
    assert scored(out) == EXPECTED
    assert all(message["role"] != "system" for body in asked for message in body["messages"])
    held_back = [body for body in asked if body["messages"][-1]["content"] == "Note it: dark."]
    assert held_back
    assert all(tool["function"]["name"] != "note" for body in held_back for tool in body["tools"])
    record = RunStore(out).read_run(RunRecord)
    assert record is not None
    assert record.status == "complete"
    assert record.models == {"agent": "test-model"}
    assert record.prompts == {}


def test_a_run_that_is_killed_goes_on_with_the_same_command(lamps: Installation, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ChatServer(plays) as server:
        command = [sys.executable, "-m", "envscaler", *words(server, out), "--concurrency", "1"]
        first = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while len(server.requests) < 9 and first.poll() is None:
            time.sleep(0.02)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        there = len(episodes(out))
        again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        asked = len(server.requests)
    assert 0 < there < len(EXPECTED)
    assert scored(out) == EXPECTED
    assert len(episodes(out)) == len(EXPECTED)
    steps = sum(len(one.steps) for one in episodes(out))
    assert asked <= steps + 1  # only what was in flight is asked again
