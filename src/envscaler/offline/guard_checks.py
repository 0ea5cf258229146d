"""Checks of what has to stay: what a wrong decision would change, near-twins of the targets, and all the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from envscaler.offline.blueprint import EntityPlan
from envscaler.offline.check_code import check, condition
from envscaler.offline.difference import Difference
from envscaler.offline.goals import Evidence
from envscaler.offline.labels import names
from envscaler.offline.wording import telling_words
from envscaler.scenario import Check

_SPARED = 3
"""Records that a wrong decision would change and that get a check of their own."""
_NEAR = 3
"""Changed records of an entity beyond which nobody takes one for another."""


class GuardChecks:
    """The guards of a difference."""

    def __init__(self, difference: Difference, spared: Collection[Evidence]) -> None:
        """
        Args:
            spared: what a wrong decision would change.
        """
        self._difference = difference
        self._spared = spared

    def checks(self, most: int) -> Iterator[Check]:
        """At most so many, the most telling first: one who does nothing shall not look half done."""
        difference = self._difference
        touched = [entity for entity in difference.blueprint.entities if self._touched(entity)]
        # Where few fields change, the container that matters is the one that most of the changes are in.
        touched.sort(key=lambda entity: -len(difference.touched(entity)) - difference.added(entity))
        told = [*self._left_alone()]
        named = {key for key, _ in told}
        twin = next((found for key, found in self._twins(touched) if key not in named), None)
        new = [
            entity for entity in difference.blueprint.created if difference.added(entity) and entity.name not in named
        ]
        candidates = [
            *(found for _, found in told[:_SPARED]),
            *([twin] if twin is not None else []),
            *(self._others(entity) for entity in touched[:1] if self._has_others(entity)),
            *(self._no_more(entity) for entity in new[:1]),
        ]
        yield from candidates[: most - 1]
        yield self._rest()

    def _left_alone(self) -> Iterator[tuple[str, Check]]:
        """Records that a wrong decision would change or make, each with its check."""
        difference = self._difference
        for name, key in sorted({(entity, key) for entity, key, _ in self._spared}):
            entity = difference.blueprint.entity(name)
            if key not in difference.initial[entity.container]:
                yield name, self._no_more(entity)
            elif key not in difference.touched(entity):
                yield key, self._unchanged(entity, key)

    def _has_others(self, entity: EntityPlan) -> bool:
        return len(self._difference.initial[entity.container]) > len(self._difference.touched(entity))

    def _touched(self, entity: EntityPlan) -> bool:
        return bool(self._difference.touched(entity)) or self._difference.added(entity) > 0

    def _twins(self, touched: list[EntityPlan]) -> Iterator[tuple[str, Check]]:
        """The records that are most easily taken for those that a goal changes."""
        difference = self._difference
        for entity in touched:
            changed = difference.touched(entity)
            if not changed or len(changed) > _NEAR:
                continue
            common = telling_words(entity.label)
            targets = {word for key in changed for word in telling_words(difference.record(entity, key))} - common
            likeness = {
                key: len(targets & telling_words(name.text))
                for key, name in names(difference.blueprint, difference.initial, entity, difference.wording).items()
                if key not in changed
            }
            for key in sorted(likeness, key=lambda key: (-likeness[key], key)):
                if likeness[key] > 0:
                    yield key, self._unchanged(entity, key)

    def _unchanged(self, entity: EntityPlan, key: str) -> Check:
        difference = self._difference
        row = difference.initial[entity.container][key]
        tests = [condition("row", field, row[field.name], exact=True) for field in entity.fields if not field.stamp]
        joined = "".join(f"\n    and {test}" for test in tests)
        return check(
            difference.wording.say("check_twin", record=difference.record(entity, key)),
            [
                f"row = (final_state.get({entity.container!r}) or {{}}).get({key!r})",
                f"return (\n    isinstance(row, dict){joined}\n)",
            ],
        )

    def _others(self, entity: EntityPlan) -> Check:
        touched = sorted(self._difference.touched(entity))
        names_of = [field.name for field in entity.fields if not field.stamp]
        return check(
            self._difference.wording.say("check_others" if touched else "check_all", noun=entity.noun),
            [
                f"before = initial_state.get({entity.container!r}) or {{}}",
                f"after = final_state.get({entity.container!r}) or {{}}",
                "for key, row in before.items():",
                *([f"    if key in {touched!r}:", "        continue"] if touched else []),
                "    now = after.get(key)",
                "    if not isinstance(now, dict):",
                "        return False",
                f"    for field in {names_of!r}:",
                "        if now.get(field) != row.get(field):",
                "            return False",
                "return True",
            ],
        )

    def _no_more(self, entity: EntityPlan) -> Check:
        added = self._difference.added(entity)
        return check(
            self._difference.wording.say("check_no_more" if added else "check_none", noun=entity.noun),
            [
                f"before = initial_state.get({entity.container!r}) or {{}}",
                f"after = final_state.get({entity.container!r}) or {{}}",
                f"return len([key for key in after if key not in before]) <= {added}",
            ],
        )

    def _rest(self) -> Check:
        """Everything that no goal changes, in every container: an edit too many is never right."""
        difference = self._difference
        expected: dict[str, dict[str, list[str]]] = {}
        for change in difference.changes:
            expected.setdefault(change.entity.container, {}).setdefault(change.key, []).append(change.field.name)
        gone = {
            entity.container: keys for entity in difference.blueprint.entities if (keys := difference.removed(entity))
        }
        added = {
            entity.container: count for entity in difference.blueprint.entities if (count := difference.added(entity))
        }
        fields = {
            entity.container: [field.name for field in entity.fields if not field.stamp]
            for entity in difference.blueprint.entities
        }
        return check(
            difference.wording.say("check_rest"),
            [
                f"fields = {fields!r}",
                f"changed = {expected!r}",
                f"removed = {gone!r}",
                f"added = {added!r}",
                "for container, names in fields.items():",
                "    before = initial_state.get(container) or {}",
                "    after = final_state.get(container)",
                "    if not isinstance(after, dict):",
                "        return False",
                "    if len([key for key in after if key not in before]) > added.get(container, 0):",
                "        return False",
                "    for key, row in before.items():",
                "        if key in removed.get(container, []):",
                "            continue",
                "        now = after.get(key)",
                "        if not isinstance(now, dict):",
                "            return False",
                "        spared = set(names) - set(changed.get(container, {}).get(key, []))",
                "        if any(now.get(name) != row.get(name) for name in spared):",
                "            return False",
                "return True",
            ],
        )
