"""The offline model as a chat model: what it answers, and what it says that it cannot."""

import json

import pytest

from envscaler.errors import ReplyError
from envscaler.llm.chat import ModelRequest
from envscaler.messages import UserMessage
from envscaler.offline import OfflineModel
from envscaler.offline.model import blueprint_for, blueprint_of_task
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.roles.ask import ask
from envscaler.roles.role import Prompts
from envscaler.skeleton import EnvDescription, ToolSpec

pytestmark = pytest.mark.anyio

TASK = "Please cancel my pottery class on Friday and book the one on Sunday instead."


async def _designed(task: str) -> tuple[EnvDescription, t.PlanStateReply, t.PlanToolsReply]:
    model, prompts = OfflineModel(), Prompts()
    inferred = await ask(
        model, roles.INFER_ENVIRONMENT, t.InferEnvironmentInputs(task=task, language="en"), prompts=prompts
    )
    description = EnvDescription(summary=inferred.reply.summary, introduction=inferred.reply.introduction)
    state = await ask(
        model, roles.PLAN_STATE, t.PlanStateInputs(description=description, seed_tasks=(task,)), prompts=prompts
    )
    inputs = t.PlanToolsInputs(
        description=description, seed_tasks=(task,), entities=state.reply.entities, rules=state.reply.rules
    )
    tools = await ask(model, roles.PLAN_TOOLS, inputs, prompts=prompts)
    return description, state.reply, tools.reply


async def test_a_task_leads_to_a_design_about_its_own_thing() -> None:
    description, state, tools = await _designed(TASK)
    assert "pottery class" in description.introduction.lower()
    assert any("PotteryClass" in entity.name for entity in state.entities)
    assert 10 <= len(tools.tools) <= 26
    assert {tool.effect for tool in tools.tools} == {"query", "update"}
    assert sum(rule.enforced is True for rule in state.rules) >= 4


async def test_the_same_request_gets_the_same_answer_from_another_instance() -> None:
    assert await _designed(TASK) == await _designed(TASK)


async def test_the_environment_is_found_again_without_the_seed_task() -> None:
    description, _, _ = await _designed(TASK)
    with_task = blueprint_for(description, (TASK,))
    without = blueprint_for(description, ())
    assert with_task is not None
    assert without is not None
    assert without.summary == with_task.summary


@pytest.mark.parametrize(
    "task",
    [
        "What is the capital of France?",
        "Tell me a joke about dogs.",
        "Convert 20 euros to dollars.",
        "",
        "???",
        "Calculate the derivative of x squared.",
    ],
)
async def test_a_question_of_knowledge_is_judged_stateless(task: str) -> None:
    answer = await ask(OfflineModel(), roles.FILTER_TASK, t.FilterTaskInputs(task=task), prompts=Prompts())
    assert answer.reply.stateful is False
    assert answer.reply.reason


async def test_a_program_of_somebody_else_is_declined_in_words() -> None:
    description, state, _ = await _designed(TASK)
    foreign = ToolSpec(name="frobnicate", description="", parameters={"type": "object"}, effect="update")
    inputs = t.WriteStateInputs(
        description=description,
        seed_tasks=(TASK,),
        entities=state.entities,
        rules=state.rules,
        tools=(foreign,),
        source="class X: ...",
        purpose="scenario",
        index=0,
        seed=0,
    )
    with pytest.raises(ReplyError):
        await ask(OfflineModel(), roles.WRITE_STATE, inputs, prompts=Prompts(), attempts=1)
    completion = await OfflineModel().complete(ModelRequest(role="write_state", messages=(), inputs=inputs))
    assert "frobnicate" in completion.message.content


async def test_an_unknown_role_is_declined_and_costs_nothing() -> None:
    request = ModelRequest(role="poet", messages=(UserMessage(content="a sonnet"),))
    completion = await OfflineModel().complete(request)
    assert "poet" in completion.message.content
    assert completion.cost_usd == 0.0
    assert completion.model == "offline"


async def test_a_tool_that_was_dropped_is_in_no_plan() -> None:
    description, state, tools = await _designed(TASK)
    blueprint = blueprint_of_task(TASK)
    assert blueprint is not None
    dropped = next(tool.name for tool in tools.tools if tool.effect == "update")
    kept = tuple(tool for tool in tools.tools if tool.name != dropped)
    for index in range(6):
        common = {
            "description": description,
            "seed_tasks": (TASK,),
            "entities": state.entities,
            "rules": state.rules,
            "tools": kept,
            "index": index,
            "seed": 0,
        }
        first = await OfflineModel().complete(
            ModelRequest(
                role="write_state",
                messages=(),
                inputs=t.WriteStateInputs(**common, source="", purpose="scenario"),
            )
        )
        written = json.loads(first.message.content)["state"]
        task = await ask(
            OfflineModel(),
            roles.WRITE_TASK,
            t.WriteTaskInputs(**common, state=written, clock=written["current_time"]),
            prompts=Prompts(),
        )
        assert dropped not in {call.name for call in task.reply.plan}


async def test_a_domain_may_have_an_entity_called_system() -> None:
    _, state, _ = await _designed("Change the room preference setting of our meeting system.")
    names = [entity.name for entity in state.entities]
    assert "System" in names
    assert len(set(names)) == len(names)
