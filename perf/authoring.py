"""What the steps of synthesis cost without a model: planning a scenario, asking a question in a role."""

from __future__ import annotations

import asyncio
from random import Random

from rich.console import Console

from envscaler.llm import ScriptedModel
from envscaler.offline.domains import domains
from envscaler.offline.plans import make_plan
from envscaler.offline.states import make_state
from envscaler.offline.wording import wording
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.roles.ask import ask
from envscaler.roles.role import Prompts
from perf.targets import Target
from perf.usage import Spent, measured


def report(console: Console) -> list[Target]:
    """Measure and print."""
    plans, asked = planning(100), asking(500)
    console.print(f"offline model, one scenario (state, task, plan): {plans.parent_s / 100 * 1e3:.1f} ms CPU")
    console.print(f"one question in a role, scripted model: {asked.parent_s / 500 * 1e3:.2f} ms CPU")
    return []


def planning(count: int) -> Spent:
    """State, task and plan of one scenario after another, by the offline model."""
    library = next(domain for domain in domains() if domain.slug == "library-lending")
    with measured() as spent:
        for index in range(count):
            state = make_state(library, seed=0, index=index, purpose="scenario")
            make_plan(library, state, Random(index), wording("en"), index=index)
    return spent


def asking(count: int) -> Spent:
    """A question in a role, rendered, answered by a scripted model, parsed and validated."""
    model, prompts = ScriptedModel(lambda request: '{"reason": "kept", "stateful": true}'), Prompts()

    async def all_of_them() -> None:
        for index in range(count):
            inputs = t.FilterTaskInputs(task=f"Cancel order {index}")
            await ask(model, roles.FILTER_TASK, inputs, prompts=prompts)

    with measured() as spent:
        asyncio.run(all_of_them())
    return spent
