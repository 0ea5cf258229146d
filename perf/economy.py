"""What design and program of an environment take in tokens: one call a method against several a call.

The offline model writes, so that the figures are the same everywhere; a token is four characters. Its methods need no
mending, and so are not tried here. What is paid for assessment and scenarios is not looked at.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from envscaler.llm.chat import Completion, ModelRequest
from envscaler.models import ModelSettings, open_models
from envscaler.offline.domains import domains
from envscaler.offline.model import OfflineModel
from envscaler.program import class_name_of
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.skeleton import EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.design import design
from envscaler.synth.methods import MethodWriter
from envscaler.synth.settings import METHODS_PER_CALL
from perf.targets import Target

_CHARACTERS = 4
"""Of a token, about, in English and Python."""
_ENVIRONMENTS = 5
_CACHED_PRICE = 0.1
"""Of a token that a prompt cache holds, as a share of one that it does not."""


class CountingModel(OfflineModel):
    """The offline model, which counts what an endpoint would have been sent and would have written."""

    needs_messages = True

    def __init__(self) -> None:
        self._sent: list[str] = []
        self.calls = 0
        self.input = 0
        """Characters."""
        self.cached = 0
        """Characters of the input that an earlier prompt of the environment began with as well."""
        self.output = 0

    async def complete(self, request: ModelRequest) -> Completion:
        completion = await super().complete(request)
        sent = "\n".join(message.content for message in request.messages)
        self.calls += 1
        self.input += len(sent)
        self.cached += max((_alike(sent, earlier) for earlier in self._sent), default=0)
        self.output += len(completion.message.content)
        self._sent.append(sent)
        return completion


@dataclass(frozen=True)
class Taken:
    """What one environment took, in tokens."""

    calls: int
    input: float
    cached: float
    output: float

    @property
    def plain(self) -> float:
        """All tokens alike."""
        return self.input + self.output

    @property
    def discounted(self) -> float:
        """Cached ones at their price."""
        return self.plain - self.cached * (1 - _CACHED_PRICE)


def report(console: Console) -> list[Target]:
    """Measure and print."""
    table = Table(
        "design and program, tokens", "calls", "in", "of it cached", "out", "all", "cached at a tenth", box=None
    )
    described = [
        EnvDescription(summary=one.summary, introduction=one.introduction) for one in domains()[:_ENVIRONMENTS]
    ]
    naive, ours = (asyncio.run(_taken(described, count)) for count in (1, METHODS_PER_CALL))
    for name, taken in (("one call a method", naive), (f"{METHODS_PER_CALL} methods a call", ours)):
        figures = (taken.input, taken.cached, taken.output, taken.plain, taken.discounted)
        table.add_row(name, f"{taken.calls}", *(f"{figure:,.0f}" for figure in figures))
    table.add_row(
        "second ÷ first", "", "", "", "", f"{ours.plain / naive.plain:.2f}", f"{ours.discounted / naive.plain:.2f}"
    )
    console.print(
        f"{len(described)} environments, mean of each; the last figure against the first row without discount"
    )
    console.print(table)
    return []


async def _taken(described: list[EnvDescription], methods_per_call: int) -> Taken:
    """The mean over environments."""
    each: list[Taken] = []
    for description in described:
        model = CountingModel()
        async with open_models(ModelSettings(), offline=model) as models:
            asking = Asking(models, Prompts(), 3)
            made = await design(description, (), "en", asking)
            known = t.WriteClassInputs(
                description=description, entities=made.entities, rules=made.rules, tools=made.tools
            )
            source = (await asking(roles.WRITE_CLASS, known)).source
            writer = MethodWriter(
                known, class_source=source, class_name=class_name_of(source), per_call=methods_per_call, asking=asking
            )
            written, _ = await writer.write([t.MethodQuestion(tool=tool) for tool in made.tools])
            assert len(written) == len(made.tools)
        each.append(Taken(model.calls, *(n / _CHARACTERS for n in (model.input, model.cached, model.output))))
    count = len(each)
    return Taken(
        round(sum(one.calls for one in each) / count),
        sum(one.input for one in each) / count,
        sum(one.cached for one in each) / count,
        sum(one.output for one in each) / count,
    )


def _alike(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    alike, differ = 0, min(len(first), len(second)) + 1
    while differ - alike > 1:
        middle = (alike + differ) // 2
        if first[alike:middle] == second[alike:middle]:
            alike = middle
        else:
            differ = middle
    return alike
