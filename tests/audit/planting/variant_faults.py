"""Checks that know only the recorded way: the order of its calls, their number, the clock, the place of a record.

Where a program keeps no log or time stamp of its own, it is given one; as such that is sound, and declared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random

from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import Attribute, EnvSkeleton
from envscaler.state import State

from .bench import Bench, remembered
from .check_code import function, row, shuffled
from .faults import Planted, form, planted_in
from .grounds import Aim, Ground, ground_named, varied
from .methods import Method, attempts, with_line, with_source
from .scenario_faults import literal, moved, update_places

# -- other ways that are as right --


_ENOUGH = 3
"""Other orders of one solution that are looked for."""


@remembered
def swapped(scenario_id: str, bench: Bench) -> tuple[list[SolutionCall], ...]:
    """Solutions in which one update comes before an earlier one, with the same outcome as the sound checks see it."""
    ground = ground_named(scenario_id)
    places = update_places(ground)
    found: list[list[SolutionCall]] = []
    for first, second in [(i, j) for i in places for j in places if i < j]:
        needed = _needs(ground.solution, second)
        early = [index for index in range(first, second) if index in needed]
        if first in early:
            continue
        order = [*range(first), *early, second]
        order += [index for index in range(len(ground.solution)) if index not in order]
        calls = moved(ground.solution, order)
        if calls is None:
            continue
        played = bench.solve(ground.skeleton, ground.scenario, calls)
        if not played.failed and bench.accepts(ground.scenario, played.final):
            found.append(calls)
        if len(found) == _ENOUGH:
            break
    return tuple(found)


def _needs(calls: tuple[SolutionCall, ...], index: int) -> set[int]:
    needed: set[int] = set()
    for binding in calls[index].bindings.values():
        needed |= {binding.call} | _needs(calls, binding.call)
    return needed


@remembered
def detour(scenario_id: str, bench: Bench) -> tuple[SolutionCall, SolutionCall] | None:
    """An update and one that takes it back, both allowed in the initial state of a scenario."""
    ground = ground_named(scenario_id)
    for there, back in _pairs(ground):
        played = bench.solve(ground.skeleton, ground.scenario, [there, back])
        if not played.failed and played.outcomes[0].changed and played.final == ground.initial:
            return there, back
    return None


def _pairs(ground: Ground) -> Iterator[tuple[SolutionCall, SolutionCall]]:
    count = 0
    for tool in ground.skeleton.tools:
        choices = {name: s["enum"] for name, s in tool.parameters["properties"].items() if "enum" in s}
        ids = [name for name in tool.parameters["properties"] if name.endswith("_id")]
        if tool.effect == "query" or len(choices) != 1 or len(ids) != 1 or len(tool.parameters["properties"]) != 2:
            continue
        ((argument, values),) = choices.items()
        for container, key in ground.untouched():
            record = ground.initial[container][key]
            if ids[0] != ground.entities[container].key or record.get(argument) not in values:
                continue
            for value in values:
                if value != record[argument] and count < 60:
                    count += 1
                    yield (
                        SolutionCall(name=tool.name, arguments={ids[0]: key, argument: value}),
                        SolutionCall(name=tool.name, arguments={ids[0]: key, argument: record[argument]}),
                    )


# -- programs that keep a log --


def _logging(ground: Ground, attribute: Attribute, first: object, line: str) -> Ground:
    """The ground whose program does one thing more with every update: it adds to an attribute of the system."""
    skeleton = ground.skeleton
    for tool in skeleton.tools:
        if tool.effect == "update":
            method = Method(skeleton, tool)
            skeleton = method.edited(method.end, method.end, line.format(tool=tool.name))
    source = with_line(skeleton, f'self.{attribute.name} = state.get("{attribute.name}", {first!r})')
    skeleton = _declared(with_source(skeleton, source), None, attribute)
    state = {**ground.scenario.initial_state, attribute.name: first}
    scenario = varied(ground.scenario, initial_state=state, env_digest=skeleton.digest)
    return Ground(
        skeleton, scenario, {**ground.initial, attribute.name: first}, ground.final, ground.results, ground.aims
    )


def _declared(skeleton: EnvSkeleton, container: str | None, attribute: Attribute) -> EnvSkeleton:
    """The environment with one more attribute of an entity; in its class too where it is one of the system's."""
    entities = tuple(
        entity.model_copy(update={"attributes": (*entity.attributes, attribute)})
        if entity.container == container
        else entity
        for entity in skeleton.entities
    )
    return varied(skeleton, entities=entities)


def _refusing(
    ground: Ground, bench: Bench, ways: Sequence[list[SolutionCall]], sentence: str, source: str, note: str
) -> Planted | None:
    """The ground with one more check, if its solution satisfies it and one of the ways does not."""
    check = Check(description=sentence, source=source, kind="goal")
    scenario = ground.with_checks(*ground.scenario.checks, check)
    if not bench.solved(ground.skeleton, scenario):
        return None
    for calls in ways:
        played = bench.solve(ground.skeleton, scenario, calls)
        if (
            not played.failed
            and bench.accepts(ground.scenario, played.final)
            and not bench.accepts(scenario, played.final)
        ):
            also = ("order_or_clock", "hidden_requirement")
            return planted_in(
                "variant_fails",
                ground,
                scenario,
                sentence,
                note,
                also=also,
                skeleton=ground.skeleton,
                calls=tuple(calls),
            )
    return None


def _ways(ground: Ground, bench: Bench, *, swaps: bool) -> Sequence[list[SolutionCall]]:
    if swaps:
        return swapped(ground.scenario.id, bench)
    pair = detour(ground.scenario.id, bench)
    return [[*pair, *shifted(ground.solution, 2)]] if pair is not None else []


def shifted(calls: tuple[SolutionCall, ...], by: int) -> list[SolutionCall]:
    """The calls after so many others."""
    return [
        call.model_copy(
            update={
                "bindings": {
                    pointer: binding.model_copy(update={"call": binding.call + by})
                    for pointer, binding in call.bindings.items()
                }
            }
        )
        for call in calls
    ]


LoggedCheck = Callable[[list[str]], tuple[str, str]]


def _by_log(note: str, attribute: Attribute, first: object, line: str, check: LoggedCheck, *, swaps: bool) -> None:
    @form("variant_fails")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        ways = _ways(ground, bench, swaps=swaps)
        if not ways:
            return None
        logging = _logging(ground, attribute, first, line)
        names = [ground.solution[place].name for place in update_places(ground)]
        sentence, body = check(names)
        return _refusing(logging, bench, ways, sentence, function(body), note)


_ACTIVITY = Attribute(name="activity", type="list[str]", description="Names of the updates made, in order")
_LAST = Attribute(name="last_update", type="str", description="Name of the update made last")
_REVISION = Attribute(name="revision", type="int", description="Number of updates made")

_by_log(
    "A check demands the log of the recorded run, call by call.",
    _ACTIVITY,
    [],
    'self.activity.append("{tool}")',
    lambda names: (
        "Has every step been logged?",
        f'return final_state.get("activity", []) == {names!r}',
    ),
    swaps=True,
)
_by_log(
    "A check demands as many entries in the log as the recorded run had.",
    _ACTIVITY,
    [],
    'self.activity.append("{tool}")',
    lambda names: (
        f"Does the log have {len(names)} new entries?",
        f'return len(final_state["activity"]) == len(initial_state.get("activity", [])) + {len(names)}',
    ),
    swaps=False,
)
_by_log(
    "A check demands that the recorded run's last update came last.",
    _LAST,
    "",
    'self.last_update = "{tool}"',
    lambda names: (
        "Was the work completed with the last step?",
        f'return final_state.get("last_update") == "{names[-1]}"',
    ),
    swaps=True,
)
_by_log(
    "A check demands the number of updates of the recorded run.",
    _REVISION,
    0,
    "self.revision += 1",
    lambda names: (
        "Has the revision been raised accordingly?",
        f'return final_state["revision"] - initial_state["revision"] == {len(names)}',
    ),
    swaps=False,
)


def _two_new(ground: Ground) -> tuple[str, str, list[tuple[str, object]]] | None:
    """A container with several new records, and a field that tells them apart."""
    for container in ground.entities:
        new = [(key, record) for (place, key), record in ground.created.items() if place == container]
        if len(new) < 2:
            continue
        for field in new[0][1]:
            values = [record[field] for _, record in new]
            if field != ground.entities[container].key and len({str(value) for value in values}) == len(values):
                return container, field, [(key, record[field]) for key, record in new]
    return None


def _by_order(note: str, body: str) -> None:
    @form("variant_fails")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        found = _two_new(ground)
        if found is None:
            return None
        container, field, new = found
        words = {"container": container, "field": field, "first": new[0][1], "last": new[-1][1]}
        sentence = f"Have the new {container.replace('_', ' ')} been added as asked?"
        ways = swapped(ground.scenario.id, bench)
        return _refusing(ground, bench, ways, sentence, function(body.format(**words)), note)


_by_order(
    "A check demands that a certain new record is the last.",
    """
        added = [r for k, r in final_state["{container}"].items() if k not in initial_state["{container}"]]
        return bool(added) and added[-1]["{field}"] == {last!r}
    """,
)
_by_order(
    "A check demands that a certain new record has the lowest new id.",
    """
        new_ids = sorted(k for k in final_state["{container}"] if k not in initial_state["{container}"])
        if not new_ids:
            return False
        return final_state["{container}"][new_ids[0]].get("{field}") == {first!r}
    """,
)

# -- the clock, and the place of a record --


def _by_clock(note: str, body: Callable[[datetime], str], shift: timedelta) -> None:
    @form("order_or_clock")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        now = datetime.fromisoformat(ground.scenario.clock)
        for aim in shuffled(ground.aims_of("changed"), draw):
            right = f'{row(aim)}.get("{aim.field}") == {aim.after!r}'
            source = function(f"right = {right}\n{body(now)}", before="import datetime\n\n\n")
            scenario = ground.with_check(aim.check, source)
            description = ground.check(aim).description
            also = ("variant_fails", "nondeterministic")
            later = (now + shift).isoformat()
            if bench.accepts(scenario, ground.final):
                return planted_in(
                    "order_or_clock",
                    ground,
                    scenario,
                    description,
                    note,
                    also=also,
                    states=(ground.final,),
                    clock=later,
                )
        return None


_by_clock(
    "A check holds on one day only.",
    lambda now: f'return right and datetime.date.today().isoformat() == "{now:%Y-%m-%d}"',
    timedelta(days=1),
)
_by_clock(
    "A check holds in one year only.",
    lambda now: f"return right and datetime.datetime.now().year == {now.year}",
    timedelta(days=400),
)
_by_clock(
    "A check holds at certain hours only.",
    lambda now: f"return right and {now.hour} <= datetime.datetime.now().hour < {now.hour + 1}",
    timedelta(hours=2),
)
_by_clock(
    "A check is true for a week.",
    lambda now: (
        f"limit = datetime.datetime({now.year}, {now.month}, {now.day}) + datetime.timedelta(days=7)\n"
        "return right and datetime.datetime.now() < limit"
    ),
    timedelta(days=8),
)
_by_clock(
    "A check holds on one weekday only.",
    lambda now: f'return right and datetime.datetime.today().strftime("%A") == "{now:%A}"',
    timedelta(days=1),
)


def _by_place(note: str, body: str) -> None:
    @form("order_or_clock")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of("changed"), draw):
            keys = list(ground.final[aim.container])
            place = keys.index(aim.key)
            source = function(body.format(**vars(aim), place=place, tail=place - len(keys)))
            scenario = ground.with_check(aim.check, source)
            turned = _turned(ground.final, aim)
            told = bench.asked([source], ground.initial, turned, ground.scenario.clock)[0].value
            if bench.accepts(scenario, ground.final) and told is False:
                description = ground.check(aim).description
                return planted_in("order_or_clock", ground, scenario, description, note, states=(turned,))
        return None


def _turned(final: State, aim: Aim) -> State:
    """The same state with the records of a container the other way round."""
    return {**final, aim.container: dict(reversed(final[aim.container].items()))}


_by_place(
    "A check knows its record by its place in the container.",
    """
        records = list(final_state["{container}"].values())
        return len(records) > {place} and records[{place}].get("{field}") == {after!r}
    """,
)
_by_place(
    "A check knows its record by its place from the end.",
    """
        records = list(final_state.get("{container}", {{}}).values())
        return bool(records) and records[{tail}].get("{field}") == {after!r}
    """,
)


def _by_stamp(note: str, body: str) -> None:
    @form("order_or_clock")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        for aim in shuffled(ground.aims_of("added"), draw):
            stamped = _stamping(ground, aim)
            if stamped is None:
                continue
            played = bench.solve(stamped.skeleton, stamped.scenario)
            stamp = played.final[aim.container][aim.key].get("created_at")
            if stamp is None:
                continue
            source = function(body.format(**vars(aim), stamp=stamp), before="import datetime\n\n\n")
            scenario = stamped.with_check(aim.check, source)
            looks = [attempt.call for attempt in attempts(ground.skeleton.id, bench) if attempt.tool.effect == "query"]
            way = [looks[0], looks[1], *shifted(ground.solution, 2)]
            other = bench.solve(stamped.skeleton, scenario, way)
            if bench.accepts(scenario, played.final) and not bench.accepts(scenario, other.final):
                return planted_in(
                    "order_or_clock",
                    stamped,
                    scenario,
                    scenario.checks[aim.check].description,
                    note,
                    also=("variant_fails", "hidden_requirement"),
                    skeleton=stamped.skeleton,
                    calls=tuple(way),
                )
        return None


def _stamping(ground: Ground, aim: Aim) -> Ground | None:
    """The ground whose program stamps the records that are added to a container."""
    attribute = Attribute(name="created_at", type="str | None", description="When it was added")
    for place in update_places(ground):
        call = literal(ground, place)
        tool = ground.skeleton.tool(call.name)
        assert tool is not None
        method = Method(ground.skeleton, tool)
        adding = [i for i, line in enumerate(method.lines) if line.strip().startswith(f"self.{aim.container}[")]
        if not adding:
            continue
        target = method.lines[adding[0]].strip().partition(" = ")[0]
        line = f'{target}["created_at"] = dt.datetime.now().isoformat()'
        skeleton = method.edited(adding[0] + 1, adding[0] + 1, line)
        skeleton = varied(skeleton, source=f"import datetime as dt\n{skeleton.source}")
        skeleton = _declared(skeleton, aim.container, attribute)
        state = copy.deepcopy(ground.scenario.initial_state)
        for record in state[aim.container].values():
            record["created_at"] = None
        scenario: Scenario = varied(ground.scenario, initial_state=state, env_digest=skeleton.digest)
        return Ground(skeleton, scenario, state, ground.final, ground.results, ground.aims)
    return None


_by_stamp(
    "A check demands the time stamp of the recorded run.",
    """
        for key, record in final_state["{container}"].items():
            if key not in initial_state["{container}"] and record.get("created_at") == "{stamp}":
                return True
        return False
    """,
)
_by_stamp(
    "A check demands that the record is no older than the recorded one was.",
    """
        limit = datetime.datetime.fromisoformat("{stamp}") + datetime.timedelta(milliseconds=500)
        for key, record in final_state["{container}"].items():
            if key not in initial_state["{container}"]:
                return datetime.datetime.fromisoformat(record["created_at"]) <= limit
        return False
    """,
)
