"""What a call of an update has to do to the state: records made, changed and removed, by its effects and parameters.

Source: ours. Where effects are declared, what they do not name must stay as it was, but for records that have to do
with what the call is about: a declaration forgets the entry of a journal, the stock of what is ordered, what goes with
what is deleted. Where none are declared, only the tool's verb and its parameters speak, and most is left to a judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from envscaler.env.meaning.made import Made
from envscaler.env.meaning.queries import Row, examine_returned, returned_by, rows_of
from envscaler.env.meaning.reading import attribute_of, properties_of, takes_several
from envscaler.env.meaning.said import Said, listed, shown
from envscaler.env.meaning.values import alike, changed_by, is_moment
from envscaler.skeleton import Attribute, Entity
from envscaler.state import JsonValue

_DAY = len("2025-01-31")


@dataclass(frozen=True)
class Moved:
    """What a call did to the records of one entity."""

    entity: Entity
    before: Mapping[str, Row]
    after: Mapping[str, Row]

    @property
    def added(self) -> list[str]:
        """Keys of new records."""
        return [key for key in self.after if key not in self.before]

    @property
    def removed(self) -> list[str]:
        """Keys of records that are gone."""
        return [key for key in self.before if key not in self.after]

    @property
    def changed(self) -> dict[str, list[str]]:
        """Attributes that have another value, by record."""
        found = {}
        for key, row in self.before.items():
            other = self.after.get(key, row)
            names = [name for name in {**row, **other} if name not in row or name not in other]
            names += [name for name in row if name in other and not _same(row[name], other[name])]
            if names:
                found[key] = names
        return found


def examine_update(said: Said, made: Made) -> None:
    """A tool that changes the state and said that it did."""
    moves = [
        Moved(entity, rows_of(made.before, entity), rows_of(made.after, entity))
        for entity in made.known.entities
        if entity.container is not None
    ]
    examination = _Update(said, made, moves)
    for moved in moves:
        examination.examine(moved)
    examination.examine_rest()


class _Update:
    def __init__(self, said: Said, made: Made, moves: list[Moved]) -> None:
        self._said = said
        self._made = made
        self._moves = moves
        self._read = made.read
        self._arguments = {name: value for name, value in made.arguments.items() if name in properties_of(made.tool)}
        self._several = takes_several(made.tool)
        self._as_told: set[str] = set()
        """Entities of which the record that is named has all that it was to get."""

    def examine(self, moved: Moved) -> None:
        """What became of the records of one entity."""
        name = moved.entity.name
        creates, deletes = self._read.creates.get(name, 0), self._read.deletes.get(name, 0)
        self._created(moved, creates)
        self._deleted(moved, deletes)
        self._changed(moved)

    # -- what no effect names --

    def _says(self, oracle: str, what: str, *, plausible: bool) -> None:
        """Say that a call did what its effects do not name; a model may have left out an effect that is right."""
        if plausible:
            self._said.remarks_on(oracle, what)
        else:
            self._said.finds(oracle, what)

    def _concern(self, moved: Moved, keys: Iterable[str]) -> bool:
        """Whether these records have to do with what the call is about: they are named, or refer to what is named, made
        or removed, or that refers to them."""
        return all(key in self._about or self._linked(key, moved) for key in keys)

    def _linked(self, key: str, moved: Moved) -> bool:
        texts = {text for rows in (moved.before, moved.after) for text in _texts(rows.get(key))}
        return bool((texts - {key}) & self._about) or key in self._mentioned

    @cached_property
    def _about(self) -> frozenset[str]:
        """Keys of the records that the call names, and of those that it made or removed as it is to."""
        read = self._read
        about = {key for keys in self._made.named.values() for key in keys}
        for moved in self._moves:
            name = moved.entity.name
            about |= set(moved.added if read.creates.get(name) else ())
            about |= set(moved.removed if read.deletes.get(name) else ())
        return frozenset(about)

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """Texts that those records hold, keys of others among them."""
        rows = [rows.get(key) for moved in self._moves for rows in (moved.before, moved.after) for key in self._about]
        return frozenset(text for row in rows for text in _texts(row))

    # -- made and removed --

    def _created(self, moved: Moved, wanted: int) -> None:
        entity, added = moved.entity, moved.added
        if wanted and not added and not self._several:
            # What is there already may be brought up to date instead, where that is declared or a key is named.
            certain = entity.name not in self._read.updates and not self._made.named.get(entity.container or "")
            overwritten = self._read.declared and bool(moved.changed) and entity.name not in self._read.updates
            if certain or overwritten:
                self._said.finds("created_none", f"said that it succeeded and made no {entity.name}")
            else:
                self._said.doubts_whether(f"whether a {entity.name} had to be made")
        elif wanted and len(added) > wanted and not self._several:
            what = f"made {len(added)} {entity.name} records: {listed(added)}"
            self._says("created_many", what, plausible=_differ([moved.after[key] for key in added], entity.key))
        elif added and not wanted and self._read.declared:
            what = f"made the {entity.name} {listed(added)}, which is none of its effects"
            self._says("created_other", what, plausible=self._concern(moved, added))
        elif added and not wanted:
            self._said.doubts_whether(f"whether the {entity.name} {listed(added)} had to be made")
        for key in added if wanted and not self._several else []:
            self._new(moved, key, alone=len(added) == wanted == 1)

    def _new(self, moved: Moved, key: str, *, alone: bool) -> None:
        """Whether a new record holds what the arguments say of it."""
        row = moved.after[key]
        told = set()
        for name, value in self._arguments.items():
            attribute = attribute_of(moved.entity, name)
            if attribute is None or attribute.name not in row or value is None:
                continue
            told.add(attribute.name)
            if alone and not alike(row[attribute.name], value):
                self._lost(moved.entity, key, attribute, value, row[attribute.name])
        left = [name for name in row if name not in told and name != moved.entity.key]
        if self._all_placed(moved.entity):
            left = [name for name in left if not self._is_initial(moved.entity, key, name, row[name])]
        if left:
            self._said.doubts_whether(f"whether {listed(left)} of the new {moved.entity.name} are right")

    def _all_placed(self, entity: Entity) -> bool:
        """Whether no argument could be about an attribute of the entity under another name."""
        pool = self._made.pool
        return all(attribute_of(entity, name) or pool.container(name) is not None for name in self._arguments)

    def _is_initial(self, entity: Entity, key: str, name: str, value: JsonValue) -> bool:
        """Whether a new record begins as its attribute says; what it has instead is wrong."""
        attribute = attribute_of(entity, name)
        initial = attribute.initial if attribute is not None else None
        if initial is None:
            return False
        now = self._made.before.get(initial.clock) if initial.clock is not None else None
        if isinstance(now, str):
            begins = isinstance(value, str) and value in (now, now[:_DAY])
        else:
            begins = _same(value, initial.value)
        if not begins:
            self._said.finds("other_value", f"left {shown(value)} as {name} of the new {entity.name} {key!r}")
        return True

    def _deleted(self, moved: Moved, wanted: int) -> None:
        entity, removed = moved.entity, moved.removed
        named = [key for key in self._made.named.get(entity.container or "", []) if key in moved.before]
        kept = [key for key in named if key in moved.after]
        if wanted and kept and not moved.changed and not self._several:
            self._said.finds("deleted_none", f"said that it succeeded and did not remove the {entity.name} {kept[0]!r}")
        elif wanted and named and kept and not self._several:
            self._said.doubts_whether(f"whether {kept[0]!r} had to be removed")
        elif wanted and not removed and not named:
            self._said.doubts_whether(f"whether a {entity.name} had to be removed")
        others = [key for key in removed if key not in named]
        if removed and not wanted and self._read.declared:
            what = f"removed the {entity.name} {listed(removed)}, which is none of its effects"
            self._says("deleted_other", what, plausible=self._concern(moved, removed))
        elif others and wanted == 1 and named and not self._several:
            what = f"was told to remove {listed(named)} and removed the {entity.name} {listed(others)}"
            self._says("deleted_other", what, plausible=self._concern(moved, others))
        elif others:
            self._said.doubts_whether(f"whether the {entity.name} {listed(others)} had to be removed")

    # -- changed --

    def _changed(self, moved: Moved) -> None:
        entity, changed = moved.entity, moved.changed
        container = entity.container or ""
        updates = self._read.updates.get(entity.name, 0)
        named = [key for key in self._made.named.get(container, []) if key in moved.before]
        if changed and not updates and self._read.declared:
            what = f"changed {_places(entity, changed)}, and no {entity.name} is among its effects"
            self._says("changed_other", what, plausible=self._concern(moved, changed))
            return
        others = {key: names for key, names in changed.items() if key not in named}
        if updates == 1 and named and others and not self._several:
            what = f"was told of {listed(sorted(set(named)))} and changed {_places(entity, others)}"
            self._says("changed_other", what, plausible=self._concern(moved, others))
            return
        if updates and len(set(named)) == 1 and named[0] in moved.after:
            self._set(moved, named[0], changed.get(named[0], []))
        elif changed:
            self._said.doubts_whether(f"whether {_places(entity, changed)} had to change so")

    def _set(self, moved: Moved, key: str, changed: list[str]) -> None:
        """Whether the record that the arguments name has what they say, and nothing else has changed in it."""
        entity = moved.entity
        allowed = self._read.sets.get(entity.name)
        old, new = moved.before[key], moved.after[key]
        told: set[str] = set()
        for name, value in self._arguments.items():
            attribute = attribute_of(entity, name)
            if attribute is None or attribute.name == entity.key or value is None or attribute.name not in new:
                continue
            if self._read.declared and (allowed is None or attribute.name not in allowed):
                continue
            if not self._read.declared and not self._is_plain_setter(entity, name):
                continue
            told.add(attribute.name)
            if not changed_by(old.get(attribute.name), new[attribute.name], value):
                self._lost(entity, key, attribute, value, new[attribute.name])
            elif not alike(new[attribute.name], value):
                self._said.doubts_whether(f"whether {attribute.name} of {key!r} is right: {shown(new[attribute.name])}")
        beyond = [name for name in changed if allowed is not None and name not in allowed]
        if beyond and allowed is not None and not allowed & set(changed):
            what = f"changed {listed(beyond)} of {entity.name} {key!r} and not {listed(sorted(allowed))}"
            # What has the value already that it is set to stays, and the time at which that was done does not.
            self._says("changed_other", what, plausible=bool(told) or all(is_moment(new.get(name)) for name in beyond))
            return
        if allowed is not None and allowed <= told:
            self._as_told.add(entity.name)
        left = [name for name in changed if name not in told]
        if left:
            self._said.doubts_whether(f"whether {listed(left)} of {entity.name} {key!r} had to change so")
        unchanged = sorted((allowed or frozenset()) - set(changed) - told)
        if unchanged:
            self._said.doubts_whether(f"whether {listed(unchanged)} of {entity.name} {key!r} had to change")

    def _is_plain_setter(self, entity: Entity, parameter: str) -> bool:
        """Whether a tool without declared effects can only mean to set an attribute: `set_`, or a `new_` value."""
        return self._made.tool.name.startswith("set_") or parameter.startswith("new_")

    def _lost(self, entity: Entity, key: str, attribute: Attribute, given: JsonValue, held: JsonValue) -> None:
        place = f"{attribute.name} of the {entity.name} {key!r}"
        if isinstance(held, type(given)) or (isinstance(held, (int, float)) and isinstance(given, (int, float))):
            self._said.finds("other_value", f"was given {shown(given)} and left {shown(held)} as {place}")
        else:
            self._said.doubts_whether(f"whether {place} may be {shown(held)} when {shown(given)} was given")

    # -- everything else --

    def examine_rest(self) -> None:
        """What lies outside the records, and what the result says of them."""
        before, after, moves = self._made.before, self._made.after, self._moves
        containers = {moved.entity.container for moved in moves}
        others = [
            key for key in {**before, **after} if key not in containers and not _same(before.get(key), after.get(key))
        ]
        grown = any(moved.added for moved in moves)
        unexplained = [key for key in others if not (grown and _counted(before.get(key), after.get(key)))]
        if unexplained:
            self._said.doubts_whether(f"whether {listed(unexplained)} had to change")
        moved = others or any(moved.added or moved.removed or moved.changed for moved in moves)
        if not moved and not self._is_there_already:
            self._said.doubts_whether("whether it may succeed without an effect")
        self._told(self._made.result)

    @property
    def _is_there_already(self) -> bool:
        """Whether all that the tool is to do is to set what has that value."""
        read = self._read
        return read.declared and not read.creates and not read.deletes and self._as_told >= read.updates.keys()

    def _told(self, result: JsonValue) -> None:
        for moved in self._moves:
            returned = returned_by(result, moved.entity, moved.after) if _speaks_of(result, moved.entity) else None
            for key, row in returned or ():
                held = moved.after.get(key) or moved.before.get(key)
                # A tool may show a record as it was, or one that it has just removed.
                if held is None or row is None or _shows(row, moved.before.get(key)):
                    continue
                examine_returned(self._said, moved.entity, [(key, row)], {key: held})


def _differ(rows: list[Row], key: str | None) -> bool:
    """Whether no two of the records are the same but for their keys."""
    kept = [{name: value for name, value in row.items() if name != key} for row in rows]
    return all(one != other for index, one in enumerate(kept) for other in kept[:index])


def _texts(value: JsonValue | Row) -> Iterator[str]:
    """All texts in a value, keys of objects left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _speaks_of(result: JsonValue, entity: Entity) -> bool:
    """Whether the result is a record of the entity: it has its key and all its attributes."""
    part = result.get("data") if isinstance(result, dict) else None
    return isinstance(part, dict) and all(attribute.name in part for attribute in entity.attributes)


def _shows(row: Row, held: Row | None) -> bool:
    return held is not None and all(name not in held or alike(value, held[name]) for name, value in row.items())


def _counted(before: JsonValue, after: JsonValue) -> bool:
    """Whether a number for the next record went up."""
    return isinstance(before, int) and isinstance(after, int) and after > before


def _same(left: JsonValue, right: JsonValue) -> bool:
    return type(left) is type(right) and left == right


def _places(entity: Entity, changed: Mapping[str, list[str]]) -> str:
    return listed(list(_named_places(entity, changed)))


def _named_places(entity: Entity, changed: Mapping[str, list[str]]) -> Iterator[str]:
    for key, names in changed.items():
        yield f"{listed(names)} of {entity.name} {key!r}"
