"""`OfflineModel`: a chat model that answers every role by rule, from the role's typed inputs.

It is a procedural generator and no language model: it reads no messages, invents nothing that is not in its domain
files, templates and vocabularies, and gives the same answer to the same inputs. Which environment a request is about
it finds again from the seed task or the description, so that it needs no memory between requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from envscaler.errors import ProgramError, ReplyError
from envscaler.language import language_of
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.messages import AssistantMessage
from envscaler.offline import reading_zh
from envscaler.offline.blueprint import Blueprint, Language
from envscaler.offline.checker import judge_call
from envscaler.offline.derive import derive
from envscaler.offline.design import class_source, entities_of, rules_of, tools_of
from envscaler.offline.domains import domains
from envscaler.offline.methods import method_source
from envscaler.offline.reading import Reading, read_task, read_words
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_check, write_checklist, write_checks, write_task
from envscaler.offline.tester import make_test_call
from envscaler.offline.turns import agent_turn, user_turn
from envscaler.offline.wording import is_chinese
from envscaler.record import Record
from envscaler.roles import types as t
from envscaler.skeleton import EnvDescription
from envscaler.trajectory import Usage

NAME = "offline"
WHAT_IT_IS = "offline: the embedded procedural generator (no language model)"

InputsT = TypeVar("InputsT", bound=Record)


class OfflineModel:
    """Answers every role deterministically, at no cost and without a network."""

    needs_messages = False
    """It answers from the typed inputs; whoever asks need not render a prompt."""

    @property
    def name(self) -> str:
        return NAME

    async def complete(self, request: ModelRequest) -> Completion:
        """The answer that follows from `request.role` and `request.inputs`.

        A request that it cannot serve (an environment that somebody else's program implements, say) is answered in
        prose, which no reply type accepts: the unit is recorded as failed with that sentence as its reason.
        """
        return Completion(message=self._answer(request), usage=Usage(), model=NAME, cost_usd=0.0)

    async def aclose(self) -> None:
        return None

    def _answer(self, request: ModelRequest) -> AssistantMessage:
        answer = _ANSWERS.get(request.role)
        if answer is None or request.inputs is None:
            return AssistantMessage(content=f"The offline model has no answer for the role {request.role}.")
        try:
            return answer(request.inputs)
        except (Unservable, ReplyError, ProgramError) as reason:
            return AssistantMessage(content=f"The offline model cannot serve this: {reason}.")


class Unservable(Exception):
    """A request that the offline model cannot serve; the text says why."""


# -- which environment --------------------------------------------------------------------------------------


def blueprint_of_task(task: str, language: str = "en") -> Blueprint | None:
    """The environment in which a task lives: a domain that fits, else one derived from the task; None: stateless.

    Args:
        language: in which the environment is to be; an English task has an English one.
    """
    reading = _read(task, "zh" if language == "zh" else "en")
    return _blueprint_of(reading, task) if reading is not None else None


def _read(task: str, language: Language) -> Reading | None:
    return reading_zh.read_task(task, language) if language_of(task) == "zh" else read_task(task)


def _chinese_domain(reading: Reading, text: str) -> Blueprint | None:
    """The domain that a Chinese task points to, in the language that is asked for: told by the Chinese keywords, else
    by what its thing is in English."""
    thing = reading.spoken.thing if reading.spoken is not None else ""
    by_keywords = (
        domain
        for domain in domains("zh")
        if thing in domain.keywords or _occurring(domain.keywords, text) >= DOMAIN_WORDS
    )
    found = next(by_keywords, None) or next((domain for domain in domains() if _is_about(reading, domain)), None)
    if found is None:
        return None
    return next(domain for domain in domains(reading.language) if domain.slug == found.slug)


def _is_about(reading: Reading, domain: Blueprint) -> bool:
    """Whether the thing is one that the domain deals with; told by its English keywords."""
    plain = reading.thing in {reading.noun, reading.entry.alone}
    return reading.thing in domain.keywords or (plain and reading.noun in domain.keywords)


def _occurring(keywords: tuple[str, ...], text: str) -> int:
    """How many of the keywords stand in a text without spaces, none inside a longer one."""
    count = 0
    for keyword in sorted(keywords, key=len, reverse=True):
        if keyword in text:
            count += 1
            text = text.replace(keyword, "\n")
    return count


@lru_cache(maxsize=256)
def _blueprint_of(reading: Reading, text: str) -> Blueprint:
    if reading.spoken is not None:
        return _chinese_domain(reading, text) or derive(reading)
    about = next((domain for domain in domains() if _is_about(reading, domain)), None)
    if about is not None:
        return about
    words = set(text.lower().replace(",", " ").replace(".", " ").split())
    nearest = max(domains(), key=lambda domain: len(words.intersection(domain.keywords)))
    return nearest if len(words.intersection(nearest.keywords)) >= DOMAIN_WORDS else derive(reading)


DOMAIN_WORDS = 3
"""So many keywords of a domain in one task point to it, whatever the task's own thing is."""


@lru_cache(maxsize=256)
def blueprint_for(description: EnvDescription, seed_tasks: tuple[str, ...]) -> Blueprint | None:
    """The blueprint behind a description: a domain of that name, else that of the first seed task, else what the
    description's own words give. None where the environment is not one that the offline model would have described."""
    language: Language = "zh" if is_chinese(description.summary) else "en"
    for domain in domains(language):
        if domain.summary == description.summary:
            return domain
    if seed_tasks:
        found = blueprint_of_task(seed_tasks[0], language)
        if found is not None and found.summary == description.summary:
            return found
    text = f"{description.summary}. {description.introduction}"
    reading = reading_zh.read_words(text) if language == "zh" else read_words(text)
    # The words of a derived environment's introduction may be those of a domain, its summary is its own; and what its
    # summary says of the thing may be a thing too: “药品库存管理”.
    beginning = reading_zh.read_beginning(description.summary) if language == "zh" else None
    for own in filter(None, (beginning, reading)):
        if derive(own).summary == description.summary:
            return derive(own)
    return _blueprint_of(reading, text) if reading is not None else None


def _environment(inputs: Any) -> Blueprint:
    blueprint = blueprint_for(inputs.description, inputs.seed_tasks)
    if blueprint is None:
        raise Unservable(f"it has no idea how to build {inputs.description.summary!r}; give a chat model")
    return blueprint


def _own(inputs: t.EnvironmentInputs) -> Blueprint:
    """The blueprint of an environment whose tools are those that the offline model designed."""
    blueprint = _environment(inputs)
    unknown = [tool.name for tool in inputs.tools if blueprint.operation(tool.name) is None]
    if unknown:
        raise Unservable(
            f"the program of {inputs.description.summary!r} has the tool {unknown[0]}, which it did not design; "
            "give a chat model for the scenario writer"
        )
    # A tool that was dropped on the way must not turn up in a plan.
    names = {tool.name for tool in inputs.tools}
    if len(names) == len(blueprint.operations):
        return blueprint
    kept = tuple(operation for operation in blueprint.operations if operation.name in names)
    return blueprint.model_copy(update={"operations": kept})


def _maybe_own(inputs: t.TestCallInputs | t.JudgeCallInputs) -> Blueprint | None:
    return blueprint_for(inputs.description, inputs.seed_tasks)


# -- answers ------------------------------------------------------------------------------------------------


def _json(record: Record) -> AssistantMessage:
    return AssistantMessage(content=record.model_dump_json())


def _code(source: str) -> AssistantMessage:
    return AssistantMessage(content=f"```python\n{source.rstrip()}\n```")


_READABLE = ("en", "zh")


def _filter_task(inputs: t.FilterTaskInputs) -> AssistantMessage:
    language = language_of(inputs.task)
    if language not in _READABLE:
        reason = f"the offline model reads English and Chinese only, and this looks like another language ({language})"
        return _json(t.FilterTaskReply(stateful=False, reason=reason))
    reading = _read(inputs.task, "en")
    if reading is None:
        return _json(
            t.FilterTaskReply(
                stateful=False, reason="the offline model recognises nothing in it that is kept, owned or changed"
            )
        )
    return _json(t.FilterTaskReply(stateful=True, reason=reading.why))


def _infer(inputs: t.InferEnvironmentInputs) -> AssistantMessage:
    blueprint = blueprint_of_task(inputs.task, inputs.language)
    if blueprint is None:
        raise Unservable("it recognises nothing in the task that is kept, owned or changed")
    updates = sum(operation.effect == "update" for operation in blueprint.operations)
    rules = len(rules_of(blueprint))
    return _json(
        t.InferEnvironmentReply(
            summary=blueprint.summary,
            introduction=blueprint.introduction,
            usefulness=min(10, 4 + updates // 2),
            modelability=min(10, 4 + rules // 2),
        )
    )


def _plan_state(inputs: t.PlanStateInputs) -> AssistantMessage:
    blueprint = _environment(inputs)
    return _json(t.PlanStateReply(entities=entities_of(blueprint), rules=rules_of(blueprint)))


def _write_methods(inputs: t.WriteMethodInputs | t.WriteMethodsInputs) -> AssistantMessage:
    blueprint = _environment(inputs)
    asked = inputs.questions if isinstance(inputs, t.WriteMethodsInputs) else (inputs,)
    fences: list[str] = []
    for tool in (question.tool for question in asked):
        operation = blueprint.operation(tool.name)
        if operation is None:
            raise Unservable(f"it did not design the tool {tool.name}")
        fences.append(_code(method_source(blueprint, operation)).content)
    return AssistantMessage(content="\n\n".join(fences))


def _write_state(inputs: t.WriteStateInputs) -> AssistantMessage:
    direction = inputs.wanted.direction if inputs.wanted is not None else None
    state = make_state(_own(inputs), seed=inputs.seed, index=inputs.index, purpose=inputs.purpose, direction=direction)
    return _json(t.WriteStateReply(state=state))


def _agent_turn(inputs: t.AgentTurnInputs) -> AssistantMessage:
    content, call = agent_turn(inputs)
    return AssistantMessage(content=content, tool_calls=(call,) if call is not None else ())


_ANSWERS: dict[str, Callable[[Any], AssistantMessage]] = {
    "filter_task": _filter_task,
    "infer_environment": _infer,
    "plan_state": _plan_state,
    "plan_tools": lambda inputs: _json(t.PlanToolsReply(tools=tools_of(_environment(inputs)))),
    "write_class": lambda inputs: _code(class_source(_environment(inputs))),
    "write_method": _write_methods,
    "write_methods": _write_methods,
    "write_state": _write_state,
    "test_call": lambda inputs: _json(make_test_call(_maybe_own(inputs), inputs)),
    "judge_call": lambda inputs: _json(judge_call(_maybe_own(inputs), inputs)),
    "write_task": lambda inputs: _json(write_task(_own(inputs), inputs)),
    "write_checklist": lambda inputs: _json(write_checklist(_own(inputs), inputs)),
    "write_check": lambda inputs: _code(write_check(_own(inputs), inputs).source),
    "write_checks": lambda inputs: _code("\n\n".join(write_checks(_own(inputs), inputs).blocks)),
    "agent_turn": _agent_turn,
    "user_turn": lambda inputs: AssistantMessage(content=user_turn(inputs).text),
}
