"""Initial states that do not fit their schema, refer to nothing, break a rule, or are no JSON.

What is wrong lies in a record that the solution does not touch, so that it still runs and satisfies the checks; only
what is no JSON cannot be played.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from random import Random

from envscaler.scenario import Scenario
from envscaler.skeleton import Attribute
from envscaler.state import JsonValue, State

from .bench import Bench
from .faults import Planted, form, planted_in
from .grounds import Ground

Wrong = Callable[[Ground, Attribute, JsonValue, Random], JsonValue]
"""Another value for an attribute, or the same where it does not suit."""


def _spoiled(kind: str, note: str) -> Callable[[Wrong], None]:
    """Registers a way to spoil one field of a record that the solution does not touch."""

    def registered(wrong: Wrong) -> None:
        @form(kind)
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            places = list(ground.untouched())
            for container, key in draw.sample(places, len(places)):
                entity = ground.entities[container]
                for attribute in draw.sample(entity.attributes, len(entity.attributes)):
                    value = ground.initial[container][key].get(attribute.name)
                    other = wrong(ground, attribute, value, draw)
                    if attribute.name == entity.key or (type(other) is type(value) and other == value):
                        continue
                    state = copy.deepcopy(ground.scenario.initial_state)
                    state[container][key][attribute.name] = other
                    if math.isfinite(other) if isinstance(other, float) else True:
                        scenario = with_guards_of(ground, state)
                        if not bench.solved(ground.skeleton, scenario):
                            continue
                    else:
                        scenario = ground.with_state(state)
                    place = f"/{container}/{key}/{attribute.name}"
                    return planted_in(kind, ground, scenario, place, f"{note} ({value!r} → {other!r})", state=state)
            return None

    return registered


def with_guards_of(ground: Ground, state: State) -> Scenario:
    """The scenario with another initial state, and with the guards that hold there."""
    return ground.with_state(state)


# -- types --


@_spoiled("state_type", "A number is a text.")
def _text_for_number(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return str(value) if attribute.type in ("int", "float") and value is not None else value


@_spoiled("state_type", "A text is a number.")
def _number_for_text(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    suits = attribute.type == "str" and not attribute.enum and not attribute.references and len(str(value)) < 60
    return 20250106 if suits else value


@_spoiled("state_type", "A truth value is a text.")
def _text_for_truth(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return draw.choice(("true", "yes")) if attribute.type == "bool" else value


@_spoiled("state_type", "A whole number has a fraction.")
def _fraction(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return value + 0.5 if attribute.type == "int" and isinstance(value, int) else value


@_spoiled("state_type", "Nothing stands where something must.")
def _nothing(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return None if attribute.type in ("str", "int", "float") and not attribute.references else value


@_spoiled("state_type", "A list stands where one value must.")
def _list(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return [value] if attribute.type == "str" and not attribute.enum and not attribute.references else value


@_spoiled("state_type", "A record stands where a value must.")
def _record(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return {"value": value, "unit": "EUR"} if attribute.type == "float" else value


# -- enumerations --


@_spoiled("state_enum", "A value is written in capitals.")
def _capitals(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return str(value).upper() if attribute.enum else value


@_spoiled("state_enum", "A value has underscores or blanks.")
def _spelled(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    if not attribute.enum:
        return value
    return str(value).replace(" ", "_") if " " in str(value) else f"{value} "


@_spoiled("state_enum", "A value is none of those allowed.")
def _unheard_of(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return draw.choice(("unknown", "archived", "n/a", "other")) if attribute.enum else value


@_spoiled("state_enum", "A value of another enumeration.")
def _borrowed(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    if not attribute.enum:
        return value
    all_values = [v for e in ground.entities.values() for a in e.attributes for v in a.enum or ()]
    return draw.choice([v for v in all_values if v not in attribute.enum] or [value])


@_spoiled("state_enum", "A value is empty.")
def _empty(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return "" if attribute.enum else value


# -- references --


@_spoiled("state_reference", "A reference leads nowhere.")
def _dangling(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return f"{value[:-4]}9{value[-3:]}" if attribute.references and isinstance(value, str) else value


@_spoiled("state_reference", "A reference leads to a record of another kind.")
def _other_kind(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    if not attribute.references or value is None:
        return value
    own = next(c for c, e in ground.entities.items() if e.name == attribute.references)
    others = [key for c in ground.entities if c != own for key in ground.initial[c]]
    return draw.choice(others)


@_spoiled("state_reference", "A reference is a name instead of an id.")
def _by_name(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    if not attribute.references or value is None:
        return value
    own = next(c for c, e in ground.entities.items() if e.name == attribute.references)
    return ground.label(own, value) or value


@_spoiled("state_reference", "A reference is empty text.")
def _blank(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return "" if attribute.references and value is not None else value


@_spoiled("state_reference", "A reference is in small letters.")
def _small(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return value.lower() if attribute.references and isinstance(value, str) else value


# -- JSON --


@_spoiled("state_not_json", "A number is no number.")
def _nan(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return math.nan if attribute.type == "float" else value


@_spoiled("state_not_json", "A number is without end.")
def _infinite(ground: Ground, attribute: Attribute, value: JsonValue, draw: Random) -> JsonValue:
    return draw.choice((math.inf, -math.inf)) if attribute.type == "float" else value


# -- rules --


@form("state_rule")
def _broken_rule(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    rules = [rule for rule in ground.skeleton.rules if rule.predicate is not None]
    for rule in draw.sample(rules, len(rules)):
        states = [_nudged(ground, draw) for _ in range(60)]
        told = bench.evaluated(str(rule.predicate), states)
        broken = (state for state, value in zip(states, told, strict=True) if value is False)
        for state in broken:
            others = [other for other in rules if other is not rule]
            alone = all(bench.evaluated(str(other.predicate), [state]) == [True] for other in others)
            scenario = ground.with_state(state)
            if alone and bench.solved(ground.skeleton, scenario):
                note = "The initial state breaks a rule."
                return planted_in("state_rule", ground, scenario, rule.text, note, state=state)
    return None


def _nudged(ground: Ground, draw: Random) -> State:
    """The initial state with one or two fields of untouched records changed within their types, or a twin added."""
    state = copy.deepcopy(ground.scenario.initial_state)
    places = list(ground.untouched())
    for _ in range(draw.choice((1, 1, 2))):
        container, key = draw.choice(places)
        entity = ground.entities[container]
        attributes = [attribute for attribute in entity.attributes if attribute.name != entity.key]
        attribute = draw.choice(attributes)
        record = state[container][key]
        value = record.get(attribute.name)
        if draw.random() < 0.3:
            new = f"{key[:-4]}8{key[-3:]}"
            state[container][new] = {**record, **({entity.key: new} if entity.key else {})}
        elif attribute.enum:
            record[attribute.name] = draw.choice(attribute.enum)
        elif attribute.references and value is not None:
            own = next(c for c, e in ground.entities.items() if e.name == attribute.references)
            record[attribute.name] = draw.choice(sorted(state[own]))
        elif isinstance(value, bool):
            record[attribute.name] = not value
        elif isinstance(value, (int, float)):
            record[attribute.name] = value * 10 + 50 if draw.random() < 0.7 else type(value)(0)
    return state
