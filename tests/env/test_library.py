from __future__ import annotations

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton

from envscaler.env import Library, ToolEnv, open_library
from envscaler.errors import SandboxError, StoreError, UsageError
from envscaler.messages import ToolCall
from envscaler.sandbox import BlockingSandbox, Sandbox
from envscaler.store import LibraryStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = LibraryStore.create(tmp_path / "library")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment, number) for number in (1, 2, 3)])
    bare = skeleton(id="bare-desk")
    store.write_environment(bare)
    store.write_index({})
    return store.path


def test_library_lists_environments_and_scenarios(folder: Path) -> None:
    with open_library(folder) as library:
        assert library.env_ids == ("bare-desk", "lending-desk")
        assert library.scenarios("lending-desk")[0].id == "lending-desk-s001"
        assert library.skeleton("lending-desk") == skeleton()


@pytest.mark.parametrize("which", [0, "lending-desk-s001", None, -3])
def test_scenario_is_found_by_index_or_id(folder: Path, which: int | str | None) -> None:
    with open_library(folder) as library:
        assert library.scenario("lending-desk", which).id == "lending-desk-s001"


def test_made_environments_share_one_sandbox_and_close_with_the_library(folder: Path) -> None:
    library = open_library(folder)
    first, second = (library.make("lending-desk", scenario=number, reward="solved") for number in (0, 1))
    first.reset()
    second.reset()
    first.step(ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}))
    assert first.step("Done.")[1] == 1.0
    assert second.step("Done.")[1] == 0.0
    first.close()
    library.close()
    library.close()


def test_a_closed_library_stays_closed_and_says_so(folder: Path) -> None:
    with open_library(folder) as library:
        env = library.make("lending-desk")
        twin_of = library.make("lending-desk")
        twin_of.reset()
        twin = twin_of.fork()
    with pytest.raises(UsageError, match="was closed; open it again"):
        library.make("lending-desk")
    with pytest.raises(UsageError, match="was closed"):
        library.__enter__()
    for one in (env, twin):
        assert one.closed
        with pytest.raises(UsageError, match="make another one"):
            one.reset()
    assert library.scenario("lending-desk").id == "lending-desk-s001"


def test_an_environment_with_a_sandbox_of_its_own_stays_closed_too() -> None:
    desk = skeleton()
    env = ToolEnv(desk, scenario(desk))
    env.reset()
    env.close()
    with pytest.raises(UsageError, match="make another one"):
        env.reset()


def test_an_environment_that_was_left_can_be_played_again_while_its_library_is_open(folder: Path) -> None:
    with open_library(folder) as library:
        env = library.make("lending-desk")
        env.reset()
        env.close()
        assert env.reset()[0] == "Lend Emma to Ann."


@pytest.mark.parametrize(
    ("env_id", "which", "says"),
    [
        ("lending-dsk", 0, "did you mean lending-desk"),
        ("zoo", 0, "it has 2 environments: bare-desk, lending-desk"),
        ("bare-desk", None, "has no scenarios yet"),
        ("lending-desk", 3, "3 is not one of 0 to 2"),
        ("lending-desk", "lending-desk-s01", "did you mean lending-desk-s0"),
        ("lending-desk", True, "index of a scenario is an integer"),
        ("lending-desk", 1.5, "index of a scenario is an integer"),
        ("lending-desk", 2**70, "integer of 64 bits"),
        (None, 0, "named by its id, not by None"),
    ],
)
def test_wrong_name_is_one_sentence_that_helps(folder: Path, env_id: Any, which: Any, says: str) -> None:
    with open_library(folder) as library, pytest.raises(UsageError, match=says):
        library.make(env_id, scenario=which)


def test_missing_library_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such library"):
        open_library(tmp_path / "nowhere")


def test_library_makes_environments_inside_a_running_loop(folder: Path) -> None:
    async def play(library: Library) -> str:
        with library.make("lending-desk") as env:
            return env.reset()[0]

    with open_library(folder) as library:
        assert asyncio.run(play(library)) == "Lend Emma to Ann."


def test_environment_outlives_the_variable_that_held_its_library(folder: Path) -> None:
    env = open_library(folder).make("lending-desk")
    env.reset()
    gc.collect()
    observation, *_ = env.step(ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}))
    assert "L1" in observation
    env.close()


def test_threads_that_make_environments_at_once_share_one_sandbox(folder: Path) -> None:
    with open_library(folder) as library, ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: library.make("lending-desk"), range(8)))
        assert len({id(env._sandbox) for env in made}) == 1


def test_what_is_closed_says_so_instead_of_waiting(folder: Path) -> None:
    library = open_library(folder)
    env = library.make("lending-desk")
    env.reset()
    library.close()
    with pytest.raises(SandboxError, match="closed"):
        env.state()
    env.close()


def test_what_was_opened_before_a_fork_says_so_instead_of_waiting(folder: Path) -> None:
    with open_library(folder) as library:
        env = library.make("lending-desk")
        env.reset()
        child = os.fork()
        if child == 0:
            try:
                env.reset()
            except SandboxError as error:
                os._exit(0 if "forked" in str(error) else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert env.state()


def test_a_sandbox_that_is_closed_in_its_own_thread_does_not_wait_for_itself() -> None:
    sandbox = BlockingSandbox()
    ended = threading.Event()

    async def close(_: Sandbox) -> None:
        sandbox.close()
        asyncio.get_running_loop().call_soon(ended.set)

    sandbox.run(close)
    assert ended.wait(30)
