"""What was found by reading is so: checks accept the wrong states that are said of them, and their like refuse them."""

from __future__ import annotations

import pytest
from audit.false_positives import FALSE_POSITIVES, PROBES, REMOVED, SOUND, WAYS, FalsePositive, Sound, edited
from audit.resets import Reset

from envscaler.sandbox import BlockingSandbox
from envscaler.state import State


def value_of(sandbox: BlockingSandbox, reset: Reset, check: int, final: State) -> bool | None:
    source = reset.scenario.checks[check].source
    (outcome,) = sandbox.check([source], initial_state=reset.state, final_state=final, clock=reset.scenario.clock)
    return outcome.value


@pytest.mark.parametrize("found", FALSE_POSITIVES, ids=lambda found: f"{found.task_id}-{found.check}-{found.way}")
def test_a_check_accepts_a_state_that_is_wrong(
    found: FalsePositive, released_resets: dict[str, Reset], judging: BlockingSandbox
) -> None:
    reset = released_resets[found.task_id]
    assert value_of(judging, reset, found.check, edited(reset.state, found.edits)) is True, found.why
    if found.contradicts is not None:
        assert found.contradicts in reset.scenario.checks[found.check].description


@pytest.mark.parametrize("sound", SOUND, ids=lambda sound: f"{sound.task_id}-{sound.check}")
def test_a_check_that_looks_like_one_of_them_tells_right_from_wrong(
    sound: Sound, released_resets: dict[str, Reset], judging: BlockingSandbox
) -> None:
    reset = released_resets[sound.task_id]
    right = edited(reset.state, sound.right)
    assert value_of(judging, reset, sound.check, right) is True
    assert value_of(judging, reset, sound.check, edited(right, sound.wrong)) is False, sound.why


def test_no_check_stands_in_both_lists() -> None:
    bad = {(found.task_id, found.check) for found in FALSE_POSITIVES}
    assert not bad & {(sound.task_id, sound.check) for sound in SOUND}
    assert len(bad) >= 25
    assert len(SOUND) >= 15


def test_every_way_and_every_probe_is_one_that_is_explained_and_found() -> None:
    assert {found.way for found in FALSE_POSITIVES} == set(WAYS)
    assert {found.probe for found in FALSE_POSITIVES} == set(PROBES)


def test_a_wrong_state_that_differs_in_nothing_is_one_in_which_nothing_was_done() -> None:
    assert {found.probe for found in FALSE_POSITIVES if not found.edits} == {"undone"}


def test_edits_put_and_take_out_and_leave_the_state_alone() -> None:
    state = {"rows": {"a/b": [1, {"n": 2}]}, "gone": 0}
    changed = edited(state, (("/rows/a~1b/1/n", 3), ("/rows/new", []), ("/gone", REMOVED)))
    assert changed == {"rows": {"a/b": [1, {"n": 3}], "new": []}}
    assert state == {"rows": {"a/b": [1, {"n": 2}]}, "gone": 0}
    with pytest.raises(KeyError):
        edited(state, (("/missing/key", 1),))
    with pytest.raises(KeyError):
        edited(state, (("/rows/missing", REMOVED),))
