"""Checks that say the same of every state: always true, never true, or without a look at it.

Each takes the place of a sound check and keeps its sentence. What a check asks of values is `check_values`' business.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from random import Random

from .bench import Bench
from .faults import Planted, form, planted_in
from .grounds import Aim, Ground, undone, without

Writer = Callable[[Ground, Aim, Random], str | None]
"""Writes the body of a check function for an aim, or finds that it does not suit."""


def function(body: str, before: str = "") -> str:
    """A check function with that body, and with lines before it."""
    head = textwrap.dedent(before).lstrip("\n")
    return f"{head}def check_func(final_state):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def rows(aim: Aim) -> str:
    """The expression, as models write it, for the records that an aim is among."""
    return f'final_state.get("{aim.container}", {{}})'


def row(aim: Aim) -> str:
    """The expression for the record that an aim is about."""
    return f'{rows(aim)}.get("{aim.key}", {{}})'


def in_place_of(
    kind: str, aim_kind: str, *types: type, also: tuple[str, ...] = (), note: str = ""
) -> Callable[[Writer], Writer]:
    """Registers a writer: its check replaces the one that notices a drawn aim."""

    def registered(writer: Writer) -> Writer:
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            for aim in shuffled(ground.aims_of(aim_kind, *types), draw):
                source = writer(ground, aim, draw)
                if source is not None:
                    wrong = (undone(ground.final, aim), without(ground.final, aim.container, aim.key))
                    return planted_in(
                        kind,
                        ground,
                        ground.with_check(aim.check, source),
                        ground.check(aim).description,
                        note or (writer.__doc__ or ""),
                        also=also,
                        states=wrong,
                    )
            return None

        form(kind)(planting)
        return writer

    return registered


def shuffled(aims: list[Aim], draw: Random) -> list[Aim]:
    """The aims in another order."""
    return draw.sample(aims, len(aims))


def telling(ground: Ground, aim: Aim) -> str:
    """A field of a new record that tells it from others and is no id of its own."""
    entity = ground.entities[aim.container]
    names = [attribute.name for attribute in entity.attributes if attribute.name != entity.key]
    return next((name for name in names if aim.after.get(name) is not None), names[0])


# -- true whatever happens --


@in_place_of("always_true", "changed")
def _falls_through(ground: Ground, aim: Aim, draw: Random) -> str:
    """Looks for the record, and says yes also when it found nothing."""
    return function(f"""
        for key, record in {rows(aim)}.items():
            if key == "{aim.key}" and record.get("{aim.field}") == {aim.after!r}:
                return True
        # No contradiction found
        return True
    """)


@in_place_of("always_true", "changed")
def _either_way(ground: Ground, aim: Aim, draw: Random) -> str:
    """Accepts the value and every other value."""
    return function(f"""
        record = {row(aim)}
        return record.get("{aim.field}") == {aim.after!r} or record.get("{aim.field}") != {aim.after!r}
    """)


@in_place_of("always_true", "added")
def _counts_to_zero(ground: Ground, aim: Aim, draw: Random) -> str:
    """Asks for at least no new record."""
    return function(f"""
        new = [key for key in {rows(aim)} if key not in initial_state.get("{aim.container}", {{}})]
        return len(new) >= 0
    """)


@in_place_of("always_true", "changed", str)
def _or_a_text(ground: Ground, aim: Aim, draw: Random) -> str:
    """Compares with one value or a text that is always true (`x == "a" or "b"`)."""
    return function(f"""
        value = {row(aim)}.get("{aim.field}")
        if value == {aim.after!r} or {str(aim.after).title()!r}:
            return True
        return False
    """)


@in_place_of("always_true", "changed")
def _swallows(ground: Ground, aim: Aim, draw: Random) -> str:
    """Catches every failure and takes it for success."""
    return function(f"""
        try:
            assert final_state["{aim.container}"]["{aim.key}"]["{aim.field}"] == {aim.after!r}
        except Exception:
            # Field may be computed elsewhere
            pass
        return True
    """)


@in_place_of("always_true", "added")
def _compares_with_itself(ground: Ground, aim: Aim, draw: Random) -> str:
    """Compares each new record with itself."""
    return function(f"""
        for record in {rows(aim)}.values():
            for field, value in record.items():
                if record.get(field) != value:
                    return False
        return True
    """)


@form("always_true")
def _guard_of_nothing(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    """A guard that asks whether what was there before is what was there before."""
    places = [place for place, check in enumerate(ground.scenario.checks) if check.kind == "guard"]
    container = draw.choice(sorted(ground.entities))
    source = function(f"""
        before = initial_state.get("{container}", {{}})
        after = dict(before)
        after.update({{key: before[key] for key in final_state.get("{container}", {{}}) if key in before}})
        for key in before:
            if after.get(key) != before.get(key):
                return False
        return True
    """)
    place = draw.choice(places)
    scenario = ground.with_check(place, source)
    description = ground.scenario.checks[place].description
    wrong = without(ground.final, container, next(iter(ground.initial[container])))
    note = "A guard compares the initial state with itself."
    return planted_in("always_true", ground, scenario, description, note, also=("tautology",), states=(wrong,))


# -- false whatever happens --


@in_place_of("never_true", "changed", int, float)
def _text_for_a_number(ground: Ground, aim: Aim, draw: Random) -> str:
    """Compares the text of a number with a number."""
    return function(f'return str({row(aim)}.get("{aim.field}")) == {aim.after!r}')


@in_place_of("never_true", "changed")
def _no_such_field(ground: Ground, aim: Aim, draw: Random) -> str:
    """Reads a field that records do not have."""
    wrong = draw.choice((f"{aim.field}_value", f"current_{aim.field}", f"new_{aim.field}"))
    return function(f"""
        record = {rows(aim)}.get("{aim.key}")
        if not record:
            return False
        return record.get("{wrong}") == {aim.after!r}
    """)


@in_place_of("never_true", "added")
def _no_such_container(ground: Ground, aim: Aim, draw: Random) -> str:
    """Looks in a part of the state that does not exist."""
    return function(f"""
        before = initial_state.get("{aim.container}", {{}})
        for key, record in final_state.get("{aim.container.rstrip("s")}_records", {{}}).items():
            if key not in before:
                return True
        return False
    """)


@in_place_of("never_true", "changed", str)
def _case_never_fits(ground: Ground, aim: Aim, draw: Random) -> str | None:
    """Compares a text in small letters with one in capitals."""
    capital = str(aim.after).title() if draw.random() < 0.5 else str(aim.after).upper()
    if capital == str(aim.after).lower():
        return None
    return function(f"""
        record = {row(aim)}
        return str(record.get("{aim.field}", "")).strip().lower() == "{capital}"
    """)


@in_place_of("never_true", "changed")
def _gives_up_at_the_first(ground: Ground, aim: Aim, draw: Random) -> str | None:
    """Says no at the first record that is not the one it looks for."""
    if next(iter(ground.final[aim.container])) == aim.key:
        return None
    return function(f"""
        for key, record in {rows(aim)}.items():
            if key == "{aim.key}":
                if record.get("{aim.field}") == {aim.after!r}:
                    return True
            else:
                return False
        return False
    """)


@in_place_of("never_true", "changed")
def _two_values_at_once(ground: Ground, aim: Aim, draw: Random) -> str | None:
    """Asks for the old and the new value at once."""
    if aim.before is None or isinstance(aim.after, bool):
        return None
    return function(f"""
        record = {row(aim)}
        was = record.get("{aim.field}") == {aim.before!r}
        now = record.get("{aim.field}") == {aim.after!r}
        return was and now
    """)


@in_place_of("never_true", "added")
def _new_and_known(ground: Ground, aim: Aim, draw: Random) -> str:
    """Looks for the new record among those that were there before."""
    return function(f"""
        before = set(initial_state.get("{aim.container}", {{}}))
        new = [key for key in {rows(aim)} if key not in before]
        return any(key in before for key in new)
    """)


# -- does not look at the state --

_CONSTANTS = (
    ("return True", "Says yes."),
    ("# Verified by the previous checks\nreturn bool(1)", "Says yes in other words."),
    ("expected = {after!r}\nreturn expected == {after!r}", "Compares what it expects with itself."),
    (
        'record = {{"{field}": {after!r}}}\nreturn record.get("{field}") == {after!r}',
        "Looks at a record of its own.",
    ),
    (
        "for value in [{after!r}]:\n    if value != {after!r}:\n        return False\nreturn True",
        "Looks at a list of its own.",
    ),
    (
        'allowed = {{"{field}", "{container}"}}\nreturn "{field}" in allowed and len(allowed) == 2',
        "Asks whether the field is among the names that it has listed.",
    ),
    (
        'before = initial_state.get("{container}", {{}})\nreturn "{key}" in before',
        "Looks at the initial state.",
    ),
    (
        'final_state = {{"{container}": {{}}}}\nreturn not final_state["{container}"]',
        "Forgets what it was given.",
    ),
)


def _constant(text: str, note: str) -> None:
    @in_place_of("tautology", "changed", also=("always_true",), note=note)
    def writer(ground: Ground, aim: Aim, draw: Random) -> str:
        places = {"container": aim.container, "key": aim.key, "field": aim.field, "after": aim.after}
        return function(text.format(**places))


for _text, _note in _CONSTANTS:
    _constant(_text, _note)
