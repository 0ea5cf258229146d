"""What a call of a tool that gets or lists records has to return, given the state that it read.

Source: ours. What is ambiguous (a filter by a number may mean "at least", a list may hide what is archived) is left to
a judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from envscaler.env.meaning.made import Made
from envscaler.env.meaning.reading import Reading, attribute_of, bound_of, is_limit, joined, referring
from envscaler.env.meaning.said import Said, listed, shown
from envscaler.env.meaning.values import Fit, alike, fit, less, ordered
from envscaler.skeleton import Attribute, Entity
from envscaler.state import JsonValue, State

Row = Mapping[str, JsonValue]
Returned = list[tuple[str, Row | None]]
"""Keys of the records in a result, each with what was said of it."""
_BESIDE = frozenset({"success", "message", "error", "count", "total"})
_SHARED = (str, bool, int, float, type(None))


def rows_of(state: State, entity: Entity) -> dict[str, Row]:
    """The records of an entity; empty where its container holds something else."""
    container = state.get(entity.container or "")
    return {key: row for key, row in container.items() if isinstance(row, dict)} if isinstance(container, dict) else {}


def returned_by(result: JsonValue, entity: Entity, rows: Mapping[str, Row]) -> Returned | None:
    """The records in a result; None where they cannot be told from what else is in it."""
    if entity.key is None or not isinstance(result, dict):
        return None
    parts = [part for name, part in result.items() if name not in _BESIDE]
    if "data" in result:
        parts = [result["data"]]
    return _records(parts[0], entity.key, rows, 0) if len(parts) == 1 else None


def _records(part: JsonValue, key: str, rows: Mapping[str, Row], depth: int) -> Returned | None:
    if isinstance(part, list):
        found: Returned = []
        for element in part:
            if isinstance(element, dict) and isinstance(element.get(key), str):
                found.append((element[key], element))
            elif isinstance(element, str) and element in rows:
                found.append((element, None))
            else:
                return None
        return found
    if not isinstance(part, dict):
        return None
    if isinstance(part.get(key), str):
        return [(part[key], part)]
    if part and all(isinstance(value, dict) and value.get(key) == name for name, value in part.items()):
        return list(part.items())
    inner = [value for name, value in part.items() if name not in _BESIDE and isinstance(value, (list, dict))]
    return _records(inner[0], key, rows, depth + 1) if len(inner) == 1 and depth == 0 else None


def examine_returned(said: Said, entity: Entity, returned: Returned, rows: Mapping[str, Row]) -> None:
    """Whether what is said of each record is what the state holds of it."""
    for key, told in returned:
        if key not in rows:
            said.finds("returned_other", f"returned the {entity.name} {key!r}, which does not exist")
            continue
        for attribute in entity.attributes:
            name = attribute.name
            if told is None or name not in told or name not in rows[key] or alike(told[name], rows[key][name]):
                continue
            got, held = shown(told[name]), shown(rows[key][name])
            if _of_one_type(told[name], rows[key][name]):
                said.finds("returned_other", f"returned {got} as {name} of {entity.name} {key!r}; it is {held}")
            else:
                said.doubts_whether(f"whether {got} may be returned as {name} of {key!r}, which is {held}")


def examine_get(said: Said, made: Made) -> None:
    """A tool that gets one record by its key."""
    entity = made.read.entity
    assert entity is not None  # a `get` has one
    wanted = next(iter(made.arguments.values()), None)
    rows = rows_of(made.before, entity)
    returned = returned_by(made.result, entity, rows)
    if returned is None or not isinstance(wanted, str):
        said.doubts_whether(f"whether the result tells of the {entity.name} asked for")
        return
    examine_returned(said, entity, returned, rows)
    if [key for key, _ in returned] != [wanted]:
        said.finds("returned_other", f"was asked for {wanted!r} and returned {shown([key for key, _ in returned])}")
    elif returned[0][1] is None or not all(attribute.name in returned[0][1] for attribute in entity.attributes):
        said.doubts_whether("whether what was left out of the record should be there")


def examine_list(said: Said, made: Made) -> None:
    """A tool that lists records, all or those that fit its parameters."""
    entity = made.read.entity
    assert entity is not None  # a `list` has one
    rows = rows_of(made.before, entity)
    returned = returned_by(made.result, entity, rows)
    if returned is None:
        said.doubts_whether(f"which {entity.name} records the result tells of")
        return
    examine_returned(said, entity, returned, rows)
    keys = [key for key, _ in returned]
    if len(set(keys)) < len(keys):
        said.finds("returned_twice", f"returned the same {entity.name} more than once")
    filters = _Filters(said, made, entity)
    filters.examine({key: rows[key] for key in keys if key in rows})
    limit = filters.limit
    if limit is not None and len(keys) > limit:
        said.finds("limit_exceeded", f"was asked for {limit} records at most and returned {len(keys)}")
    _examine_missing(said, made.read, entity, filters, keys, rows)


def _examine_missing(
    said: Said, read: Reading, entity: Entity, filters: _Filters, keys: list[str], rows: Mapping[str, Row]
) -> None:
    left_out = {key: filters.fit(row) for key, row in rows.items() if key not in keys}
    if filters.limit is not None and len(keys) >= filters.limit:
        left_out = {}
    missing = [key for key, how in left_out.items() if how == "exactly"]
    perhaps = [key for key, how in left_out.items() if how == "perhaps"]
    if filters.blank and not keys:
        return
    certain = read.whole and not filters.unclear and not (filters.blank and missing)
    if missing and certain and not filters.bounded and not _set_apart(entity, missing, keys, rows):
        said.finds("list_incomplete", f"left out {listed(missing)}, which fit what was asked for")
    elif missing or (perhaps and not filters.unclear):
        said.doubts_whether(f"whether {listed(missing or perhaps)} had to be left out")
    elif not certain:
        said.doubts_whether(f"whether these are the {entity.name} records that were asked for")


def _set_apart(entity: Entity, missing: list[str], keys: list[str], rows: Mapping[str, Row]) -> bool:
    """Whether the records left out have in common what no returned one has: a tool may hide what is archived."""
    for attribute in entity.attributes:
        hidden = [rows[key].get(attribute.name) for key in missing]
        seen = [rows[key].get(attribute.name) for key in keys if key in rows]
        closed = attribute.enum is not None or attribute.type.startswith("bool")
        if closed and hidden[0] not in seen and all(value == hidden[0] for value in hidden):
            return True
        if len({value is None for value in hidden}) == 1 and (hidden[0] is None) not in {one is None for one in seen}:
            return True
    return False


class _Filters:
    """What a list's arguments ask of a record."""

    def __init__(self, said: Said, made: Made, entity: Entity) -> None:
        self._said = said
        self._asked: list[tuple[str, JsonValue, Callable[[Row], Fit]]] = []
        self.limit: int | None = None
        self.unclear = False
        """Whether there is an argument of which it cannot be told what it asks for."""
        self.blank = False
        """Whether an argument is empty, which may ask for nothing or restrict nothing."""
        self.bounded = False
        """Whether an argument may be a bound, of which it cannot be told whether it belongs to what is asked for."""
        for name, value in made.arguments.items():
            if value is not None:
                self._read(made, entity, name, value)

    def _read(self, made: Made, entity: Entity, name: str, value: JsonValue) -> None:
        attribute = attribute_of(entity, name)
        other = made.known.of_container(made.pool.container(name))
        if attribute is None and other is not None and not joined(made.known, entity, other):
            attribute = referring(entity, other)
        bound = bound_of(entity, name)
        if is_limit(name) and isinstance(value, int):
            self.limit = value
        elif bound is not None and attribute is None:
            self.bounded = True
            self._asked.append((name, value, _bounding(*bound, value)))
        elif attribute is not None and (value in ("", []) or (isinstance(value, str) and not value.strip())):
            self.blank = True
        elif attribute is None or value is False or value in ("all", "any", "*"):
            self.unclear = True
        else:
            self.bounded = self.bounded or (ordered(value) and attribute.references is None)
            self._asked.append((name, value, _holding(entity, attribute, value)))

    def fit(self, row: Row) -> Fit:
        """How a record fits all that is asked for."""
        fits = [test(row) for _, _, test in self._asked]
        return "no" if "no" in fits else "perhaps" if "perhaps" in fits else "exactly"

    def examine(self, returned: Mapping[str, Row]) -> None:
        """Whether the records that were returned fit."""
        for name, value, test in self._asked:
            strangers = [key for key, row in returned.items() if test(row) == "no"]
            doubtful = [key for key, row in returned.items() if test(row) == "perhaps"]
            if strangers:
                self._said.finds(
                    "filter_ignored", f"returned {listed(strangers)}, which {name}={shown(value)} does not fit"
                )
            elif doubtful and self._both_sides(name, value, [returned[key] for key in doubtful]):
                self._said.finds(
                    "filter_ignored", f"returned records on both sides of {name}={shown(value)}: {listed(doubtful)}"
                )
            elif doubtful and ordered(value):
                self._said.doubts_whether(f"whether {listed(doubtful)} fit {name}={shown(value)}")

    @staticmethod
    def _both_sides(name: str, value: JsonValue, rows: Iterable[Row]) -> bool:
        sides = {less(row[name], value) for row in rows if name in row}
        return ordered(value) and {True, False} <= sides


def _holding(entity: Entity, attribute: Attribute, value: JsonValue) -> Callable[[Row], Fit]:
    closed = attribute.enum is not None or attribute.references is not None or attribute.name == entity.key

    def fits(row: Row) -> Fit:
        found = fit(row.get(attribute.name), value)
        # A part of an id, or of a word of a closed list, is nothing that anybody asks for.
        return "no" if closed and found == "perhaps" else found

    return fits


def _bounding(side: str, attribute: Attribute, value: JsonValue) -> Callable[[Row], Fit]:
    def fits(row: Row) -> Fit:
        held = row.get(attribute.name)
        below = less(held, value)
        if below is None:
            return "perhaps"
        if alike(held, value):
            return "perhaps"
        return "exactly" if below == (side == "max") else "no"

    return fits


def _of_one_type(left: JsonValue, right: JsonValue) -> bool:
    return (isinstance(left, _SHARED) and isinstance(right, _SHARED)) or type(left) is type(right)
