"""`sound`: checks, scenarios and environments that look wrong and are right, to count false alarms on hard cases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvSkeleton

from .bench import Bench
from .check_code import function, row, rows, shuffled
from .grounds import Aim, Ground, grounds, varied


@dataclass(frozen=True)
class Suspicious:
    """A sound environment with a sound scenario, one thing in which looks like a fault."""

    looks_like: str
    """The kind that a careless audit reports."""
    skeleton: EnvSkeleton
    scenario: Scenario
    place: str
    """As with a planted fault."""
    note: str
    """Why it is right."""


Soundly = Callable[[Ground, Bench, Random], Suspicious | None]

WAYS: list[Soundly] = []
"""In the order in which they are drawn from; `suspicious_grounds` adds to them."""


def sound(seed: int = 1, per_way: int = 3) -> list[Suspicious]:
    """The hard sound ones, drawn from a seed: so many of each way, each from another scenario."""
    found = []
    with Bench() as bench:
        for index, way in enumerate(WAYS):
            draw = Random(f"{seed}:{index}")
            made: list[Suspicious] = []
            for ground in draw.sample(grounds(), len(grounds())):
                one = way(ground, bench, draw)
                if one is not None:
                    made.append(one)
                if len(made) == per_way:
                    break
            found += made
    return found


# -- checks of a change --

_Words = dict[str, object]


def _unique_name(ground: Ground, aim: Aim) -> tuple[str, str] | None:
    """A field by which the record can be told from all others, and its value."""
    label = ground.label(aim.container, aim.key)
    fields = [name for name, value in ground.final[aim.container].get(aim.key, {}).items() if value == label]
    if label is None or not fields:
        return None
    twins = [record for record in ground.initial[aim.container].values() if record.get(fields[0]) == label]
    return (fields[0], label) if len(twins) == 1 else None


def _change(looks_like: str, note: str, body: str, *types: type, before: str = "") -> None:
    """Registers another way to write the check of a changed field."""

    def way(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
        for aim in shuffled(ground.aims_of("changed", *types), draw):
            name = _unique_name(ground, aim) or (("", "") if "{label" not in body else None)
            if name is None or aim.after is None or isinstance(aim.after, bool) or aim.before is None:
                continue
            words: _Words = {**vars(aim), "row": row(aim), "rows": rows(aim), "name": name[0], "label": name[1]}
            if "fromisoformat" in body and not _is_date(aim.after):
                continue
            scenario = ground.with_check(aim.check, function(body.format(**words), before=before))
            return Suspicious(looks_like, ground.skeleton, scenario, ground.check(aim).description, note)
        return None

    WAYS.append(way)


def _is_date(value: object) -> bool:
    return isinstance(value, str) and len(value) == 10 and value[4] == value[7] == "-"


_change(
    "vacuous",
    "`all()` over records that must be there.",
    """
        found = [r for r in {rows}.values() if r.get("{name}") == {label!r}]
        if not found:
            return False
        return all(r.get("{field}") == {after!r} for r in found)
    """,
)
_change(
    "vacuous",
    "The loop ends with no, not with yes.",
    """
        for record in {rows}.values():
            if record.get("{name}") == {label!r}:
                return record.get("{field}") == {after!r}
        return False
    """,
)
_change(
    "raises",
    "Indexes only what it has looked for.",
    """
        if "{key}" not in final_state["{container}"]:
            return False
        return final_state["{container}"]["{key}"]["{field}"] == {after!r}
    """,
)
_change(
    "raises",
    "What could raise is caught, and means no.",
    """
        try:
            return final_state["{container}"]["{key}"]["{field}"] == {after!r}
        except KeyError:
            return False
    """,
)
_change(
    "mutates",
    "Changes a copy only.",
    """
        record = dict({row})
        record.pop("updated_at", None)
        record["checked"] = True
        return record.get("{field}") == {after!r}
    """,
)
_change(
    "mutates",
    "Works on a deep copy.",
    """
        state = copy.deepcopy(final_state)
        record = state.get("{container}", {{}}).pop("{key}", None)
        return record is not None and record["{field}"] == {after!r}
    """,
    before="import copy\n\n\n",
)
_change(
    "mutates",
    "Sorts a list of its own.",
    """
        keys = list({rows})
        keys.sort()
        return any(key == "{key}" and {rows}[key].get("{field}") == {after!r} for key in keys)
    """,
)
_change(
    "not_bool",
    "`bool()` makes a truth value of what `and` gives.",
    """
        record = {rows}.get("{key}")
        return bool(record and record.get("{field}") == {after!r})
    """,
)
_change(
    "substring",
    "Membership in a tuple of whole values.",
    'return {row}.get("{field}") in ({after!r},)',
    str,
)
_change(
    "substring",
    "The pattern has to fit the whole value.",
    'return re.fullmatch(re.escape({after!r}), str({row}.get("{field}"))) is not None',
    str,
    before="import re\n\n\n",
)
_change(
    "substring",
    "Case and blanks at the ends do not matter, all letters do.",
    'return str({row}.get("{field}", "")).strip().casefold() == {after!r}.casefold()',
    str,
)
_change(
    "false_positive",
    "The tolerance is that of a rounded amount.",
    """
        value = {row}.get("{field}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return abs(value - {after!r}) < 0.01
    """,
    int,
    float,
)
_change(
    "false_positive",
    "Asks for the difference, and so for one value.",
    """
        before = initial_state["{container}"]["{key}"]["{field}"]
        after = {row}.get("{field}")
        if not isinstance(after, (int, float)):
            return False
        return round(after - before, 2) == round({after!r} - {before!r}, 2)
    """,
    int,
    float,
)
_change(
    "order_or_clock",
    "Counts days between two written dates and asks no clock.",
    """
        value = {row}.get("{field}")
        try:
            days = (datetime.date.fromisoformat(value) - datetime.date.fromisoformat({before!r})).days
        except (TypeError, ValueError):
            return False
        return days == (datetime.date.fromisoformat({after!r}) - datetime.date.fromisoformat({before!r})).days
    """,
    str,
    before="import datetime\n\n\n",
)
_change(
    "nondeterministic",
    "The generator has a fixed seed, and the order that it gives does not matter.",
    """
        keys = sorted({rows})
        random.Random(7).shuffle(keys)
        return any(key == "{key}" and {rows}[key].get("{field}") == {after!r} for key in keys)
    """,
    before="import random\n\n\n",
)
_change(
    "nondeterministic",
    "The order of the set does not matter.",
    """
        values = {{r.get("{field}") for k, r in {rows}.items() if k == "{key}"}}
        return values == {{{after!r}}}
    """,
)
_change(
    "tautology",
    "Has a constant in every branch, and branches on the state.",
    """
        record = {row}
        done = False
        if record.get("{field}") == {after!r}:
            done = True
        if done:
            return True
        else:
            return False
    """,
)
_change(
    "created_ids",
    "The id was there before the episode.",
    """
        record_id = "{key}"
        assert record_id in initial_state["{container}"]
        return {rows}.get(record_id, {{}}).get("{field}") == {after!r}
    """,
)
_change(
    "never_true",
    "A helper of its own does the comparison.",
    """
        def value_of(record, field, default=None):
            return record[field] if record and field in record else default

        return value_of({rows}.get("{key}"), "{field}") == {after!r}
    """,
)


# -- checks of a new record --


def _creation(looks_like: str, note: str, body: str) -> None:
    """Registers one more check about a record that is added, beside the sound one."""

    def way(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
        for aim in shuffled(ground.aims_of("added"), draw):
            count = sum(place[0] == aim.container for place in ground.created)
            names = [n for n, v in aim.after.items() if v is not None and n != ground.entities[aim.container].key]
            lost = any(a.kind == "removed" and a.container == aim.container for a in ground.aims)
            if lost or not names:
                continue
            words: _Words = {
                **vars(aim),
                "rows": rows(aim),
                "count": count,
                "all": {name: aim.after[name] for name in names},
                "wanted": {name: aim.after[name] for name in names[:2]},
            }
            sentence = f"Is there a new record among the {aim.container.replace('_', ' ')}?"
            check = Check(description=sentence, source=function(body.format(**words)), kind="goal")
            scenario = ground.with_checks(*ground.scenario.checks, check)
            return Suspicious(looks_like, ground.skeleton, scenario, sentence, note)
        return None

    WAYS.append(way)


_creation(
    "false_positive",
    "Counts, and another check looks at the values.",
    'return len({rows}) == len(initial_state.get("{container}", {{}})) + {count}',
)
_creation(
    "created_ids",
    "Finds the new record by what is in it.",
    """
        known = set(initial_state["{container}"])
        wanted = {wanted!r}
        new = [r for key, r in {rows}.items() if key not in known]
        return any(all(r.get(name) == value for name, value in wanted.items()) for r in new)
    """,
)
_creation(
    "whole_state",
    "Compares all that the task says of one record, not a container.",
    """
        wanted = {all!r}
        return any(
            {{name: r.get(name) for name in wanted}} == wanted
            for key, r in {rows}.items()
            if key not in initial_state["{container}"]
        )
    """,
)
_creation(
    "raises",
    "`max` and `next` have defaults.",
    """
        newest = max((key for key in {rows} if key not in initial_state["{container}"]), default=None)
        if newest is None:
            return False
        wanted = {wanted!r}
        found = next((r for k, r in {rows}.items() if k not in initial_state["{container}"]
                      and all(r.get(n) == v for n, v in wanted.items())), None)
        return found is not None
    """,
)


# -- a part of a text that is all that the task asks for --


def _mention(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
    for place, check in enumerate(ground.scenario.checks):
        for found in re.finditer(r"str\(row\.get\('(\w+)'\)\)\.strip\(\)\.casefold\(\) == ('[^']*')", check.source):
            field, value = found[1].replace("_", " "), found[2].strip("'")
            if value not in ground.scenario.task.casefold():
                continue
            test = f"{found[2]} in str(row.get('{found[1]}')).casefold()"
            quoted = re.compile(f'"{re.escape(value)}"', re.IGNORECASE)
            sentence = quoted.sub(f'something that mentions "{value}"', check.description)
            if sentence == check.description:
                continue
            scenario = ground.with_check(place, check.source.replace(found[0], test), sentence)
            task = f'{ground.scenario.task} Word the {field} as you like, as long as it mentions "{value}".'
            note = "The task asks for no more than that the text mentions it."
            return Suspicious("substring", ground.skeleton, varied(scenario, task=task), sentence, note)
    return None


WAYS.append(_mention)


# -- guards --


def _guard(looks_like: str, note: str, body: str) -> None:
    """Registers one more guard, of a record that stays as it was."""

    def way(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
        places = [place for place in ground.untouched() if ground.label(*place) is not None]
        container, key = draw.choice(places)
        record = ground.initial[container][key]
        name = next(name for name, value in record.items() if value == ground.label(container, key))
        words: _Words = {"container": container, "key": key, "name": name, "label": record[name], "record": record}
        sentence = f"Has {record[name]} stayed as it was? ({key})"
        check = Check(description=sentence, source=function(body.format(**words)), kind="guard")
        scenario = ground.with_checks(*ground.scenario.checks, check)
        return Suspicious(looks_like, ground.skeleton, scenario, sentence, note)

    WAYS.append(way)


_guard(
    "true_at_reset",
    "It is a guard, and guards hold at reset.",
    """
        record = final_state.get("{container}", {{}}).get("{key}")
        return record is not None and record.get("{name}") == {label!r}
    """,
)
_guard(
    "whole_state",
    "Compares one record that must not change.",
    'return final_state.get("{container}", {{}}).get("{key}") == initial_state["{container}"]["{key}"]',
)
