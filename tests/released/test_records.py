"""Published entries become records and come back as they were."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from env.lending import scenario as own_scenario
from env.lending import skeleton as own_skeleton
from hypothesis import given, settings
from hypothesis import strategies as st
from released.desk import ENVIRONMENT, SCENARIO, as_runner

from envscaler.errors import StoreError
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from envscaler.released import (
    episode_of,
    notes_of,
    published_environment,
    published_episode,
    published_key,
    published_scenario,
    published_trajectory,
    scenario_of,
    skeleton_of,
    trajectory_of,
)
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.trajectory import Step, StopReason, Trajectory

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
EXTRA = st.dictionaries(st.sampled_from(["env_structure", "env_func_details", "metrics", "note", ""]), JSON, max_size=3)
STEPS = [
    {
        "action": {"name": "get_ticket", "arguments": {"ticket_id": "T1"}},
        "observation": {"type": "tool", "content": "{}"},
    },
    {
        "action": "no call",
        "observation": {"type": "user", "content": "Error: Failed to parse response to struct response"},
    },
    {
        "action": {"content": "", "reasoning_content": "<tool_call>", "tool_calls": []},
        "observation": {"type": "user", "content": "Error: Failed to parse response to action"},
    },
    {
        "action": {"name": "close_ticket", "arguments": {}},
        "observation": {"type": "user", "content": "Error: <Exception>\nTraceback …\nTypeError: missing ticket_id"},
    },
]


def skeleton(**changes: Any) -> EnvSkeleton:
    return skeleton_of({**copy.deepcopy(ENVIRONMENT), **changes}, "here", source="environments.json")


def scenario(environment: EnvSkeleton, **changes: Any) -> Scenario:
    entry = {**copy.deepcopy(SCENARIO), **changes}
    return scenario_of(
        entry, "here", env_digest=environment.digest, class_name=environment.class_name, source="scenarios.json"
    )


def stored(record: Any) -> Any:
    return type(record).model_validate(record.model_dump())


# -- environments --


def test_an_environment_is_what_its_entry_says() -> None:
    made = skeleton()
    assert made.id == "env_7_rl"
    assert made.origin.source == "environments.json"
    assert [rule.text for rule in made.rules] == ["A ticket is closed once."]
    effects = {tool.name: tool.effect for tool in made.tools}
    assert effects["get_ticket"] == "query"
    assert effects["open_ticket"] == "update"
    # It is in no operation_list: nobody says that it does not write.
    assert effects["overdue"] == "update"


def test_a_cut_off_state_space_is_completed_from_the_program() -> None:
    (entity,) = skeleton().entities
    assert (entity.name, entity.container) == ("Ticke", "tickets")
    assert [part.name for part in entity.attributes] == ["ticket_id", "title", "opened_at", "due", "closed"]
    assert entity.attributes[4].type == "bool"


def test_what_is_missing_or_contradictory_is_noted() -> None:
    notes = " ".join(notes_of(skeleton()))
    assert "'Ghost'" in notes
    assert "the tool overdue is not in operation_list" in notes
    assert notes_of(skeleton(operation_list=[{"operation_name": "fly", "operation_type": "query"}]))[-2].endswith(
        "fly has no tool"
    )


@given(EXTRA, st.booleans(), st.sets(st.sampled_from(["env_class_def", "operation_list", "state_space_definition"])))
@settings(max_examples=40, deadline=None)
def test_an_environment_comes_back_as_it_was(extra: dict[str, Any], encoded: bool, absent: set[str]) -> None:
    entry = {**{name: part for name, part in ENVIRONMENT.items() if name not in absent}, **extra}
    given_entry = {**entry, "tools": json.dumps(entry["tools"])} if encoded else entry
    made = stored(skeleton_of(given_entry, "here", source="environments.json"))
    back = published_environment(made)
    for name in ("env_structure", "env_func_details"):
        # These may be JSON strings, which count as equal decoded.
        if isinstance(entry.get(name), str) and back[name] != entry[name]:
            assert back[name] == json.loads(entry[name])
            entry = {**entry, name: back[name]}
    assert back == entry


def test_a_changed_field_is_exported_as_it_is_now_and_the_others_as_they_were() -> None:
    made = skeleton(env_structure={"a": 1})
    changed = made.model_copy(update={"rules": (), "source": made.source + "\nX = 1\n"})
    back = published_environment(changed)
    assert back["constraints_rules"] == []
    assert back["env_class_code"].endswith("X = 1\n")
    assert back["operation_list"] == ENVIRONMENT["operation_list"]
    assert back["env_structure"] == {"a": 1}
    fewer = made.model_copy(update={"tools": made.tools[:2]})
    assert len(published_environment(fewer)["tools"]) == 2


def test_a_changed_effect_is_not_hidden_by_what_was_kept() -> None:
    made = skeleton()
    tools = tuple(tool.model_copy(update={"effect": "query"}) for tool in made.tools)
    operations = published_environment(made.model_copy(update={"tools": tools}))["operation_list"]
    assert {part["operation_type"] for part in operations} == {"query"}


def test_an_environment_of_ours_has_every_field_that_the_authors_loader_reads() -> None:
    own = own_skeleton()
    back = published_environment(own)
    assert set(back) == set(ENVIRONMENT)
    assert "class LendingDesk" in back["env_class_def"]
    assert "def lend_book" not in back["env_class_def"]
    again = skeleton_of(back, "here", source="x")
    assert again.model_dump(include={"id", "description", "rules", "class_name", "source"}) == own.model_dump(
        include={"id", "description", "rules", "class_name", "source"}
    )
    assert [tool.name for tool in again.tools] == [tool.name for tool in own.tools]


def test_a_key_that_is_another_than_the_id_is_kept() -> None:
    made = skeleton_of(ENVIRONMENT, "here", source="x", key="other")
    assert published_key(made, published_environment(made)) == "other"
    keyed = {name: part for name, part in ENVIRONMENT.items() if name != "env_id"}
    made = skeleton_of(keyed, "here", source="x", key="env_9")
    assert made.id == "env_9"
    assert published_environment(made) == keyed
    assert published_key(made, keyed) == "env_9"


@pytest.mark.parametrize(("published", "name"), [(12, "12"), ("a b/c", "a-b-c"), ("环境", "环境"), ("../x", "x")])
def test_an_id_that_no_folder_can_have_is_made_usable_and_comes_back(published: Any, name: str) -> None:
    made = skeleton(env_id=published)
    assert made.id == name
    assert published_environment(made)["env_id"] == published


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"env_class_code": None}, "field `env_class_code` holds null; a text is needed"),
        ({"environment_summary": 3}, "field `environment_summary` holds a number"),
        ({"tools": "[{"}, "field `tools` is a JSON string that does not parse"),
        ({"tools": [{"function": {}}]}, r"tools\[0\]: field `name` is missing"),
        ({"tools": ENVIRONMENT["tools"] + ENVIRONMENT["tools"][:1]}, "two tools named open_ticket"),
        ({"operation_list": ["x"]}, r"field `operation_list\[0\]` holds a text"),
        ({"constraints_rules": "be nice"}, "must be a list of texts"),
        ({"env_id": ""}, "field `env_id` is empty"),
        ({"metrics": float("nan")}, "/metrics is nan"),
    ],
)
def test_a_bad_environment_is_refused_with_entry_and_field(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StoreError, match=f"here.*{words}"):
        skeleton(**changes)


def test_a_program_that_does_not_parse_is_kept_for_the_check_to_tell() -> None:
    made = skeleton(env_class_code="class TicketDesk(:")
    assert made.entities == ()
    assert published_environment(made)["env_class_code"] == "class TicketDesk(:"


# -- scenarios --


@given(EXTRA, st.booleans(), st.sets(st.sampled_from(["env_class_name", "checklist_with_func"])), st.text(min_size=1))
@settings(max_examples=40, deadline=None)
def test_a_scenario_comes_back_as_it_was(extra: dict[str, Any], encoded: bool, absent: set[str], task: str) -> None:
    entry = {**{name: part for name, part in SCENARIO.items() if name not in absent}, **extra, "task": task}
    given_entry = {**entry, "init_config": json.dumps(entry["init_config"])} if encoded else entry
    environment = skeleton()
    made = stored(
        scenario_of(
            given_entry,
            "here",
            env_digest=environment.digest,
            class_name=environment.class_name,
            source="scenarios.json",
        )
    )
    assert made.initial_state == {"clerk": "Ann"}
    assert published_scenario(made, environment.class_name) == entry


def test_checks_keep_what_the_format_says_beside_them() -> None:
    check = {**SCENARIO["checklist_with_func"][0], "weight": 2}
    made = scenario(skeleton(), checklist_with_func=[check])
    assert made.checks[0].kind is None
    assert published_scenario(made, "TicketDesk")["checklist_with_func"] == [check]
    changed = made.model_copy(update={"checks": ()})
    assert published_scenario(changed, "TicketDesk")["checklist_with_func"] == []


def test_a_scenario_of_ours_has_every_field_that_the_authors_loader_reads() -> None:
    own = own_scenario(own_skeleton())
    back = published_scenario(own, "LendingDesk")
    assert set(back) == set(SCENARIO)
    assert isinstance(back["init_config"], dict)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"init_config": [1]}, "field `init_config` holds a list"),
        ({"init_config": '{"a": '}, "field `init_config` is a JSON string"),
        ({"task": None}, "field `task` holds null"),
        ({"checklist_with_func": [{"check_item": "x"}]}, r"checklist_with_func\[0\]: field `check_func` is missing"),
    ],
)
def test_a_bad_scenario_is_refused_with_entry_and_field(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StoreError, match=words):
        scenario(skeleton(), **changes)


# -- episodes --


def flat(**changes: Any) -> dict[str, Any]:
    steps = [{**step, "reward": 0.0, "terminated": step is STEPS[-1], "truncated": False} for step in STEPS]
    return {
        **{name: SCENARIO[name] for name in ("env_id", "task_id", "init_config", "task", "checklist_with_func")},
        "model": "m",
        "steps": steps,
        "terminated": True,
        "truncated": False,
        "total_reward": 0.0,
        **changes,
    }


@pytest.mark.parametrize("form", ["flat", "runner"])
@given(extra=EXTRA)
@settings(max_examples=15, deadline=None)
def test_an_episode_comes_back_as_it_was(form: str, extra: dict[str, Any]) -> None:
    entry = {**(flat() if form == "flat" else as_runner(flat())), **extra}
    environment = skeleton()
    known = scenario(environment)
    made = stored(trajectory_of(entry, "here", skeleton=environment, scenario=known, file="e.json"))
    assert published_trajectory(made, environment, known) == entry


def test_an_episode_becomes_steps_a_person_can_follow() -> None:
    environment = skeleton()
    made = trajectory_of(flat(), "here", skeleton=environment, scenario=None, file="e.jsonl")
    assert made.stop is StopReason.INVALID_ACTION
    assert made.error == "TypeError: missing ticket_id"
    assert made.recorded_reward == 0.0
    assert made.verdict is None
    assert made.steps[0].user == UserMessage(content=SCENARIO["task"])
    assert made.steps[1].assistant.content == "no call"
    assert made.steps[2].assistant.reasoning == "<tool_call>"
    assert made.steps[2].user == UserMessage(content="Error: Failed to parse response to struct response")
    assert [step.observations[0].is_error for step in made.steps if step.observations] == [False, True]
    assert len({made.digest for made in [scenario(environment)]} | {made.scenario_digest}) == 1


def test_the_runners_messages_give_system_prompt_and_text_beside_the_call() -> None:
    environment = skeleton()
    made = trajectory_of(as_runner(flat()), "here", skeleton=environment, scenario=scenario(environment), file="e.json")
    assert made.system_prompt == "You work at a desk."
    assert made.steps[0].assistant.content == "Let me see."


def test_an_episode_without_a_state_needs_its_scenario() -> None:
    with pytest.raises(StoreError, match="no `init_config`, and env_7_rl has no scenario"):
        trajectory_of(as_runner(flat()), "here", skeleton=skeleton(), scenario=None, file="e.json")


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, "ended_by_exception"),
        ({"steps": flat()["steps"][:1], "terminated": False}, "cut_at_limit"),
        ({"steps": flat()["steps"][:1], "truncated": True}, "cut_at_limit"),
        (
            {"steps": [*flat()["steps"][:1], {"action": {"name": "chat_with_user", "arguments": {"content": "x"}}}]},
            "finished",
        ),
    ],
)
def test_how_an_episode_ended_is_read_as_the_authors_rule_sees_it(changes: dict[str, Any], ending: str) -> None:
    assert episode_of(published_episode(flat(**changes), "here"), "here").ending == ending


def test_an_episode_of_ours_is_written_as_the_authors_runner_writes() -> None:
    own = own_skeleton()
    spec = ToolSpec(name="find_books", description="", parameters={"type": "object"}, effect="query")
    call = ToolCall(name="find_books", arguments={"title": "E"}, id="c1")
    made = Trajectory(
        id="t",
        env_id=own.id,
        scenario_id="s",
        env_digest="",
        scenario_digest="",
        agent="model",
        system_prompt="Do it.",
        tools=(spec,),
        steps=(
            Step(
                turn=0,
                user=UserMessage(content="Find E"),
                assistant=AssistantMessage(tool_calls=(call, call), reasoning="hm"),
                observations=tuple(ToolMessage(content=text, tool_call_id="c1", name="find_books") for text in "ab"),
            ),
            Step(turn=0, assistant=AssistantMessage(content="Found.")),
        ),
        stop=StopReason.FINISHED,
    )
    back = published_trajectory(made, own, None)
    assert back["task_info"] == {"env_id": own.id, "task_id": "s", "task": "Find E"}
    assert [row.get("action", {}).get("name") for row in back["trajectory"]] == [
        None,
        "find_books",
        "find_books",
        "chat_with_user",
    ]
    assert back["steps"] == 3
    assert [message["role"] for message in back["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [row["terminated"] for row in back["trajectory"][1:]] == [False, False, True]


@pytest.mark.parametrize("form", ["flat", "runner"])
def test_a_call_of_ours_that_was_put_right_is_written_as_it_was_carried_out(form: str) -> None:
    own = own_skeleton()
    seen = ToolMessage(content="{}", tool_call_id="c1", name="find_books", arguments={"title": "1984"})
    call = ToolCall(name="find_books", arguments={"title": 1984}, id="c1")
    made = Trajectory(
        id="t",
        env_id=own.id,
        scenario_id="s",
        env_digest="",
        scenario_digest="",
        agent="model",
        steps=(
            Step(
                turn=0,
                user=UserMessage(content="Find it"),
                assistant=AssistantMessage(tool_calls=(call,)),
                observations=(seen,),
            ),
        ),
        stop=StopReason.STEP_LIMIT,
        released={"file": "t.json", "form": form},
    )
    back = published_trajectory(made, own, None)
    played = episode_of(published_episode({**back, "init_config": {}}, "here"), "here").steps
    assert [step.call.arguments for step in played if step.call is not None] == [{"title": "1984"}]
    spoken = [json.loads(part["tool_calls"][0]["function"]["arguments"]) for part in back.get("messages", ())[1:2]]
    assert spoken == ([{"title": "1984"}] if form == "runner" else [])
