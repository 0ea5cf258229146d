"""`NameBook`: how records are named in the states that a plan passes through; each state is gone through once."""

from __future__ import annotations

from envscaler.offline.blueprint import Blueprint, EntityPlan
from envscaler.offline.labels import Name, names
from envscaler.offline.wording import Wording
from envscaler.state import State


class NameBook:
    """Names by state and entity. States must not be changed while the book is in use."""

    def __init__(self, blueprint: Blueprint, wording: Wording) -> None:
        self.blueprint = blueprint
        self.wording = wording
        self._known: dict[tuple[int, str], tuple[State, dict[str, Name]]] = {}

    def of(self, state: State, entity: EntityPlan) -> dict[str, Name]:
        """The records of an entity that can be named, by id."""
        # The state is kept with its names, so that no other one can come to have its identity.
        known = self._known.get((id(state), entity.name))
        if known is None:
            known = (state, names(self.blueprint, state, entity, self.wording))
            self._known[id(state), entity.name] = known
        return known[1]
