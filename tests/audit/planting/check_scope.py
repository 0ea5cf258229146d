"""Checks tied to the recorded run: to ids that came into being in it, to whole containers, to untold values."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from envscaler.scenario import Scenario, SolutionCall
from envscaler.state import JsonValue, State

from .bench import Bench
from .check_code import function, rows, shuffled
from .faults import Planted, form, planted_in
from .grounds import Aim, Ground, varied

# -- ids that come into being in the episode --


def renamed(state: State, old: str, new: str) -> State:
    """The state in which a record has another id, wherever it is named."""
    changed: State = json.loads(json.dumps(state).replace(json.dumps(old), json.dumps(new)))
    return changed


def _by_id(note: str, body: str) -> None:
    @form("created_ids")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of("added"), draw):
            fields = [name for name, value in aim.after.items() if value not in (None, aim.key)]
            field = draw.choice(fields)
            head, tail = aim.key[:-4], aim.key[-4:]
            words = {**vars(aim), "field": field, "value": aim.after[field], "head": head, "tail": tail}
            source = function(body.format(**words, rows=rows(aim)))
            scenario = ground.with_check(aim.check, source)
            other = renamed(ground.final, aim.key, f"{aim.key[:-4]}9{aim.key[-3:]}")
            description = ground.check(aim).description
            also = ("variant_fails",)
            return planted_in("created_ids", ground, scenario, description, note, also=also, states=(other,))
        return None


_by_id(
    "Looks the new record up under the id of the recorded run.",
    """
        record = final_state.get("{container}", {{}}).get("{key}")
        if not record:
            return False
        return record.get("{field}") == {value!r}
    """,
)
_by_id("Asks for the id of the recorded run.", 'return "{key}" in {rows}')
_by_id(
    "Goes through the records for the id of the recorded run.",
    """
        for key, record in {rows}.items():
            if key == "{key}" and record.get("{field}") == {value!r}:
                return True
        return False
    """,
)
_by_id(
    "Puts the id of the recorded run together.",
    """
        record_id = "{head}" + "{tail}"
        return {rows}.get(record_id, {{}}).get("{field}") == {value!r}
    """,
)
_by_id(
    "Compares the ids that are new with the one of the recorded run.",
    """
        new_ids = set({rows}) - set(initial_state.get("{container}", {{}}))
        return "{key}" in new_ids
    """,
)
_by_id(
    "Knows the new record by the end of its id.",
    """
        new = [k for k in {rows} if k not in initial_state["{container}"]]
        return any(k.endswith("{tail}") for k in new)
    """,
)


# -- whole states --


def _whole(ground: Ground, place: int, source: str, note: str, state: State, also: tuple[str, ...] = ()) -> Planted:
    scenario = ground.with_check(place, source)
    description = ground.scenario.checks[place].description
    return planted_in("whole_state", ground, scenario, description, note, also=also, states=(state,))


def _elsewhere(ground: Ground, container: str, aim: Aim | None) -> State | None:
    """The solved state with a change to a record, or a field, that the check's sentence does not speak of."""
    state = copy.deepcopy(ground.final)
    for key, record in state[container].items():
        for field, value in record.items():
            own = aim is not None and key == aim.key
            if not own and (container, key) not in ground.touched and isinstance(value, str) and field != key:
                record[field] = f"{value} (moved)"
                return state
    return None


@form("whole_state")
def _container_as_written(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("changed"), draw):
        other = _elsewhere(ground, aim.container, aim)
        if other is not None:
            expected: JsonValue = ground.final[aim.container]
            source = function(f'expected = {expected!r}\nreturn final_state["{aim.container}"] == expected')
            return _whole(ground, aim.check, source, "Compares the container with one that is written out.", other)
    return None


@form("whole_state")
def _initial_with_a_change(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("changed"), draw):
        other = _elsewhere(ground, aim.container, aim)
        in_container = [a for a in ground.aims if a.container == aim.container]
        if other is not None and len(in_container) == 1 and len(_places(ground, aim.container)) == 1:
            source = function(f"""
                import copy
                expected = copy.deepcopy(initial_state["{aim.container}"])
                expected["{aim.key}"]["{aim.field}"] = {aim.after!r}
                return final_state["{aim.container}"] == expected
            """)
            return _whole(ground, aim.check, source, "Compares the container with the initial one, changed.", other)
    return None


def _places(ground: Ground, container: str) -> list[tuple[str, str]]:
    return [
        (key, field)
        for key, record in ground.final[container].items()
        for field, value in record.items()
        if value != ground.initial[container].get(key, {}).get(field)
    ]


@form("whole_state")
def _text_of_a_container(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(ground.aims_of("changed"), draw):
        other = _elsewhere(ground, aim.container, aim)
        if other is not None:
            text = json.dumps(ground.final[aim.container], sort_keys=True)
            source = function(
                f'return json.dumps(final_state.get("{aim.container}", {{}}), sort_keys=True) == {text!r}',
                before="import json\n\n\n",
            )
            return _whole(ground, aim.check, source, "Compares the text of the container.", other)
    return None


@form("whole_state")
def _everything_as_written(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(list(ground.aims), draw):
        container = draw.choice([name for name in ground.entities if name != aim.container])
        other = _elsewhere(ground, container, None)
        if other is not None:
            source = function(f"return final_state == {ground.final!r}")
            return _whole(ground, aim.check, source, "Compares the whole state with the recorded one.", other)
    return None


@form("whole_state")
def _all_other_containers(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    guards = [place for place, check in enumerate(ground.scenario.checks) if check.kind == "guard"]
    touched = {place[0] for place in ground.touched} | {k for k, v in ground.initial.items() if v != ground.final[k]}
    rest = [name for name in ground.entities if name not in touched]
    if not rest:
        return None
    other = _elsewhere(ground, rest[0], None)
    if other is None:
        return None
    source = function(f"""
        changed = {sorted(touched)!r}
        before = {{name: part for name, part in initial_state.items() if name not in changed}}
        after = {{name: part for name, part in final_state.items() if name not in changed}}
        return before == after
    """)
    place = draw.choice(guards)
    description = "Has the rest of the system been left alone?"
    scenario = ground.with_check(place, source, description)
    note = "A guard compares all containers but those that change, counters and clock included."
    return planted_in("whole_state", ground, scenario, description, note, states=(other,))


@form("whole_state")
def _something_happened(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    for aim in shuffled(list(ground.aims), draw):
        wrong = _elsewhere_at_first(ground, aim.container)
        if wrong is not None:
            source = function(f'return final_state.get("{aim.container}") != initial_state.get("{aim.container}")')
            note = "Asks only whether the container is another one than before."
            return _whole(ground, aim.check, source, note, wrong, also=("false_positive",))
    return None


def _elsewhere_at_first(ground: Ground, container: str) -> State | None:
    """The initial state with a change to a record that nobody speaks of."""
    state = copy.deepcopy(ground.initial)
    for key, record in state[container].items():
        texts = [field for field, value in record.items() if isinstance(value, str)]
        if (container, key) not in ground.touched and texts:
            record[texts[-1]] += " (moved)"
            return state
    return None


# -- values that nobody told --

_VAGUE = {
    "quoted": "something suitable",
    "number": "some",
    "text": "whatever seems right",
}


@dataclass(frozen=True)
class _Told:
    """A value that the task tells and a check demands."""

    call: int
    argument: str
    value: JsonValue
    text: str
    """How the task puts it."""
    way: str


def _told(ground: Ground) -> Iterator[_Told]:
    task = ground.scenario.task
    for index, call in enumerate(ground.solution):
        tool = ground.skeleton.tool(call.name)
        if tool is None or tool.effect == "query":
            continue
        for argument, value in call.arguments.items():
            if f"/{argument}" in call.bindings or "enum" in json.dumps(tool.parameters["properties"][argument]):
                continue
            if isinstance(value, str) and f'"{value}"' in task:
                yield _Told(index, argument, value, f'"{value}"', "quoted")
            elif isinstance(value, str) and len(value) > 5 and value in task:
                yield _Told(index, argument, value, value, "text")
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                for text in (f"{value:.2f}", str(value), f"{value:g}"):
                    if re.search(rf"(?<![\w.]){re.escape(text)}(?![\w]|\.\d)", task):
                        yield _Told(index, argument, value, text, "number")
                        break


def _is_known(ground: Ground, task: str, value: JsonValue) -> bool:
    """Whether a value stands in the task, in the initial state, or in what a query of the solution returns."""
    text = json.dumps(value, ensure_ascii=False)
    plain = str(value) if isinstance(value, str) else f"{value:g}"
    queries = [
        result
        for call, result in zip(ground.solution, ground.results, strict=True)
        if (tool := ground.skeleton.tool(call.name)) is not None and tool.effect == "query"
    ]
    known = json.dumps([ground.initial, queries], ensure_ascii=False)
    in_state = re.search(rf"(?<![\w.]){re.escape(text)}(?:\.0)?(?![\w.])", known) is not None
    return in_state or re.search(rf"(?<![\w.]){re.escape(plain)}(?![\w])", task) is not None


def _demanding(scenario: Scenario, value: JsonValue) -> list[int]:
    """The goal checks in which a value stands."""
    forms = {repr(value), repr(float(value)) if isinstance(value, int) else repr(value)}
    if isinstance(value, str):
        forms.add(repr(value.casefold()))
    return [
        place
        for place, check in enumerate(scenario.checks)
        if check.kind == "goal" and any(re.search(rf"(?<![\w.]){re.escape(f)}(?![\w.])", check.source) for f in forms)
    ]


def _dropped(way: str, note: str) -> None:
    @form("hidden_requirement")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        told = [one for one in _told(ground) if one.way == way and ground.scenario.task.count(one.text) == 1]
        for one in draw.sample(told, len(told)):
            task = ground.scenario.task.replace(one.text, _VAGUE[way])
            places = _demanding(ground.scenario, one.value)
            if len(places) == 1 and not _is_known(ground, task, one.value):
                scenario = varied(ground.scenario, task=task, user_profile=None)
                description = scenario.checks[places[0]].description
                return _hidden(ground, scenario, description, note, one.value)
        return None


def _hidden(ground: Ground, scenario: Scenario, description: str, note: str, value: JsonValue) -> Planted:
    made = planted_in("hidden_requirement", ground, scenario, description, note)
    return replace(made, evidence=replace(made.evidence, value=value))


_dropped("quoted", "The task no longer says the text that a check demands.")
_dropped("text", "The task no longer says what a check demands.")
_dropped("number", "The task no longer says the number that a check demands.")


@form("hidden_requirement")
def _another_text(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    inventions = ("Reviewed by desk 4", "Ref. QX-7719", "Approved per phone call", "see protocol of Tuesday")
    told = [one for one in _told(ground) if one.way != "number" and ground.scenario.task.count(one.text) == 1]
    for one in draw.sample(told, len(told)):
        value = draw.choice(inventions)
        made = _invented(ground, bench, one, value, ground.scenario.task.replace(one.text, _VAGUE[one.way]))
        if made is not None:
            return made
    return None


@form("hidden_requirement")
def _untold_choice(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
    """Uses an optional argument of which the task says nothing."""
    for index, call in enumerate(ground.solution):
        tool = ground.skeleton.tool(call.name)
        if tool is None or tool.effect == "query":
            continue
        for argument in tool.parameters["properties"]:
            if argument in call.arguments or argument in tool.parameters.get("required", ()):
                continue
            for value in (9, 17, 23, 2, 4, 137.0):
                made = _invented(ground, bench, _Told(index, argument, None, "", ""), value, ground.scenario.task)
                if made is not None:
                    return made
    return None


def _invented(ground: Ground, bench: Bench, one: _Told, value: JsonValue, task: str) -> Planted | None:
    """The scenario whose solution uses an untold value and whose checks demand what comes of it."""
    call = ground.solution[one.call]
    other = call.model_copy(update={"arguments": {**call.arguments, one.argument: value}})
    calls: list[SolutionCall] = [*ground.solution[: one.call], other, *ground.solution[one.call + 1 :]]
    played = bench.solve(ground.skeleton, ground.scenario, calls)
    if played.failed:
        return None
    scenario = varied(ground.scenario, task=task, solution=tuple(calls), user_profile=None)
    refused = [place for place, told in enumerate(bench.judged(scenario, played.final)) if told.value is not True]
    if len(refused) != 1 or scenario.checks[refused[0]].kind != "goal":
        return None
    check = scenario.checks[refused[0]]
    for container, key in ground.touched:
        before, after = (state[container].get(key, {}) for state in (ground.final, played.final))
        for field, now in after.items():
            was = before.get(field)
            if was == now or was is None or _is_known(ground, task, now):
                continue
            source = check.source.replace(repr(was), repr(now))
            if isinstance(was, str) and isinstance(now, str):
                source = source.replace(repr(was.casefold()), repr(now.casefold()))
            description = check.description.replace(str(was), str(now))
            checks = [*scenario.checks]
            checks[refused[0]] = check.model_copy(update={"source": source, "description": description})
            changed = varied(scenario, checks=tuple(checks))
            if source != check.source and bench.accepts(changed, played.final):
                return _hidden(ground, changed, description, "A check demands a value that only the solver knew.", now)
    return None
