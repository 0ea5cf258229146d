from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from env.lending import SOURCE, scenario, skeleton

from envscaler.env import Library, open_library
from envscaler.env.vetting import SharingVerdict
from envscaler.errors import BudgetExhausted, EndpointUnavailable, UsageError
from envscaler.llm.chat import ModelRequest
from envscaler.llm.metering import Budget
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.models import Models, ModelSettings, open_models
from envscaler.roles.types import AgentTurnInputs
from envscaler.rollout import RolloutSettings, RunRecord, run_rollout
from envscaler.rollout.report import OFFLINE_NOTE, told
from envscaler.store import LibraryStore, RunStore, read_record
from envscaler.trajectory import StopReason, Trajectory


def make_library(folder: Path, *, environments: int = 2, scenarios: int = 3) -> Library:
    store = LibraryStore.create(folder)
    for number in range(environments):
        environment = skeleton(id=f"desk-{number}")
        made = [scenario(environment, index, solution=None if index == 2 else SOLUTION) for index in range(scenarios)]
        store.write_environment(environment, None, made)
    store.write_index({})
    return open_library(folder)


SOLUTION = scenario(skeleton()).solution


def lends(request: ModelRequest) -> Scripted:
    """An agent that lends Emma and says so."""
    if any(isinstance(message, ToolMessage) for message in request.messages):
        return "Done."
    call = ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"})
    return AssistantMessage(tool_calls=(call,))


def models(script: Any = lends, *, budget: Budget | None = None) -> Models:
    return open_models(ModelSettings(), budget=budget, offline=ScriptedModel(script, name="m"))


def keys(run: Path) -> list[tuple[str, str, int]]:
    return [(part.env_id, part.scenario_id, part.sample) for part in RunStore(run).trajectories()]


def names_under(folder: Path) -> list[str]:
    return sorted(map(str, folder.rglob("*")))


def without_times(run: Path) -> list[Trajectory]:
    stored = RunStore(run).trajectories()
    return [
        part.model_copy(update={"steps": tuple(step.model_copy(update={"latency_s": None}) for step in part.steps)})
        for part in stored
    ]


@pytest.mark.anyio
async def test_run_plays_scenarios_times_samples_and_scores_them(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    report = await run_rollout(library, RolloutSettings(samples=2), models())
    assert (report.played, report.resumed, report.record.planned) == (12, 0, 12)
    assert report.record.status == "complete"
    assert report.scores.solved_rate == 1.0
    assert set(report.record.scores.environments) == {"desk-0", "desk-1"}
    assert report.record.models == {"agent": "m"}
    assert report.record.isolation in ("hardened", "portable")
    assert report.record.note is None
    assert report.record.prompts
    assert keys(report.run) == sorted(keys(report.run))
    assert report.run.parent == library.path / "rollouts"
    assert RunStore(report.run).read_run(RunRecord) == report.record


@pytest.mark.anyio
async def test_same_call_again_plays_nothing_and_more_samples_extend_it(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    first = await run_rollout(library, RolloutSettings(), models())
    content = (first.run / "trajectories.jsonl").read_bytes()
    again = await run_rollout(library, RolloutSettings(), models(lambda request: pytest.fail("asked")))
    assert (again.played, again.resumed) == (0, 6)
    assert again.scores == first.scores
    assert again.record.isolation == first.record.isolation
    assert (first.run / "trajectories.jsonl").read_bytes() == content
    more = await run_rollout(library, RolloutSettings(samples=3), models())
    assert (more.run, more.played, more.resumed) == (first.run, 12, 6)


@pytest.mark.anyio
async def test_oracle_skips_scenarios_without_solution_and_says_so(tmp_path: Path) -> None:
    report = await run_rollout(make_library(tmp_path / "L"), RolloutSettings(agent="oracle"))
    assert (report.played, report.scores.solved_rate) == (4, 1.0)
    assert {(part.scenario_id, part.reason) for part in report.record.skipped} == {
        ("desk-0-s002", "no recorded solution"),
        ("desk-1-s002", "no recorded solution"),
    }


@pytest.mark.anyio
@pytest.mark.parametrize("agent", ["noop", "random"])
async def test_floors_need_no_model_and_solve_nothing_by_doing_nothing(tmp_path: Path, agent: Any) -> None:
    report = await run_rollout(make_library(tmp_path / "L"), RolloutSettings(agent=agent))
    assert report.played == 6
    assert report.record.models == {}
    if agent == "noop":
        assert report.scores.rewards["gained"].value == 0.0


@pytest.mark.anyio
async def test_results_do_not_depend_on_how_many_play_side_by_side(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")

    async def slow_first(request: ModelRequest) -> Scripted:
        await asyncio.sleep(0.02 if request.sample[0] == 0 else 0)
        return lends(request)

    runs = []
    for concurrency in (1, 16):
        settings = RolloutSettings(samples=2, concurrency=concurrency, out=tmp_path / f"run-{concurrency}")
        runs.append((await run_rollout(library, settings, models(slow_first))).run)
    assert without_times(runs[0]) == without_times(runs[1])


@pytest.mark.anyio
async def test_budget_ends_the_run_cleanly_and_it_goes_on_with_a_new_one(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    settings = RolloutSettings(concurrency=2)
    with pytest.raises(BudgetExhausted):
        await run_rollout(library, settings, models(budget=Budget(max_calls=5)))
    (run_id,) = library.store.rollouts()
    record = library.store.run(run_id).read_run(RunRecord)
    assert record is not None
    assert record.status == "stopped"
    assert record.scores.total.judged == 2
    assert record.spent.calls == 5
    report = await run_rollout(library, settings, models())
    assert report.resumed == 2
    assert report.scores.stops == {"finished": 6}
    assert len(keys(report.run)) == 6


@pytest.mark.anyio
async def test_endpoint_that_stays_down_scores_nothing_and_is_tried_again_later(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    served = 0

    def until_it_breaks(request: ModelRequest) -> Scripted:
        nonlocal served
        served += 1
        return lends(request) if served <= 5 else EndpointUnavailable("down for an hour")

    with pytest.raises(EndpointUnavailable):
        await run_rollout(library, RolloutSettings(concurrency=1), models(until_it_breaks))
    (run_id,) = library.store.rollouts()
    stops = [part.stop for part in library.store.run(run_id).trajectories()]
    assert stops.count(StopReason.INFRASTRUCTURE) == 1
    assert len(stops) == 3
    report = await run_rollout(library, RolloutSettings(concurrency=1), models())
    assert report.scores.stops == {"finished": 6}
    assert report.scores.rewards["fraction"].value == 1.0


@pytest.mark.anyio
async def test_one_program_that_does_not_load_is_skipped_and_the_rest_goes_on(tmp_path: Path) -> None:
    store = make_library(tmp_path / "L").store
    broken = skeleton(id="broken").model_copy(update={"source": "class LendingDesk:\n    x = undefined_name\n"})
    store.write_environment(broken, None, [scenario(broken, 1)])
    report = await run_rollout(open_library(store.path), RolloutSettings(agent="noop", samples=2))
    assert report.played == 12
    assert report.record.planned == 12
    (skipped,) = report.record.skipped
    assert skipped.env_id == "broken"
    assert "undefined_name" in skipped.reason


@pytest.mark.anyio
async def test_scenario_of_another_version_of_the_program_is_skipped(tmp_path: Path) -> None:
    store = make_library(tmp_path / "L", environments=1).store
    program = store.path / "environments" / "desk-0" / "program.py"
    program.write_text(program.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    report = await run_rollout(open_library(store.path), RolloutSettings(agent="noop"))
    assert report.played == 0
    (reason,) = {part.reason for part in report.record.skipped}
    assert reason.startswith("made for another version of the program")
    assert reason.endswith(f"envscaler scenarios {store.path} --renew")


@pytest.mark.anyio
async def test_scenario_that_changed_is_played_again_in_place_of_the_old_episode(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)
    settings = RolloutSettings(agent="noop", out=tmp_path / "run")
    await run_rollout(library, settings)
    changed = [part.model_copy(update={"task": part.task + "!"}) for part in library.scenarios("desk-0")[:1]]
    library.store.replace_scenarios("desk-0", [*changed, *library.scenarios("desk-0")[1:]])
    report = await run_rollout(open_library(library.path), settings)
    assert (report.played, report.resumed) == (1, 2)
    assert len(keys(report.run)) == 3


@pytest.mark.anyio
async def test_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    await run_rollout(library, RolloutSettings(agent="noop", out=tmp_path / "run"))
    with pytest.raises(UsageError, match="agent 'noop', not 'oracle'"):
        await run_rollout(library, RolloutSettings(agent="oracle", out=tmp_path / "run"))


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["L", "L/environments/desk-0", "L/environments/new", "L/rollouts", "notes"])
async def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(tmp_path: Path, place: str) -> None:
    library = make_library(tmp_path / "L")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    before = names_under(tmp_path)
    with pytest.raises(UsageError, match="name "):
        await run_rollout(library, RolloutSettings(agent="noop", out=tmp_path / place))
    assert names_under(tmp_path) == before


@pytest.mark.anyio
async def test_the_record_keeps_the_isolation_of_what_was_played(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)
    told = []
    for isolation, samples in (("in-process", 1), ("default", 1), ("default", 2)):
        settings = RolloutSettings(agent="noop", out=tmp_path / "run", isolation=isolation, samples=samples)
        record = (await run_rollout(library, settings)).record
        assert record == RunStore(tmp_path / "run").read_run(RunRecord)
        told.append((record.settings.isolation, record.settings.samples, record.isolation_modes))
    assert told == [
        ("in-process", 1, ("in-process",)),
        ("in-process", 1, ("in-process",)),  # nothing was left to play
        ("default", 2, ("default", "in-process")),
    ]


@pytest.mark.anyio
async def test_all_programs_are_tried_before_the_first_episode_and_remembered(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)
    broken = skeleton(id="broken", source=SOURCE.replace("class LendingDesk", "import os\n\n\nclass LendingDesk"))
    library.store.write_environment(broken, None, [scenario(broken)])
    settings = RolloutSettings(agent="noop", isolation="shared")
    record = (await run_rollout(library, settings)).record
    if record.isolation != "hardened":
        pytest.skip("nothing shares a process here")
    assert "imports os" in record.kept_apart.pop("broken")
    assert record.kept_apart == {}
    (verdict,) = (library.path / ".cache" / "shared").iterdir()
    assert read_record(verdict, SharingVerdict).env_id == "desk-0"


@pytest.mark.anyio
async def test_what_is_skipped_is_called_what_it_is(tmp_path: Path) -> None:
    store = make_library(tmp_path / "L", environments=1).store
    for name in ("bare-1", "bare-2"):
        store.write_environment(skeleton(id=name))
    report = await run_rollout(open_library(store.path), RolloutSettings(agent="oracle"))
    assert told(report.record.skipped) == (
        f"2 environments: no scenarios there; make some with: envscaler scenarios {store.path}",
        "1 scenario: no recorded solution",
    )


@pytest.mark.anyio
async def test_unknown_environment_and_empty_library_are_said_in_one_sentence(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    with pytest.raises(UsageError, match="did you mean desk-"):
        await run_rollout(library, RolloutSettings(agent="noop", env_ids=("desk-9",)))
    empty = open_library(LibraryStore.create(tmp_path / "E").path)
    with pytest.raises(UsageError, match="no scenarios to play"):
        await run_rollout(empty, RolloutSettings(agent="noop"))
    with pytest.raises(UsageError, match="--model"):
        await run_rollout(library, RolloutSettings(agent="model"))


@pytest.mark.anyio
async def test_conversation_needs_a_user_and_records_both_models(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)

    def user(request: ModelRequest) -> Scripted:
        return (
            "###STOP###" if len(request.messages) and "Done." in request.messages[-1].content else "Lend Emma to Ann."
        )

    report = await run_rollout(
        library, RolloutSettings(mode="conversation"), models({"agent_turn": lends, "user_turn": user})
    )
    assert report.record.models == {"agent": "m", "user": "m"}
    assert report.scores.stops == {"user_stopped": 3}
    assert report.scores.solved_rate == 1.0
    assert "conversation" in report.run.name


@pytest.mark.anyio
async def test_offline_agent_plays_the_plan_and_its_record_says_so(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1)

    def plan(request: ModelRequest) -> Scripted:
        assert isinstance(request.inputs, AgentTurnInputs)
        assert request.inputs.solution is not None
        return lends(request)

    offline = open_models(ModelSettings(), offline=ScriptedModel(plan, name="offline"))
    report = await run_rollout(library, RolloutSettings(), offline)
    assert report.record.note == OFFLINE_NOTE
    assert len(report.record.skipped) == 1


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from rollout.test_run import lends, models
from envscaler.env import open_library
from envscaler.rollout import RolloutSettings, run_rollout

async def slowly(request):
    await asyncio.sleep(0.1)
    return lends(request)

settings = RolloutSettings(samples=8, concurrency=3, out=Path({run!r}))
asyncio.run(run_rollout(open_library({library!r}), settings, models(slowly)))
"""


@pytest.mark.parametrize("episodes_before_the_kill", [0, 3, 11])
def test_killed_run_ends_with_the_same_episodes(tmp_path: Path, episodes_before_the_kill: int) -> None:
    library = make_library(tmp_path / "L")
    run = tmp_path / "run"
    program = KILLED.format(tests=str(Path(__file__).parents[1]), run=str(run), library=str(library.path))
    process = subprocess.Popen([sys.executable, "-c", program])
    journal = run / "trajectories.jsonl"
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        written = journal.read_bytes().count(b"\n") if journal.exists() else -1
        if written >= episodes_before_the_kill or (written == -1 and not episodes_before_the_kill and run.exists()):
            break
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    report = asyncio.run(run_rollout(library, RolloutSettings(samples=8, out=run), models()))
    assert report.resumed >= episodes_before_the_kill
    undisturbed = asyncio.run(run_rollout(library, RolloutSettings(samples=8, out=tmp_path / "other"), models()))
    assert without_times(run) == without_times(undisturbed.run)
    assert report.scores == undisturbed.scores
