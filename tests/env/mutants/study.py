"""`Study`: how many mutants are found, how many are left to a judge, and what is alleged of sound tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from envscaler.env.examination import examine_tools
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton

from .grow import Mutant, differs, mutants
from .programs import Sound
from .structural import STRUCTURAL

Verdict = Literal["found", "judge", "passed"]
_WRITERS = 2
"""Updates of the same records that are tried together with a query."""


@dataclass
class Study:
    """Verdicts on mutants, by kind and by whether what they violate is machine-readable."""

    verdicts: Counter[tuple[str, bool, Verdict]] = field(default_factory=Counter)
    tools: int = 0
    """Sound tools that were examined."""
    alarms: list[str] = field(default_factory=list)
    """What was found of sound tools, by program and tool."""

    def rate(self, kinds: Sequence[str], *, readable: bool | None = None) -> float:
        """Share of the mutants of these kinds that is found."""
        counted = {key: count for key, count in self.verdicts.items() if key[0] in kinds and readable in (None, key[1])}
        found = sum(count for key, count in counted.items() if key[2] == "found")
        return found / sum(counted.values()) if counted else 1.0

    def count(self, kind: str, readable: bool, verdict: Verdict) -> int:
        """How many mutants there are."""
        return self.verdicts[kind, readable, verdict]

    @property
    def passed(self) -> int:
        """Mutants whose tool was said to be right."""
        return sum(count for key, count in self.verdicts.items() if key[2] == "passed")

    @property
    def false_alarms(self) -> float:
        """Share of the sound tools of which something was found."""
        return len({alarm.partition(":")[0] for alarm in self.alarms}) / self.tools if self.tools else 0.0

    def table(self) -> str:
        """The table in Markdown."""
        lines = [
            "| fault | mutants | found | machine-readable | of these found | left to a judge | passed |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        for kind in dict.fromkeys(key[0] for key in self.verdicts):
            verdicts: tuple[Verdict, ...] = ("found", "judge", "passed")
            told = {(one, other): self.verdicts[kind, one, other] for one in (True, False) for other in verdicts}
            total, read = sum(told.values()), sum(count for key, count in told.items() if key[0])
            found = told[True, "found"] + told[False, "found"]
            judged = told[True, "judge"] + told[False, "judge"]
            passed = told[True, "passed"] + told[False, "passed"]
            lines.append(f"| {kind} | {total} | {found} | {read} | {told[True, 'found']} | {judged} | {passed} |")
        return "\n".join(lines)

    async def add(
        self, kind: str, sound: Sequence[Sound], count: int, sandbox: Sandbox, told: Callable[[str], None] = print
    ) -> None:
        """Examine `count` mutants of a kind; one in which nothing is found counts if it differs from the original."""
        counted = 0
        for mutant in mutants(kind, sound):
            if counted == count:
                break
            verdict = await examined(mutant, sandbox)
            if verdict == "found" or await differs(mutant, sandbox):
                counted += 1
                readable = mutant.readable or kind in STRUCTURAL
                self.verdicts[kind, readable, verdict] += 1
                told(f"{verdict:6} {kind}, {'readable' if readable else 'not readable'}: {mutant.place}")

    async def add_sound(self, sound: Sound, sandbox: Sandbox, *, only: Sequence[str] | None = None) -> None:
        """Examine a sound program."""
        seen = await examine_tools(sound.skeleton, sound.state, sandbox, only=only, rounds=3, clock=sound.clock)
        for name, one in seen.items():
            self.tools += one.calls > 0
            self.alarms += [f"{sound.skeleton.id}/{name}: {found.detail}" for found in one.findings.values()]


async def examined(mutant: Mutant, sandbox: Sandbox) -> Verdict:
    """What becomes of a mutant; what examines it is shown nothing but the mutant."""
    seen = await examine_tools(
        mutant.skeleton,
        mutant.sound.state,
        sandbox,
        only={mutant.tool, *_writers(mutant.skeleton, mutant.tool)},
        rounds=3,
        clock=mutant.sound.clock,
        stop_early=True,
    )
    if any(one.findings for one in seen.values()):
        return "found"
    return "judge" if seen[mutant.tool].needs_judge else "passed"


def _writers(skeleton: EnvSkeleton, name: str) -> list[str]:
    """Updates that write what a query reads, those first that make records."""
    tool = skeleton.tool(name)
    if tool is None or tool.effect == "update":
        return []
    read = {effect.entity for effect in tool.effects or ()}
    found = [
        (["create", "delete", "update"].index(effect.kind), other.name)
        for other in skeleton.tools
        for effect in other.effects or ()
        if effect.kind != "read" and effect.entity in read
    ]
    return list(dict.fromkeys(other for _, other in sorted(found)))[:_WRITERS]
