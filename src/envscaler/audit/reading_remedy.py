"""`find_remedy`: what would have to be otherwise in a final state for a check to hold of it.

Candidate values come from other states of the scenario and, where these have none, from the text of the check; a change
counts only where the check was seen to hold with it. Which call would make it is not
this module's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations, islice

from envscaler.audit.explain_records import FoundIn
from envscaler.audit.reading import Reader
from envscaler.audit.reading_places import changes_between, keys_of_records, records, same_value, touches, value_at
from envscaler.editing import edit
from envscaler.state import Change, JsonValue, State, edits_of, leaves, pointer_of, tokens

_PAIRS_OF = 60
"""Changes beyond which pairs of them are not tried."""
_ONE_BY_ONE = 1_000
"""Changes beyond which none is left out one by one: the states have little in common."""
_NEW_KEY = "a new record"


@dataclass(frozen=True)
class Found:
    """A smallest set of changes that was found."""

    changes: tuple[Change, ...]
    found_in: FoundIn


async def find_remedy(
    reader: Reader, final: State, states: Sequence[tuple[FoundIn, State]], touched: Sequence[str]
) -> Found | None:
    """A smallest set of changes found under which the check holds of the final state.

    Where there is one, it leaves what the other checks say as it is.

    Args:
        states: to take values from; of equally small remedies that of an earlier one is taken.
        touched: places that the episode changed; of equal remedies the one at such a place is taken.
    """
    for asked in (reader, reader.alone()):
        best: Found | None = None
        for found_in, state in states:
            changes = await _smallest(asked, final, changes_between(final, state), touched)
            if changes and (best is None or len(changes) < len(best.changes)):
                best = Found(tuple(changes), found_in)
        best = best if best is not None else await _from_text(asked, final, touched)
        if best is not None:
            return best
    return None


async def _smallest(
    reader: Reader, final: State, changes: Sequence[Change], touched: Sequence[str]
) -> list[Change] | None:
    """A smallest part of the changes with which the check holds; None when it does not hold with all of them."""
    if not changes or not (await reader.holds(final, [changes]))[0]:
        return None
    # What nobody would miss is left out first: places that the check does not name and that the episode left alone.
    ranked = sorted(
        changes,
        key=lambda change: (
            not set(tokens(change.pointer)) & reader.text.names,
            not any(touches(change.pointer, place) for place in touched),
        ),
    )
    for size in (1, 2):
        if size == 1 or len(ranked) <= _PAIRS_OF:
            groups = [list(group) for group in combinations(ranked, size)]
            groups = groups[: reader.trials]
            for group, holds in zip(groups, await reader.holds(final, groups), strict=True):
                if holds:
                    return group
    kept = list(ranked)
    for change in list(reversed(ranked))[:_ONE_BY_ONE]:
        without = [one for one in kept if one is not change]
        if without and (await reader.holds(final, [without]))[0]:
            kept = without
    return kept


async def _from_text(reader: Reader, final: State, touched: Sequence[str]) -> Found | None:
    groups = [list(group) for group in islice(_worded(reader, final, touched), reader.trials)]
    for group, holds in zip(groups, await reader.holds(final, groups), strict=True):
        if holds:
            changes = await _smallest(reader, final, group, touched)
            return Found(tuple(changes), "text") if changes else None
    return None


def _worded(reader: Reader, final: State, touched: Sequence[str]) -> Iterator[list[Change]]:
    """Groups of changes that the check's text suggests, the most telling first."""
    names, wanted = reader.text.names, reader.text.wanted
    rows = [row for row in records(final) if row[0] in names] or list(records(final))
    # Names of containers and fields are no values, wherever a text has them.
    keys = set(final).union(*(row for _, _, row in rows))
    literals = [value for value in reader.text.literals if value not in keys]
    ids = keys_of_records(final)
    rows.sort(
        key=lambda row: (
            row[1] not in names,
            not any(touches(pointer_of(row[0], row[1]), place) for place in touched),
            -sum(field in row[2] and row[2][field] == value for field, value in wanted),
        )
    )
    for container, key, row in rows:
        asked = {field: value for field, value in wanted if field in row and not same_value(row[field], value)}
        if asked:
            yield [_set(final, pointer_of(container, key, field), value) for field, value in asked.items()]
    for container, key, row in rows:
        for field in row:
            if field in names:
                pointer = pointer_of(container, key, field)
                yield from ([_set(final, pointer, value)] for value in literals if _fits(value, row[field], ids))
                inside = {name: value for name, value in wanted if name not in row}
                if inside and not isinstance(row[field], dict):
                    yield [_set(final, pointer, inside)]
    for path, value in leaves(final):
        if len(path) == 1 and path[0] in names:
            pointer = pointer_of(*path)
            yield from ([_set(final, pointer, literal)] for literal in literals if _fits(literal, value, ids))
    for container, key, row in rows:
        if key in names:
            yield [Change(pointer=pointer_of(container, key), kind="removed", before=row)]
    for field, value in wanted:
        # What is asked of several records at once, which ones is found by leaving out.
        places = [pointer_of(container, key, field) for container, key, row in rows if field in row]
        yield [_set(final, place, value) for place in places]
    for container, contents in final.items():
        if container in names and isinstance(contents, dict):
            pattern = next((row for row in contents.values() if isinstance(row, dict)), {})
            added: dict[str, JsonValue] = {**pattern, **dict(wanted)}
            yield [Change(pointer=pointer_of(container, _NEW_KEY), kind="added", after=added)]


def _set(state: State, pointer: str, value: JsonValue) -> Change:
    there, before = value_at(state, pointer)
    return Change(pointer=pointer, kind="changed" if there else "added", before=before, after=value)


def _fits(value: JsonValue, now: JsonValue, ids: Collection[str]) -> bool:
    """Whether a value of the text can stand in the place of another; the id of a record only in that of another id."""
    if isinstance(value, str) and value in ids and isinstance(now, str) and now not in ids:
        return False
    if type(value) is type(now):
        return not same_value(value, now)
    if isinstance(value, bool) or isinstance(now, bool):
        return False
    alike = isinstance(value, (int, float)) and isinstance(now, (int, float))
    return value is None or now is None or (alike and not same_value(value, now))


def remedied(final: State, changes: Sequence[Change]) -> State:
    """The final state with the changes made."""
    state: State = edit(deepcopy(final), edits_of(changes))
    return state
