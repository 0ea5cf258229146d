"""Programs that say that they enforce a rule and do not, or only nearly."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from envscaler.skeleton import EnvSkeleton, Rule

from .bench import Bench
from .faults import Planted, form
from .grounds import Ground, clean, varied
from .methods import Method, Refusal, attempts, try_out
from .tool_faults import planted_in_tool

PREDICATES = {
    "A member can have one waiting hold on a book.": "len([0 for h in state['holds'].values() if h['status'] == "
    "'waiting']) == len({(h['book_id'], h['member_id']) for h in state['holds'].values() if h['status'] == 'waiting'})",
    "No two members have the same e-mail address.": "len({m['email'] for m in state['members'].values()}) == "
    "len(state['members'])",
    "Nobody can pay more than the fines that are due.": "all(m['fines_due'] >= 0 for m in state['members'].values())",
    "A book can be lent only while a copy is on the shelf.": "all(b['copies_available'] >= 0 for b in "
    "state['books'].values())",
    "A customer has at most three accounts.": "all(sum(a['customer_id'] == c and a['status'] != 'closed' for a in "
    "state['accounts'].values()) <= 3 for c in state['customers'])",
    "Nobody repays more than is outstanding.": "all(loan['outstanding'] >= 0 for loan in state['loans'].values())",
    "No two files have the same name.": "len({f['name'] for f in state['files'].values()}) == len(state['files'])",
    "A trip has at most two fuel stops.": "all(sum(s['trip_id'] == t for s in state['fuel_stops'].values()) <= 2 "
    "for t in state['trips'])",
    "The workshop has two bays.": "sum(j['status'] == 'in progress' for j in state['workshop_jobs'].values()) <= 2",
    "A ticket is reopened twice at most.": "all(t['reopened'] <= 2 for t in state['tickets'].values())",
    "A stay has at most eight nights.": "all(r['nights'] <= 8 for r in state['reservations'].values())",
    "No two tiers need the same number of points.": "len({t['least_points'] for t in state['tiers'].values()}) == "
    "len(state['tiers'])",
    "A conference session has the same tag at most once.": "len({(t['conference_session_id'], t['tag_id']) for t in "
    "state['taggings'].values()}) == len(state['taggings'])",
    "No two building permit applications have the same subject.": "len({a['subject'] for a in "
    "state['building_permit_applications'].values()}) == len(state['building_permit_applications'])",
    "No more is granted than the budget of the department covers.": "all(d['budget_left'] >= 0 for d in "
    "state['departments'].values())",
}
"""What some rules ask of every state, as the generator might have said it; used where all clean states obey."""

Weakening = Callable[[Method, Refusal], EnvSkeleton | None]


def _weakened(weaken: Weakening) -> Weakening:
    @form("rule_not_enforced")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        rules = [rule for rule in ground.skeleton.rules if rule.tools and predicate_of(rule) is not None]
        for rule in draw.sample(rules, len(rules)):
            made = _planted(ground, bench, rule, weaken)
            if made is not None:
                return made
        return None

    return weaken


def predicate_of(rule: Rule) -> str | None:
    """What a rule asks of every state, where it can be said so."""
    return rule.predicate or PREDICATES.get(rule.text)


def _planted(ground: Ground, bench: Bench, rule: Rule, weaken: Weakening) -> Planted | None:
    predicate = str(predicate_of(rule))
    states = [s.initial_state for env, found in clean() if env.id == ground.skeleton.id for s in found]
    if bench.evaluated(predicate, states) != [True] * len(states):
        return None
    for name in rule.tools:
        tool = ground.skeleton.tool(name)
        assert tool is not None
        method = Method(ground.skeleton, tool)
        refusal = method.rules.get(rule.text)
        if refusal is None:
            continue
        weak = weaken(method, refusal)
        if weak is None:
            continue
        skeleton = _with_predicate(weak, rule, predicate)
        refused = [
            attempt
            for attempt in attempts(ground.skeleton.id, bench)
            if attempt.tool.name == name and not attempt.worked and isinstance(attempt.result, dict)
            if re.fullmatch(refusal.pattern, str(attempt.result.get("error")))
        ]
        for attempt in refused[:6]:
            worked, _, after = try_out(bench, skeleton, attempt)
            if worked and bench.evaluated(predicate, [attempt.state, after]) == [True, False]:
                note = f"{weaken.__doc__} ({name})"
                made = planted_in_tool("rule_not_enforced", ground, bench, skeleton, rule.text, note, attempt)
                if made.beside:
                    return made
    return None


def _with_predicate(skeleton: EnvSkeleton, rule: Rule, predicate: str) -> EnvSkeleton:
    rules = [
        other.model_copy(update={"predicate": predicate, "enforced": True}) if other.text == rule.text else other
        for other in skeleton.rules
    ]
    return varied(skeleton, rules=tuple(rules))


@_weakened
def _gone(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test is gone."""
    return method.edited(refusal.first, refusal.last)


@_weakened
def _off_by_one(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test is off by one."""
    found = re.search(r" (>=|<=|>|<) [\w\[\]'.]+\)*$", refusal.test)
    if found is None or refusal.last - refusal.first != 2:
        return None
    place = found.start(1)
    looser = {">=": ">", "<=": "<", ">": "> 1 +", "<": "< -1 +"}[found[1]]
    test = refusal.test[:place] + looser + refusal.test[place + len(found[1]) :]
    return method.edited(refusal.first, refusal.first + 1, f"if {test}:")


@_weakened
def _only_warned(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test only makes a warning."""
    return method.edited(
        refusal.first, refusal.last, f"if {refusal.test}:", '    warning = "not recommended"  # continue anyway'
    )


@_weakened
def _only_in_strict_mode(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test counts only in a mode that is never on."""
    return method.edited(
        refusal.first, refusal.first + 1, f'if getattr(self, "strict_rules", False) and ({refusal.test}):'
    )


@_weakened
def _not_at_first(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test is left to later and never made."""
    return method.edited(refusal.first, refusal.last, "# TODO: check business rules here", "pass")


@_weakened
def _the_other_way_too(method: Method, refusal: Refusal) -> EnvSkeleton | None:
    """The test asks for two things at once, of which the second never is."""
    return method.edited(refusal.first, refusal.first + 1, f"if ({refusal.test}) and not self.current_time:")
