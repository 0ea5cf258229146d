"""Scenarios and environments that look wrong and are right; hard sound checks are in `suspicious`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton

from .bench import Bench
from .grounds import Ground, varied
from .methods import Method, with_line, with_source
from .scenario_faults import literal, update_places
from .suspicious import WAYS, Suspicious
from .variant_faults import shifted, swapped

# -- scenarios --


def _scenario(looks_like: str, note: str) -> Callable[[Callable[[Ground, Bench, Random], Scenario | None]], None]:
    def registered(change: Callable[[Ground, Bench, Random], Scenario | None]) -> None:
        def way(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
            scenario = change(ground, bench, draw)
            return None if scenario is None else Suspicious(looks_like, ground.skeleton, scenario, "", note)

        WAYS.append(way)

    return registered


@_scenario("leaks_tool_name", "The word with underscores is no tool.")
def _underscores(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    return varied(ground.scenario, task=f"{ground.scenario.task} (Asked for by the team after_hours_desk.)")


@_scenario("leaks_id", "What looks like an id is the number of a letter.")
def _letter_number(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    return varied(ground.scenario, task=f"{ground.scenario.task} Our letter about this is ZQ-7402.")


@_scenario("leaks_tool_name", "The task uses the words of the tool, as anybody would.")
def _plain_words(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    words = ground.solution[update_places(ground)[0]].name.replace("_", " ")
    return varied(ground.scenario, task=f"{ground.scenario.task} I do not know whether you call that {words}.")


@_scenario("solution_fails", "The solution has the same updates in another order, which is as right.")
def _another_order(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    ways = swapped(ground.scenario.id, bench)
    return varied(ground.scenario, solution=tuple(draw.choice(ways))) if ways else None


@_scenario("solution_fails", "The solution looks something up that it does not need.")
def _looks_twice(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    first = ground.solution[0]
    tool = ground.skeleton.tool(first.name)
    if tool is None or tool.effect == "update":
        return None
    return varied(ground.scenario, solution=(first, *shifted(ground.solution, 1)))


@_scenario("solution_fails", "The solution has literal values and no bindings.")
def _literal_values(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    calls = [literal(ground, place) for place in range(len(ground.solution))]
    return varied(ground.scenario, solution=tuple(calls))


@_scenario("state_type", "A whole number is a number.")
def _whole_number(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    state = copy.deepcopy(ground.scenario.initial_state)
    for container, key in ground.untouched():
        for attribute in ground.entities[container].attributes:
            value = state[container][key].get(attribute.name)
            if attribute.type == "float" and isinstance(value, float) and value.is_integer():
                state[container][key][attribute.name] = int(value)
                return ground.with_state(state)
    return None


@_scenario("state_reference", "A reference may be missing where its type says so.")
def _no_reference(ground: Ground, bench: Bench, draw: Random) -> Scenario | None:
    for container, key in ground.untouched():
        record = ground.initial[container][key]
        for attribute in ground.entities[container].attributes:
            if attribute.references and "None" in attribute.type and record.get(attribute.name) is None:
                return ground.scenario
    return None


# -- environments --


def _environment(looks_like: str, effect: str, note: str) -> Callable[[Callable[[Method], EnvSkeleton | None]], None]:
    def registered(change: Callable[[Method], EnvSkeleton | None]) -> None:
        def way(ground: Ground, bench: Bench, draw: Random) -> Suspicious | None:
            names = {call.name for call in ground.solution}
            tools = [tool for tool in ground.skeleton.tools if tool.effect == effect and tool.name in names]
            for tool in draw.sample(tools, len(tools)):
                skeleton = change(Method(ground.skeleton, tool))
                if skeleton is not None:
                    scenario = varied(ground.scenario, env_digest=skeleton.digest)
                    return Suspicious(looks_like, skeleton, scenario, tool.name, note)
            return None

        WAYS.append(way)

    return registered


@_environment("query_writes", "query", "The query works on a copy.")
def _sorts_a_copy(method: Method) -> EnvSkeleton | None:
    entity = next((e for e in method.skeleton.entities if e.container is not None), None)
    if entity is None:
        return None
    return method.edited(
        method.end,
        method.end,
        f"shown = copy.deepcopy(self.{entity.container})",
        "for record in shown.values():",
        '    record["shown"] = True',
        "shown.clear()",
    )


@_environment("query_writes", "query", "What the query writes to is gone when it returns.")
def _local_cache(method: Method) -> EnvSkeleton | None:
    return method.edited(method.start, method.start, "seen: dict[str, int] = {}", 'seen["calls"] = 1')


@_environment("failure_writes", "update", "What was written before a refusal is taken back.")
def _takes_back(method: Method) -> EnvSkeleton | None:
    if not method.refusals:
        return None
    entity = next((e for e in method.skeleton.entities if e.container is None), None)
    counters = [a.name for a in entity.attributes if a.type == "int"] if entity is not None else []
    if not counters:
        return None
    lines = list(method.lines)
    for refusal in method.refusals[::-1]:
        lines.insert(refusal.last - 1, f"        self.{counters[0]} -= 1")
    last = max(index for index, line in enumerate(lines) if line.strip() == f"self.{counters[0]} -= 1")
    lines.insert(last + 2, f"    self.{counters[0]} -= 1")
    lines.insert(method.start, f"    self.{counters[0]} += 1")
    return method.replaced(lines)


@_environment("program_nondeterministic", "update", "The random numbers are those of the environment's own seed.")
def _draws(method: Method) -> EnvSkeleton | None:
    skeleton = method.edited(method.start, method.start, "ticket = uuid.uuid4().hex", "assert len(ticket) == 32")
    return with_source(skeleton, f"import uuid\n{skeleton.source}")


@_environment("program_nondeterministic", "query", "The module's constant is read and never written.")
def _constant(method: Method) -> EnvSkeleton | None:
    skeleton = method.edited(method.start, method.start, "assert _LIMITS[0] < _LIMITS[-1]")
    name = skeleton.class_name
    return with_source(skeleton, skeleton.source.replace(f"class {name}:", f"_LIMITS = [1, 500]\n\n\nclass {name}:", 1))


@_environment("state_not_json", "update", "A set becomes a list, as every state is made JSON.")
def _set_in_state(method: Method) -> EnvSkeleton | None:
    source = with_line(method.skeleton, 'self.flags = set(state.get("flags", ["open"]))')
    return with_source(method.skeleton, source)


@_environment("schema_differs", "update", "Only the order and the descriptions are others.")
def _described_otherwise(method: Method) -> EnvSkeleton | None:
    parameters = copy.deepcopy(method.tool.parameters)
    named = list(parameters["properties"].items())[::-1]
    parameters["properties"] = {name: {**schema, "description": f"The {name}."} for name, schema in named}
    parameters["required"] = list(parameters.get("required", ()))[::-1]
    changed = varied(method.tool, parameters=parameters)
    tools = tuple(changed if tool.name == changed.name else tool for tool in method.skeleton.tools)
    return varied(method.skeleton, tools=tools)


@_environment("unreachable_tool", "update", "The additional test never refuses.")
def _idle_test(method: Method) -> EnvSkeleton | None:
    return method.edited(
        method.start,
        method.start,
        "if self.current_time is None:",
        '    return {"success": False, "error": "The clock is not set"}',
    )
