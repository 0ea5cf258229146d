"""Goals that can be reached one after the other from a state, the calls that reach them, and other calls that do.

Every plan changes the state, no goal undoes or decides another one, and every call succeeds in the interpreter. How
goals read in a task is `tasks`' business, how their outcome is checked `checks`'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from random import Random

from envscaler.offline.alternatives import alternatives_of, outcome
from envscaler.offline.blueprint import Blueprint, OperationPlan
from envscaler.offline.carrying import Carried, Carrier
from envscaler.offline.conditional_goals import conditional
from envscaler.offline.goals import (
    Evidence,
    Goal,
    Proposal,
    Step,
    clash,
    contents_of,
    evidence_of,
)
from envscaler.offline.group_goals import chosen, enumerated, group
from envscaler.offline.interpret import interpret, refusal
from envscaler.offline.labels import label
from envscaler.offline.name_book import NameBook
from envscaler.offline.single_goals import following, forbidden, looked_up, plain
from envscaler.offline.situation import Situation
from envscaler.offline.wording import Wording
from envscaler.scenario import SolutionCall
from envscaler.state import State, text_digest

MOST_CALLS = 15
_GRADES = (4, 7, 1, 5, 9, 3, 6, 12, 8, 2, 10, 5)
"""Calls aimed at, by the index of the scenario: easy and hard ones in turn."""
_MOST_GOALS = 6
_FOLLOWED = 0.6
"""How often a goal that makes a record is followed by one about it, where there can be one."""
_PROPOSALS = 4
"""Proposals tried for one kind and one operation."""
_OPERATIONS = 6
"""Operations tried for one kind."""

Proposer = Callable[[Situation, OperationPlan], Iterator[Proposal]]
_KINDS: tuple[Proposer, ...] = (chosen, conditional, group, forbidden, looked_up, enumerated, plain)
"""The first goal's kind, by the index of the scenario."""
_LATER: tuple[tuple[Proposer, int], ...] = (
    (plain, 5),
    (chosen, 2),
    (conditional, 2),
    (group, 2),
    (looked_up, 1),
    (enumerated, 1),
    (forbidden, 1),
)
"""Kinds of further goals, with weights."""


@dataclass
class Plan:
    """A chain of goals with the calls that reach them."""

    goals: list[Goal] = field(default_factory=list)
    calls: tuple[SolutionCall, ...] = ()
    alternatives: tuple[tuple[SolutionCall, ...], ...] = ()
    """Other calls that come to the same, but for ids of new records and time stamps."""

    def final(self, initial: State) -> State:
        """The state at the end."""
        return self.goals[-1].after if self.goals else initial

    @property
    def spared(self) -> frozenset[Evidence]:
        """What a wrong decision would change."""
        return frozenset(mark for goal in self.goals for mark in goal.proposal.spared)

    @property
    def partly(self) -> bool:
        """Whether a rule stands against a part of what is wished, without the wish saying so."""
        return any(goal.proposal.kind in {"forbidden", "group"} and goal.proposal.refused for goal in self.goals)


def make_plan(
    blueprint: Blueprint,
    state: State,
    rng: Random,
    wording: Wording,
    *,
    index: int | None = None,
    grade: int | None = None,
) -> Plan:
    """A plan of at most fifteen calls; an empty one if no operation that people ask for can succeed.

    Args:
        index: which scenario it is for: length and kind of goals are spread over them; None draws it.
        grade: calls aimed at; None: by the index.
    """
    number = rng.randrange(len(_GRADES) * len(_KINDS)) if index is None else index
    # Environments do not all begin with the same kind.
    number += int(text_digest(blueprint.slug)[:4], 16)
    grade = grade if grade is not None else _GRADES[number % len(_GRADES)]
    return _Planner(blueprint, state, rng, wording).plan(grade, _KINDS[number % len(_KINDS)])


class _Planner:
    def __init__(self, blueprint: Blueprint, state: State, rng: Random, wording: Wording) -> None:
        self.blueprint = blueprint
        self.initial = state
        self.rng = rng
        self.wording = wording
        self.book = NameBook(blueprint, wording)
        self.goals: list[Goal] = []
        self.carrier = Carrier(blueprint, self.book, state)
        self.limit = MOST_CALLS

    def plan(self, grade: int, first: Proposer) -> Plan:
        self.limit = grade
        if grade <= 2:
            first = plain
        # The kind in question comes first where it leads to a plan at all; a short plan may need a call more.
        for proposers, allowance in (((first,), 2), ((plain,), 1), ((plain,), 4), ((first, plain), MOST_CALLS)):
            self.limit = min(MOST_CALLS, grade + allowance) if grade > 2 or allowance > 1 else grade
            if any(self._add(proposer) for proposer in proposers):
                break
        self.limit = min(MOST_CALLS, max(grade + 1, len(self.carrier.calls)))
        kinds = self._later()
        for proposer in islice(kinds, 2 * _MOST_GOALS):
            # A wish that comes to nothing cannot be the only one.
            alone = not any(goal.evidence for goal in self.goals)
            if not alone and (len(self.goals) >= _MOST_GOALS or len(self.carrier.calls) >= grade):
                break
            if alone:
                self.limit = MOST_CALLS
            self._add(plain if alone else proposer)
        if not any(goal.evidence for goal in self.goals):
            return Plan()
        self._mix()
        calls = self.carrier.calls
        return Plan(self.goals, calls, alternatives_of(self.blueprint, self.book, self.initial, self.goals, calls))

    def _later(self) -> Iterator[Proposer]:
        proposers, weights = zip(*_LATER, strict=True)
        while True:
            if self.goals and self.goals[-1].created and self.rng.random() < _FOLLOWED:
                yield following
            yield self.rng.choices(proposers, weights)[0]

    def _mix(self) -> None:
        """Put wishes that nothing is done for among the others, so that their place does not give them away."""
        idle = [goal for goal in self.goals if not goal.proposal.steps]
        rest = [goal for goal in self.goals if goal.proposal.steps]
        for goal in idle:
            place = self.rng.randint(0, len(rest) - 1) if rest else 0
            before = rest[place - 1].after if place else self.initial
            rest.insert(place, Goal(goal.proposal, goal.evidence, goal.created, before))
        carrier = Carrier(self.blueprint, self.book, self.initial)
        if idle and all(carrier.follow(goal) for goal in rest):
            self.goals, self.carrier = rest, carrier

    def _add(self, proposer: Proposer) -> bool:
        situation = Situation(
            self.blueprint,
            self.initial,
            self.carrier.state,
            self.rng,
            self.book,
            self.goals,
            self.carrier.lookups.known.keys(),
        )
        operations = self._ordered(situation.asked_for(), short=self.limit <= 2)
        most = len(operations) if proposer is plain else _OPERATIONS
        proposals = chain.from_iterable(
            islice(proposer(situation, operation), _PROPOSALS) for operation in operations[:most]
        )
        return any(self._accept(proposal) for proposal in proposals)

    def _ordered(self, operations: Sequence[OperationPlan], *, short: bool) -> list[OperationPlan]:
        """Operations in drawn order, those used already last, more demanding ones more often first."""
        used = Counter(step.operation.name for goal in self.goals for step in goal.proposal.steps)
        drawn = {op.name: self.rng.random() ** (1 / (1 + min(3, len(op.requires)))) for op in operations}
        return sorted(
            operations,
            key=lambda op: (
                used[op.name],
                sum(param.ref is not None for param in op.params) if short else 0,
                -drawn[op.name],
            ),
        )

    # -- what fits ------------------------------------------------------------------------------------------

    def _accept(self, proposal: Proposal) -> bool:
        """Take a goal into the plan unless it cannot be reached, told apart or kept apart from the others."""
        if any(proposal.wish == goal.wish for goal in self.goals):
            return False
        carried = self.carrier.attempt(proposal)
        if carried is None or len(carried.lookups.calls) > self.limit:
            return False
        evidence = evidence_of(self.blueprint, self.carrier.state, carried.after)
        if bool(evidence) is not bool(proposal.steps) or not (evidence or proposal.spared):
            return False
        goal = Goal(proposal, evidence, carried.created, carried.after)
        if len(proposal.steps) > 1 and not self._independent(proposal):
            return False
        if not self._apart(goal) or not self._refused(goal):
            return False
        if evidence and not (self._visible(evidence, carried.after) and self._distinct(carried)):
            return False
        self.carrier.accept(carried)
        self.goals.append(goal)
        return True

    def _independent(self, proposal: Proposal) -> bool:
        """Whether the steps come to the same in the other order, and to something else without any one of them."""
        steps = proposal.steps

        def reached(chosen: Sequence[Step]) -> str | None:
            state = self.carrier.state
            for step in chosen:
                prediction = interpret(self.blueprint, step.operation, state, step.arguments)
                if not prediction.success:
                    return None
                state = prediction.state
            return outcome(self.blueprint, self.carrier.state, state)

        whole = reached(steps)
        return whole == reached(steps[::-1]) and all(
            reached([*steps[:index], *steps[index + 1 :]]) != whole for index in range(len(steps))
        )

    def _apart(self, new: Goal) -> bool:
        """Whether no goal changes what decides another one, or what another one must leave as it is."""
        for goal in self.goals:
            for one, other in ((goal, new), (new, goal)):
                if clash(one.proposal.reads, other.evidence):
                    return False
                changed = {(entity, key) for entity, key, _ in other.evidence}
                if any((entity, key) in changed for entity, key, _ in one.proposal.spared):
                    return False
                if any(record in one.proposal.records for record in other.proposal.records) and not (
                    one.proposal.steps and other.proposal.steps
                ):
                    return False
        return True

    def _refused(self, new: Goal) -> bool:
        """Whether what rules stand against stays refused, whichever goals were reached before."""
        goals = [*self.goals, new]
        states = [self.initial, *(goal.after for goal in goals)]
        return all(
            (refused := refusal(self.blueprint, step.operation, state, step.arguments)) is not None
            and refused.violated is not None
            for goal in goals
            for step in goal.proposal.refused
            for state in (states if goal is new else states[-1:])
        )

    def _visible(self, evidence: frozenset[Evidence], after: State) -> bool:
        """Whether every goal, the new one too, leaves at the end a mark of its own that was not there at the start."""
        overall = evidence_of(self.blueprint, self.initial, after)
        if not evidence & overall:
            return False
        later: set[Evidence] = set(evidence)
        for goal in reversed([goal for goal in self.goals if goal.evidence]):
            own = goal.evidence & overall
            # What a later goal changed again no longer shows that this one was reached.
            if not own - later:
                return False
            later |= goal.evidence
        return True

    def _distinct(self, carried: Carried) -> bool:
        """Whether each record created so far is told apart from all others by its label and by its contents."""
        after = carried.after
        for name in {entity for entity, _ in carried.created}:
            entity = self.blueprint.entity(name)
            rows = after[entity.container]
            new = [key for key in rows if key not in self.initial[entity.container]]
            labels = Counter(
                text.casefold()
                for row in rows.values()
                if (text := label(self.blueprint, after, entity, row, self.wording)) is not None
            )
            contents = Counter(contents_of(entity, rows[key]) for key in new)
            for key in (key for kind, key in carried.created if kind == name and key in rows):
                text = label(self.blueprint, after, entity, rows[key], self.wording)
                if contents[contents_of(entity, rows[key])] > 1:
                    return False
                if entity.title is not None and (text is None or labels[text.casefold()] > 1):
                    return False
        return True
