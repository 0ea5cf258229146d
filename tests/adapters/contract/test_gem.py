"""The adapter under the real gem (`gem-llm`), in whose virtual environment `make test-adapters` runs this."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from adapters.desk import DESKS, MEMBERS, as_text, lend, solution_calls, untagged, write_library

gem = pytest.importorskip("gem", reason="gem-llm is not installed here: make test-adapters makes the place for it")

from gem.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper  # noqa: E402
from gem.wrappers.observation_wrapper import ObservationWrapper  # noqa: E402

from envscaler.adapters.gem import register  # noqa: E402
from envscaler.adapters.sources import LIBRARIES  # noqa: E402

LENDING = "envscaler/desk/lending-desk"


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_library(tmp_path_factory.mktemp("gem") / "desk")
    ids = register(folder, reward="solved")
    assert ids == ("envscaler/desk", "envscaler/desk/awkward-desk", LENDING, "envscaler/desk/other-desk")
    return folder


def test_recorded_solution_is_solved_and_nothing_done_is_not() -> None:
    env = gem.make(LENDING)
    assert isinstance(env, gem.Env)
    for seed in range(len(MEMBERS)):
        env.reset(seed=seed)
        list(solution_calls(env.env.scenario, lambda call: untagged(env.step(as_text(call))[0])))
        assert env.step("Done.")[1:4] == (1.0, True, False)
        env.reset(seed=seed)
        assert env.step("Nothing to do.")[1:4] == (0.0, True, False)


def test_errors_are_texts_and_end_nothing() -> None:
    env = gem.make(LENDING)
    env.reset(seed=0)
    for reply in (
        "<tool_call>",
        '<tool_call>{"name": "burn"}</tool_call>',
        '<tool_call>{"name": "lend_book"}</tool_call>',
    ):
        observation, *flags, _ = env.step(reply)
        assert "Error: " in observation
        assert flags == [0.0, False, False]


def test_settings_of_make_win_over_those_of_registration() -> None:
    env = gem.make(LENDING, reward="fraction", scenario=2)
    assert env.reset()[1]["scenario_id"] == "lending-desk-s002"
    assert env.step("Nothing.")[1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("threads", [False, True])
def test_vectors_play_side_by_side_and_begin_anew_by_themselves(threads: bool) -> None:
    vector = gem.make_vec([LENDING] * 4, async_mode=threads)
    _, infos = vector.reset(seed=0)
    assert [info["scenario_id"] for info in infos] == [f"lending-desk-s00{n}" for n in range(4)]
    vector.step([as_text(lend(member)) for member in ("Ann", "Ann", "Cleo", "Cleo")])
    _, rewards, terminations, truncations, infos = vector.step(["Done."] * 4)
    assert rewards.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert (terminations.all(), truncations.any()) == (True, False)
    assert [info["scenario_id"] for info in infos] == [f"lending-desk-s00{n}" for n in (1, 2, 3, 0)]


def test_sixty_four_interleaved_episodes_end_as_each_does_alone() -> None:
    def actions(n: int) -> list[str]:
        rng = random.Random(n)
        return [as_text(lend(rng.choice(MEMBERS), rng.choice(("B1", "B2")))) for _ in range(4)]

    def alone(n: int) -> list[str]:
        env = gem.make("envscaler/desk", env_ids=DESKS)
        env.reset(seed=n)
        return [env.step(action)[4]["state_digest"] for action in actions(n)]

    expected = [alone(n) for n in range(64)]
    assert len({tuple(trail) for trail in expected}) > 32
    pool = [gem.make("envscaler/desk", env_ids=DESKS) for _ in range(64)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: pool[n].reset(seed=n), range(64)))
        rounds = []
        for turn in range(4):
            steps = threads.map(lambda n, turn=turn: pool[n].step(actions(n)[turn]), range(64))
            rounds.append([step[4]["state_digest"] for step in steps])
    assert [list(trail) for trail in zip(*rounds, strict=True)] == expected


def test_reset_after_a_half_played_episode_is_complete_and_closing_twice_is_fine() -> None:
    env = gem.make(LENDING)
    first, known = env.reset(seed=0)
    env.step(as_text(lend("Bob")))
    again, known_again = env.reset(seed=0)
    assert (first, known["state_digest"]) == (again, known_again["state_digest"])
    env.close()
    env.close()
    assert env.reset(seed=0)[0] == first


def test_wrappers_of_gem_take_it() -> None:
    env = ObservationWrapper(EpisodeTrackingWrapper(gem.make(LENDING)), include_chat_template=False)
    observation, _ = env.reset(seed=0)
    assert "Lend Emma to Ann." in observation
    observation, *_ = env.step(as_text(lend("Ann")))
    assert "Lend Emma to Ann." in observation
    assert "L1" in observation
    assert env.unwrapped.step("Done.")[1] == 1.0


def test_drawn_actions_are_well_formed_and_change_something() -> None:
    env = gem.make("envscaler/desk")
    env.reset(seed=1)
    changed = set()
    for _ in range(20):
        _, _, terminated, truncated, info = env.step(env.sample_random_action())
        assert info["slips"] == []
        changed.add(info["state_digest"])
        if terminated or truncated:
            env.reset()
    assert len(changed) > 1


def test_libraries_of_the_variable_are_registered_by_the_import(folder: Path) -> None:
    program = (
        "import gem, envscaler.adapters.gem\n"
        "env = gem.make('envscaler/mine/lending-desk', reward='solved')\n"
        "env.reset(seed=0)\n"
        "print(env.step('Nothing.')[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={LIBRARIES: f"mine={folder}"}
    )
    assert done.stdout.strip() == "0.0"


class Reason:
    """What ROLL gives in place of a reply when a limit was reached."""

    name = "MAX_LENGTH"


def test_environment_for_roll_speaks_in_messages_and_ends_in_one_way() -> None:
    from envscaler.adapters.roll_env import ENTRY_POINT

    register_name = register(Path(gem.make(LENDING)._source.library), name="roll", entry_point=ENTRY_POINT)[2]
    env: Any = gem.make(register_name, reward="solved", max_steps=3)
    messages, info = env.reset(seed=0)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert info["tools"][0]["type"] == "function"
    assert (env.env_reset_failed, env.env_timeout, info["failure_mode"]) == (False, False, "")
    messages, reward, terminated, truncated, info = env.step(as_text(lend("Ann")) + "<|im_end|>")
    assert (messages[-1]["role"], reward, terminated) == ("tool", 0.0, False)
    assert info["metrics"]["action_is_valid"] is True
    assert info["slips"] == []
    _, reward, terminated, _, info = env.step("Done.<|im_end|>")
    assert (reward, terminated, info["metrics"]["success"]) == (1.0, True, True)

    env.reset(seed=0)
    assert env.step(Reason())[1:4] == (0.0, True, True)
    env.reset(seed=0)
    env.env._session.close()
    *_, terminated, truncated, info = env.step(as_text(lend("Ann")))
    assert (terminated, truncated) == (True, True)
    assert "SandboxError" in env.unrewarded
    assert "success" not in info["metrics"]
    assert env.env_info["scenario_id"] == "lending-desk-s000"
    env.close()
    env.reset(seed=1)
    assert env.unrewarded is None
