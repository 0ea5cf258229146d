"""Tests of what makes a scenario hard: records that look alike, ids to be found, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from envscaler.sandbox import Sandbox
from envscaler.scenario import Difficulty, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import canonical
from envscaler.synth.difficulty import difficulty

pytestmark = pytest.mark.anyio


def thing(key: str, label: str, member: str | None = None) -> dict[str, Any]:
    return {"thing_id": key, "label": label, "status": "lent" if member else "free", "member_id": member}


STATE: dict[str, Any] = {
    "things": {
        "T-2": thing("T-2", "saw"),
        "T-3": thing("T-3", "saw", "M-2"),  # of the same label, and not to be had
        "T-4": thing("T-4", "drill"),  # free as well: two of three values
        "T-5": thing("T-5", "axe", "M-2"),  # nothing in common
    },
    "members": {"M-1": {"member_id": "M-1", "name": "Ana"}, "M-2": {"member_id": "M-2", "name": "Bo"}},
    "next_number": 6,
}
SOLUTION = (SolutionCall(name="lend_thing", arguments={"thing_id": "T-2", "member_id": "M-1"}),)


async def measured(skeleton: EnvSkeleton, task: str) -> Difficulty:
    final = canonical(STATE)
    final["things"]["T-2"].update(status="lent", member_id="M-1")
    scenario = Scenario(
        id="s", env_id=skeleton.id, env_digest=skeleton.digest, initial_state=STATE, task=task, solution=SOLUTION
    )
    async with Sandbox() as sandbox:
        return await difficulty(scenario, final, 1, skeleton, sandbox)


async def test_records_that_share_a_label_or_half_of_their_values_distract(skeleton: EnvSkeleton) -> None:
    found = await measured(skeleton, "Lend Ana a saw.")
    assert (found.calls, found.updates, found.entities, found.distractors) == (1, 1, 1, 2)
    assert found.forbidden == 0


async def test_ids_that_the_task_names_need_no_looking_up(skeleton: EnvSkeleton) -> None:
    assert (await measured(skeleton, "Lend Ana a saw.")).look_ups == 2
    assert (await measured(skeleton, "Lend Ana T-2.")).look_ups == 1


async def test_what_is_refused_counts_where_the_task_says_if(skeleton: EnvSkeleton) -> None:
    assert (await measured(skeleton, "Lend Ana every saw, if it is free.")).forbidden == 1


async def test_conditions_in_other_languages_are_not_known(skeleton: EnvSkeleton) -> None:
    origin = skeleton.origin.model_copy(update={"language": "de"})
    german = skeleton.model_copy(update={"origin": origin})
    assert (await measured(german, "Verleihe Ana jede Säge, falls sie frei ist.")).forbidden is None
