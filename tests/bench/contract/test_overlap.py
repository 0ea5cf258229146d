"""BFCL's own tasks and tools, planted in a library that was made without them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from envscaler.bench.contents import Contents, contents_of
from envscaler.bench.installation import Installation
from envscaler.bench.overlap import Overlap, overlap_with
from envscaler.cli.app import app
from envscaler.llm.embedding import NgramEmbedder
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.store import LibraryStore

pytestmark = [pytest.mark.bench, pytest.mark.anyio, pytest.mark.timeout(2400)]
TASKS = Path(__file__).parents[3] / "examples" / "tasks.jsonl"
Environments = list[tuple[EnvSkeleton, list[Scenario]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    """What the embedded model makes of the example tasks."""
    folder = tmp_path_factory.mktemp("made") / "library"
    words = ["synth", str(TASKS), "--library", str(folder), "--quiet", "--rounds", "2", "--scenarios", "2"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    store = LibraryStore.open(folder)
    return [(store.read_environment(env_id), list(store.scenarios(env_id))) for env_id in store.env_ids()]


async def compared(installation: Installation, library: Environments) -> tuple[Contents, Overlap]:
    contents = await contents_of(installation)
    told = await overlap_with("bfcl", installation.benchmark.packages, contents, library, NgramEmbedder())
    return contents, told


async def test_a_library_made_without_bfcl_has_nothing_of_it(bfcl: Installation, library: Environments) -> None:
    _, told = await compared(bfcl, library)
    for kind in ("environments", "tools", "tasks"):
        print(f"{kind}: {told.of(kind).compared} with {told.of(kind).against}: {told.of(kind).quantiles}")
    assert told.environments.compared > 40
    assert told.copied_environments == frozenset()
    assert told.copied_scenarios == frozenset()
    assert told.tasks.quantiles["highest"] < 0.75


async def test_planted_tasks_with_words_left_out_and_planted_environments_are_found(
    bfcl: Installation, library: Environments
) -> None:
    contents, _ = await compared(bfcl, library)
    rng = Random(0)
    planted: Environments = []
    copied = set()
    for (skeleton, scenarios), task in zip(library, contents.tasks[::20], strict=False):
        text = " ".join(word for word in " ".join(task.said).split() if rng.random() > 0.1)
        copied.add((skeleton.id, scenarios[0].id))
        planted.append((skeleton, [scenarios[0].model_copy(update={"task": text}), *scenarios[1:]]))
    first = planted[0][0]
    taken = tuple(
        ToolSpec(name=tool.name, description=tool.description.upper(), parameters=tool.parameters, effect="update")
        for tool in contents.environments[0].tools
    )
    planted[0] = (first.model_copy(update={"tools": (*first.tools, *taken)}), planted[0][1])
    _, told = await compared(bfcl, planted)
    assert len(copied) > 30
    assert told.copied_scenarios == copied
    assert told.copied_environments == {first.id}
    assert told.environments.near_copies[0].theirs == contents.environments[0].name
