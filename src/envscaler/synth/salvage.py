"""`Salvage`: what can still be had of a method that stays faulty, at the price of rules that it does not enforce.

It is written anew without rules; else the refusal that fails is taken out of it. When neither helps the tool is lost,
which is the caller's business, as is what else is tried before.

Source: ours. Small models fail nearly only at rules: written without them, four of five methods work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from envscaler.program.refusals import Refusal, refusals_of, rule_behind, without_refusal
from envscaler.skeleton import Rule, ToolSpec
from envscaler.synth.methods import MethodWriter

_DEEPEST = 2
"""Refusals taken out of one method at most."""

FaultOf = Callable[[str, str], Awaitable[str | None]]
"""What is gravely wrong with a source for the method of a name, or None."""


@dataclass(frozen=True)
class Salvaged:
    """A method that works, and what it lost."""

    tool: str
    source: str
    unenforced: tuple[str, ...]
    """Texts of the rules that it does not enforce, as far as known."""
    told: str
    """One sentence for the record."""


class Salvage:
    """Salvages methods of one environment."""

    def __init__(self, rules: Sequence[Rule], writer: MethodWriter, fault_of: FaultOf) -> None:
        self._rules = tuple(rules)
        self._writer = writer
        self._fault_of = fault_of
        self._written_anew: set[str] = set()

    async def of(self, tool: ToolSpec, source: str, fault: str) -> Salvaged | None:
        """A method for the tool that works; None when there is none.

        Args:
            source: the last one, which has the fault.
        """
        candidates = [source]
        if tool.name not in self._written_anew:
            self._written_anew.add(tool.name)
            anew = await self._writer.with_fewer_rules(tool, ())
            if anew is not None and await self._fault_of(tool.name, anew) is None:
                unenforced = self._lost(tool, source, anew)
                told = f"tool {tool.name}: written without rules, because {_short(fault)}"
                return Salvaged(tool.name, anew, unenforced, told + _not_enforced(unenforced))
            if anew is not None:
                candidates.append(anew)
        for candidate in candidates:
            found = await self._loosened(tool.name, candidate, ())
            if found is not None:
                loosened, removed = found
                unenforced = self._behind(removed)
                conditions = " and ".join(f"`if {one.condition}`" for one in removed)
                told = f"tool {tool.name}: the refusal {conditions} was taken out, because {_short(fault)}"
                return Salvaged(tool.name, loosened, unenforced, told + _not_enforced(unenforced))
        return None

    async def _loosened(
        self, name: str, source: str, removed: tuple[Refusal, ...]
    ) -> tuple[str, tuple[Refusal, ...]] | None:
        """The method without the fewest refusals, in the order of the source, without which it works."""
        shorter = [
            (left, (*removed, refusal))
            for refusal in refusals_of(source, name)
            if (left := without_refusal(source, refusal)) is not None
        ]
        for left, without in shorter:
            if await self._fault_of(name, left) is None and await self._fails_by_itself(name, source, without[-1]):
                return left, without
        if len(removed) + 1 < _DEEPEST:
            for left, without in shorter:
                found = await self._loosened(name, left, without)
                if found is not None:
                    return found
        return None

    async def _fails_by_itself(self, name: str, source: str, refusal: Refusal) -> bool:
        """Whether it is the condition that fails: a refusal that comes too late is right and must stay."""
        evaluated = without_refusal(source, refusal, keep_condition=True)
        return evaluated is not None and await self._fault_of(name, evaluated) is not None

    def _lost(self, tool: ToolSpec, before: str, now: str) -> tuple[str, ...]:
        """Rules that the method was to enforce, or enforced before, and does not seem to enforce now."""
        named = [rule.text for rule in self._rules if tool.name in rule.tools]
        tried = self._behind(refusals_of(before, tool.name))
        kept = self._behind(refusals_of(now, tool.name))
        return tuple(rule.text for rule in self._rules if rule.text in {*named, *tried} - {*kept})

    def _behind(self, refusals: Sequence[Refusal]) -> tuple[str, ...]:
        texts = [rule.text for rule in self._rules]
        found = [rule_behind(refusal, texts) for refusal in refusals]
        return tuple(dict.fromkeys(texts[index] for index in found if index is not None))


def _not_enforced(rules: tuple[str, ...]) -> str:
    return f"; not enforced: {' '.join(rules)}" if rules else ""


def _short(fault: str) -> str:
    return " ".join(fault.split())[:300]
