"""Scenarios that are wrong as a whole: the solution fails, there is nothing to do, nobody watches, the task tells too
much."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from random import Random

from envscaler.scenario import Binding, Scenario, SolutionCall
from envscaler.state import JsonValue, State

from .bench import Bench
from .faults import Planted, form, planted_in
from .grounds import Ground, undone, varied, without

# -- the solution fails --

Editing = Callable[[Ground, list[SolutionCall], int, Random], list[SolutionCall] | None]


def _failing(note: str) -> Callable[[Editing], None]:
    """Registers an edit of the solution at one of its updates; kept where the solution fails with it."""

    def registered(edit: Editing) -> None:
        @form("solution_fails")
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            updates = update_places(ground)
            for place in draw.sample(updates, len(updates)):
                calls = edit(ground, list(ground.solution), place, draw)
                if calls is None:
                    continue
                scenario = varied(ground.scenario, solution=tuple(calls), alternatives=())
                if not bench.solved(ground.skeleton, scenario):
                    return planted_in("solution_fails", ground, scenario, "", note)
            return None

    return registered


def update_places(ground: Ground) -> list[int]:
    """Indices of the calls of the solution that may change something."""
    return [
        index
        for index, call in enumerate(ground.solution)
        if (tool := ground.skeleton.tool(call.name)) is not None and tool.effect == "update"
    ]


def literal(ground: Ground, place: int) -> SolutionCall:
    """A call of the solution with the values that it had and no bindings."""
    call = ground.solution[place]
    return SolutionCall(name=call.name, arguments=call.resolved(ground.results[:place]))


def _ids_in(ground: Ground, value: JsonValue) -> list[str]:
    """Ids of the same kind as one that an argument has."""
    for rows in (ground.initial[container] for container in ground.entities):
        if isinstance(value, str) and value in rows:
            return [key for key in rows if key != value]
    return []


def moved(calls: Sequence[SolutionCall], order: Sequence[int]) -> list[SolutionCall] | None:
    """The calls in another order or fewer of them, bindings following; None where one came before what it needs."""
    places = {old: new for new, old in enumerate(order)}
    out = []
    for old in order:
        bindings = {}
        for pointer, binding in calls[old].bindings.items():
            if binding.call not in places or places[binding.call] >= places[old]:
                return None
            bindings[pointer] = Binding(call=places[binding.call], pointer=binding.pointer)
        out.append(calls[old].model_copy(update={"bindings": bindings}))
    return out


@_failing("One update of the solution is gone.")
def _left_out(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    return moved(calls, [index for index in range(len(calls)) if index != place])


@_failing("One update of the solution works on another record.")
def _another_record(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    call = literal(ground, place)
    for argument, value in call.arguments.items():
        others = _ids_in(ground, value)
        if others:
            calls[place] = call.model_copy(update={"arguments": {**call.arguments, argument: draw.choice(others)}})
            return calls
    return None


@_failing("An id in the solution does not exist.")
def _no_such_id(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    call = literal(ground, place)
    for argument, value in call.arguments.items():
        if _ids_in(ground, value):
            calls[place] = call.model_copy(update={"arguments": {**call.arguments, argument: f"{value}X"}})
            return calls
    return None


@_failing("The solution uses a tool that does not exist.")
def _no_such_tool(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    calls[place] = calls[place].model_copy(update={"name": f"{calls[place].name}_v2"})
    return calls


@_failing("A required argument of the solution is missing.")
def _no_argument(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    call = literal(ground, place)
    tool = ground.skeleton.tool(call.name)
    required = list(tool.parameters.get("required", ())) if tool is not None else []
    if not required:
        return None
    kept = {name: value for name, value in call.arguments.items() if name != required[-1]}
    calls[place] = call.model_copy(update={"arguments": kept})
    return calls


@_failing("A value in the solution is another one than the checks demand.")
def _another_value(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    call = literal(ground, place)
    for argument, value in call.arguments.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            calls[place] = call.model_copy(update={"arguments": {**call.arguments, argument: value + 1}})
            return calls
        if isinstance(value, str) and " " in value:
            calls[place] = call.model_copy(update={"arguments": {**call.arguments, argument: value.split()[0]}})
            return calls
    return None


@_failing("The solution is empty.")
def _nothing(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    return []


@_failing("An update of the solution is made twice.")
def _twice(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    return [*calls, literal(ground, place)]


@_failing("A value of the solution is bound to the wrong result.")
def _wrong_binding(ground: Ground, calls: list[SolutionCall], place: int, draw: Random) -> list[SolutionCall] | None:
    call = calls[place]
    for pointer, binding in call.bindings.items():
        index = re.search(r"/data/(\d+)/", binding.pointer)
        if index is not None:
            other = "1" if index[1] == "0" else "0"
            wrong = Binding(call=binding.call, pointer=binding.pointer.replace(f"/{index[1]}/", f"/{other}/", 1))
            calls[place] = call.model_copy(update={"bindings": {**call.bindings, pointer: wrong}})
            return calls
    return None


# -- nothing is to be done --


def _is_reached(ground: Ground) -> bool:
    """Whether the solved state, taken as the initial one, satisfies all checks."""
    return not ground.created and all(aim.kind == "changed" for aim in ground.aims)


def _reached(note: str, change: Callable[[Ground, Random], Scenario | None]) -> None:
    @form("solved_at_reset")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        scenario = change(ground, draw)
        if scenario is None or not bench.accepts(scenario, scenario.initial_state):
            return None
        return planted_in("solved_at_reset", ground, scenario, "", note, also=("true_at_reset",))


def _target_state(ground: Ground, draw: Random) -> Scenario | None:
    return ground.with_state(ground.final) if _is_reached(ground) else None


def _goals_met(ground: Ground, draw: Random) -> Scenario | None:
    state = copy.deepcopy(ground.scenario.initial_state)
    for aim in ground.aims:
        if aim.kind != "changed":
            return None
        state[aim.container][aim.key][aim.field] = aim.after
    return ground.with_state(state)


def _unclassified(ground: Ground, draw: Random) -> Scenario | None:
    if not _is_reached(ground):
        return None
    checks = [check.model_copy(update={"kind": None}) for check in ground.scenario.checks]
    return varied(ground.with_state(ground.final), checks=tuple(checks), solution=None)


def _guards_only(ground: Ground, draw: Random) -> Scenario | None:
    checks = [check for check in ground.scenario.checks if check.kind == "guard"]
    if draw.random() < 0.5:
        checks = [check.model_copy(update={"kind": None}) for check in checks]
    return ground.with_checks(*checks)


_reached("The initial state is the solved one.", _target_state)
_reached("All that is asked for is so in the initial state.", _goals_met)
_reached("The initial state is the solved one, and no check is classified.", _unclassified)
_reached("Only checks are left that hold before anything is done.", _guards_only)


# -- nobody watches what was asked for --


def _unwatched(note: str, aim_kind: str, loosened: Callable[[str], str] | None, *also: str) -> None:
    @form("weak_checks")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        aims = ground.aims_of(aim_kind)
        for aim in draw.sample(aims, len(aims)):
            checks = list(ground.scenario.checks)
            if sum(check.kind == "goal" for check in checks) < 2:
                continue
            if loosened is None:
                del checks[aim.check]
            else:
                source = loosened(checks[aim.check].source)
                if source == checks[aim.check].source:
                    continue
                checks[aim.check] = checks[aim.check].model_copy(update={"source": source})
            scenario = ground.with_checks(*checks)
            wrong = _wrong_by(ground, bench, scenario, aim_kind, aim.container, aim.key, undone(ground.final, aim))
            if wrong is not None:
                return planted_in("weak_checks", ground, scenario, "", note, also=also, states=(wrong,))
        return None


def _wrong_by(
    ground: Ground, bench: Bench, scenario: Scenario, kind: str, container: str, key: str, undone_state: State
) -> State | None:
    """A wrong final state that no check of the scenario notices and that the sound checks notice."""
    wrong = [undone_state]
    if kind == "added":
        for attribute in ground.entities[container].attributes:
            if attribute.enum and len(attribute.enum) > 1:
                state = copy.deepcopy(ground.final)
                other = next(v for v in attribute.enum if v != state[container][key][attribute.name])
                state[container][key][attribute.name] = other
                wrong.append(state)
    for state in wrong:
        if bench.accepts(scenario, state) and not bench.accepts(ground.scenario, state):
            return state
    return None


def _only_the_first_field(source: str) -> str:
    lines = source.splitlines(keepends=True)
    if not any(line.strip() == "if (" for line in lines):
        return source
    return "".join(line for line in lines if not line.strip().startswith("and "))


def _any_of_enum(source: str) -> str:
    return re.sub(r"row\.get\(('\w+')\) == '[^']*'\n$", r"row.get(\1) is not None\n", source)


_unwatched("The check of one sub-goal, a change, is gone.", "changed", None)
_unwatched("The check of one sub-goal, a new record, is gone.", "added", None)
_unwatched("The check of one sub-goal, a removal, is gone.", "removed", None)
_unwatched("The check of a new record looks at one field only.", "added", _only_the_first_field, "false_positive")
_unwatched(
    "The check of a change accepts whatever is there.", "changed", _any_of_enum, "false_positive", "true_at_reset"
)


# -- nobody watches the rest --


def _unguarded(
    note: str, edit: Callable[[Ground, str, str], str | None] | None, over_edit: Callable[[Ground, str, str], State]
) -> None:
    @form("missing_guard")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        places = [place for place in ground.untouched() if place[0] in ground.entities]
        for container, key in draw.sample(places, min(6, len(places))):
            wrong = over_edit(ground, container, key)
            noticed = [outcome.value is not True for outcome in bench.judged(ground.scenario, wrong)]
            checks = []
            for check, notices in zip(ground.scenario.checks, noticed, strict=True):
                if not notices:
                    checks.append(check)
                elif edit is not None and check.kind == "guard":
                    source = edit(ground, check.source, container)
                    if source is not None:
                        checks.append(check.model_copy(update={"source": source}))
            scenario = ground.with_checks(*checks)
            goals = [check for check in ground.scenario.checks if check.kind == "goal"]
            kept = [check for check in checks if check.kind == "goal"]
            if len(kept) == len(goals) and any(noticed) and bench.accepts(scenario, wrong):
                pointer = f"/{container}/{key}"
                return planted_in("missing_guard", ground, scenario, "", f"{note} ({pointer})", states=(wrong,))
        return None


def _field_changed(ground: Ground, container: str, key: str) -> State:
    state = copy.deepcopy(ground.final)
    record = state[container][key]
    entity = ground.entities[container]
    for attribute in entity.attributes:
        value = record.get(attribute.name)
        if attribute.name == entity.key or attribute.references:
            continue
        if attribute.enum:
            record[attribute.name] = next(v for v in attribute.enum if v != value)
            return state
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            record[attribute.name] = value + 1
            return state
    record[entity.attributes[-1].name] = None
    return state


def _record_removed(ground: Ground, container: str, key: str) -> State:
    return without(ground.final, container, key)


def _record_added(ground: Ground, container: str, key: str) -> State:
    state = copy.deepcopy(ground.final)
    entity = ground.entities[container]
    new = f"{key[:-4]}7{key[-3:]}"
    state[container][new] = {**state[container][key], **({entity.key: new} if entity.key else {})}
    return state


def _without_container(ground: Ground, source: str, container: str) -> str | None:
    """The general guard without one container; other guards that notice are dropped."""
    return re.sub(rf"'{container}': \[[^\]]*\](, )?", "", source, count=1) if "fields = {" in source else None


def _any_number_added(ground: Ground, source: str, container: str) -> str | None:
    return source.replace("> added.get(container, 0)", "> 25") if "added.get(container, 0)" in source else None


def _skips_the_missing(ground: Ground, source: str, container: str) -> str | None:
    if "fields = {" not in source:
        return None
    return source.replace(
        "            if not isinstance(now, dict):\n                return False\n",
        "            if not isinstance(now, dict):\n                continue\n",
    )


_unguarded("All guards that notice a change of this record are gone.", None, _field_changed)
_unguarded("All guards that notice the loss of this record are gone.", None, _record_removed)
_unguarded("The general guard leaves the container out.", _without_container, _field_changed)
_unguarded("The general guard lets records be added.", _any_number_added, _record_added)
_unguarded("The general guard passes over records that are gone.", _skips_the_missing, _record_removed)


# -- the task tells too much --


def _told(kind: str, note: str, wording: Callable[[Ground, Random], str | None]) -> None:
    @form(kind)
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        task = wording(ground, draw)
        if task is None:
            return None
        return planted_in(kind, ground, varied(ground.scenario, task=task), "", note)


def _updating(ground: Ground, draw: Random) -> str:
    return ground.solution[draw.choice(update_places(ground))].name


_TOOL_HINTS: tuple[tuple[str, Callable[[Ground, Random], str]], ...] = (
    ("The task says which tool to use.", lambda g, d: f"{g.scenario.task} Use the `{_updating(g, d)}` tool for this."),
    ("The task writes a call down.", lambda g, d: f"{g.scenario.task} Simply call {_updating(g, d)}() in the end."),
    ("The task begins with a tool.", lambda g, d: f"Please run {g.solution[0].name} first. {g.scenario.task}"),
    (
        "The task names a tool in brackets.",
        lambda g, d: (
            g.scenario.task.replace(". ", f" ({_updating(g, d)}). ", 1)
            if ". " in g.scenario.task[:-1]
            else f"{g.scenario.task} ({_updating(g, d)})"
        ),
    ),
    (
        "The task lists the tools of the solution.",
        lambda g, d: f"{g.scenario.task}\n\nSteps: {' -> '.join(call.name for call in g.solution)}",
    ),
    (
        "The task forbids all tools but one.",
        lambda g, d: f'{g.scenario.task} Do not use anything but "{_updating(g, d)}" to make changes.',
    ),
)
for _note, _wording in _TOOL_HINTS:
    _told("leaks_tool_name", _note, _wording)


def _found_id(ground: Ground, draw: Random) -> tuple[str, str] | None:
    """A record that the task names, and that the solution finds by a query: its name and its id."""
    found = []
    for call in ground.solution:
        for pointer in call.bindings:
            value = call.arguments.get(pointer.strip("/"))
            for container in ground.entities:
                if isinstance(value, str) and value in ground.initial[container]:
                    label = ground.label(container, value)
                    if label and label in ground.scenario.task and value not in ground.scenario.task:
                        found.append((label, value))
    return draw.choice(found) if found else None


def _with_id(text: Callable[[str, str, str, str], str]) -> Callable[[Ground, Random], str | None]:
    def wording(ground: Ground, draw: Random) -> str | None:
        named = _found_id(ground, draw)
        if named is None:
            return None
        container = next(name for name in ground.entities if named[1] in ground.initial[name])
        return text(ground.scenario.task, *named, ground.entities[container].name)

    return wording


_ID_HINTS: tuple[tuple[str, Callable[[str, str, str, str], str]], ...] = (
    ("The task gives the id behind the name.", lambda t, label, key, kind: t.replace(label, f"{label} ({key})", 1)),
    ("The task gives the id instead of the name.", lambda t, label, key, kind: t.replace(label, key)),
    ("The task ends with the id.", lambda t, label, key, kind: f"{t} (By the way, {label} has the id {key}.)"),
    (
        "The task begins with a list of ids.",
        lambda t, label, key, kind: f"{kind} id: {key}. {t}",
    ),
    (
        "The task names the record by kind and id.",
        lambda t, label, key, kind: f"{t} To be clear, this is about {kind.lower()} #{key}.",
    ),
)
for _note, _text in _ID_HINTS:
    _told("leaks_id", _note, _with_id(_text))
