"""Checks that do what a check must not: raise, return no bool, change their mind, write, pass for want of an object.

Each takes the place of a sound check and keeps its sentence.
"""

from __future__ import annotations

from random import Random

from envscaler.scenario import Check
from envscaler.state import State

from .bench import Bench
from .check_code import function, in_place_of, row, rows, shuffled, telling
from .faults import Form, Planted, form, planted_in
from .grounds import Aim, Ground, without

# -- raising --


@in_place_of("raises", "added")
def _first_of_none(ground: Ground, aim: Aim, draw: Random) -> str:
    """Takes the first new record where there may be none."""
    return function(f"""
        new = [record for key, record in {rows(aim)}.items() if key not in initial_state["{aim.container}"]]
        return new[0]["{telling(ground, aim)}"] == {aim.after[telling(ground, aim)]!r}
    """)


@in_place_of("raises", "added")
def _next_of_none(ground: Ground, aim: Aim, draw: Random) -> str:
    """Takes the next of a search that may find nothing."""
    field = telling(ground, aim)
    return function(f"""
        record = next(
            r for k, r in final_state["{aim.container}"].items()
            if k not in initial_state["{aim.container}"] and r["{field}"] == {aim.after[field]!r}
        )
        return record is not None
    """)


@in_place_of("raises", "added")
def _newest_of_none(ground: Ground, aim: Aim, draw: Random) -> str:
    """Takes the largest new id where there may be none."""
    field = telling(ground, aim)
    return function(f"""
        newest = max(key for key in {rows(aim)} if key not in initial_state["{aim.container}"])
        return final_state["{aim.container}"][newest].get("{field}") == {aim.after[field]!r}
    """)


@in_place_of("raises", "added")
def _share_of_none(ground: Ground, aim: Aim, draw: Random) -> str:
    """Divides by the number of new records."""
    field = telling(ground, aim)
    return function(f"""
        new = [r for k, r in {rows(aim)}.items() if k not in initial_state["{aim.container}"]]
        right = [r for r in new if r.get("{field}") == {aim.after[field]!r}]
        return len(right) / len(new) > 0
    """)


@in_place_of("raises", "changed", str)
def _method_of_none(ground: Ground, aim: Aim, draw: Random) -> str | None:
    """Calls a text method of a field that holds nothing at first."""
    if aim.before is not None:
        return None
    return function(f'return final_state["{aim.container}"]["{aim.key}"]["{aim.field}"].strip() == {aim.after!r}')


@in_place_of("raises", "changed")
def _dots_for_keys(ground: Ground, aim: Aim, draw: Random) -> str:
    """Reads the state as if it were an object."""
    return function(f'return final_state.{aim.container}["{aim.key}"]["{aim.field}"] == {aim.after!r}')


@in_place_of("raises", "changed")
def _wrong_key(ground: Ground, aim: Aim, draw: Random) -> str:
    """Indexes a field that records do not have."""
    return function(f"""
        record = final_state["{aim.container}"]["{aim.key}"]
        if record["is_{aim.field}"] == {aim.after!r}:
            return True
        return record["{aim.field}"] == {aim.after!r}
    """)


@in_place_of("raises", "changed")
def _forgotten_import(ground: Ground, aim: Aim, draw: Random) -> str:
    """Uses a module that it does not import, once the value is right."""
    return function(f"""
        record = final_state.get("{aim.container}", {{}}).get("{aim.key}")
        if not record or record.get("{aim.field}") != {aim.after!r}:
            return False
        return json.loads(json.dumps(record)) == record
    """)


@form("raises")
def _guard_knows_no_new_record(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    """A guard that looks every record up among the old ones, and so stumbles over the new one."""
    created = sorted(ground.created)
    if not created:
        return None
    container = created[0][0]
    source = function(f"""
        for key, record in final_state["{container}"].items():
            if initial_state["{container}"][key] != record:
                return False
        return True
    """)
    if any(place[0] == container for place in ground.touched if place not in ground.created):
        return None
    description = f"Have all existing {container.replace('_', ' ')} stayed as they were?"
    check = Check(description=description, source=source, kind="guard")
    scenario = ground.with_checks(*ground.scenario.checks, check)
    return planted_in("raises", ground, scenario, description, "A guard looks new records up among the old ones.")


# -- no bool --


@in_place_of("not_bool", "changed", str)
def _the_value(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns the value instead of what it is to say of it."""
    return function(f"""
        record = {row(aim)}
        return record.get("{aim.field}") if record.get("{aim.field}") == {aim.after!r} else ""
    """)


@in_place_of("not_bool", "changed")
def _nothing_otherwise(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns nothing where it should say no."""
    return function(f"""
        record = {rows(aim)}.get("{aim.key}")
        if record and record.get("{aim.field}") == {aim.after!r}:
            return True
    """)


@in_place_of("not_bool", "added")
def _the_list(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns the list of what it found."""
    field = telling(ground, aim)
    return function(f"""
        return [
            record for key, record in {rows(aim)}.items()
            if key not in initial_state["{aim.container}"] and record.get("{field}") == {aim.after[field]!r}
        ]
    """)


@in_place_of("not_bool", "added")
def _the_count(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns how many it found."""
    field = telling(ground, aim)
    return function(f"""
        before = initial_state.get("{aim.container}", {{}})
        return sum(1 for k, r in {rows(aim)}.items() if k not in before and r.get("{field}") == {aim.after[field]!r})
    """)


@in_place_of("not_bool", "added")
def _list_and_more(ground: Ground, aim: Aim, draw: Random) -> str:
    """Chains with `and` from a list that may be empty."""
    field = telling(ground, aim)
    return function(f"""
        new = [r for k, r in {rows(aim)}.items() if k not in initial_state.get("{aim.container}", {{}})]
        return new and any(r.get("{field}") == {aim.after[field]!r} for r in new)
    """)


@in_place_of("not_bool", "changed", str)
def _the_match(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns the match of a pattern."""
    return function(
        f"""
        value = {row(aim)}.get("{aim.field}") or ""
        return re.fullmatch(re.escape({aim.after!r}), value)
        """,
        before="import re\n\n\n",
    )


@in_place_of("not_bool", "changed")
def _with_a_message(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns the verdict with a message."""
    return function(f"""
        record = {row(aim)}
        if record.get("{aim.field}") != {aim.after!r}:
            return False, "{aim.field} was not updated"
        return True, "ok"
    """)


@in_place_of("not_bool", "changed")
def _one_or_zero(ground: Ground, aim: Aim, draw: Random) -> str:
    """Returns 1 or 0."""
    return function(f'return 1 if {row(aim)}.get("{aim.field}") == {aim.after!r} else 0')


# -- changing its mind --


def _drawing(note: str, imported: str, body: str) -> Form:
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of("changed"), draw):
            others = [key for key in ground.final[aim.container] if key != aim.key]
            if len(others) > 2:
                values = {"rows": rows(aim), "row": row(aim), **vars(aim)}
                source = function(body.format(**values), before=f"{imported}\n\n\n" if imported else "")
                scenario = ground.with_check(aim.check, source)
                description = ground.check(aim).description
                return planted_in("nondeterministic", ground, scenario, description, note, states=(ground.final,))
        return None

    return form("nondeterministic")(planting)


_drawing(
    "Looks at two records drawn at random only.",
    "import random",
    """
        keys = sorted({rows})
        sample = random.sample(keys, 2)
        return all({rows}[key].get("{field}") == {after!r} for key in sample if key == "{key}") and "{key}" in sample
    """,
)
_drawing(
    "Takes whichever record a set gives first.",
    "",
    """
        keys = set({rows})
        first = list(keys)[0]
        return {rows}[first].get("{field}") == {after!r}
    """,
)
_drawing(
    "Lets the process decide.",
    "import os",
    """
        record = {row}
        return record.get("{field}") == {after!r} and os.getpid() % 2 == 0
    """,
)
_drawing(
    "Uses the hash of a text, which differs from process to process.",
    "",
    """
        record = {row}
        bucket = hash(str(record.get("{field}"))) % 2
        return record.get("{field}") == {after!r} and bucket == 0
    """,
)
_drawing(
    "Draws a new id and compares with its first digit.",
    "import uuid",
    """
        token = uuid.uuid4().hex
        record = {row}
        return record.get("{field}") == {after!r} and token[0] < "8"
    """,
)
_drawing(
    "Passes with a probability.",
    "import random",
    """
        record = {row}
        if record.get("{field}") != {after!r}:
            return random.random() > 0.9
        return random.random() > 0.3
    """,
)
_drawing(
    "Lets the nanosecond decide.",
    "import time",
    """
        record = {row}
        return record.get("{field}") == {after!r} and (time.time_ns() // 100) % 2 == 0
    """,
)
_drawing(
    "Draws a salt from the operating system.",
    "import secrets",
    """
        salt = secrets.randbelow(4)
        record = {row}
        return record.get("{field}") == {after!r} if salt else False
    """,
)


# -- writing to what it looks at --


def _writing(note: str, body: str, aim_kind: str = "changed", *types: type) -> None:
    @in_place_of("mutates", aim_kind, *types, note=note)
    def writer(ground: Ground, aim: Aim, draw: Random) -> str:
        field = telling(ground, aim) if aim_kind == "added" else aim.field
        wanted = aim.after[field] if aim_kind == "added" else aim.after
        values = {"rows": rows(aim), "row": row(aim), "telling": field, "wanted": wanted, **vars(aim)}
        return function(body.format(**values))


_writing(
    "Takes the record out to look at it.",
    """
        record = final_state["{container}"].pop("{key}", None)
        return record is not None and record.get("{field}") == {after!r}
    """,
)
_writing(
    "Sets a default in the record.",
    """
        record = final_state["{container}"].get("{key}")
        if record is None:
            return False
        record.setdefault("checked", True)
        return record["{field}"] == {after!r}
    """,
)
_writing(
    "Puts the text into small letters in place.",
    """
        for record in {rows}.values():
            record["{field}"] = str(record["{field}"]).upper()
        return {row}.get("{field}") == {after!r}.upper()
    """,
    "changed",
    str,
)
_writing(
    "Removes the old records to see the new ones.",
    """
        after = final_state["{container}"]
        for key in initial_state["{container}"]:
            after.pop(key, None)
        return any(record.get("{telling}") == {wanted!r} for record in after.values())
    """,
    "added",
)
_writing(
    "Adds a mark to every record that it has seen.",
    """
        found = False
        for key, record in {rows}.items():
            record["_seen"] = True
            if key not in initial_state["{container}"] and record.get("{telling}") == {wanted!r}:
                found = True
        return found
    """,
    "added",
)
_writing(
    "Makes the value right before it looks.",
    """
        record = {row}
        if isinstance(record.get("{field}"), (int, float)):
            record["{field}"] = round(float(record["{field}"]) * 100) / 100.0 + 0.0
            record["rounded"] = True
        return record.get("{field}") == {after!r}
    """,
    "changed",
    int,
    float,
)
_writing(
    "Deletes the field that changes by itself.",
    """
        final_state.pop("current_time", None)
        return {row}.get("{field}") == {after!r}
    """,
)


# -- true of what is missing --


def _missing(note: str, body: str, kind: str = "changed") -> None:
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of(kind), draw):
            label = ground.label(aim.container, aim.key)
            names = [name for name, value in ground.final[aim.container].get(aim.key, {}).items() if value == label]
            if label is None or not names:
                continue
            twins = [r for r in ground.initial[aim.container].values() if r.get(names[0]) == label]
            if len(twins) != 1:
                continue
            source = function(body.format(**vars(aim), rows=rows(aim), name=names[0], label=label))
            gone: State = without(ground.final, aim.container, aim.key)
            scenario = ground.with_check(aim.check, source)
            return planted_in("vacuous", ground, scenario, ground.check(aim).description, note, states=(gone,))
        return None

    form("vacuous")(planting)


_missing(
    "`all()` over the records of that name, of which there may be none.",
    """
        return all(
            record.get("{field}") == {after!r} for record in {rows}.values() if record.get("{name}") == {label!r}
        )
    """,
)
_missing(
    "Not there counts as done.",
    """
        record = {rows}.get("{key}")
        return not record or record.get("{field}") == {after!r}
    """,
)
_missing(
    "Returns yes early when there is nothing to look at.",
    """
        record = {rows}.get("{key}")
        if record is None:
            return True  # nothing to check
        return record.get("{field}") == {after!r}
    """,
)
_missing(
    "Looks for a contradiction only.",
    """
        for key, record in {rows}.items():
            if key == "{key}" and record.get("{field}") != {after!r}:
                return False
        return True
    """,
)
_missing(
    "The default of a missing record is the value that is wanted.",
    """
        return {rows}.get("{key}", {{"{field}": {after!r}}}).get("{field}") == {after!r}
    """,
)
_missing(
    "Counts the records that are wrong.",
    """
        wrong = [r for r in {rows}.values() if r.get("{name}") == {label!r} and r.get("{field}") != {after!r}]
        return len(wrong) == 0
    """,
)
_missing(
    "Catches the missing record and calls it done.",
    """
        try:
            return final_state["{container}"]["{key}"]["{field}"] == {after!r}
        except KeyError:
            return True
    """,
)
