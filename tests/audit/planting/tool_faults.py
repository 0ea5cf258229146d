"""Tools that do nothing, cannot succeed, write when they must not, or are described wrongly."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from random import Random
from typing import Any

from envscaler.skeleton import EnvSkeleton

from .bench import Bench
from .faults import Evidence, Planted, form
from .grounds import Ground, varied
from .methods import Attempt, Method, attempts, still_solved, try_out

Change = Callable[[Method, Random], EnvSkeleton | None]
"""Another program, with a fault in one method."""
Shown = Callable[[Attempt, bool, bool], bool]
"""Whether an attempt, which worked and changed so much in the other program, shows the fault."""


def planted_in_tool(
    kind: str,
    ground: Ground,
    bench: Bench,
    skeleton: EnvSkeleton,
    place: str,
    note: str,
    shown_by: Attempt | None,
    also: tuple[str, ...] = (),
) -> Planted:
    """A fault of an environment."""
    evidence = Evidence()
    if shown_by is not None:
        evidence = Evidence(state=shown_by.state, calls=(shown_by.call,))
    return Planted(
        kind=kind,
        also=frozenset(also),
        skeleton=skeleton,
        scenario=None,
        place=place,
        note=note,
        beside=still_solved(bench, ground, skeleton),
        evidence=evidence,
    )


def in_method(
    kind: str,
    effect: str,
    suits: Callable[[Attempt], bool],
    shown: Shown,
    *,
    everywhere: bool = False,
    also: tuple[str, ...] = (),
) -> Callable[[Change], Change]:
    """Registers a change of a method, kept where an attempt, or every one (`everywhere`), shows that it is a fault."""

    def registered(change: Change) -> Change:
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            tried = [a for a in attempts(ground.skeleton.id, bench) if a.tool.effect == effect and suits(a)]
            tools = sorted({attempt.tool.name for attempt in tried})
            for name in draw.sample(tools, len(tools)):
                tool = ground.skeleton.tool(name)
                assert tool is not None
                skeleton = change(Method(ground.skeleton, tool), draw)
                if skeleton is None:
                    continue
                candidates = [a for a in tried if a.tool.name == name][:8]
                shows = [shown(a, *try_out(bench, skeleton, a)[:2]) for a in candidates]
                if any(shows) and (all(shows) or not everywhere):
                    attempt = candidates[shows.index(True)]
                    made = planted_in_tool(kind, ground, bench, skeleton, name, change.__doc__ or "", attempt, also)
                    if made.beside:
                        return made
            return None

        form(kind)(planting)
        return change

    return registered


def _works(attempt: Attempt) -> bool:
    return attempt.worked and attempt.changed


# -- says that it did, and did not --

_idle = in_method(
    "tool_without_effect", "update", _works, lambda attempt, worked, changed: worked and not changed, everywhere=True
)


@_idle
def _copies_itself(method: Method, draw: Random) -> EnvSkeleton | None:
    """Works on a copy of everything and throws it away."""
    return method.edited(method.start, method.start, "self = copy.deepcopy(self)  # never touch live objects")


@_idle
def _done_already(method: Method, draw: Random) -> EnvSkeleton | None:
    """Returns success before it writes."""
    if not method.work:
        return None
    first = method.work[0].lineno - 1
    return method.edited(first, first, 'return {"success": True, "message": "Operation completed successfully"}')


@_idle
def _rolls_back(method: Method, draw: Random) -> EnvSkeleton | None:
    """Restores what it saved before, in success too."""
    lines = [*method.lines[: method.end], "    vars(self).update(saved)", *method.lines[method.end :]]
    start = method.start
    return method.replaced([*lines[:start], "    saved = copy.deepcopy(vars(self))", *lines[start:]])


@_idle
def _forgets_to_write(method: Method, draw: Random) -> EnvSkeleton | None:
    """Has no statement that writes."""
    kept = list(method.lines)
    for statement in method.work:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        writes = isinstance(statement, ast.For | ast.AugAssign | ast.If | ast.Delete) or any(
            isinstance(target, ast.Attribute | ast.Subscript) for target in targets
        )
        if writes:
            for index in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                kept[index] = ""
    return method.replaced([line for index, line in enumerate(kept) if line or not method.lines[index]])


@_idle
def _writes_to_locals(method: Method, draw: Random) -> EnvSkeleton | None:
    """Keeps the new values in names of its own."""
    kept = list(method.lines)
    changed = False
    for statement in method.work:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
            continue
        target = statement.targets[0]
        if isinstance(target.slice, ast.Constant) and statement.lineno == statement.end_lineno:
            kept[statement.lineno - 1] = f"    new_{target.slice.value} = {ast.unparse(statement.value)}"
            changed = True
    return method.replaced(kept) if changed else None


@_idle
def _copies_the_record(method: Method, draw: Random) -> EnvSkeleton | None:
    """Copies the record that it found before it changes it."""
    found = [
        statement.targets[0].id
        for statement in method.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and ".get(" in ast.unparse(statement.value)
    ]
    if not found or not method.work or any(isinstance(statement, ast.For) for statement in method.work):
        return None
    first = method.work[0].lineno - 1
    return method.edited(first, first, *(f"{name} = dict({name})" for name in found))


# -- cannot succeed --

_stuck = in_method(
    "unreachable_tool", "update", _works, lambda attempt, worked, changed: not worked and not changed, everywhere=True
)


def _id_parameter(method: Method) -> tuple[str, str] | None:
    """An id that the tool takes, and the container that it is looked up in."""
    for statement in method.body:
        text = ast.unparse(statement)
        for name in method.tool.parameters["properties"]:
            if name.endswith("_id") and f".get({name})" in text:
                return name, text.partition("self.")[2].partition(".get(")[0]
    return None


@_stuck
def _must_not_exist(method: Method, draw: Random) -> EnvSkeleton | None:
    """Refuses what exists, after it refused what does not."""
    found = _id_parameter(method)
    if found is None:
        return None
    return method.edited(
        method.refusals[0].last,
        method.refusals[0].last,
        f"if {found[0]} in self.{found[1]}:",
        f'    return {{"success": False, "error": f"{{{found[0]}}} exists already"}}',
    )


@_stuck
def _wants_a_number(method: Method, draw: Random) -> EnvSkeleton | None:
    """Wants a whole number for an id that is a text everywhere else."""
    found = _id_parameter(method)
    if found is None:
        return None
    return method.edited(
        method.start,
        method.start,
        f"if not isinstance({found[0]}, int):",
        f'    return {{"success": False, "error": "{found[0]} must be an integer"}}',
    )


@_stuck
def _nobody_is_admin(method: Method, draw: Random) -> EnvSkeleton | None:
    """Asks for a permission that nothing can give."""
    return method.edited(
        method.start,
        method.start,
        'if not getattr(self, "admin_mode", False):',
        '    return {"success": False, "error": "Permission denied: admin mode required"}',
    )


@_stuck
def _no_such_helper(method: Method, draw: Random) -> EnvSkeleton | None:
    """Calls a method that the class does not have."""
    name = next(iter(method.tool.parameters["properties"]), None)
    if name is None:
        return None
    return method.edited(method.start, method.start, f"self._validate_{name}({name})")


@_stuck
def _contradiction(method: Method, draw: Random) -> EnvSkeleton | None:
    """Has two tests of which one always refuses."""
    plain = [refusal for refusal in method.refusals if " < " in refusal.test or " <= " in refusal.test]
    if not plain:
        return None
    refusal = plain[0]
    return method.edited(
        refusal.last,
        refusal.last,
        f"if not ({refusal.test}):",
        '    return {"success": False, "error": "The value is too large"}',
    )


@_stuck
def _no_such_status(method: Method, draw: Random) -> EnvSkeleton | None:
    """Asks for a status that no record can have."""
    found = _id_parameter(method)
    if found is None:
        return None
    return method.edited(
        method.refusals[0].last,
        method.refusals[0].last,
        f'if self.{found[1]}.get({found[0]}, {{}}).get("workflow_state") != "ready":',
        f'    return {{"success": False, "error": f"{{{found[0]}}} is not ready"}}',
    )


@_stuck
def _misspelt(method: Method, draw: Random) -> EnvSkeleton | None:
    """Uses a name that is not defined, before it returns."""
    return method.edited(method.end, method.end, "self.last_result = resutl")


# -- a query that writes --

_peeking = in_method(
    "query_writes", "query", lambda attempt: attempt.worked, lambda attempt, worked, changed: worked and changed
)


@_peeking
def _remembers(method: Method, draw: Random) -> EnvSkeleton | None:
    """Remembers which query was asked last."""
    return method.edited(method.start, method.start, f'self.last_query = "{method.tool.name}"')


@_peeking
def _counts(method: Method, draw: Random) -> EnvSkeleton | None:
    """Counts how often it was asked."""
    return method.edited(method.end, method.end, 'self.query_count = getattr(self, "query_count", 0) + 1')


@_peeking
def _keeps_a_log(method: Method, draw: Random) -> EnvSkeleton | None:
    """Keeps a log of queries."""
    line = f'self.__dict__.setdefault("access_log", []).append("{method.tool.name}")'
    return method.edited(method.end, method.end, line)


def _container(method: Method) -> str | None:
    effects = method.tool.effects or ()
    names = {entity.name: entity.container for entity in method.skeleton.entities}
    return next((names[effect.entity] for effect in effects if names.get(effect.entity)), None)


@_peeking
def _marks_what_it_shows(method: Method, draw: Random) -> EnvSkeleton | None:
    """Counts views in the records."""
    container = _container(method)
    if container is None:
        return None
    return method.edited(
        method.end,
        method.end,
        f"for record in self.{container}.values():",
        '    record["views"] = record.get("views", 0) + 1',
    )


@_peeking
def _uses_up_a_number(method: Method, draw: Random) -> EnvSkeleton | None:
    """Uses up a number that new ids are made of."""
    entity = next((e for e in method.skeleton.entities if e.container is None), None)
    numbers = [a.name for a in entity.attributes if a.type == "int"] if entity is not None else []
    return method.edited(method.start, method.start, f"self.{numbers[0]} += 1") if numbers else None


@_peeking
def _tidies_up(method: Method, draw: Random) -> EnvSkeleton | None:
    """Tidies up what it reads."""
    container = _container(method)
    entity = next((e for e in method.skeleton.entities if e.container == container), None)
    texts = [a.name for a in entity.attributes if a.type == "str" and not a.enum] if entity is not None else []
    texts = [name for name in texts if entity is not None and name != entity.key and not name.endswith("_id")]
    if container is None or not texts:
        return None
    return method.edited(
        method.start,
        method.start,
        f"for record in self.{container}.values():",
        f'    record["{texts[0]}"] = record["{texts[0]}"].strip().upper()',
    )


@_peeking
def _lets_time_pass(method: Method, draw: Random) -> EnvSkeleton | None:
    """Lets the day end."""
    return method.edited(method.end, method.end, 'self.current_time = self.current_time[:11] + "23:59:59"')


# -- a failure that writes --

_failing = in_method(
    "failure_writes",
    "update",
    lambda attempt: not attempt.worked,
    lambda attempt, worked, changed: not worked and changed,
)


@_failing
def _counts_attempts(method: Method, draw: Random) -> EnvSkeleton | None:
    """Counts attempts before it looks whether they are allowed."""
    return method.edited(method.start, method.start, 'self.attempts = getattr(self, "attempts", 0) + 1')


@_failing
def _number_first(method: Method, draw: Random) -> EnvSkeleton | None:
    """Takes the number of the new id before it tests the arguments."""
    numbers = [line for line in method.lines if line.strip().startswith("self.next_") and "+= 1" in line]
    return method.edited(method.start, method.start, numbers[0].strip()) if numbers else None


@_failing
def _notes_the_error(method: Method, draw: Random) -> EnvSkeleton | None:
    """Notes each refusal in the state."""
    lines = list(method.lines)
    for refusal in reversed(method.refusals):
        lines.insert(refusal.last - 1, '        self.last_error = "refused"')
    return method.replaced(lines)


@_failing
def _writes_before_the_rules(method: Method, draw: Random) -> EnvSkeleton | None:
    """Makes its first change before the last test."""
    if not method.refusals or not method.work:
        return None
    statement = method.work[0]
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.For):
        return None
    last = method.refusals[-1]
    first, end = statement.lineno - 1, statement.end_lineno or statement.lineno
    moved = method.lines[first:end]
    rest = [*method.lines[: last.first], *moved, *method.lines[last.first : first], *method.lines[end:]]
    return method.replaced(rest)


@_failing
def _flags_the_record(method: Method, draw: Random) -> EnvSkeleton | None:
    """Marks the record as being worked on and does not take it back."""
    found = _id_parameter(method)
    if found is None or len(method.refusals) < 2:
        return None
    place = method.refusals[0].last
    return method.edited(
        place,
        place,
        f"if {found[0]} in self.{found[1]}:",
        f'    self.{found[1]}[{found[0]}]["in_progress"] = True',
    )


@_failing
def _blocks_after_a_failure(method: Method, draw: Random) -> EnvSkeleton | None:
    """Keeps a list of what was refused."""
    if not method.refusals:
        return None
    lines = list(method.lines)
    line = f'        self.__dict__.setdefault("rejected", []).append("{method.tool.name}")'
    for refusal in method.refusals[::-1]:
        lines.insert(refusal.last - 1, line)
    return method.replaced(lines)


# -- a schema that is not the signature's --

Redescribing = Callable[[dict[str, Any], Random], bool]


def _schema(change: Redescribing) -> Redescribing:
    @form("schema_differs")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        tools = list(ground.skeleton.tools)
        for place in draw.sample(range(len(tools)), len(tools)):
            parameters = copy.deepcopy(tools[place].parameters)
            if not parameters["properties"] or not change(parameters, draw):
                continue
            tools[place] = varied(tools[place], parameters=parameters)
            skeleton = varied(ground.skeleton, tools=tuple(tools))
            name, note = tools[place].name, change.__doc__ or ""
            return planted_in_tool("schema_differs", ground, bench, skeleton, name, note, None)
        return None

    return change


@_schema
def _renamed(parameters: dict[str, Any], draw: Random) -> bool:
    """A parameter has another name in the schema."""
    name = draw.choice(list(parameters["properties"]))
    other = name.removesuffix("_id") if name.endswith("_id") else f"{name}_value"
    parameters["properties"] = {other if n == name else n: s for n, s in parameters["properties"].items()}
    parameters["required"] = [other if n == name else n for n in parameters.get("required", ())]
    return True


@_schema
def _one_too_many(parameters: dict[str, Any], draw: Random) -> bool:
    """The schema has a parameter that the method does not take."""
    name = draw.choice(("reason_code", "dry_run", "requested_by"))
    parameters["properties"][name] = {"type": "string", "description": "Who or why."}
    return True


@_schema
def _one_missing(parameters: dict[str, Any], draw: Random) -> bool:
    """The schema lacks a parameter that the method requires."""
    required = list(parameters.get("required", ()))
    if not required:
        return False
    del parameters["properties"][required[-1]]
    parameters["required"] = required[:-1]
    return True


@_schema
def _another_type(parameters: dict[str, Any], draw: Random) -> bool:
    """A parameter has another type in the schema."""
    plain = [n for n, s in parameters["properties"].items() if s.get("type") in ("string", "number", "integer")]
    plain = [n for n in plain if "enum" not in parameters["properties"][n]]
    if not plain:
        return False
    schema = parameters["properties"][draw.choice(plain)]
    schema["type"] = "integer" if schema["type"] == "string" else "string"
    return True


@_schema
def _optional_in_the_schema(parameters: dict[str, Any], draw: Random) -> bool:
    """The method requires what the schema leaves optional."""
    required = list(parameters.get("required", ()))
    if not required:
        return False
    parameters["required"] = required[:-1]
    return True


@_schema
def _other_values(parameters: dict[str, Any], draw: Random) -> bool:
    """The schema offers a value that the signature does not have."""
    named = [n for n, s in parameters["properties"].items() if "enum" in s]
    if not named:
        return False
    schema = parameters["properties"][draw.choice(named)]
    schema["enum"] = [*schema["enum"][:-1], "on_hold"]
    return True
