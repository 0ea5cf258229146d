from __future__ import annotations

import gc
import inspect
import json
import pickle
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from adapters.desk import DESKS, MEMBERS, lend, solution_calls, write_library
from env.lending import scenario, skeleton

from envscaler.adapters.trl import PooledEnvironment, environment_factories
from envscaler.agents import SystemPrompts
from envscaler.env import Library
from envscaler.errors import SandboxError, UsageError
from envscaler.store import LibraryStore

FIRST = "lending-desk-s000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_library(tmp_path_factory.mktemp("adapters") / "desk")


@pytest.fixture
def desk(folder: Path) -> Iterator[Any]:
    desk = environment_factories(folder, ["lending-desk"], reward="gained")["lending-desk"]()
    yield desk
    desk._leave()


def library_of(desk: PooledEnvironment) -> Library:
    return desk._factory.source.open()


def test_tools_are_the_only_public_methods_of_the_class_beside_reset_and_reward(desk: Any) -> None:
    public = {name for name, _ in inspect.getmembers(type(desk), inspect.isfunction) if not name.startswith("_")}
    assert public == {"reset", "get_reward", "find_books", "lend_book", "return_book"}


def test_all_instances_of_a_factory_have_one_class_also_after_pickling(folder: Path) -> None:
    factory = environment_factories(folder)["lending-desk"]
    again = pickle.loads(pickle.dumps(factory))
    assert type(factory()) is type(again())
    assert type(factory()).__name__ == "LendingDesk"


def test_classes_are_named_after_ids_in_any_script(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    for env_id in ("经费管理", "3-desks"):
        environment = skeleton(id=env_id)
        store.write_environment(environment, None, [scenario(environment)])
    store.write_index({})
    names = {type(factory()).__name__ for factory in environment_factories(store.path).values()}
    assert names == {"经费管理", "Environment3Desks"}


def test_factories_are_made_for_what_may_be_trained_on(tmp_path: Path) -> None:
    store = LibraryStore.open(write_library(tmp_path / "L"))
    store.write_splits({"train": ["lending-desk", "awkward-desk"], "test": ["other-desk"]})
    assert set(environment_factories(store.path)) == {"lending-desk", "awkward-desk"}
    assert set(environment_factories(store.path, held_out=True)) == {"awkward-desk", *DESKS}
    with pytest.raises(UsageError, match="held out"):
        environment_factories(store.path, ["other-desk"])


def test_recorded_solution_earns_the_whole_reward_and_nothing_the_floor(desk: Any) -> None:
    for number in range(len(MEMBERS)):
        desk.reset(scenario_id=number)
        scenario = library_of(desk).scenario("lending-desk", number)
        seen = list(solution_calls(scenario, lambda call: getattr(desk, call.name)(**call.arguments)))
        assert len(seen) == 2
        assert desk.get_reward() == 1.0
        desk.reset(scenario_id=number)
        assert desk.get_reward() == 0.0


def test_errors_are_texts_and_end_nothing(desk: Any) -> None:
    desk.reset(scenario_id=FIRST)
    assert desk.lend_book(book_id="B1").startswith("Error: ")
    assert desk.lend_book(book_id="B1", member=3).startswith("Error: ")
    assert desk.find_books(nonsense=1).startswith("Error: ")
    assert desk.return_book(loan_id="L9").startswith("Error: ")
    desk.lend_book(**lend("Ann").arguments)
    assert desk.get_reward() == 1.0


def test_reset_in_the_middle_of_an_episode_leaves_nothing_of_it(desk: Any) -> None:
    desk.reset(scenario_id=FIRST)
    fresh = desk._state()
    desk.lend_book(**lend("Bob").arguments)
    desk.reset(scenario_id=FIRST)
    assert desk._state() == fresh
    assert desk.get_reward() == 0.0


def test_after_the_reward_the_episode_is_over_and_its_reward_stays(desk: Any) -> None:
    desk.reset(scenario_id=FIRST)
    desk.lend_book(**lend("Ann").arguments)
    assert desk.get_reward() == 1.0
    assert desk.return_book(loan_id="L1").startswith("Error: the episode is over")
    assert desk.get_reward() == 1.0


def test_reset_gives_what_the_prompt_lacks(desk: Any) -> None:
    system = {"role": "system", "content": "Be brief."}
    task = "Lend Emma to Ann."
    told = SystemPrompts().text(library_of(desk).skeleton("lending-desk"), "non-conversation")
    whole = [system, {"role": "user", "content": task}]
    assert desk.reset(scenario_id=FIRST, prompt=whole) is None
    assert desk.reset(scenario_id=FIRST, prompt=[{"role": "user", "content": [{"type": "text", "text": task}]}]) is None
    assert desk.reset(scenario_id=FIRST, prompt=[system, {"role": "user", "content": ""}]) == task
    assert desk.reset(scenario_id=FIRST, prompt=[system, {"role": "user", "content": "Hello."}]) == f"\n\n{task}"
    assert desk.reset(scenario_id=FIRST) == f"{told}\n\n{task}"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "names no scenario"),
        ({"scenario_id": "lending-desk-s999"}, "has no scenario"),
        ({"scenario_id": FIRST, "environment": "other-desk"}, "is of environment other-desk"),
        ({"scenario_id": FIRST, "env_id": "other-desk"}, "is of environment other-desk"),
        ({"scenario_id": FIRST, "mode": "conversation"}, "nobody who would play the user"),
        ({"scenario_id": FIRST, "scenario_digest": "0"}, "export the rows again"),
        ({"scenario_id": FIRST, "env_digest": "0"}, "export the rows again"),
    ],
)
def test_row_that_names_no_scenario_of_the_environment_is_refused(desk: Any, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        desk.reset(**row)


def test_tools_named_like_methods_of_trl_are_tools_under_their_own_names(folder: Path) -> None:
    desk: Any = environment_factories(folder, ["awkward-desk"])["awkward-desk"]()
    desk.reset(scenario_id=0)
    assert desk.tool_reset.__name__ == "reset"
    assert json.loads(desk.tool_reset(reason="why not")) == {"success": True}
    assert json.loads(desk.tool_get_reward())["data"] == 1
    assert desk.get_reward() == 0.0


def test_failure_of_the_machinery_is_no_reward_and_the_next_episode_is_sound(desk: Any) -> None:
    desk.reset(scenario_id=FIRST)
    desk._env._session.close()  # what a lost worker looks like from here: its session is no more
    assert "does not count" in desk.lend_book(**lend("Ann").arguments)
    assert desk.get_reward() is None
    desk.reset(scenario_id=FIRST)
    desk.lend_book(**lend("Ann").arguments)
    assert desk.get_reward() == 1.0


def test_failure_while_judging_is_no_reward(desk: Any) -> None:
    desk.reset(scenario_id=FIRST)
    desk._env._session.close()
    assert desk.get_reward() is None


def test_library_that_was_closed_is_opened_again(folder: Path) -> None:
    desk: Any = environment_factories(folder, ["lending-desk"])["lending-desk"]()
    desk.reset(scenario_id=FIRST)
    library_of(desk).close()
    assert "does not count" in desk.find_books()
    assert desk.get_reward() is None
    desk.reset(scenario_id=FIRST)
    assert desk.get_reward() == pytest.approx(1 / 3)


def test_scenario_without_a_goal_to_gain_has_no_reward(folder: Path) -> None:
    desk = environment_factories(folder, ["awkward-desk"], reward="gained")["awkward-desk"]()
    desk.reset(scenario_id=0)
    assert desk.get_reward() is None


def test_sixty_four_episodes_side_by_side_do_not_mix(folder: Path) -> None:
    factories = environment_factories(folder, DESKS, reward="solved")
    pool: list[Any] = [factories[DESKS[n % 2]]() for n in range(64)]
    turns = [(n, step) for n in range(64) for step in range(3)]
    random.Random(0).shuffle(turns)
    for n, instance in enumerate(pool):
        instance.reset(scenario_id=n % 4)

    def take(turn: tuple[int, int]) -> None:
        # Whoever's number is even lends to the member that the task names, the others to the next one.
        n, _ = turn
        member = MEMBERS[(n + n // 8 % 2) % 4]
        pool[n].find_books(title="Emma")
        pool[n].lend_book(**lend(member).arguments)

    with ThreadPoolExecutor(8) as threads:
        by_instance: dict[int, list[tuple[int, int]]] = {}
        for turn in turns:
            by_instance.setdefault(turn[0], []).append(turn)
        list(threads.map(lambda mine: [take(turn) for turn in mine], by_instance.values()))
    borrowers = [[loan["member"] for loan in instance._state()["loans"].values()] for instance in pool]
    assert borrowers == [[MEMBERS[(n + n // 8 % 2) % 4]] for n in range(64)]
    assert [instance.get_reward() for instance in pool] == [float(n // 8 % 2 == 0) for n in range(64)]


def test_instance_that_is_forgotten_ends_its_session(folder: Path) -> None:
    factory = environment_factories(folder, ["lending-desk"])["lending-desk"]
    library = factory.source.open()

    def live() -> int:
        assert library._sandbox is not None
        return library._sandbox.run(count)

    async def count(sandbox: Any) -> int:
        return len(sandbox.fleet.live)

    kept: Any = factory()
    kept.reset(scenario_id=FIRST)
    before = live()
    lost: Any = factory()
    lost.reset(scenario_id=FIRST)
    assert live() == before + 1
    del lost
    gc.collect()
    assert live() == before
    assert kept.get_reward() == pytest.approx(1 / 3)


def test_a_call_before_reset_is_a_mistake_of_the_caller(folder: Path) -> None:
    desk: Any = environment_factories(folder, ["lending-desk"])["lending-desk"]()
    with pytest.raises(UsageError, match="reset"):
        desk.find_books()
    with pytest.raises(UsageError, match="reset"):
        desk.get_reward()


def test_machinery_that_cannot_open_an_episode_twice_is_an_error(folder: Path) -> None:
    desk: Any = environment_factories(folder, ["lending-desk"])["lending-desk"]()
    library = library_of(desk)
    library.make("lending-desk").reset()
    assert library._sandbox is not None
    library._sandbox.open = refuse  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(SandboxError, match="no worker"):
            desk.reset(scenario_id=FIRST)
    finally:
        library.close()


def refuse(*_: Any, **__: Any) -> Any:
    raise SandboxError("no worker can be started")
