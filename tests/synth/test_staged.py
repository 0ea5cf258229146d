"""Tests of the staged scaffold: what code makes of small replies, and a library made by a model that plans nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synth.conftest import settings_of, synth, tree
from synth.lending import METHODS as WHOLE_METHODS
from synth.lending import LendingModel
from synth.staged_lending import CANNOT, KINDS, METHODS, TOOLS, StagedLendingModel

from envscaler.errors import UsageError
from envscaler.llm import Completion, ModelRequest
from envscaler.models import Models, ModelSettings, open_models
from envscaler.program import state_faults, tool_schemas
from envscaler.program.arguments import SchemaChecker
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.skeleton import Entity, EnvDescription
from envscaler.store import LibraryStore
from envscaler.synth import SynthReport, run_synth
from envscaler.synth.design import state_doubt, tools_doubt
from envscaler.synth.programming import interface
from envscaler.synth.staged import methods, parts, records, schemas

Opened = Callable[[LendingModel], Models]

NAMED = (s.NamedEntity(name="Thing", description=""), s.NamedEntity(name="Member", description=""))
DESCRIBED = s.DescribeEntitiesReply.model_validate({"kinds": KINDS})
LISTED = s.ListToolsReply.model_validate(TOOLS)
ENTITIES = parts.entities(NAMED, DESCRIBED)
DESIGNED, _ = parts.tools(LISTED, ENTITIES, "en")


def entity(name: str) -> Entity:
    return next(one for one in ENTITIES if one.name == name)


def tool(name: str) -> Any:
    return next(one for one in DESIGNED if one.name == name)


# -- parts --


@pytest.mark.parametrize(
    ("noun", "many"), [("thing", "things"), ("box", "boxes"), ("city", "cities"), ("day", "days"), ("visit", "visits")]
)
def test_a_container_has_the_plural_of_its_entity(noun: str, many: str) -> None:
    assert parts.plural(noun) == many


@pytest.mark.parametrize(
    ("name", "snake"), [("BookLoan", "book_loan"), ("Thing", "thing"), ("VATRate", "vat_rate"), ("room_2", "room_2")]
)
def test_names_become_snake_case(name: str, snake: str) -> None:
    assert parts.snake(name) == snake


def test_equal_entities_are_one() -> None:
    reply = s.NameEntitiesReply.model_validate(StagedLendingModel().name_entities(t.PlanStateInputs(**_beginning())))
    assert [one.name for one in parts.named(reply)] == ["Thing", "Member"]


def test_ids_are_added_references_resolved_and_ids_that_point_at_nothing_are_codes() -> None:
    assert [one.name for one in entity("Thing").attributes] == [
        "thing_id",
        "label",
        "shelf_code",
        "status",
        "member_id",
    ]
    assert entity("Thing").attributes[-1].references == "Member"
    assert entity("Thing").attributes[3].enum == ("free", "lent")
    assert [one.name for one in entity("Member").attributes] == ["member_id", "name", "joined"]


def test_what_exists_once_is_a_clock_and_a_counter_for_each_kind() -> None:
    assert [one.name for one in entity(parts.SYSTEM).attributes] == [
        "current_time",
        "next_thing_number",
        "next_member_number",
    ]


def test_tools_that_do_the_same_are_left_out_and_names_that_mislead_replaced() -> None:
    assert [one.name for one in DESIGNED] == [
        "find_things",
        "find_members",
        "get_thing",
        "add_thing",
        "lend_thing",
        "give_back",
        "set_thing_shelf_code",
        "label_thing",
        "scrap_thing",
    ]


def test_parameters_and_effects_follow_from_kind_and_fields() -> None:
    assert tool("find_things").parameters["required"] == []
    assert tool("find_things").parameters["properties"]["status"]["enum"] == ["free", "lent"]
    # What a new record needs and nobody could guess is asked for, whether it was listed or not.
    assert tool("add_thing").parameters["required"] == ["label", "shelf_code", "status", "member_id"]
    assert [(one.kind, one.entity, one.attributes) for one in tool("add_thing").effects] == [
        ("create", "Thing", ()),
        ("update", parts.SYSTEM, ("next_thing_number",)),
    ]
    assert tool("lend_thing").parameters["required"] == ["thing_id", "member_id"]
    assert tool("lend_thing").effects[0].attributes == ("member_id",)
    assert [parts.kind_of(one) for one in DESIGNED] == [
        "list",
        "list",
        "get",
        "create",
        "change",
        "change",
        "change",
        "change",
        "delete",
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "lend_thing refuses a Thing whose status is lent."),
        ("zh", "当 Thing 的 status 为 lent 时，lend_thing 会拒绝。"),
        ("fi", "lend_thing refuses a Thing whose status is lent."),
    ],
)
def test_a_rule_is_what_a_tool_refuses_and_none_is_made_of_a_value_that_there_is_not(language: str, text: str) -> None:
    _, (rule,) = parts.tools(LISTED, ENTITIES, language)
    assert (rule.text, rule.tools) == (text, ("lend_thing",))


_WORDS = st.sampled_from(
    ["thing", "Thing", "member", "id", "status", "thing_id", "class", "due date", "", "Ünï", "a-b"]
)
_KIND = st.builds(
    s.StagedKind,
    fields=st.lists(
        st.builds(s.StagedField, name=_WORDS, type=st.sampled_from(s.FIELD_TYPES)), min_size=1, max_size=6
    ).map(tuple),
    status=st.lists(_WORDS, max_size=3).map(tuple),
    belongs_to=st.lists(st.sampled_from(["Thing", "Member", "Nobody"]), max_size=3).map(tuple),
)


@given(kinds=st.dictionaries(st.sampled_from(["Thing", "Member", "Other"]), _KIND, min_size=1))
def test_whatever_fields_are_named_the_entities_are_sound(kinds: dict[str, s.StagedKind]) -> None:
    made = parts.entities(NAMED, s.DescribeEntitiesReply(kinds=kinds))
    assert state_doubt(t.PlanStateReply(entities=made)) is None


_LISTED = st.builds(
    s.ListedTool,
    entity=st.sampled_from(["Thing", "Member", "Nobody"]),
    name=st.sampled_from(["find", "Find Things", "things", "next_thing_number", "def", "é", "a", "b"]),
    description=st.sampled_from(["", "Does it."]),
    fields=st.lists(st.sampled_from(["label", "status", "member_id", "thing_id", "none"]), max_size=4).map(tuple),
    refused_when=st.none()
    | st.builds(s.Refused, field=st.sampled_from(["status", "none"]), value=st.sampled_from(["lent", True, "none"])),
)


_SEVERAL = st.lists(_LISTED, max_size=3).map(tuple)


@given(
    reply=st.builds(
        s.ListToolsReply, lists=_SEVERAL, gets=_SEVERAL, creates=_SEVERAL, changes=_SEVERAL, deletes=_SEVERAL
    )
)
def test_whatever_tools_are_listed_those_made_are_sound(reply: s.ListToolsReply) -> None:
    made, rules = parts.tools(reply, ENTITIES, "en")
    for one in made:
        ast.parse(f"{methods.signature(one)} pass")
        assert methods.steps(one, ENTITIES)
    assert all(rule.tools for rule in rules)
    if {one.effect for one in made} == {"query", "update"}:
        assert tools_doubt(t.PlanToolsReply(tools=made), ENTITIES) is None


# -- questions --


def test_what_the_fake_model_answers_satisfies_the_schemas_of_the_questions() -> None:
    model, known = StagedLendingModel(), _beginning()
    ids = records.ids(ENTITIES, 0)
    asked = s.WriteRecordsInputs(
        **known, entities=ENTITIES, rules=(), tools=DESIGNED, purpose="scenario", index=0, seed=1, ids=ids
    )
    assert _faults(schemas.write_records(ENTITIES, ids), model.write_records(asked)) == []
    # What it is given to much or too little of is what the schemas say.
    assert _faults(schemas.describe_entities(NAMED), {"kinds": KINDS})
    assert _faults(schemas.name_entities(), {"entities": [{"name": "thing", "description": "Some"}] * 3})


def test_a_schema_offers_no_reference_to_what_is_not_there() -> None:
    ids = records.ids(ENTITIES, 0)
    thing = {"label": "Drill", "shelf_code": "S1", "status": "free", "member_id": "member_99"}
    reply = {"records": {"things": dict.fromkeys(ids["things"], thing), "members": {}}}
    faults = _faults(schemas.write_records(ENTITIES, ids), reply)
    assert any("member_99" in fault for fault in faults)


def test_the_frame_of_a_state_is_sound_and_states_differ_in_ids() -> None:
    for index in range(3):
        ids = records.ids(ENTITIES, index)
        asked = s.WriteRecordsInputs(
            **_beginning(),
            entities=ENTITIES,
            rules=(),
            tools=DESIGNED,
            purpose="scenario",
            index=index,
            seed=1,
            ids=ids,
        )
        reply = s.WriteRecordsReply.model_validate(StagedLendingModel().write_records(asked))
        state = records.state(reply, ENTITIES, ids)
        assert state_faults(state, ENTITIES) == ()
        assert f"thing_{state['next_thing_number']}" not in state["things"]
    assert not set(records.ids(ENTITIES, 0)["things"]) & set(records.ids(ENTITIES, 1)["things"])


def test_a_method_gets_the_signature_that_was_asked_for() -> None:
    body = '    """Lend."""\n    if args:\n        return 1\n    return 2\n'
    source = f"import os\n\ndef lend_thing(self, thing, *args):\n{body}"
    assert methods.framed(source, tool("lend_thing"), ENTITIES, ()) == (
        f"def lend_thing(self, thing_id: str, member_id: str) -> dict[str, Any]:\n{body}"
    )


def test_a_method_on_one_line_keeps_its_body() -> None:
    source = "def get_thing(self, thing_id): return {'success': True, 'data': 1}"
    assert methods.framed(source, tool("get_thing"), ENTITIES, ()) == (
        "def get_thing(self, thing_id: str) -> dict[str, Any]:\n    return {'success': True, 'data': 1}\n"
    )


def test_what_a_rule_forbids_is_refused_whatever_the_model_wrote() -> None:
    _, rules = parts.tools(LISTED, ENTITIES, "en")
    careless = 'def lend_thing(self, thing_id, member_id):\n    """Lend."""\n    return {"success": True}\n'
    source = methods.framed(careless, tool("lend_thing"), ENTITIES, rules)
    made: dict[str, Any] = {"Any": Any}
    exec(compile(source, "method", "exec"), made)  # noqa: S102 - our own text
    desk = SimpleNamespace(things={"thing_1": {"status": "lent"}, "thing_2": {"status": "free"}})
    assert made["lend_thing"](desk, "thing_2", "member_1") == {"success": True}
    assert made["lend_thing"](desk, "thing_1", "member_1") == {
        "success": False,
        "error": "Thing thing_1 must not have status lent.",
    }
    assert made["lend_thing"].__doc__ == "Lend."


def test_an_optional_filter_may_be_left_out() -> None:
    assert methods.signature(tool("find_things")) == (
        "def find_things(self, status: str | None = None) -> dict[str, Any]:"
    )


def test_a_tool_read_from_its_method_is_asked_for_again_as_it_was_planned() -> None:
    # So it is when a method is repaired.
    written = "\n".join(f"    {methods.signature(one)}\n        ..." for one in DESIGNED)
    source = f"from typing import Any\nclass Desk:\n    def __init__(self): ...\n{written}\n"
    derived = tool_schemas(source, "Desk")
    for one in DESIGNED:
        read = one.model_copy(update={"parameters": interface(one.parameters, derived[one.name])})
        assert methods.signature(read) == methods.signature(one)
        assert methods.steps(read, ENTITIES) == methods.steps(one, ENTITIES)


# -- a run --


def staged(opened: Opened, model: LendingModel, **more: Any) -> Any:
    return synth(opened, model, settings_of(**{"scaffold": "auto", **more}))


@pytest.mark.anyio
async def test_a_model_that_plans_nothing_whole_makes_a_library_in_small_questions(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    model = StagedLendingModel()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library")
    assert report.scaffold == "staged"
    assert "plan_state" in report.scaffold_reason
    assert model.asked["plan_state"] == 2
    assert (model.asked["write_class"], model.asked["write_methods"], model.asked["write_state"]) == (0, 0, 0)
    assert report.funnel.accepted == report.funnel.distinct == 3
    assert report.funnel.proved > 0
    assert [one.role for one in report.unusable] == ["plan_state"]
    skeleton = LibraryStore.open(tmp_path / "library").read_environment(report.environments[0])
    assert {one.name for one in skeleton.tools} == set(METHODS)
    assert "name_entities" in skeleton.origin.prompts
    assert "plan_state" not in skeleton.origin.prompts


@pytest.mark.anyio
async def test_a_plan_that_does_not_end_is_not_asked_for_twice(opened: Opened, task_file: Path, tmp_path: Path) -> None:
    class Endless(StagedLendingModel):
        async def complete(self, request: ModelRequest) -> Completion:
            completion = await super().complete(request)
            return completion.model_copy(update={"finish_reason": "length"} if request.role == "plan_state" else {})

    model = Endless()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library", limit=1, until="program")
    assert (report.scaffold, model.asked["plan_state"]) == ("staged", 1)
    assert "cut off at the token limit" in report.scaffold_reason
    assert [(one.role, one.kind, one.count) for one in report.unusable] == [("plan_state", "cut off", 1)]


@pytest.mark.anyio
async def test_the_scaffold_is_found_out_once_and_a_later_run_knows_it(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    first = StagedLendingModel()
    await staged(opened, first, task_file=task_file, library=library, limit=1)
    again = StagedLendingModel()
    report = await staged(opened, again, task_file=task_file, library=library)
    assert again.asked["plan_state"] == 0
    assert report.scaffold == "staged"
    whole = tmp_path / "whole"
    await staged(opened, StagedLendingModel(), task_file=task_file, library=whole)
    assert {name: text for name, text in tree(library).items() if name != "library.json"} == {
        name: text for name, text in tree(whole).items() if name != "library.json"
    }


@pytest.mark.anyio
async def test_a_model_that_plans_whole_environments_is_asked_for_them(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    model = LendingModel()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library")
    assert report.scaffold == "whole"
    assert model.asked["name_entities"] == 0


@pytest.mark.anyio
async def test_an_environment_that_cannot_be_planned_whole_is_staged_where_the_model_was_to_plan_whole(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    class Unsteady(StagedLendingModel):
        """Plans the sample, and of the others one kind."""

        def plan_state(self, inputs: t.PlanStateInputs) -> Any:
            return LendingModel.plan_state(self, inputs) if "bicycle" not in str(inputs.description).lower() else CANNOT

    model = Unsteady()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library")
    assert (report.scaffold, report.funnel.accepted) == ("whole", 3)
    store = LibraryStore.open(tmp_path / "library")
    made = {name: store.read_environment(name).origin.prompts for name in report.environments}
    assert [name for name, prompts in made.items() if "name_entities" in prompts] == ["bicycle-lending-desk"]
    assert [name for name, prompts in made.items() if "plan_state" not in prompts] == ["bicycle-lending-desk"]
    again = await staged(opened, Unsteady(), task_file=task_file, library=tmp_path / "library")
    assert again.environments == report.environments
    told = await staged(opened, Unsteady(), task_file=task_file, library=tmp_path / "told", scaffold="whole")
    assert told.funnel.accepted == 2


class BadCoder(StagedLendingModel):
    """Plans whole environments and answers small questions; of the methods of a whole class some do not run."""

    bad = frozenset(WHOLE_METHODS)

    def bad_at(self, description: EnvDescription) -> bool:
        return True

    def plan_state(self, inputs: t.PlanStateInputs) -> Any:
        return LendingModel.plan_state(self, inputs)

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        written = super().write_method(inputs)
        if inputs.tool.name in self.bad and self.bad_at(inputs.description):
            return re.sub(r"(def .*:\n)", r"\1    return undefined_here\n", written, count=1)
        return written


@pytest.mark.anyio
async def test_a_model_whose_program_of_the_sample_does_not_run_is_asked_in_small_questions(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    model = BadCoder()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library", until="program")
    assert (report.scaffold, report.funnel.loads) == ("staged", 3)
    assert "0 worked at the first attempt" in report.scaffold_reason
    assert "undefined_here" in report.scaffold_reason
    # Only the sample was asked for whole.
    assert (model.asked["plan_state"], model.asked["write_class"]) == (1, 1)


@pytest.mark.anyio
async def test_one_method_in_four_that_does_not_run_is_mended_and_no_reason_for_small_questions(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    class Slips(BadCoder):
        bad = frozenset({"lend_thing"})

    report = await staged(opened, Slips(), task_file=task_file, library=tmp_path / "library", limit=1, until="program")
    assert report.scaffold == "whole"
    assert "of 4 tools" in report.scaffold_reason
    assert "3 worked at the first attempt" in report.scaffold_reason


@pytest.mark.anyio
async def test_an_environment_that_cannot_be_programmed_whole_is_staged(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    class BadAtBicycles(BadCoder):
        def bad_at(self, description: EnvDescription) -> bool:
            return "bicycle" in str(description).lower()

    report = await staged(opened, BadAtBicycles(), task_file=task_file, library=tmp_path / "library", until="program")
    assert (report.scaffold, report.funnel.loads) == ("whole", 3)
    store = LibraryStore.open(tmp_path / "library")
    made = {name: store.read_environment(name).origin.prompts for name in store.env_ids()}
    assert [name for name, prompts in made.items() if "name_entities" in prompts] == ["bicycle-lending-desk"]


@pytest.mark.anyio
async def test_a_scaffold_asked_for_is_not_found_out(opened: Opened, task_file: Path, tmp_path: Path) -> None:
    model = StagedLendingModel()
    report = await staged(opened, model, task_file=task_file, library=tmp_path / "library", scaffold="staged")
    assert (report.scaffold, model.asked["plan_state"]) == ("staged", 0)


@pytest.mark.anyio
async def test_the_embedded_model_is_not_asked_in_small_questions(task_file: Path, tmp_path: Path) -> None:
    async with open_models(ModelSettings()) as models:
        with pytest.raises(UsageError, match="--scaffold staged"):
            await run_synth(settings_of(task_file, tmp_path / "library", scaffold="staged"), models, Prompts())


class BadMethod(StagedLendingModel):
    """Refuses with an invented guard when it lends."""

    def write_tool(self, inputs: s.WriteToolInputs) -> Any:
        reply = super().write_tool(inputs)
        guard = '    if self.things[thing_id]["weight"] > 3:\n        return {"success": False, "error": "too heavy"}\n'
        if inputs.tool.name == "lend_thing":
            head, mark, rest = reply.partition('    self.things[thing_id]["member_id"]')
            return head + guard + mark + rest
        return reply


@pytest.mark.anyio
async def test_a_method_with_an_invented_guard_is_not_sent_back_but_loses_the_guard(
    opened: Opened, task_file: Path, tmp_path: Path
) -> None:
    model = BadMethod()
    report: SynthReport = await staged(
        opened, model, task_file=task_file, library=tmp_path / "library", limit=1, until="program", scaffold="staged"
    )
    skeleton = LibraryStore.open(tmp_path / "library").read_environment(report.environments[0])
    assert "weight" not in skeleton.source
    assert any("lend_thing" in one for one in skeleton.origin.dropped)
    assert model.asked["write_tool"] == len(METHODS) + 1


def _beginning() -> dict[str, Any]:
    return {"description": EnvDescription(summary="Desk", introduction="A desk."), "seed_tasks": (), "language": "en"}


def _faults(schema: dict[str, Any], reply: Any) -> list[str]:
    return list(SchemaChecker(schema).faults(reply, "the reply"))
