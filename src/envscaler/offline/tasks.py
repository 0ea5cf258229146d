"""Answers the scenario writer's roles: task with plan, checklist, check functions, which agree with each other.

The three are asked for separately: each makes the same draft again from state, seed and index, and knows by the text
of the task which of several drafts is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from envscaler.errors import ReplyError
from envscaler.offline.blueprint import Blueprint, EntityPlan
from envscaler.offline.checks import make_checks
from envscaler.offline.plans import MOST_CALLS, Plan, make_plan
from envscaler.offline.wording import Wording, wording
from envscaler.roles.types import (
    CodeBlocksReply,
    CodeReply,
    TaskProfile,
    Wanted,
    WriteCheckInputs,
    WriteChecklistInputs,
    WriteChecklistReply,
    WriteChecksInputs,
    WriteTaskInputs,
    WriteTaskReply,
)
from envscaler.scenario import Check, SolutionCall
from envscaler.state import State, digest, text_digest

_DRAFTS = 8
"""Drafts of one scenario that can be told apart."""
_EASY, _HARD = 3, 10
"""Calls aimed at where it is not known how many the original takes."""


@dataclass(frozen=True)
class Draft:
    """All that a scenario needs beside its state."""

    task: str
    plan: tuple[SolutionCall, ...]
    alternatives: tuple[tuple[SolutionCall, ...], ...]
    profile: TaskProfile
    checks: tuple[Check, ...]


def write_task(blueprint: Blueprint, inputs: WriteTaskInputs) -> WriteTaskReply:
    """P_task: a task that can be carried out from the state, its plan, and what a simulated user knows.

    Raises:
        ReplyError: if no operation of the blueprint can succeed in the state.
    """
    # A draft that was sent back is not given again.
    first = 0 if inputs.fault is None else 1 + int(text_digest(inputs.fault)[:4], 16) % (_DRAFTS - 1)
    order = [(first + step) % _DRAFTS for step in range(_DRAFTS)]
    drafts = (
        draft
        for number in order
        if (draft := _draft(blueprint, inputs, number)) is not None and _is_wanted(draft, inputs.wanted)
    )
    chosen = next(drafts, None)
    if chosen is None and inputs.wanted is not None:
        raise ReplyError(f"no {inputs.wanted.direction} task can be made in this state")
    if chosen is None:
        raise ReplyError("no operation that people ask for can succeed in this state")
    if chosen.task in inputs.earlier:
        chosen = next((draft for draft in drafts if draft.task not in inputs.earlier), chosen)
    return WriteTaskReply(
        plan=chosen.plan, alternatives=chosen.alternatives, task=chosen.task, user_profile=chosen.profile
    )


def write_checklist(blueprint: Blueprint, inputs: WriteChecklistInputs) -> WriteChecklistReply:
    """P_check: what must hold of the final state.

    Raises:
        ReplyError: if the task is not one that `write_task` makes of this state.
    """
    checks = _recognised(blueprint, inputs).checks
    return WriteChecklistReply(checklist=tuple(check.description for check in checks))


def write_check(blueprint: Blueprint, inputs: WriteCheckInputs) -> CodeReply:
    """P_func: the check function of one item of that checklist.

    Raises:
        ReplyError: if task or item are not of our making.
    """
    checks = _recognised(blueprint, inputs).checks
    return CodeReply(source=_named(checks, inputs.item, inputs.position).source)


def write_checks(blueprint: Blueprint, inputs: WriteChecksInputs) -> CodeBlocksReply:
    """P_func: the check functions of several items of that checklist, each under the name that it is asked for by.

    Raises:
        ReplyError: if task or items are not of our making.
    """
    checks = _recognised(blueprint, inputs).checks
    return CodeBlocksReply(
        blocks=tuple(
            _named(checks, asked.item, asked.position).source.replace("def check_func(", f"def {asked.function}(", 1)
            for asked in inputs.questions
        )
    )


def _named(checks: Sequence[Check], item: str, position: int) -> Check:
    if position < len(checks) and checks[position].description == item:
        return checks[position]
    for check in checks:
        if check.description == item:
            return check
    raise ReplyError("the item is not on the checklist that belongs to this task")


def _recognised(blueprint: Blueprint, inputs: WriteChecklistInputs) -> Draft:
    for number in range(_DRAFTS):
        draft = _draft(blueprint, inputs, number)
        if draft is not None and draft.task == inputs.task:
            return draft
    raise ReplyError("the task was not written by the offline model for this state, so it knows no checks for it")


@dataclass(frozen=True)
class _Source:
    """What a draft follows from; compared by digest, since states are not hashable."""

    blueprint: Blueprint
    state: State = field(compare=False)
    state_digest: str
    language: str
    seed: int
    index: int
    number: int
    grade: int | None = None
    """Calls aimed at; None: by the index."""


def _is_wanted(draft: Draft, wanted: Wanted | None) -> bool:
    """Whether the plan is longer, or shorter, than what it is to be a version of."""
    if wanted is None or wanted.calls is None:
        return True
    return len(draft.plan) > wanted.calls if wanted.direction == "harder" else len(draft.plan) < wanted.calls


def _grade(wanted: Wanted | None, number: int) -> int | None:
    """Calls aimed at by one of the drafts."""
    if wanted is None:
        return None
    if wanted.direction == "harder":
        return min(MOST_CALLS, (wanted.calls or _HARD - 2) + 2 + number % 4)
    return max(1, (wanted.calls or 2 * _EASY) // 2 - number % 2)


def _draft(blueprint: Blueprint, inputs: WriteTaskInputs | WriteChecklistInputs, number: int) -> Draft | None:
    return _drafted(
        _Source(
            blueprint,
            inputs.state,
            digest(inputs.state),
            inputs.language,
            inputs.seed,
            inputs.index,
            number,
            _grade(inputs.wanted, number),
        )
    )


@lru_cache(maxsize=256)
def _drafted(source: _Source) -> Draft | None:
    said = wording(source.language)
    blueprint = source.blueprint
    rng = Random(f"{blueprint.slug}/{source.state_digest}/{source.seed}/{source.index}/{source.number}")
    plan = make_plan(blueprint, source.state, rng, said, index=source.index, grade=source.grade)
    if not plan.goals:
        return None
    return Draft(
        task=_task_text(blueprint, plan, rng, said),
        plan=plan.calls,
        alternatives=plan.alternatives,
        profile=_profile(blueprint, plan, rng, said),
        checks=make_checks(blueprint, source.state, plan.final(source.state), said, spared=plan.spared),
    )


def _task_text(blueprint: Blueprint, plan: Plan, rng: Random, said: Wording) -> str:
    wishes = [goal.wish for goal in plan.goals]
    place = _uncapitalised(blueprint.summary)
    sentences = [
        said.say("opening", rng),
        said.say("context", rng, place=place),
        said.say("first" if len(wishes) > 1 else "alone", rng, wish=wishes[0]),
    ]
    middle = list(said.phrases["next"])
    rng.shuffle(middle)
    for position, wish in enumerate(wishes[1:], start=2):
        if position == len(wishes) and position > 2:
            sentences.append(said.say("last", rng, wish=wish))
        else:
            sentences.append(middle[position % len(middle)].format(wish=wish))
    if plan.partly:
        sentences.append(said.say("leave_out", rng))
    sentences.append(said.say("closing_in_part" if plan.partly else "closing", rng))
    return said.joined(sentences)


def _uncapitalised(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _profile(blueprint: Blueprint, plan: Plan, rng: Random, said: Wording) -> TaskProfile:
    """The opening names the concern only; the facts together hold the whole task, in its order."""
    concern = _concern(blueprint, plan)
    facts = [
        said.say("fact_next" if position else "fact_first", rng, wish=goal.wish)
        for position, goal in enumerate(plan.goals)
    ]
    if plan.partly:
        facts.append(said.say("leave_out", rng))
    return TaskProfile(
        opening=said.say("user_opening", rng, plural=concern.plural),
        facts=tuple(facts),
        persona=said.say("persona", rng),
    )


def _concern(blueprint: Blueprint, plan: Plan) -> EntityPlan:
    goal = plan.goals[0]
    about = goal.evidence or goal.proposal.spared
    changed = min(about, key=lambda mark: (mark[2] is not None, mark[0], mark[1], mark[2] or ""))
    return blueprint.entity(changed[0])
