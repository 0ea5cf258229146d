"""The plain script counts what the package's own way to a check says: imported, reset, judged in the sandbox."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from audit.plain_counts import NamedCheck, counts, reset_state, said, tally
from audit.resets import Reset, resets
from released.desk import ENVIRONMENT, SCENARIO

from envscaler.sandbox import BlockingSandbox

BARE = """\
import datetime
import uuid

BUILT = datetime.datetime.now().isoformat()

class Desk:
    def __init__(self):
        self.tickets = {}
        self.opened = datetime.datetime.utcnow().isoformat()
        self.built = BUILT
        self.pair = (1, 2)
        self.left = "left as it was"

    def open_ticket(self, title: str) -> dict:
        ticket_id = str(uuid.uuid4())
        self.tickets[ticket_id] = {"title": title}
        return {"success": True, "ticket_id": ticket_id}
"""
CHECKS = {
    "true": "def check_func(final_state):\n    return final_state['left'] == 'left as it was'",
    "bound": "def check_func(final_state):\n    return initial_state == final_state",
    "given": "def check_func(final_state):\n    return final_state['tickets']['T1'] == {'title': 'lamp'}",
    "false": "def check_func(final_state):\n    return final_state['tickets'] == {}",
    "raises": "def check_func(final_state):\n    return final_state['nothing']",
    "name": "def check_func(final_state):\n    return state is None",
    "none": "def check_func(final_state):\n    final_state['tickets']",
    "one": "def check_func(final_state):\n    return 1",
    "clock": "from datetime import date\ndef check_func(final_state):\n    return str(date.today()) == '2025-01-06'",
    "time": "import time\ndef check_func(final_state):\n    return time.gmtime(time.time()).tm_year == 2025",
    "opened": "def check_func(final_state):\n    return final_state['opened'].startswith('2025-01-06T09:00:00')",
    "module": "def check_func(final_state):\n    return final_state['built'].startswith('2025-01-06T09:00:00')",
    "tuple": "def check_func(final_state):\n    return final_state['pair'] == (1, 2)",
    "writes": "def check_func(final_state):\n    final_state['tickets'].clear()\n    return True",
    "source": "x = 1",
}
BY_CLASS = {
    "true_at_reset": ["true", "bound", "given", "clock", "time", "opened", "module", "writes"],
    "raises": ["raises", "name", "source"],
    "not_bool": ["none", "one"],
    "nondeterministic": [],
    "changed_by_json": ["tuple"],
    "mutates": ["writes"],
    "reads_clock": ["clock", "time"],
}
NOT_BOOL = "a bool"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with everything that is encoded, listed and built the other way than in the release."""
    environment = copy.deepcopy(ENVIRONMENT)
    environment.update(env_class_name="Desk", env_class_code=BARE, tools=json.dumps(ENVIRONMENT["tools"][:1]))
    checklist = [{"check_item": name, "check_func": source} for name, source in CHECKS.items()]
    scenario: dict[str, Any] = {
        **SCENARIO,
        "env_class_name": "Desk",
        "init_config": json.dumps({"tickets": {"T1": {"title": "lamp"}}}),
        "checklist_with_func": json.dumps(checklist),
    }
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "environments.json").write_text(json.dumps([environment]))
    (folder / "scenarios.json").write_text(json.dumps([scenario]))
    return folder


def sandboxed(found: dict[str, Reset], sandbox: BlockingSandbox) -> dict[str, set[tuple[str, int]]]:
    """Which checks the sandbox finds to hold, to raise, to give no bool, and to write, on the state after reset."""
    classes: dict[str, set[tuple[str, int]]] = {"true_at_reset": set(), "raises": set(), "not_bool": set()}
    classes["mutates"] = set()
    for task_id, reset in found.items():
        sources = [check.source for check in reset.scenario.checks]
        outcomes = sandbox.check(
            sources, initial_state=reset.state, final_state=reset.state, clock=reset.scenario.clock
        )
        for index, outcome in enumerate(outcomes):
            if outcome.value is True:
                classes["true_at_reset"].add((task_id, index))
            elif outcome.error is not None:
                classes["not_bool" if outcome.error.endswith(NOT_BOOL) else "raises"].add((task_id, index))
            if outcome.mutated:
                classes["mutates"].add((task_id, index))
    return classes


def places(checks: list[NamedCheck]) -> set[tuple[str, int]]:
    return {(check.task_id, check.check) for check in checks}


def test_the_sandbox_says_of_the_release_what_the_script_says(
    release: Path, released_resets: dict[str, Reset], judging: BlockingSandbox
) -> None:
    whole = tally(release)
    seen = sandboxed(released_resets, judging)
    assert {name: places(whole.found[name]) for name in seen} == seen
    assert whole.scenarios == len(released_resets)
    assert whole.checks == sum(len(reset.scenario.checks) for reset in released_resets.values())


def test_the_script_resets_to_the_state_of_the_package(release: Path, released_resets: dict[str, Reset]) -> None:
    environments = json.loads((release / "environments.json").read_text())
    for scenario in json.loads((release / "scenarios.json").read_text()):
        state = reset_state(environments[scenario["env_id"]], scenario["init_config"])
        assert json.loads(json.dumps(state)) == released_resets[scenario["task_id"]].state


def test_the_release_holds_what_it_is_known_to_hold(release: Path) -> None:
    assert counts(release) == {
        "environments": 14,
        "scenarios": 27,
        "checks": 442,
        "true_at_reset": 53,
        "raises": 0,
        "not_bool": 0,
        "nondeterministic": 0,
        "changed_by_json": 0,
        "mutates": 0,
        "reads_clock": 4,
    }


def test_the_script_counts_each_class_and_the_sandbox_agrees(
    made: Path, tmp_path: Path, judging: BlockingSandbox
) -> None:
    whole = tally(made)
    assert {name: [check.check_item for check in checks] for name, checks in whole.found.items()} == BY_CLASS
    assert counts(made) == {"environments": 1, "scenarios": 1, "checks": 15} | {
        name: len(checks) for name, checks in BY_CLASS.items()
    }
    seen = sandboxed(resets(made, tmp_path / "library"), judging)
    assert {name: places(whole.found[name]) for name in seen} == seen


def test_a_check_that_changes_its_mind_is_nondeterministic(made: Path) -> None:
    scenarios = json.loads((made / "scenarios.json").read_text())
    fickle = "import random\ndef check_func(final_state):\n    random.seed()\n    return random.random() < 0.5\n"
    checklist = [{"check_item": str(number), "check_func": fickle} for number in range(64)]
    scenarios[0]["checklist_with_func"] = checklist
    (made / "scenarios.json").write_text(json.dumps(scenarios))
    assert 8 < counts(made)["nondeterministic"] < 56


def test_a_check_of_the_script_says_one_of_four_things() -> None:
    answers = [
        said(f"def check_func(s):\n    return {value}", {}, {"n": 1}) for value in ("s['n'] > 0", "False", "0", "x")
    ]
    assert answers == ["true", "false", "not_bool", "raises"]
