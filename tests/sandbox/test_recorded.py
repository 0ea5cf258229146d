"""Digests recorded once, to be found again on every machine, in every process and wherever a session lives."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import get_args

import pytest

from envscaler.sandbox import Home, Program, Sandbox

from .conftest import LEDGER, QUICK
from .test_modes import DIARY, play

pytestmark = pytest.mark.anyio

RECORDED: dict[str, list[str]] = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
"""By name of the class: the digest at reset and after each call of an episode with seed 7."""


async def digests(program: Program, home: Home) -> list[str]:
    rng = random.Random(7)
    async with Sandbox(QUICK) as sandbox:
        sandbox.settle(program, home)
        session = await sandbox.open(program, {}, seed=7, clock="2024-02-28T23:59:58")
        found = [session.digest]
        for _ in range(20):
            name, arguments = play(rng) if program is DIARY else transact(rng)
            found.append((await session.call(name, arguments)).digest)
        return found


def transact(rng: random.Random) -> tuple[str, dict[str, object]]:
    owner = rng.choice(["Ada", "Löwe", "李"])
    return rng.choice(
        [
            ("open_account", {"owner": owner, "amount": rng.randrange(9)}),
            ("deposit", {"owner": owner, "amount": rng.randrange(9)}),
            ("tag", {"word": owner}),
            ("draw", {}),
            ("wreck", {}),
        ]
    )


@pytest.mark.parametrize("home", get_args(Home))
async def test_the_recorded_digests_are_found_again(home: Home) -> None:
    # The other needs modules that are not to be had in this process.
    programs = (DIARY,) if home == "in-process" else (DIARY, LEDGER)
    assert {program.class_name: await digests(program, home) for program in programs} == {
        program.class_name: RECORDED[program.class_name] for program in programs
    }
