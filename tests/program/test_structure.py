"""The measure sees what a program does and nothing of what it calls it; distances lie between 0 and 1."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program.renaming import renamed

from envscaler.offline.design import class_source, tools_of
from envscaler.offline.domains import domains
from envscaler.offline.methods import method_source
from envscaler.program import assemble
from envscaler.program.structure import program_graph, structure_distance, structure_of, structure_signature
from envscaler.skeleton import EnvDescription, EnvSkeleton, ToolSpec

laws = settings(deadline=None, max_examples=30)

LENDING = '''
from typing import Optional, TypedDict


class Thing(TypedDict):
    thing_id: str
    label: str
    status: str
    holder: Optional[str]
    colour: str


class Member(TypedDict):
    member_id: str
    limit: int


class Desk:
    def __init__(self, config: dict) -> None:
        self.things: dict[str, Thing] = config.get("things", {})
        self.members: dict[str, Member] = config.get("members", {})

    def _held(self, member_id: str) -> int:
        return sum(1 for thing in self.things.values() if thing["holder"] == member_id)

    def find(self, label: str) -> dict:
        found = [dict(thing) for thing in self.things.values() if thing["label"] == label]
        return {"success": True, "data": found}

    def lend(self, thing_id: str, member_id: str) -> dict:
        """Lend a thing."""
        thing = self.things.get(thing_id)
        if thing is None:
            return {"success": False, "error": "no such thing"}
        member = self.members.get(member_id)
        if member is None:
            return {"success": False, "error": "no such member"}
        if thing["status"] != "free":
            return {"success": False, "error": f"{thing['label']} is lent"}
        if self._held(member_id) >= member["limit"]:
            return {"success": False, "error": "too many"}
        thing["status"] = "lent"
        thing["holder"] = member_id
        return {"success": True, "message": f"{thing['label']} was lent"}

    def close(self, member_id: str) -> dict:
        if member_id not in self.members:
            return {"success": False, "error": "no such member"}
        for thing in self.things.values():
            if thing["holder"] == member_id:
                thing["holder"] = None
        del self.members[member_id]
        return {"success": True, "message": "closed"}
'''
TOOLS = ["find", "lend", "close"]


def signature(source: str, tools: list[str] | None = None) -> str:
    return program_graph(source, "Desk", tools if tools is not None else TOOLS).signature()


def edited(old: str, new: str) -> str:
    assert LENDING.count(old) == 1, f"{old!r} is not there once"
    return LENDING.replace(old, new)


@cache
def generated() -> tuple[EnvSkeleton, ...]:
    made = []
    for blueprint in domains()[:6]:
        methods = {operation.name: method_source(blueprint, operation) for operation in blueprint.operations}
        made.append(
            EnvSkeleton(
                id=blueprint.slug,
                description=EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
                tools=tools_of(blueprint),
                class_name=blueprint.class_name,
                source=assemble(class_source(blueprint), methods),
            )
        )
    return tuple(made)


def graph_of(skeleton: EnvSkeleton) -> Any:
    return program_graph(skeleton.source, skeleton.class_name, [tool.name for tool in skeleton.tools])


@laws
@given(which=st.integers(0, 5), prefix=st.sampled_from(["zz", "quux", "wob"]))
def test_names_texts_numbers_docstrings_and_order_do_not_count(which: int, prefix: str) -> None:
    skeleton = generated()[which]
    source, class_name, tools = renamed(
        skeleton.source, skeleton.class_name, [tool.name for tool in skeleton.tools], lambda name: f"{prefix}_{name}"
    )
    assert source != skeleton.source
    assert class_name != skeleton.class_name
    assert program_graph(source, class_name, tools).signature() == graph_of(skeleton).signature()


@laws
@given(which=st.integers(0, 5), draw=st.data())
def test_a_tool_less_is_another_structure(which: int, draw: st.DataObject) -> None:
    skeleton = generated()[which]
    gone = draw.draw(st.sampled_from(skeleton.tools))
    tools = [tool.name for tool in skeleton.tools if tool is not gone]
    graph = program_graph(skeleton.source, skeleton.class_name, tools)
    assert graph.signature() != graph_of(skeleton).signature()


@laws
@given(which=st.integers(0, 5), draw=st.data())
def test_a_condition_less_is_another_structure(which: int, draw: st.DataObject) -> None:
    skeleton = generated()[which]
    tree = ast.parse(skeleton.source)
    names = {tool.name for tool in skeleton.tools}
    refusals = [
        (block, statement)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in names
        for holder in ast.walk(function)
        if isinstance(block := getattr(holder, "body", None), list) and len(block) > 1
        for statement in block
        if isinstance(statement, ast.If) and "'success': False" in ast.unparse(statement.body[0])
    ]
    block, statement = draw.draw(st.sampled_from(refusals))
    block.remove(statement)
    graph = program_graph(ast.unparse(tree), skeleton.class_name, [tool.name for tool in skeleton.tools])
    assert graph.signature() != graph_of(skeleton).signature()


@laws
@given(which=st.integers(0, 5), draw=st.data())
def test_an_effect_less_is_another_structure(which: int, draw: st.DataObject) -> None:
    skeleton = generated()[which]
    tree = ast.parse(skeleton.source)
    changes = [
        (holder.body, statement)
        for holder in ast.walk(tree)
        if isinstance(holder, ast.FunctionDef | ast.For | ast.If)
        for statement in holder.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
    ]
    block, statement = draw.draw(st.sampled_from(changes))
    block[block.index(statement)] = ast.Pass()
    graph = program_graph(ast.unparse(tree), skeleton.class_name, [tool.name for tool in skeleton.tools])
    assert graph.signature() != graph_of(skeleton).signature()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    colour: str\n", "    colour: str\n    weight: int\n"),
        ("    colour: str\n", ""),
        ('"no such thing"', 'f"{thing_id} is not here"'),
        ('thing["status"] != "free"', '"available" != thing["status"]'),
        ('self._held(member_id) >= member["limit"]', 'member["limit"] <= self._held(member_id)'),
        ("if thing is None:", "if not thing:"),
        (
            "self._held(member_id) >=",
            "sum(1 for other in self.things.values() if other['holder'] == member_id) >=",
        ),
        (
            '        thing = self.things.get(thing_id)\n        if thing is None:\n            return {"success": '
            'False, "error": "no such thing"}\n',
            '        if thing_id not in self.things:\n            return {"success": False, "error": "no"}\n'
            "        thing = self.things[thing_id]\n",
        ),
        ('thing["status"] = "lent"', 'thing.update({"status": "lent"})'),
        ('"message": f"{thing[\'label\']} was lent"', '"message": "It was lent"'),
    ],
    ids=[
        "a field that nothing uses is added",
        "a field that nothing uses is gone",
        "another text",
        "a comparison the other way round and another constant",
        "a comparison mirrored",
        "the same test of a look-up",
        "a helper written out",
        "another way to look up",
        "another way to set",
        "a message that tells less",
    ],
)
def test_the_same_in_other_words_is_the_same(old: str, new: str) -> None:
    assert signature(edited(old, new)) == signature(LENDING)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('thing["status"] = "lent"', 'member["limit"] = 0'),
        ('thing["holder"] = None', "pass"),
        ("del self.members[member_id]", "pass"),
        ('self._held(member_id) >= member["limit"]', 'self._held(member_id) > member["limit"]'),
        ('self._held(member_id) >= member["limit"]', 'self._held(thing_id) >= member["limit"]'),
        ('if thing["label"] == label', 'if thing["colour"] == label'),
        ("    limit: int\n", "    limit: float\n"),
        ('if thing["holder"] == member_id:', "if True:"),
        ("label: str) -> dict:", "label: int) -> dict:"),
    ],
)
def test_what_is_read_required_or_changed_counts(old: str, new: str) -> None:
    if old == 'if thing["label"] == label':
        # Another attribute alone would be another name; here it is one that `lend` has a use for.
        old, new = old, 'if thing["status"] == label'
    assert signature(edited(old, new)) != signature(LENDING)


def test_a_refusal_for_either_of_two_reasons_is_two_refusals() -> None:
    joined = edited(
        'if thing["status"] != "free":\n            return {"success": False, "error": f"{thing[\'label\']} is lent"}\n'
        '        if self._held(member_id) >= member["limit"]:',
        'if thing["status"] != "free" or self._held(member_id) >= member["limit"]:',
    )
    assert signature(joined) == signature(LENDING)


def test_a_check_in_a_method_of_its_own_is_the_same_check() -> None:
    outside = edited(
        '        if thing["status"] != "free":\n'
        '            return {"success": False, "error": f"{thing[\'label\']} is lent"}\n',
        "        problem = self._problem(thing)\n"
        "        if problem is not None:\n"
        '            return {"success": False, "error": problem}\n',
    ).replace(
        "    def _held",
        "    def _problem(self, thing):\n"
        '        if thing["status"] != "free":\n'
        '            return "it is lent"\n'
        "        return None\n\n    def _held",
    )
    assert signature(outside) == signature(LENDING)


MATCHING = """
        match label:
            case "all":
                for thing in self.things.values():
                    thing["holder"] = None
            case _:
                {other}
        return {{"success": True}}
"""


def test_what_stands_in_a_match_counts() -> None:
    def with_other(other: str) -> str:
        start, end = LENDING.index("        found ="), LENDING.index("    def lend")
        return signature(LENDING[:start] + MATCHING.format(other=other) + "\n" + LENDING[end:])

    assert len({with_other("pass"), with_other("self.things.clear()"), with_other("del self.members[label]")}) == 3


def test_an_assertion_is_a_condition() -> None:
    line = "        member = self.members.get(member_id)\n"
    asserted = LENDING.replace(line, line + '        assert thing["colour"] == thing_id\n', 1)
    said = LENDING.replace(
        line, line + '        if not (thing["colour"] == thing_id):\n            raise ValueError("colour")\n', 1
    )
    assert signature(asserted) != signature(LENDING)
    assert signature(asserted) == signature(said)


def test_what_holds_ids_of_another_container_references_it() -> None:
    apart = edited("self.members: dict[str, Member]", "self.people: dict[str, Member]").replace(
        "self.members", "self.people"
    )
    assert signature(apart) == signature(LENDING)
    elsewhere = edited("if member_id not in self.members:", "if member_id not in self.things:")
    assert signature(elsewhere) != signature(LENDING)


def test_methods_that_call_themselves_end() -> None:
    looping = edited("return sum(1 for thing", "return self._held(member_id) + sum(1 for thing")
    assert signature(looping) != signature(LENDING)


def test_distance_is_zero_for_equals_and_grows_with_the_difference() -> None:
    skeletons = generated()
    fewer = skeletons[0].model_copy(update={"tools": skeletons[0].tools[:-1]})
    assert structure_distance(skeletons[0], skeletons[0]) == 0.0
    assert 0.0 < structure_distance(skeletons[0], fewer) < structure_distance(skeletons[0], skeletons[1]) <= 1.0
    assert structure_distance(skeletons[0], skeletons[1]) == structure_distance(skeletons[1], skeletons[0])
    assert len({structure_signature(one) for one in skeletons}) == len(skeletons)


def test_programs_written_by_a_language_model_have_structures_too(shared_data: Path) -> None:
    released = json.loads((shared_data / "data/envscaler_release/environments.json").read_text(encoding="utf-8"))
    structures = {}
    for env_id, record in released.items():
        tools = record["tools"]
        names = [tool["function"]["name"] for tool in (json.loads(tools) if isinstance(tools, str) else tools)]
        source, class_name = record["env_class_code"], record["env_class_name"]
        skeleton = EnvSkeleton(
            id=env_id,
            description=EnvDescription(summary=env_id, introduction=""),
            tools=tuple(ToolSpec(name=name, description="", parameters={}, effect="update") for name in names),
            class_name=class_name,
            source=source,
        )
        structures[env_id] = structure_of(skeleton)
        other, other_class, other_names = renamed(source, class_name, names, lambda name: f"q{name}x")
        again = program_graph(other, other_class, other_names)
        assert again.signature() == structures[env_id].signature, env_id
    assert len({structure.signature for structure in structures.values()}) == len(structures)
