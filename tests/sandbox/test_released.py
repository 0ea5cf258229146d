"""The authors' programs run unchanged, and their recorded episodes give the recorded observations again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envscaler.sandbox import BlockingSandbox, Program


@pytest.fixture(scope="module")
def programs(shared_data: Path) -> dict[str, Program]:
    published = json.loads((shared_data / "data/envscaler_release/environments.json").read_text())
    return {key: Program(env["env_class_code"], env["env_class_name"]) for key, env in published.items()}


def decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def test_every_released_program_is_built_from_nothing_but_an_empty_state(
    box: BlockingSandbox, programs: dict[str, Program]
) -> None:
    assert len(programs) == 14
    for program in programs.values():
        box.open(program, {}).close()


def test_every_released_scenario_opens_with_its_state_and_its_checks_run(
    box: BlockingSandbox, programs: dict[str, Program], shared_data: Path
) -> None:
    scenarios = json.loads((shared_data / "data/envscaler_release/scenarios.json").read_text())
    assert len(scenarios) == 27
    for scenario in scenarios:
        state = decoded(scenario["init_config"])
        session = box.open(programs[scenario["env_id"]], state)
        assert {key: session.state()[key] for key in state} == state
        sources = [check["check_func"] for check in scenario["checklist_with_func"]]
        outcomes = box.check(sources, initial_state=state, final_state=session.state())
        assert [outcome.error for outcome in outcomes] == [None] * len(sources)
        session.close()


def test_recorded_observations_come_again_up_to_created_ids(
    box: BlockingSandbox, programs: dict[str, Program], shared_data: Path
) -> None:
    equal = other = 0
    with (shared_data / "data/envscaler_release/episodes.jsonl").open() as lines:
        for episode in map(json.loads, lines):
            session = box.open(programs[episode["env_id"]], decoded(episode["init_config"]))
            for step in episode.get("trajectory") or episode["steps"]:
                action, observed = step["action"], step["observation"]
                if not isinstance(action, dict) or action.get("name") in (None, "chat_with_user"):
                    continue
                outcome = session.call(action["name"], decoded(action["arguments"]))
                content = observed["content"] if isinstance(observed, dict) else observed
                if outcome.fault is not None:
                    assert outcome.fault.kind == "raised"
                    assert str(outcome.fault) in content
                elif str(outcome.result) == content:
                    equal += 1
                else:
                    other += 1
            session.close()
    # Five observations of one episode follow from an id that it created.
    assert (equal, other) == (161, 5)
