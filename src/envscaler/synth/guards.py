"""Guards derived by program: checks that nothing changed which no right way of carrying out the task changes.

They are pure text made from states; whether they are needed, and what they are worth, is `mending`'s business.

Source: ours. The paper's checklists (section 4) have no guards of their own. Never a comparison of whole states: field
by field, what was made on the way and what depends on chance or clock left aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from envscaler.scenario import Check
from envscaler.state import JsonValue, State, diff, tokens

Exempt = Callable[[Sequence[str]], bool]
"""Whether the value at a path of the initial state may be any in the end."""

_SENTENCES = {
    "en": (
        "Has nothing else of {name} been changed, added or removed?",
        "Has nothing of {name} been changed, added or removed?",
        "Has {name} stayed as it was?",
    ),
    "zh": (
        "除此之外，{name}是否没有任何更改、新增或删除？",
        "{name}是否没有任何更改、新增或删除？",
        "{name}是否保持原样？",
    ),
}
"""By language, for a part of the state that right ways change, for one that they leave alone, and for one value."""


def guards(
    initial: State, right: Sequence[State], names: Iterable[str], *, exempt: Exempt, language: str
) -> tuple[Check, ...]:
    """One guard for each part of the state; none for a single value that right ways change, or that may be any.

    Args:
        initial: the state right after reset.
        right: final states of right ways, the solution first; what any of them changes is free.
        names: keys of the state that need a guard.
        language: of the sentences; English where we have none in it.
    """
    made = []
    for name in names:
        if not isinstance(initial.get(name), (dict, list)) and _is_free(name, initial, right, exempt):
            continue
        body = _body(name, initial.get(name), [final.get(name) for final in right], exempt)
        sentence = _SENTENCES.get(language, _SENTENCES["en"])[_form(name, initial, right)]
        source = "\n    ".join(["def check_func(final_state):", *body])
        made.append(Check(description=sentence.format(name=name.replace("_", " ")), source=source, kind="guard"))
    return tuple(made)


def _form(name: str, initial: State, right: Sequence[State]) -> int:
    if not isinstance(initial.get(name), (dict, list)):
        return 2
    return 0 if any(initial[name] != final.get(name) for final in right) else 1


def _is_free(name: str, initial: State, right: Sequence[State], exempt: Exempt) -> bool:
    return name not in initial or exempt((name,)) or any(initial[name] != final.get(name) for final in right)


def _body(name: str, before: JsonValue, after: Sequence[JsonValue], exempt: Exempt) -> list[str]:
    if isinstance(before, dict) and all(isinstance(record, dict) for record in before.values()):
        return _records(name, before, after, exempt)
    if isinstance(before, dict):
        return _entries(name, before, after, exempt)
    if isinstance(before, list):
        return _list(name, before, after)
    return [
        f"before, after = initial_state.get({name!r}), final_state.get({name!r})",
        "return after == before and isinstance(after, bool) is isinstance(before, bool)",
    ]


def _records(name: str, before: dict[str, Any], after: Sequence[JsonValue], exempt: Exempt) -> list[str]:
    free, gone, added = _freedom(before, after)
    anywhere = {field for key, record in before.items() for field in record if exempt((name, key, field))}
    return [
        *_opening(name),
        f"changed = { ({key: sorted(fields - anywhere) for key, fields in free.items() if fields - anywhere})!r}",
        f"removed = {gone!r}",
        f"anything = {sorted(anywhere)!r}",
        *_added(added),
        "for key, record in before.items():",
        "    if key in removed:",
        "        continue",
        "    now = after.get(key)",
        "    if not isinstance(now, dict):",
        "        return False",
        "    for field, value in record.items():",
        "        if field in anything or field in changed.get(key, []):",
        "            continue",
        "        if field not in now or now[field] != value:",
        "            return False",
        "return True",
    ]


def _entries(name: str, before: dict[str, Any], after: Sequence[JsonValue], exempt: Exempt) -> list[str]:
    free, gone, added = _freedom(before, after)
    anything = sorted({*free, *gone, *(key for key in before if exempt((name, key)))})
    return [
        *_opening(name),
        f"changed = {anything!r}",
        *_added(added),
        "for key, value in before.items():",
        "    if key not in changed and (key not in after or after[key] != value):",
        "        return False",
        "return True",
    ]


def _list(name: str, before: list[Any], after: Sequence[JsonValue]) -> list[str]:
    """A list may grow by what right ways add at its end; where one of them does more to it, only its length counts."""
    lists = [final for final in after if isinstance(final, list)]
    longest = max(map(len, (before, *lists)))
    kept = all(final[: len(before)] == before for final in lists)
    return [
        f"before = initial_state.get({name!r}) or []",
        f"after = final_state.get({name!r})",
        f"if not isinstance(after, list) or len(after) > {longest}:",
        "    return False",
        "return after[: len(before)] == before" if kept else "return True",
    ]


def _opening(name: str) -> list[str]:
    return [
        f"before = initial_state.get({name!r}) or {{}}",
        f"after = final_state.get({name!r})",
        "if not isinstance(after, dict):",
        "    return False",
    ]


def _added(most: int) -> list[str]:
    return [f"if len([key for key in after if key not in before]) > {most}:", "    return False"]


def _freedom(before: dict[str, Any], after: Sequence[JsonValue]) -> tuple[dict[str, set[str]], list[str], int]:
    """What right ways do to a container: fields that they change by entry, entries that they remove, how many they add
    at most."""
    free: dict[str, set[str]] = {}
    gone: set[str] = set()
    added = 0
    for final in after:
        if not isinstance(final, dict):
            continue
        added = max(added, len(final.keys() - before.keys()))
        for change in diff(before, final):
            key, *rest = tokens(change.pointer)
            if key in before and not rest and change.kind == "removed":
                gone.add(key)
            elif key in before:
                free.setdefault(key, set()).update(rest[:1])
    return free, sorted(gone), added
