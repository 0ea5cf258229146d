"""Libraries compared with benchmarks: copies are found, whatever is like them only in kind is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from env.lending import scenario, skeleton
from typer.testing import CliRunner

from envscaler.bench.contents import Contents, OfferedEnvironment, OfferedTask, OfferedTool
from envscaler.bench.installation import VARIABLE, Installation
from envscaler.bench.overlap import Overlap, overlap_with
from envscaler.cli.app import app
from envscaler.llm.embedding import NgramEmbedder
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.store import LibraryStore

BORROW = "Please find every copy of the atlas of winds and lend the oldest one to Mira until the end of May."
LATER = "Once that is done, take back whatever Jonas has had at home for longer than six weeks."
BAKERY = "Bake forty rolls for tomorrow morning, and tell the driver which of the streets are closed."
Parameters = dict[str, object]


def parameters(*names: str) -> Parameters:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


TOOLS = {
    "locate_manuscript": ("Tell in which vault a manuscript lies.", parameters("signature")),
    "seal_vault": ("Close a vault until its air is dry again.", parameters("vault", "humidity")),
    "appoint_restorer": ("Entrust a damaged manuscript to a restorer.", parameters("signature", "restorer")),
}
CONTENTS = Contents(
    environments=(
        OfferedEnvironment(
            name="Archive",
            about="Keeps manuscripts",
            tools=tuple(
                OfferedTool(name=name, description=told, parameters=schema) for name, (told, schema) in TOOLS.items()
            ),
        ),
        OfferedEnvironment(
            name="Kiln",
            tools=(OfferedTool(name="fire_pots", description="Fire pots.", parameters=parameters("heat")),),
        ),
    ),
    tasks=(
        OfferedTask(id="one", said=(BORROW, LATER)),
        OfferedTask(id="one again", said=(BORROW, LATER)),
        OfferedTask(id="two", said=("Bye.", "Thanks.")),
    ),
)


def offering(env_id: str, *names: str) -> EnvSkeleton:
    """An environment with tools of the benchmark beside its own."""
    own = skeleton(id=env_id)
    taken = tuple(
        ToolSpec(name=name, description=TOOLS[name][0], parameters=TOOLS[name][1], effect="update") for name in names
    )
    return own.model_copy(update={"tools": (*own.tools, *taken)})


async def compared(*environments: tuple[EnvSkeleton, tuple[str, ...]]) -> Overlap:
    library = [
        (one, [scenario(one, number, task=task) for number, task in enumerate(tasks, start=1)])
        for one, tasks in environments
    ]
    return await overlap_with("small", ("small==1",), CONTENTS, library, NgramEmbedder())


@pytest.mark.anyio
async def test_a_task_with_a_few_other_words_is_a_near_copy_and_one_of_another_matter_is_none() -> None:
    reworded = BORROW.replace("Mira", "Selma").replace("Please", "Kindly") + " " + LATER
    found = await compared((offering("desk"), (reworded, BAKERY)))
    (copy,) = found.tasks.near_copies
    assert (copy.env_id, copy.name, copy.theirs) == ("desk", scenario(skeleton(id="desk"), 1).id, "one")
    assert (copy.text, copy.their_text) == (reworded, f"{BORROW}\n{LATER}")
    assert copy.score < 1.0
    assert found.copied_scenarios == {("desk", copy.name)}
    assert found.copied_environments == frozenset()


@pytest.mark.anyio
async def test_one_message_of_a_task_is_compared_by_itself() -> None:
    found = await compared((offering("desk"), (LATER,)))
    assert [(pair.theirs, pair.score) for pair in found.tasks.near_copies] == [("one, message 2", 1.0)]


@pytest.mark.anyio
async def test_an_environment_that_holds_a_whole_one_of_the_benchmark_is_a_copy_and_one_that_holds_a_tool_is_none() -> (
    None
):
    found = await compared((offering("whole", *TOOLS), ()), (offering("part", "seal_vault"), ()))
    assert [(pair.env_id, pair.theirs, pair.score) for pair in found.environments.near_copies] == [
        ("whole", "Archive", 1.0)
    ]
    assert "seal_vault" in found.environments.near_copies[0].their_text
    tools = {(pair.env_id, pair.name) for pair in found.tools.near_copies}
    assert tools == {("part", "seal_vault"), *(("whole", name) for name in TOOLS)}


@pytest.mark.anyio
async def test_distributions_count_everything_once_and_equal_texts_of_the_benchmark_once() -> None:
    found = await compared((offering("desk", "seal_vault"), (BORROW, BAKERY)), (offering("other"), (LATER,)))
    assert (found.tasks.compared, found.tasks.against) == (3, 4)  # two whole texts, and two single messages of one
    assert (found.tools.compared, found.tools.against) == (7, 4)
    for told in (found.environments, found.tools, found.tasks):
        assert sum(told.histogram) == told.compared
        assert list(told.quantiles.values()) == sorted(told.quantiles.values())
        assert [pair.score for pair in told.nearest] == sorted((pair.score for pair in told.nearest), reverse=True)
    assert found.tasks.quantiles["highest"] == 1.0


def test_the_command_finds_what_was_planted_and_writes_a_library_without_it(
    lamps: Installation, tmp_path: Path
) -> None:
    assert lamps.benchmark.name == "bfcl"
    runner = CliRunner()
    desk = skeleton(id="desk")
    planted = skeleton(id="lamps").model_copy(
        update={
            "tools": tuple(
                ToolSpec(name=name, description=f"{name} it", parameters=parameters(*names), effect="update")
                for name, names in (("list_lamps", ()), ("dim", ("lamp", "level")), ("note", ("text", "tags")))
            )
        }
    )
    store = LibraryStore.create(tmp_path / "library")
    store.write_environment(
        desk, None, [scenario(desk, 1, task=BORROW), scenario(desk, 2, task="Desk to 7. Hall to 2.")]
    )
    store.write_environment(planted, None, [scenario(planted, 1, task=BAKERY)])
    store.write_index({"made": "here"})

    def said(*words: str, code: int) -> str:
        done = runner.invoke(app, ["bench", "overlap", *words, "--quiet"])
        assert done.exit_code == code, done.output
        return done.output

    told = said(str(store.path), code=1)
    assert "desk/" in told
    assert "multi_turn_base_0" in told
    assert "LampAPI" in told
    report = json.loads(said(str(store.path), "--bench", "bfcl", "--json", code=1))
    (one,) = report["benchmarks"]
    assert [pair["name"] for pair in one["environments"]["near_copies"]] == ["lamps"]
    assert [pair["text"] for pair in one["tasks"]["near_copies"]] == ["Desk to 7. Hall to 2."]
    clean = tmp_path / "clean"
    assert "like a task of a benchmark" in said(str(store.path), "--out", str(clean), code=0)
    left = LibraryStore.open(clean)
    assert left.env_ids() == ("desk",)
    assert [one.task for one in left.scenarios("desk")] == [BORROW]
    said(str(clean), code=0)
    said(str(clean), "--threshold", "tasks=0.01", code=1)
    for wrong in (
        ("--threshold", "tasks=2"),
        ("--threshold", "words=0.5"),
        ("--bench", "bfcl-v4"),
        ("--out", str(clean)),
    ):
        said(str(clean), *wrong, code=2)


def test_without_an_installed_benchmark_nothing_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    store = LibraryStore.create(tmp_path / "library")
    done = CliRunner().invoke(app, ["bench", "overlap", str(store.path)])
    assert done.exit_code == 2
    assert "no benchmark is installed" in done.output
