"""Chinese tasks lead to Chinese environments, or to English ones of the same thing, and all that is said in them is
Chinese."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from offline.playing import results_in_agreement

from envscaler.llm.chat import ModelRequest
from envscaler.messages import AssistantMessage, Message, ToolMessage, UserMessage
from envscaler.offline import OfflineModel, reading_zh
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.checks import make_checks
from envscaler.offline.derive import Noun, derive, fits, part_names
from envscaler.offline.design import class_source, entities_of, rules_of, tools_of
from envscaler.offline.domains import domains
from envscaler.offline.expression import CLOCK
from envscaler.offline.files import packaged
from envscaler.offline.interpret import interpret
from envscaler.offline.methods import method_source
from envscaler.offline.model import blueprint_for, blueprint_of_task
from envscaler.offline.plans import make_plan
from envscaler.offline.reading import Reading
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_task
from envscaler.offline.tester import make_test_call
from envscaler.offline.turns import agent_turn, user_turn
from envscaler.offline.wording import is_chinese, telling_words, wording, words_of
from envscaler.program import analyze, assemble, state_faults
from envscaler.roles import types as t
from envscaler.skeleton import EnvDescription
from envscaler.state import State, canonical

TASKS = Path(__file__).with_name("zh_tasks.txt").read_text(encoding="utf-8").splitlines()
CHINESE = wording("zh")
# What stays in Latin letters: placeholders, addresses, ids, forms of dates, names of parameters, standards.
IDENTIFIERS = re.compile(
    r"\{[^{}]*\}|[\w.]+@[\w.]+|(?<![A-Za-z])[A-Z]{2,4}-\d{4}(?!\d)|YYYY-MM-DD(?:THH:MM:SS)?|HH:MM|ISO 8601"
)


def reading_of(task: str) -> Reading:
    reading = reading_zh.read_task(task)
    assert reading is not None, task
    return reading


@cache
def derived() -> tuple[Blueprint, ...]:
    """One Chinese environment for each template."""
    found: dict[str, Blueprint] = {}
    for task in TASKS:
        reading = reading_of(task)
        blueprint = blueprint_of_task(task, "zh")
        assert blueprint is not None
        if blueprint.derived:
            found.setdefault(reading.entry.template, blueprint)
    return tuple(found.values())


def environments() -> tuple[Blueprint, ...]:
    return (*domains("zh"), *derived())


by_environment = pytest.mark.parametrize("blueprint", environments(), ids=lambda blueprint: blueprint.slug)


@pytest.mark.parametrize("task", TASKS, ids=map(str, range(1, len(TASKS) + 1)))
def test_a_chinese_task_gives_an_environment_in_either_language(task: str) -> None:
    english = blueprint_of_task(task, "en")
    assert english is not None
    assert not is_chinese(english.summary + english.introduction)
    chinese = blueprint_of_task(task, "zh")
    assert chinese is not None
    assert chinese.language == "zh"
    assert is_chinese(chinese.summary)
    assert chinese.slug == english.slug


def test_different_tasks_are_about_different_things() -> None:
    assert len({reading_of(task).thing for task in TASKS}) >= 80
    assert len({reading_of(task).entry.template for task in TASKS}) >= 10


@pytest.mark.parametrize(
    ("task", "thing", "english"),
    [
        ("请取消我周五的瑜伽课。", "瑜伽课", "yoga class"),
        ("把下周三的预约改到周四。", "预约", "appointment"),
        ("帮我预约一下。", "预约", "appointment"),
        ("请把项目的里程碑推迟一周。", "里程碑", "project milestone"),
        ("请提交签证材料。", "签证", "visa"),
        ("试剂快过期了，请下架并重新订购。", "试剂", "reagent"),
        ("请查询编号KD20391的包裹。", "包裹", "parcel"),
        ("我们部门的预算还剩多少？查一下我们公司的预算。", "预算", "budget line"),
        ("请登记我们部门这个月的开支。", "开支", "spending plan"),
    ],
)
def test_a_task_is_read_by_what_it_turns_on(task: str, thing: str, english: str) -> None:
    reading = reading_of(task)
    assert reading.spoken is not None
    assert (reading.spoken.thing, reading.thing) == (thing, english)


@pytest.mark.parametrize(
    "task",
    [
        "今天天气怎么样？",
        "给我讲个笑话。",
        "法国的首都是哪里？",
        "请把二十欧元换算成美元。",
        "请翻译这句话：会议已经取消。",
        "推荐几部好看的电影。",
        "为什么订单会延迟？",
        "写一首关于秋天的诗。",
        "你好！",
        "光合作用的公式是什么意思？",
    ],
)
def test_a_question_of_knowledge_is_judged_stateless(task: str) -> None:
    assert reading_zh.read_task(task) is None


@pytest.mark.anyio
async def test_other_languages_are_declined_in_words() -> None:
    task = "Bitte verlege meinen Termin auf Freitag, ich kann am Montag nicht."
    answer = await OfflineModel().complete(
        ModelRequest(role="filter_task", messages=(), inputs=t.FilterTaskInputs(task=task))
    )
    reply = t.FilterTaskReply.model_validate_json(answer.message.content)
    assert not reply.stateful
    assert "English and Chinese only" in reply.reason


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_role_finds_the_environment_again_in_its_language(language: str) -> None:
    task = "请取消我周五的陶艺课，改约到周日。"
    inputs = t.InferEnvironmentInputs(task=task, language=language)
    answer = await OfflineModel().complete(ModelRequest(role="infer_environment", messages=(), inputs=inputs))
    inferred = json.loads(answer.message.content)
    description = EnvDescription(summary=inferred["summary"], introduction=inferred["introduction"])
    with_task, without = blueprint_for(description, (task,)), blueprint_for(description, ())
    assert with_task is not None
    assert without is not None
    assert with_task.language == without.language == language
    assert with_task.summary == without.summary == inferred["summary"]


@pytest.mark.parametrize(
    "task",
    [
        "请帮我采购药品。",
        "请把这批货物入库。",
        "请帮我入住登记，并取消原来的入住。",
        "请提交会员注册。",
        "请把校车的时间提前。",
        "请登记一笔开支。",
        "请把我的余额转出。",
        "请把志愿者的服务时间改到周六。",
    ],
)
def test_a_derived_environment_is_found_again_by_its_description_alone(task: str) -> None:
    blueprint = derive(reading_of(task))
    description = EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction)
    found = blueprint_for(description, ())
    assert found is not None
    assert found.summary == blueprint.summary


def test_domains_of_one_language_do_not_stand_in_the_way_of_the_other() -> None:
    for english in domains("en"):
        for chinese in domains("zh"):
            assert english.summary != chinese.summary
    for chinese in domains("zh"):
        description = EnvDescription(summary=chinese.summary, introduction=chinese.introduction)
        assert blueprint_for(description, ("Please lend the book to Ida.",)) is chinese


NOUN = re.compile(r"- name: (\w+)\n\s+noun: ([\u4e00-\u9fff]+)\n")


@cache
def records_of(*path: str) -> dict[str, str]:
    """What a template or a part calls the records that it brings itself, by the name of their entity."""
    return dict(NOUN.findall(packaged("templates", "zh", *path[:-1], f"{path[-1]}.yaml")))


def test_nothing_in_an_environment_is_called_like_something_else_in_it() -> None:
    for noun in reading_zh.nouns():
        reading = reading_zh.read_words(noun)
        assert reading is not None
        assert reading.spoken is not None
        said = {Noun(reading.thing).Name: reading.spoken.thing}
        said |= {Noun(reading.entry.person).Name: reading.spoken.person}
        said |= {Noun(reading.entry.place).Name: reading.spoken.place}
        assert len(set(said.values())) == len(said), noun
        template = reading.entry.template
        parts = [part for part in part_names("zh") if fits(part, template)]
        for records in (records_of(template), *(records_of("parts", part) for part in parts)):
            # A part does not join an environment that has its records already.
            alike = set(said.values()) & set(records.values()) if not said.keys() & records.keys() else set()
            assert not alike, f"{noun}: {alike}"


def said_in(blueprint: Blueprint) -> Iterator[str]:
    """Every text of a blueprint that a person or a model reads."""
    yield from (blueprint.summary, blueprint.introduction)
    for words in blueprint.vocabularies.values():
        yield from words
    for entity in blueprint.entities:
        yield from (entity.noun, entity.plural, entity.description, entity.label)
        for field in entity.fields:
            yield from (field.description, field.label or "", *(field.enum or ()))
    for invariant in blueprint.invariants:
        yield invariant.rule
    for operation in blueprint.operations:
        yield from (operation.description, *operation.ask)
        if operation.effect == "update":
            yield operation.message
        for param in operation.params:
            yield from (param.description, *(param.enum or ()))
        for requirement in operation.requires:
            yield from (requirement.error, requirement.rule)


def assert_chinese(text: str) -> None:
    assert not re.search(r"[A-Za-z]", IDENTIFIERS.sub("", text)), text
    assert " ，" not in text
    assert not re.search(r"[\u4e00-\u9fff][,;:?!]", text), text


@by_environment
def test_everything_that_is_said_is_chinese(blueprint: Blueprint) -> None:
    for text in said_in(blueprint):
        assert_chinese(text)
    for entity in entities_of(blueprint):
        for text in (entity.description, *(attribute.description for attribute in entity.attributes)):
            assert_chinese(text)
            assert text.endswith("。")
    for rule in rules_of(blueprint):
        assert rule.text.endswith("。")
    for state in states(blueprint)[:2]:
        for value in texts_of({key: part for key, part in state.items() if key != CLOCK}):
            assert_chinese(re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "", value))


@by_environment
def test_tasks_checklists_and_messages_are_chinese(blueprint: Blueprint) -> None:
    for seed, state in enumerate(states(blueprint)):
        inputs = t.WriteTaskInputs(**known(blueprint), state=state, clock=state[CLOCK], index=seed, seed=seed)
        reply = write_task(blueprint, inputs)
        assert_chinese(reply.task)
        assert reply.task.endswith(("。", "！"))
        assert " " not in re.sub(r"“[^”]*”", "", reply.task)
        assert reply.user_profile is not None
        for text in (reply.user_profile.opening, reply.user_profile.persona, *reply.user_profile.told.facts):
            assert_chinese(text)
        plan = make_plan(blueprint, state, Random(seed), CHINESE)
        for check in make_checks(blueprint, state, plan.final(state), CHINESE):
            assert_chinese(check.description)
            assert check.description.endswith("？")


@by_environment
def test_its_program_is_sound_and_agrees_with_the_interpreter(blueprint: Blueprint) -> None:
    methods = {operation.name: method_source(blueprint, operation) for operation in blueprint.operations}
    source = assemble(class_source(blueprint), methods)
    assert analyze(source, blueprint.class_name, tools_of(blueprint)) == ()
    for result in results_in_agreement(blueprint, source, states(blueprint)[0], calls=80, seed=3):
        for key in ("message", "error"):
            if key in result:
                assert is_chinese(result[key]), result


@by_environment
def test_its_states_are_legal_and_its_plans_are_what_the_checks_ask_for(blueprint: Blueprint) -> None:
    for seed, initial in enumerate(states(blueprint)):
        assert state_faults(initial, entities_of(blueprint)) == ()
        plan = make_plan(blueprint, initial, Random(seed), CHINESE)
        assert plan.calls
        state = initial
        results: list[Any] = []
        for call in plan.calls:
            operation = blueprint.operation(call.name)
            assert operation is not None
            prediction = interpret(blueprint, operation, state, call.resolved(results))
            assert prediction.success, f"{call.name}: {prediction.error}"
            state = prediction.state
            results.append({"success": True, "data": prediction.data})
        checks = make_checks(blueprint, initial, state, CHINESE)
        assert all(holds(check.source, initial, state) for check in checks)
        assert not all(holds(check.source, initial, initial) for check in checks)


def test_the_testing_agent_speaks_chinese_and_can_be_wrong_in_chinese_too() -> None:
    blueprint = domains("zh")[0]
    state = states(blueprint)[0]
    for tool in tools_of(blueprint):
        for round_ in range(4):
            case: Any = "negative" if round_ % 2 else "positive"
            inputs = t.TestCallInputs(**known(blueprint), state=state, tool=tool, case=case, round=round_, seed=round_)
            reply = make_test_call(blueprint, inputs)
            assert is_chinese(reply.intent)
            operation = blueprint.operation(tool.name)
            assert operation is not None
            if case == "negative":
                assert not interpret(blueprint, operation, state, reply.arguments).success


def test_a_conversation_in_chinese_ends_with_everything_done() -> None:
    blueprint = next(blueprint for blueprint in domains("zh") if blueprint.slug == "library-lending")
    for seed, initial in enumerate(states(blueprint)):
        inputs = t.WriteTaskInputs(**known(blueprint), state=initial, clock=initial[CLOCK], index=seed, seed=seed)
        reply = write_task(blueprint, inputs)
        state = initial
        results: list[Any] = []
        conversation: list[Message] = []
        ended = False
        for _ in range(80):
            spoken = user_turn(
                t.UserTurnInputs(
                    task=reply.task,
                    profile=reply.user_profile.told if reply.user_profile is not None else None,
                    transcript=tuple(m for m in conversation if not isinstance(m, ToolMessage)),
                    stop_token="###",
                    language="zh",
                )
            ).text
            if spoken == "###":
                ended = True
                break
            assert_chinese(spoken)
            conversation.append(UserMessage(content=spoken))
            while True:
                content, call = agent_turn(
                    t.AgentTurnInputs(
                        task=reply.task, solution=reply.plan, conversation=tuple(conversation), language="zh"
                    )
                )
                calls = (call,) if call is not None else ()
                conversation.append(AssistantMessage(content=content, tool_calls=calls))
                if call is None:
                    assert_chinese(content)
                    break
                operation = blueprint.operation(call.name)
                assert operation is not None
                prediction = interpret(blueprint, operation, state, call.arguments)
                state = prediction.state
                results.append(prediction.data)
                result = json.dumps({"success": prediction.success, "data": prediction.data}, ensure_ascii=False)
                conversation.append(ToolMessage(content=result, tool_call_id=str(len(results)), name=call.name))
        assert ended
        assert len(results) == len(reply.plan)


def test_words_of_chinese_are_pairs_of_characters() -> None:
    assert words_of("把《夜行列车》借给Ida") == {"夜行", "行列", "列车", "借给", "ida", "把"}
    assert telling_words("an old 书 of 历史") == {"书", "历史"}
    assert CHINESE.spoken("2025-03-04", "date") == "2025年3月4日"
    assert CHINESE.spoken("2025-03-04T08:30:00", "datetime") == "2025年3月4日08:30"
    assert CHINESE.listed(["甲", "乙", "丙"]) == "甲、乙、丙"


def known(blueprint: Blueprint) -> dict[str, Any]:
    return {
        "description": EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        "language": "zh",
        "entities": entities_of(blueprint),
        "rules": rules_of(blueprint),
        "tools": tools_of(blueprint),
    }


@cache
def states(blueprint: Blueprint) -> tuple[State, ...]:
    return tuple(make_state(blueprint, seed=seed, index=seed, purpose="scenario") for seed in range(4))


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


def holds(source: str, initial: State, final: State) -> bool:
    module: dict[str, Any] = {"initial_state": canonical(initial)}
    exec(source, module)  # noqa: S102 - source of our own making
    answer: bool = module["check_func"](canonical(final))
    return answer
