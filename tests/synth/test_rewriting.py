"""Scenarios that are always or never solved, written anew: harder or easier, proved, and only once."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from synth.conftest import settings_of
from synth.lending import LendingModel, check_code

from envscaler.errors import BudgetExhausted
from envscaler.evidence import Thresholds
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.models import ModelSettings, open_models
from envscaler.offline import OfflineModel
from envscaler.proof import is_stale
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.scenario import Calibration, Scenario
from envscaler.store import LibraryStore
from envscaler.synth import run_synth
from envscaler.synth.rewriting import Rewriting, Rewritten, run_rewrite
from envscaler.synth.states import known_of

pytestmark = pytest.mark.anyio

_TASK = "Move twenty pallets from the north warehouse to the one in Leith."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment of the offline model with four scenarios."""
    folder = tmp_path_factory.mktemp("rewriting")
    (folder / "tasks.jsonl").write_text(json.dumps({"task": _TASK}) + "\n")

    async def make() -> None:
        async with open_models(ModelSettings()) as models:
            settings = settings_of(folder / "tasks.jsonl", folder / "library", scenarios=4, rounds=5)
            await run_synth(settings, models, Prompts())

    asyncio.run(make())
    return folder / "library"


@pytest.fixture
def library(made: Path, tmp_path: Path) -> LibraryStore:
    return LibraryStore.open(shutil.copytree(made, tmp_path / "library"))


def only(library: LibraryStore) -> str:
    (env_id,) = library.env_ids()
    return env_id


def calibrate(library: LibraryStore, *solved: int, model: str = "m") -> None:
    """Give the first scenarios so many solved episodes of four each, the rest none."""
    env_id = only(library)
    scenarios = list(library.scenarios(env_id))
    rates = [Calibration(model=model, samples=4, solved=number) for number in solved]
    library.replace_scenarios(
        env_id,
        [
            scenario.model_copy(update={"calibration": rates[n] if n < len(rates) else None})
            for n, scenario in enumerate(scenarios)
        ],
    )


async def rewrite(library: LibraryStore, **changes: Any) -> tuple[Rewritten, ...]:
    async with open_models(ModelSettings()) as models:
        return await run_rewrite(library, Rewriting(model="m", **changes), models, Prompts())


def by_id(library: LibraryStore) -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in library.scenarios(only(library))}


async def test_what_is_always_solved_is_written_anew_harder_and_proved(library: LibraryStore) -> None:
    calibrate(library, 4, 4, 2, 0)
    before = by_id(library)
    told = await rewrite(library, harden=True)
    env_id = only(library)
    skeleton = library.read_environment(env_id)
    assert [(one.made_from, one.direction) for one in told] == [(f"{env_id}-s00{n}", "harder") for n in (1, 2)]
    after = by_id(library)
    assert {name: after[name] for name in before} == before
    proofs = {proof.scenario_id: proof for proof in library.proofs(env_id)}
    new = [one for one in told if one.fault is None]
    assert new, [one.fault for one in told]
    for one in new:
        original, harder = before[one.made_from], after[one.scenario_id]
        assert original.difficulty is not None
        assert harder.difficulty is not None
        assert harder.difficulty.calls > original.difficulty.calls
        assert harder.task != original.task
        assert harder.calibration is None
        assert harder.origin.made_from == f"{original.id} (harder)"
        assert not is_stale(proofs[harder.id], skeleton, harder)
        assert not Thresholds().shortfalls(proofs[harder.id])


async def test_what_is_never_solved_is_written_anew_easier(library: LibraryStore) -> None:
    calibrate(library, 0, 0, 4, 0)
    before = by_id(library)
    told = await rewrite(library, soften=True)
    assert {one.direction for one in told} == {"easier"}
    new = [one for one in told if one.fault is None]
    assert new, [one.fault for one in told]
    for one in new:
        original, easier = before[one.made_from].difficulty, by_id(library)[one.scenario_id].difficulty
        assert original is not None
        assert easier is not None
        assert 1 <= easier.calls < original.calls


async def test_nothing_is_written_twice_and_what_was_given_up_is_not_tried_again(library: LibraryStore) -> None:
    calibrate(library, 4, 0)
    strict = {"harden": True, "soften": True, "thresholds": Thresholds(mutation_score=1.01)}
    given_up = await rewrite(library, **strict)
    assert all(one.fault is not None and "are asked for" in one.fault for one in given_up)
    assert len(by_id(library)) == 4
    asked: list[str] = []

    class Counting(OfflineModel):
        async def complete(self, request: ModelRequest) -> Completion:
            asked.append(request.role)
            return await super().complete(request)

    async with open_models(ModelSettings(), offline=Counting()) as models:
        again = await run_rewrite(library, Rewriting(model="m", **strict), models, Prompts())
        assert (again, asked) == (given_up, [])
        usual = await run_rewrite(library, Rewriting(model="m", harden=True, soften=True), models, Prompts())
        assert asked
        asked.clear()
        files = {path: path.read_bytes() for path in library.path.rglob("environments/*/*.jsonl")}
        same = await run_rewrite(library, Rewriting(model="m", harden=True, soften=True), models, Prompts())
    assert (same, asked) == (usual, [])
    assert {path: path.read_bytes() for path in library.path.rglob("environments/*/*.jsonl")} == files


async def test_only_the_pass_rates_of_the_model_in_question_decide(library: LibraryStore) -> None:
    calibrate(library, 4, 0, model="another")
    assert await rewrite(library, harden=True, soften=True) == ()
    calibrate(library, 1, 2, 3)
    assert await rewrite(library, harden=True, soften=True) == ()


async def test_versions_are_in_the_split_of_their_environment(library: LibraryStore) -> None:
    calibrate(library, 4, 4)
    library.write_splits({"test": [only(library)]})
    await rewrite(library, harden=True)
    assert {one.split for one in by_id(library).values()} == {"test"}


async def test_a_budget_in_between_leaves_the_library_whole(library: LibraryStore) -> None:
    calibrate(library, 4, 4)
    before = by_id(library)

    class Spent(OfflineModel):
        async def complete(self, request: ModelRequest) -> Completion:
            raise BudgetExhausted("no more calls")

    async with open_models(ModelSettings(), offline=Spent()) as models:
        with pytest.raises(BudgetExhausted):
            await run_rewrite(library, Rewriting(model="m", harden=True), models, Prompts())
    assert by_id(library) == before
    assert any(one.fault is None for one in await rewrite(library, harden=True))


@pytest.mark.parametrize(("direction", "often"), [("harder", "always"), ("easier", "never")])
async def test_writers_are_shown_what_they_write_a_version_of(
    direction: str, often: str, library: LibraryStore
) -> None:
    skeleton = library.read_environment(only(library))
    scenario = next(iter(library.scenarios(skeleton.id)))
    known = dict(known_of(skeleton))
    wanted = t.Wanted.model_validate(
        {"direction": direction, "task": "The old task.", "state": {"bins": {"B-77": {}}}, "calls": 5}
    )
    state = t.WriteStateInputs(**known, source="", purpose="scenario", index=0, seed=0, wanted=wanted)
    task = t.WriteTaskInputs(
        **known, state=scenario.initial_state, clock=scenario.clock, index=0, seed=0, wanted=wanted
    )
    listed = t.WriteChecklistInputs(
        **known, state=scenario.initial_state, clock=scenario.clock, task="?", index=0, seed=0, wanted=wanted
    )
    for role, inputs, shown in (
        (roles.WRITE_STATE, state, ("The old task.", "B-77", direction, often)),
        (roles.WRITE_TASK, task, ("The old task.", "5 calls", direction, often)),
    ):
        text = str(Prompts().render(role, inputs)[-1].content)
        assert all(part in text for part in shown)
    # Whoever writes checks is not told how long the solution of a version may be.
    assert "The old task." not in str(Prompts().render(roles.WRITE_CHECKLIST, listed)[-1].content)


class AsksForMore(LendingModel):
    """Writes a harder version when it is asked for one: it wants another thing added, too."""

    def write_state(self, inputs: t.WriteStateInputs) -> Any:
        if inputs.wanted is not None:
            inputs = inputs.model_copy(update={"index": inputs.index + 3})
        return super().write_state(inputs)

    def write_task(self, inputs: t.WriteTaskInputs) -> Any:
        usual = super().write_task(inputs)
        if inputs.wanted is None:
            return usual
        more = {"name": "add_thing", "arguments": {"label": "a spare one"}}
        return {"task": f'{usual["task"]} Then add "a spare one".', "plan": [*usual["plan"], more]}

    def write_checklist(self, inputs: t.WriteChecklistInputs) -> Any:
        usual = super().write_checklist(inputs)
        more = ['Has "a spare one" been added?'] if "spare" in inputs.task else []
        return {"checklist": [*usual["checklist"], *more]}

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        if inputs.position < 2:
            return super().write_check(inputs)
        spare = "[one for one in final_state['things'].values() if one.get('label') == 'a spare one']"
        return check_code(f"return [one.get('status') for one in {spare}] == ['free']")


async def test_a_model_writes_versions_of_its_own_scenarios(task_file: Path, tmp_path: Path) -> None:
    async with open_models(ModelSettings(), offline=AsksForMore()) as models:
        await run_synth(settings_of(task_file, tmp_path / "library", limit=1, solver_runs=0), models, Prompts())
        library = LibraryStore.open(tmp_path / "library")
        calibrate(library, 4)
        rewriting = Rewriting(model="m", harden=True, solver_runs=0)
        (told,) = await run_rewrite(library, rewriting, models, Prompts())
    assert told.fault is None
    harder = by_id(library)[told.scenario_id]
    assert "spare" in harder.task
    assert harder.solution is not None
    assert len(harder.solution) == 4
    assert harder.origin.models["scenario_writer"] == "lending"


async def test_a_version_that_is_not_harder_is_dropped(task_file: Path, tmp_path: Path) -> None:
    class AsksForTheSame(AsksForMore):
        def write_task(self, inputs: t.WriteTaskInputs) -> Any:
            return super().write_task(inputs.model_copy(update={"wanted": None}))

    async with open_models(ModelSettings(), offline=AsksForTheSame()) as models:
        await run_synth(settings_of(task_file, tmp_path / "library", limit=1, solver_runs=0), models, Prompts())
        library = LibraryStore.open(tmp_path / "library")
        calibrate(library, 4)
        rewriting = Rewriting(model="m", harden=True, solver_runs=0)
        (told,) = await run_rewrite(library, rewriting, models, Prompts())
    assert told.fault is not None
    assert "it is not harder" in told.fault
    assert told.scenario_id not in by_id(library)
