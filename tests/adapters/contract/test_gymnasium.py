"""The adapter under the real Gymnasium, in a virtual environment that `make test-adapters` makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desk import MEMBERS, as_text, lend, solution_calls, untagged, write_library

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed here: make test-adapters makes a place")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from envscaler.adapters.gymnasium import register  # noqa: E402

LENDING = "envscaler/desk.lending-desk"


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder: Path = write_library(tmp_path_factory.mktemp("gymnasium") / "desk")
    return register(folder, reward="solved")


def test_gymnasiums_own_checker_finds_nothing(registered: tuple[str, ...], recwarn: pytest.WarningsRecorder) -> None:
    for known in registered:
        check_env(gymnasium.make(known).unwrapped)
    told = [str(warning.message) for warning in recwarn]
    # It has no renderer, and spaces of texts have no bounds to speak of.
    assert [text for text in told if "spec" not in text and "render" not in text] == []


def test_recorded_solution_is_solved_and_nothing_done_is_not() -> None:
    env = gymnasium.make(LENDING)
    for seed in range(len(MEMBERS)):
        env.reset(seed=seed)
        played = env.unwrapped.text_env.env.scenario
        list(solution_calls(played, lambda call: untagged(env.step(as_text(call))[0])))
        assert env.step("Done.")[1:4] == (1.0, True, False)
        env.reset(seed=seed)
        assert env.step("Nothing to do.")[1:4] == (0.0, True, False)
    env.close()
    env.close()


def test_options_choose_the_scenario() -> None:
    env = gymnasium.make("envscaler/desk")
    _, info = env.reset(options={"environment": "other-desk", "scenario": 3})
    assert info["scenario_id"] == "other-desk-s003"


@pytest.mark.parametrize("mode", ["sync"])
def test_vectors_play_side_by_side(mode: str) -> None:
    vector = gymnasium.make_vec(LENDING, num_envs=4, vectorization_mode=mode)
    observations, _ = vector.reset(seed=0)
    assert [text.splitlines()[-1] for text in observations] == [f"Lend Emma to {member}." for member in MEMBERS]
    vector.step(tuple(as_text(lend(member)) for member in ("Ann", "Ann", "Cleo", "Cleo")))
    _, rewards, terminations, truncations, _ = vector.step(("Done.",) * 4)
    assert rewards.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert (terminations.all(), truncations.any()) == (True, False)
    vector.close()
