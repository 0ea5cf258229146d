"""`Made`: one call that was made, with all that its oracles look at.

What is found of it is the business of the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from envscaler.env.meaning.reading import Known, Reading, ids_named, misfit, reading
from envscaler.messages import ToolCall
from envscaler.probe.pool import Pool
from envscaler.sandbox import Outcome
from envscaler.skeleton import Rule, ToolSpec
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Made:
    """One call: what was known, what was asked, what came back, and the states around it."""

    known: Known
    tool: ToolSpec
    call: ToolCall
    outcome: Outcome
    before: State
    after: State

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        """What was asked."""
        return self.call.arguments

    @property
    def result(self) -> JsonValue:
        """What came back; None with a fault."""
        return self.outcome.result

    @cached_property
    def pool(self) -> Pool:
        """Values of the state before it; it knows which parameters hold keys."""
        return self.known.pool(self.before)

    @cached_property
    def read(self) -> Reading:
        """What the tool does, as far as it can be read."""
        return reading(self.known, self.tool, self.pool)

    @cached_property
    def named(self) -> Mapping[str, list[str]]:
        """The ids that the arguments name, by container."""
        return ids_named(self.known, self.tool, self.arguments, self.pool)

    @cached_property
    def unknown(self) -> Mapping[str, list[str]]:
        """Those of them that no record has, by container."""
        missing = {
            container: [key for key in keys if key not in self.before.get(container, {})]
            for container, keys in self.named.items()
            if isinstance(self.before.get(container), dict)
        }
        return {container: keys for container, keys in missing.items() if keys}

    def forbids(self, rule: Rule) -> bool | None:
        """Whether a rule forbids the call; None: it cannot be read so, or the call names no record that it is about."""
        forbidden = rule.forbidden
        entity = self.known.entity(forbidden.entity) if forbidden is not None else None
        if forbidden is None or entity is None or entity.container is None or not self.named.get(entity.container):
            return None
        records = self.before.get(entity.container, {})
        named = [records[key] for key in self.named[entity.container] if key in records]
        return any(record.get(forbidden.attribute) == forbidden.value for record in named)

    @cached_property
    def misfit(self) -> bool:
        """Whether the schema of the tool refuses the arguments, so that an environment does not let them through."""
        return misfit(self.tool, self.arguments)
