"""Checks that are sound code and ask for too little: what was so before, a part of a text, a part of the sentence.

How a check can be wrong as code is `check_code`'s and `check_conduct`'s business; what depends on the recorded run is
`check_scope`'s.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

from envscaler.scenario import Check, CheckKind
from envscaler.state import State

from .bench import Bench
from .check_code import function, row, rows, shuffled
from .faults import Planted, form, planted_in
from .grounds import Aim, Ground, altered, undone, without

# -- holds before anything is done --


def _added_check(ground: Ground, body: str, description: str, note: str, *, kind: CheckKind | None = "goal") -> Planted:
    check = Check(description=description, source=function(body), kind=kind)
    scenario = ground.with_checks(*ground.scenario.checks, check)
    return planted_in("true_at_reset", ground, scenario, description, note)


def _drawn_row(ground: Ground, draw: Random) -> tuple[str, str, str]:
    container, key = draw.choice([place for place in ground.untouched() if ground.label(*place) is not None])
    return container, key, str(ground.label(container, key))


@form("true_at_reset")
def _already_there(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    container, key, label = _drawn_row(ground, draw)
    body = f'return "{key}" in final_state.get("{container}", {{}})'
    return _added_check(ground, body, f"Does {label} still exist?", "A goal check asks for a record that was there.")


@form("true_at_reset")
def _already_so(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    container, key, label = _drawn_row(ground, draw)
    fields = [name for name, value in ground.initial[container][key].items() if isinstance(value, str)]
    field = fields[-1]
    value = ground.initial[container][key][field]
    body = f"""
        record = final_state.get("{container}", {{}}).get("{key}")
        if not record:
            return False
        return record.get("{field}") == {value!r}
    """
    description = f'Is the {field.replace("_", " ")} of {label} "{value}"?'
    return _added_check(ground, body, description, "A goal check asks for a value that was there.", kind=None)


@form("true_at_reset")
def _nothing_lost(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    container = draw.choice([c for c in ground.entities if c not in {place[0] for place in ground.touched}] or [""])
    if not container:
        return None
    body = f"""
        # No record may have been deleted
        return len(final_state.get("{container}", {{}})) >= {len(ground.initial[container])}
    """
    description = f"Have all {len(ground.initial[container])} {container.replace('_', ' ')} been kept?"
    return _added_check(ground, body, description, "A goal check asks for what was so.", kind=None)


@form("true_at_reset")
def _guard_called_goal(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    guards = [place for place, check in enumerate(ground.scenario.checks) if check.kind == "guard"]
    place = draw.choice(guards)
    check = ground.scenario.checks[place]
    scenario = ground.with_check(place, check.source, kind=draw.choice(("goal", None)))
    return planted_in("true_at_reset", ground, scenario, check.description, "A guard is called a goal check.")


@form("true_at_reset")
def _old_or_new(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("changed", str), draw):
        if ground.enum(aim.container, aim.field):
            source = function(f'return {row(aim)}.get("{aim.field}") in ({aim.before!r}, {aim.after!r})')
            scenario = ground.with_check(aim.check, source)
            description = ground.check(aim).description
            note = "The value from before will do as well."
            also = ("false_positive",)
            return planted_in("true_at_reset", ground, scenario, description, note, also=also, states=())
    return None


@form("true_at_reset")
def _somebody_has_it(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("changed", str, bool, int), draw):
        others = [r for k, r in ground.initial[aim.container].items() if k != aim.key]
        if any(other[aim.field] == aim.after for other in others):
            source = function(f'return any(r.get("{aim.field}") == {aim.after!r} for r in {rows(aim)}.values())')
            scenario = ground.with_check(aim.check, source)
            description = ground.check(aim).description
            note = "Any record with that value will do, and there was one before."
            return planted_in("true_at_reset", ground, scenario, description, note, also=("false_positive",))
    return None


# -- a part of a text --

_PARTS: tuple[tuple[str, str, str], ...] = (
    ('return "{v}" in ({row}.get("{f}") or "")', "not {v}", "Looks for the value anywhere in the field."),
    (
        'return "{v}".lower() in str({row}.get("{f}", "")).lower()',
        "Un{v} (to be reviewed)",
        "Looks for the value anywhere in the field, whatever its case.",
    ),
    (
        'value = {row}.get("{f}") or ""\nreturn value.startswith("{stem}")',
        "{stem}-or-maybe-not",
        "Looks at the beginning of the value.",
    ),
    ('return str({row}.get("{f}")).strip().endswith("{v}")', "un{v}", "Looks at the end of the value."),
    (
        'import re\nreturn re.search(r"{v}", str({row}.get("{f}")), re.IGNORECASE) is not None',
        "never {v}",
        "Searches for a pattern without anchors.",
    ),
    ('record = {row}\nreturn "{v}" in str(record)', "not {v}", "Looks for the value anywhere in the record's text."),
    (
        'value = ({row}.get("{f}") or "").lower()\nreturn any(word in value for word in ("{low}", "{low}ly"))',
        "was {low} once, no longer",
        "Looks for one of several words.",
    ),
    (
        'value = str({row}.get("{f}", ""))\nif value.find("{v}") != -1:\n    return True\nreturn False',
        "{v} request denied",
        "Finds the value somewhere.",
    ),
)


def _part(body: str, near: str, note: str) -> None:
    @form("substring")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of("changed", str), draw):
            value = str(aim.after)
            if not ground.enum(aim.container, aim.field) or value in str(ground.initial[aim.container][aim.key]):
                continue
            stem = value[: max(4, len(value) - 2)]
            words = {"v": value, "low": value.lower(), "stem": stem, "f": aim.field, "row": row(aim)}
            if stem in str(aim.before):
                continue
            scenario = ground.with_check(aim.check, function(body.format(**words)))
            states = (altered(ground.final, aim, near.format(**words)),)
            description = ground.check(aim).description
            return planted_in("substring", ground, scenario, description, note, also=("false_positive",), states=states)
        return None


for _body, _near, _note in _PARTS:
    _part(_body, _near, _note)


@form("substring")
def _word_of_a_new_text(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("added"), draw):
        entity = ground.entities[aim.container]
        texts = [
            (attribute.name, aim.after[attribute.name])
            for attribute in entity.attributes
            if attribute.enum is not None and isinstance(aim.after.get(attribute.name), str)
        ]
        for field, value in texts:
            source = _replaced_test(ground.check(aim).source, field, f'"{value}" in str(row.get({field!r}))')
            if source is not None:
                near = copy.deepcopy(ground.final)
                near[aim.container][aim.key][field] = f"not {value}"
                scenario = ground.with_check(aim.check, source)
                description = ground.check(aim).description
                note = f"Looks for a part of the {field} of a new record."
                also = ("false_positive",)
                return planted_in("substring", ground, scenario, description, note, also=also, states=(near,))
    return None


def _replaced_test(source: str, field: str, test: str | None) -> str | None:
    """The check with its test of one field replaced, or left out; None where it has no such line."""
    for line in source.splitlines():
        told = line.strip().removeprefix("and ")
        if told.startswith((f"row.get({field!r})", f"str(row.get({field!r}))", f"isinstance(row.get({field!r})")):
            return source.replace(told, test or "True")
    return None


# -- accepts what its sentence excludes --


def _lax(note: str) -> Callable[[Callable[[Ground, Aim], tuple[str, State] | None]], None]:
    def registered(writer: Callable[[Ground, Aim], tuple[str, State] | None]) -> None:
        @form("false_positive")
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            for aim in shuffled(list(ground.aims), draw):
                made = writer(ground, aim)
                if made is None:
                    continue
                scenario = ground.with_check(aim.check, made[0])
                source = scenario.checks[aim.check].source
                states = (ground.initial, ground.final, made[1])
                told = [
                    bench.asked([source], ground.initial, state, ground.scenario.clock)[0].value for state in states
                ]
                if told == [False, True, True]:
                    description = ground.check(aim).description
                    return planted_in("false_positive", ground, scenario, description, note, states=(made[1],))
            return None

    return registered


@_lax("Any change will do.")
def _just_different(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    wrong = next((v for v in ground.enum(aim.container, aim.field) if v not in (aim.before, aim.after)), None)
    if aim.kind != "changed" or wrong is None:
        return None
    body = f"""
        before = initial_state["{aim.container}"]["{aim.key}"].get("{aim.field}")
        after = {row(aim)}.get("{aim.field}")
        return after is not None and after != before
    """
    return function(body), altered(ground.final, aim, wrong)


@_lax("Some record with that value will do, whichever it is.")
def _whichever(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    others = [key for key in ground.initial[aim.container] if (aim.container, key) not in ground.touched]
    if aim.kind != "changed" or not others:
        return None
    wrong = copy.deepcopy(undone(ground.final, aim))
    wrong[aim.container][others[0]][aim.field] = aim.after
    body = f"""
        for record in {rows(aim)}.values():
            if record.get("{aim.field}") == {aim.after!r}:
                return True
        return False
    """
    return function(body), wrong


@_lax("A number that has gone the right way will do.")
def _far_enough(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    if aim.kind != "changed" or type(aim.after) not in (int, float) or aim.before is None:
        return None
    up = aim.after > aim.before
    wrong = altered(ground.final, aim, aim.after + (aim.after - aim.before) + (7 if up else -7))
    sign = ">=" if up else "<="
    return function(f'return {row(aim)}.get("{aim.field}", {aim.before!r}) {sign} {aim.after!r}'), wrong


@_lax("The tolerance is nearly as wide as the change.")
def _wide(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    if aim.kind != "changed" or type(aim.after) not in (int, float) or aim.before is None:
        return None
    width = abs(aim.after - aim.before)
    if width < 2:
        return None
    body = f"""
        value = {row(aim)}.get("{aim.field}")
        return isinstance(value, (int, float)) and abs(value - {aim.after!r}) < {width!r}
    """
    return function(body), altered(ground.final, aim, aim.after + (width - 1 if aim.after > aim.before else 1 - width))


@_lax("One more record will do, whatever is in it.")
def _one_more(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    if aim.kind != "added":
        return None
    twin = next(iter(ground.initial[aim.container].values()), None)
    if twin is None or sum(place[0] == aim.container for place in ground.created) > 1:
        return None
    wrong = copy.deepcopy(ground.final)
    entity = ground.entities[aim.container]
    own = {entity.key: aim.key} if entity.key else {}
    wrong[aim.container][aim.key] = {**copy.deepcopy(twin), **own}
    body = f'return len({rows(aim)}) > len(initial_state.get("{aim.container}", {{}}))'
    return function(body), wrong


@_lax("One field of the new record is looked at, the others are not.")
def _first_field_only(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    if aim.kind != "added":
        return None
    entity = ground.entities[aim.container]
    enums = [a for a in entity.attributes if a.enum and len(a.enum) > 1]
    plain = [a.name for a in entity.attributes if a.name != entity.key and not a.enum and aim.after.get(a.name)]
    if not enums or not plain:
        return None
    wrong = copy.deepcopy(ground.final)
    for attribute in enums:
        others = [value for value in attribute.enum or () if value != aim.after[attribute.name]]
        wrong[aim.container][aim.key][attribute.name] = others[0]
    body = f"""
        known = initial_state.get("{aim.container}", {{}})
        for key, record in {rows(aim)}.items():
            if key not in known and record.get("{plain[0]}") == {aim.after[plain[0]]!r}:
                return True
        return False
    """
    return function(body), wrong


@_lax("Two values will do where the sentence names one.")
def _one_of_two(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    others = [value for value in ground.enum(aim.container, aim.field) if value not in (aim.before, aim.after)]
    if aim.kind != "changed" or not others:
        return None
    body = f"""
        record = {row(aim)}
        status = record.get("{aim.field}")
        return status == {aim.after!r} or status == {others[-1]!r}
    """
    return function(body), altered(ground.final, aim, others[-1])


@_lax("One record fewer will do, whichever went.")
def _one_fewer(ground: Ground, aim: Aim) -> tuple[str, State] | None:
    others = [key for key in ground.initial[aim.container] if key != aim.key]
    if aim.kind != "removed" or not others:
        return None
    wrong = without(undone(ground.final, aim), aim.container, others[0])
    body = f"""
        before, after = initial_state["{aim.container}"], {rows(aim)}
        return any(key not in after for key in before)
    """
    return function(body), wrong
