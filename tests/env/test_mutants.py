"""The mutation study: faults planted in sound programs of a dozen domains, found without a model.

python -m pytest -m slow -s tests/env/test_mutants.py      # prints the table of docs/assess.md
"""

from __future__ import annotations

import ast

import pytest
from env.mutants import SEMANTIC, STRUCTURAL, Study, differs, examined, mutants, programs

from envscaler.sandbox import Sandbox

PER_KIND = 20


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.anyio
async def test_planted_faults_are_found_or_left_to_a_judge_and_sound_programs_are_left_alone() -> None:
    study = Study()
    async with Sandbox() as sandbox:
        for kind in (*STRUCTURAL, *SEMANTIC):
            await study.add(kind, programs(), PER_KIND, sandbox)
        for sound in programs():
            await study.add_sound(sound, sandbox)
    print(f"\n{study.table()}\n{study.tools} sound tools, alarms: {study.alarms}")
    assert sum(study.verdicts.values()) >= 200
    assert study.rate(list(STRUCTURAL)) >= 0.95
    assert study.rate(list(SEMANTIC), readable=True) >= 0.8
    assert study.passed == 0
    assert study.false_alarms <= 0.02


@pytest.mark.parametrize("kind", [*STRUCTURAL, *SEMANTIC])
def test_every_kind_of_fault_can_be_planted_and_leaves_a_program_that_parses(kind: str) -> None:
    sound = programs(1)
    drawn = [mutant for mutant, _ in zip(mutants(kind, sound), range(4), strict=False)]
    assert drawn
    for mutant in drawn:
        ast.parse(mutant.skeleton.source)
        assert mutant.skeleton.digest != sound[0].skeleton.digest


@pytest.mark.anyio
async def test_a_mutant_in_which_something_is_found_differs_from_the_original() -> None:
    mutant = next(mutants("wrong key", programs(1)))
    async with Sandbox() as sandbox:
        assert await examined(mutant, sandbox) == "found"
        assert await differs(mutant, sandbox)
