"""Tests of the whole pipeline with the fake model: what is made, what is dropped, and that any end can be resumed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import TASKS, settings_of, synth, tree, write_tasks
from synth.lending import LendingModel

from envscaler.errors import BudgetExhausted, EndpointUnavailable, StoreError
from envscaler.llm.chat import ModelRequest
from envscaler.models import Models, ModelSettings, open_models
from envscaler.proof import is_stale
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.store import LibraryStore
from envscaler.synth import SynthSettings, run_scenarios, run_synth

Opened = Callable[[LendingModel], Models]

pytestmark = pytest.mark.anyio


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes that an undisturbed run leaves."""
    folder = tmp_path_factory.mktemp("straight")
    tasks = folder / "tasks.jsonl"
    write_tasks(tasks)

    async def run() -> None:
        async with open_models(ModelSettings(), offline=LendingModel()) as models:
            await run_synth(settings_of(tasks, folder / "library"), models, Prompts())

    asyncio.run(run())
    return tree(folder / "library")


async def test_tasks_become_checked_environments_with_solved_scenarios(
    task_file: Path, tmp_path: Path, model: LendingModel, opened: Opened
) -> None:
    report = await synth(opened, model, settings_of(task_file, tmp_path / "library"))
    assert report.environments == ("bicycle-lending-desk", "kayak-lending-desk", "umbrella-lending-desk")
    assert report.funnel.model_dump() == {
        "tasks": 5,
        "stateful": 4,
        "described": 4,
        "useful": 4,
        "distinct": 3,
        "designed": 3,
        "loads": 3,
        "programmed": 3,
        "assessed": 3,
        "accepted": 3,
        "written": 6,
        "scenarios": 6,
        "solved": 6,
        "proved": 6,
    }
    assert [(dropped.stage, dropped.reason, dropped.count) for dropped in report.dropped] == [
        ("discover", "not stateful", 1)
    ]
    (merged,) = report.merged
    assert (merged.into, merged.count, merged.by_summary) == ("bicycle-lending-desk", 1, 1)
    store = LibraryStore.open(tmp_path / "library")
    assert store.env_ids() == report.environments
    skeleton = store.read_environment("bicycle-lending-desk")
    assert skeleton.origin.seed_tasks == (TASKS[0], TASKS[3])
    assert skeleton.rules[0].tools == ("lend_thing",)
    assessment = store.read_assessment("bicycle-lending-desk")
    assert assessment is not None
    assert assessment.accepted
    assert assessment.env_digest == skeleton.digest
    scenarios = list(store.scenarios("bicycle-lending-desk"))
    assert [scenario.id for scenario in scenarios] == ["bicycle-lending-desk-s001", "bicycle-lending-desk-s002"]
    assert scenarios[0].initial_state != scenarios[1].initial_state
    assert scenarios[0].solution is not None
    assert scenarios[0].solution[-1].arguments == {"thing_id": "T-2", "member_id": "M-1"}
    assert [check.kind for check in scenarios[0].checks] == ["goal", "guard", "guard", "guard"]
    proofs = list(store.proofs("bicycle-lending-desk"))
    assert [proof.scenario_id for proof in proofs] == [scenario.id for scenario in scenarios]
    assert not any(map(is_stale, proofs, [skeleton] * 2, scenarios))
    assert all(proof.solved and not proof.survivors for proof in proofs)
    index = store.read_index()
    assert (index.environments, index.scenarios) == (3, 6)


async def test_the_use_of_every_reply_is_in_the_origins_and_in_the_report(
    task_file: Path, tmp_path: Path, model: LendingModel, opened: Opened
) -> None:
    report = await synth(opened, model, settings_of(task_file, tmp_path / "library"))
    assert sum(use.calls for use in report.use.values()) == model.calls == report.spent.calls
    store = LibraryStore.open(tmp_path / "library")
    in_library = sum(
        use.calls
        for env_id in store.env_ids()
        for origin in (
            store.read_environment(env_id).origin,
            *(scenario.origin for scenario in store.scenarios(env_id)),
        )
        for use in origin.use.values()
    )
    # What is not in the library: the task that is not stateful (1 call) and the one that was merged (2).
    assert in_library == model.calls - 3


async def test_a_second_run_asks_nothing_and_changes_nothing(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library")
    first = await synth(opened, LendingModel(), settings)
    before = tree(tmp_path / "library")
    again = LendingModel()
    second = await synth(opened, again, settings)
    assert again.calls == 0
    assert tree(tmp_path / "library") == before
    assert second.resumed == 3
    unchanging = {"resumed", "spent"}
    assert second.model_dump(exclude=unchanging) == first.model_dump(exclude=unchanging)


async def test_results_do_not_depend_on_the_order_in_which_replies_come(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    trees = []
    for seed in range(3):
        rng = random.Random(seed)
        model = LendingModel()

        async def wait(request: ModelRequest, rng: random.Random = rng) -> None:
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)

        model.before_answer = wait
        library = tmp_path / f"library-{seed}"
        await synth(opened, model, settings_of(task_file, library, concurrency=4, environments_at_once=1 + seed))
        trees.append(tree(library))
    assert trees[0] == trees[1] == trees[2]


class _Stop:
    """Ends a run at its n-th question."""

    def __init__(self, after: int, error: BaseException) -> None:
        self.left = after
        self.error = error

    async def __call__(self, request: ModelRequest) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (0, BudgetExhausted("used up")),
        (3, EndpointUnavailable("down")),
        (9, asyncio.CancelledError()),
        (14, BudgetExhausted("used up")),
        (30, EndpointUnavailable("down")),
        (45, asyncio.CancelledError()),
        (60, BudgetExhausted("used up")),
        (85, asyncio.CancelledError()),
    ],
)
async def test_a_run_that_was_ended_resumes_to_the_same_bytes(
    after: int, error: BaseException, task_file: Path, tmp_path: Path, opened: Opened, straight: dict[str, bytes]
) -> None:
    settings = settings_of(task_file, tmp_path / "library")
    stopped = LendingModel()
    stopped.before_answer = _Stop(after, error)
    with pytest.raises(type(error)):
        await synth(opened, stopped, settings)
    LibraryStore.open(tmp_path / "library")
    report = await synth(opened, LendingModel(), settings)
    assert report.funnel.solved == 6
    assert not any("infrastructure" in dropped.reason for dropped in report.dropped)
    assert tree(tmp_path / "library") == straight


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from synth.lending import LendingModel
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.synth import SynthSettings, run_synth

async def main() -> None:
    model = LendingModel()
    left = int(sys.argv[3])

    async def die(request: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    model.before_answer = die
    settings = SynthSettings(tasks=sys.argv[1], library=sys.argv[2], rounds=8, scenarios=2, similarity=0.97,
        keep_equal_structures=True, scaffold="whole")
    async with open_models(ModelSettings(), offline=model) as models:
        await run_synth(settings, models, Prompts())

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [2, 40, 75, 100])
async def test_a_killed_process_resumes_to_the_same_bytes(
    after: int, task_file: Path, tmp_path: Path, opened: Opened, straight: dict[str, bytes]
) -> None:
    library = tmp_path / "library"
    paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _KILLED, task_file, library, str(after)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    await synth(opened, LendingModel(), settings_of(task_file, library))
    assert tree(library) == straight


async def test_more_tasks_extend_the_library_and_leave_what_is_there(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, LendingModel(), settings_of(task_file, library, limit=1))
    before = tree(library)
    model = LendingModel()
    report = await synth(opened, model, settings_of(task_file, library))
    assert report.resumed == 1
    assert model.asked["plan_state"] == 2
    after = tree(library)
    same = "environments/bicycle-lending-desk/program.py"
    assert after[same] == before[same]
    assert LibraryStore.open(library).env_ids() == report.environments


async def test_tasks_of_another_file_are_merged_into_environments_that_are_there(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, LendingModel(), settings_of(task_file, library))
    other = tmp_path / "other.txt"
    other.write_text("Lend a kayak to Fay.\nLend a tent to Fay.\n", encoding="utf-8")
    report = await synth(opened, LendingModel(), settings_of(other, library))
    assert report.environments == ("tent-lending-desk",)
    assert [(merged.into, merged.count) for merged in report.merged] == [("kayak-lending-desk", 1)]
    store = LibraryStore.open(library)
    assert store.read_environment("kayak-lending-desk").origin.seed_tasks == (TASKS[2], "Lend a kayak to Fay.")
    assert len(store.env_ids()) == 4


async def test_more_scenarios_are_added_to_those_that_are_there(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    library = tmp_path / "library"
    await synth(opened, LendingModel(), settings_of(task_file, library, scenarios=1))
    before = (library / "environments/kayak-lending-desk/scenarios.jsonl").read_text().splitlines()
    model = LendingModel()
    report = await synth(opened, model, settings_of(task_file, library, scenarios=3))
    assert report.funnel.scenarios == 9
    assert model.asked["plan_state"] == model.asked["test_call"] == 0
    after = (library / "environments/kayak-lending-desk/scenarios.jsonl").read_text().splitlines()
    assert after[:1] == before
    assert len(after) == 3


async def test_stages_one_after_the_other_give_what_one_run_gives(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    at_once = settings_of(task_file, tmp_path / "at-once")
    await synth(opened, LendingModel(), at_once)
    library = tmp_path / "in-steps"
    program = await synth(opened, LendingModel(), settings_of(task_file, library, until="program"))
    assert (program.funnel.programmed, program.funnel.accepted) == (3, 0)
    assert LibraryStore.open(library).read_assessment("kayak-lending-desk") is None
    assess = await synth(opened, LendingModel(), settings_of(task_file, library, until="assess"))
    assert (assess.funnel.accepted, assess.funnel.scenarios) == (3, 0)
    report = await synth(opened, LendingModel(), settings_of(task_file, library))
    assert report.funnel.solved == 6
    same = {name: content for name, content in tree(tmp_path / "at-once").items() if name != "library.json"}
    assert {name: content for name, content in tree(library).items() if name != "library.json"} == same


async def test_until_discover_writes_descriptions_that_synthesis_can_begin_from(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    first = await synth(opened, LendingModel(), settings_of(task_file, tmp_path / "found", until="discover"))
    assert first.output is not None
    assert len(first.output.read_text().splitlines()) == 3
    model = LendingModel()
    report = await synth(
        opened,
        model,
        SynthSettings(
            descriptions=first.output,
            library=tmp_path / "library",
            rounds=8,
            scenarios=1,
            similarity=0.97,
            keep_equal_structures=True,
        ),
    )
    assert model.asked["filter_task"] == 0
    assert report.environments == ("bicycle-lending-desk", "kayak-lending-desk", "umbrella-lending-desk")
    assert LibraryStore.open(tmp_path / "library").read_environment("kayak-lending-desk").origin.seed_tasks == ()


async def test_until_design_writes_designs_and_asks_them_once(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library", until="design")
    report = await synth(opened, LendingModel(), settings)
    assert report.output is not None
    designs = [json.loads(line) for line in report.output.read_text().splitlines()]
    assert [len(design["tools"]) for design in designs] == [4, 4, 4]
    again = LendingModel()
    await synth(opened, again, settings)
    assert again.calls == 0


async def test_clusters_keep_as_many_environments_as_asked(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library", clusters=2)
    report = await synth(opened, LendingModel(), settings)
    assert len(report.environments) == report.funnel.distinct == 2
    assert sum(merged.count for merged in report.merged) == 2
    before = tree(tmp_path / "library")
    again = LendingModel()
    await synth(opened, again, settings)
    assert again.calls == 0
    assert tree(tmp_path / "library") == before


async def test_an_environment_that_is_not_accepted_is_reported_and_not_kept(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    class Strict(LendingModel):
        def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
            kayak = "Kayak" in inputs.description.summary
            return {"reason": "no good", "verdict": "fail"} if kayak else super().judge_call(inputs)

    settings = settings_of(task_file, tmp_path / "library")
    report = await synth(opened, Strict(), settings)
    assert report.environments == ("bicycle-lending-desk", "umbrella-lending-desk")
    dropped = {dropped.stage: dropped for dropped in report.dropped}["assess"]
    assert dropped.count == 1
    assert "is below 0.85; for example lend_thing, fail: no good" in dropped.examples[0]
    again = Strict()
    await synth(opened, again, settings)
    assert again.calls == 0
    lenient = Strict()
    report = await synth(opened, lenient, settings_of(task_file, tmp_path / "library", threshold=0.0))
    assert "kayak-lending-desk" in report.environments


async def test_a_unit_without_usable_replies_costs_only_itself(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    class Mute(LendingModel):
        def plan_tools(self, inputs: t.PlanToolsInputs) -> Any:
            return "I would rather not." if "Kayak" in inputs.description.summary else super().plan_tools(inputs)

    model = Mute()
    report = await synth(opened, model, settings_of(task_file, tmp_path / "library"))
    assert report.environments == ("bicycle-lending-desk", "umbrella-lending-desk")
    assert [(dropped.stage, dropped.count) for dropped in report.dropped] == [("discover", 1), ("design", 1)]
    assert model.asked["plan_tools"] == 2 + 3


async def test_an_environment_that_was_removed_is_made_again(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library")
    await synth(opened, LendingModel(), settings)
    before = tree(tmp_path / "library")
    LibraryStore.open(tmp_path / "library").remove_environment("umbrella-lending-desk")
    await synth(opened, LendingModel(), settings)
    assert tree(tmp_path / "library") == before


async def test_a_task_file_that_is_missing_leaves_no_library_behind(tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(StoreError, match=r"missing\.jsonl"):
        await synth(opened, LendingModel(), settings_of(tmp_path / "missing.jsonl", tmp_path / "library"))
    assert not (tmp_path / "library").exists()


async def test_what_every_run_spent_is_kept_beside_the_library(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    settings = settings_of(task_file, tmp_path / "library")
    stopped = LendingModel()
    stopped.before_answer = _Stop(20, BudgetExhausted("used up"))
    with pytest.raises(BudgetExhausted):
        await synth(opened, stopped, settings)
    rest = LendingModel()
    await synth(opened, rest, settings)
    (*_, last) = (json.loads(line) for line in (tmp_path / "library/.cache/spent.jsonl").open())
    spent = sum(role["spent"]["calls"] for role in last["value"]["roles"].values())
    assert spent == 20 + rest.calls


def test_settings_need_exactly_one_source(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="either tasks or descriptions"):
        SynthSettings(library=tmp_path)


async def test_a_kill_between_the_environment_and_its_record_is_mended(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    settings = settings_of(task_file, tmp_path / "library")
    await synth(opened, LendingModel(), settings)
    before = tree(tmp_path / "library")
    journal = tmp_path / "library/.cache/synth.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"unit:' not in line))
    report = await synth(opened, LendingModel(), settings)
    assert report.funnel.solved == 6
    assert tree(tmp_path / "library") == before


async def test_scenarios_that_another_command_added_are_kept(task_file: Path, tmp_path: Path, opened: Opened) -> None:
    library = tmp_path / "library"
    await synth(opened, LendingModel(), settings_of(task_file, library, scenarios=1))
    async with opened(LendingModel()) as models:
        await run_scenarios(library, models, Prompts(), per_env=2)
    await synth(opened, LendingModel(), settings_of(task_file, library, scenarios=3))
    ids = [scenario.id[-4:] for scenario in LibraryStore.open(library).scenarios("kayak-lending-desk")]
    assert ids == ["s001", "s002", "s003"]


class _Shown:
    """Keeps what a run says of its progress."""

    def __init__(self) -> None:
        self.total: dict[str, int | None] = {}
        self.done: Counter[str] = Counter()
        self.notes: list[str] = []

    def stage(self, name: str, total: int | None) -> None:
        self.total[name] = total

    def advance(self, stage: str, n: int = 1) -> None:
        self.done[stage] += n

    def note(self, text: str) -> None:
        self.notes.append(text)


async def test_progress_ends_complete_whatever_became_of_the_units(
    task_file: Path, tmp_path: Path, opened: Opened
) -> None:
    class Mute(LendingModel):
        def plan_tools(self, inputs: t.PlanToolsInputs) -> Any:
            return "No." if "Kayak" in inputs.description.summary else super().plan_tools(inputs)

    append(task_file, "{broken\n")
    for _ in range(2):
        shown = _Shown()
        async with opened(Mute()) as models:
            await run_synth(settings_of(task_file, tmp_path / "library"), models, Prompts(), shown)
        assert shown.total == {"discover": 5, "program": 3, "assess": 3, "scenarios": 3}
        assert dict(shown.done) == shown.total
        assert shown.notes[0].startswith("line 6: ")
