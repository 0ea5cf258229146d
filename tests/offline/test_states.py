"""Initial states: legal, varied, repeatable."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.design import entities_of
from envscaler.offline.domains import domains
from envscaler.offline.expression import CLOCK, Scope, evaluate
from envscaler.offline.interpret import is_moment
from envscaler.offline.standing_rules import Unique, limits_kept, uniques
from envscaler.offline.states import make_state
from envscaler.program import state_faults
from envscaler.state import State, canonical, encode

seeds = st.integers(0, 10_000)


def state_of(blueprint: Blueprint, seed: int, index: int = 0, clock: str | None = None) -> State:
    return make_state(blueprint, seed=seed, index=index, purpose="scenario", clock=clock)


def assert_legal(blueprint: Blueprint, state: State) -> None:
    assert canonical(state) == state
    assert state_faults(state, entities_of(blueprint)) == ()
    scope = Scope(blueprint, state)
    for entity in blueprint.entities:
        for key, row in state[entity.container].items():
            assert re.fullmatch(rf"{entity.prefix}-\d{{4}}", key)
            assert list(row) == [entity.key, *(field.name for field in entity.fields)]
            assert row[entity.key] == key
            for field in entity.fields:
                value = row[field.name]
                if value is None:
                    assert field.optional, f"{entity.name}.{field.name}"
                    continue
                if field.ref is not None:
                    assert value in state[blueprint.entity(field.ref).container]
                if field.enum is not None:
                    assert value in field.enum
                if field.type in {"date", "time", "datetime"}:
                    assert is_moment(field.type, value)
        if entity.title is not None:
            titles = [str(row[entity.title]).casefold() for row in state[entity.container].values()]
            assert len(titles) == len(set(titles))
    for entity in blueprint.created:
        numbers = [int(key.rsplit("-", 1)[1]) for key in state[entity.container]]
        assert state[entity.counter] > max(numbers, default=0)
    for unique in uniques(blueprint):
        rows = state[blueprint.entity(unique.entity).container].values()
        among = [row for row in rows if evaluate(unique.among, scope.with_it(unique.entity, row))]
        assert len({repr([row[name] for name in unique.fields]) for row in among}) == len(among), unique
    for invariant in (*blueprint.invariants, *limits_kept(blueprint)):
        for row in state[blueprint.entity(invariant.entity).container].values():
            assert evaluate(invariant.holds, scope.with_it(invariant.entity, row)), invariant.rule


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
def test_a_state_fits_the_schema_and_breaks_no_invariant(tool_library: Blueprint, seed: int) -> None:
    assert_legal(tool_library, state_of(tool_library, seed))


def test_states_of_the_domains_of_the_package_are_legal() -> None:
    for blueprint in domains():
        for seed in range(8):
            assert_legal(blueprint, state_of(blueprint, seed))


@settings(deadline=None, max_examples=25)
@given(seed=seeds, index=st.integers(0, 50))
def test_the_same_seed_and_index_give_the_same_bytes_and_others_do_not(
    tool_library: Blueprint, seed: int, index: int
) -> None:
    state = state_of(tool_library, seed, index)
    assert encode(state) == encode(state_of(tool_library, seed, index))
    assert encode(state) != encode(state_of(tool_library, seed, index + 1))
    assert encode(state) != encode(make_state(tool_library, seed=seed, index=index, purpose="assessment"))


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
@example(seed=5727)  # a text that named a record before the reference to it was moved
def test_what_follows_from_other_values_is_derived_and_what_does_not_apply_is_empty(
    tool_library: Blueprint, seed: int
) -> None:
    state = state_of(tool_library, seed)
    lent = {loan["tool_id"] for loan in state["loans"].values() if loan["status"] == "active"}
    for key, tool in state["tools"].items():
        assert tool["lent_out"] is (key in lent)
    for loan in state["loans"].values():
        assert (loan["returned_on"] is None) is (loan["status"] == "active")
        if loan["remark"] is not None:
            assert loan["remark"].startswith(state["tools"][loan["tool_id"]]["name"])


def test_a_clock_can_be_given_and_dates_lie_around_it(tool_library: Blueprint) -> None:
    state = state_of(tool_library, 3, clock="2031-05-06T10:00:00")
    assert state[CLOCK] == "2031-05-06T10:00:00"
    assert all("2031-04-30" < loan["due_date"] < "2031-05-20" for loan in state["loans"].values())


def test_records_at_limits_near_twins_and_every_status_occur(tool_library: Blueprint) -> None:
    at_limit = one_less = strikes = twins = every_status = 0
    sizes = set()
    for seed in range(40):
        state = state_of(tool_library, seed)
        active = [loan["member_id"] for loan in state["loans"].values() if loan["status"] == "active"]
        counts = {active.count(member) for member in state["members"]}
        at_limit += 3 in counts
        one_less += 2 in counts
        strikes += {2, 3} <= {member["strikes"] for member in state["members"].values()}
        surnames = [member["name"].split()[-1] for member in state["members"].values()]
        twins += len(set(surnames)) < len(surnames)
        every_status += len({member["status"] for member in state["members"].values()}) == 3
        sizes.add(len(state["tools"]))
    assert at_limit > 10
    assert one_less > 15
    assert strikes > 15
    assert twins > 10
    assert every_status > 30
    assert len(sizes) > 2


def test_what_no_call_may_double_or_exceed_no_state_holds_and_gates_are_left_alone() -> None:
    bank = next(blueprint for blueprint in domains() if blueprint.slug == "retail-bank")
    assert uniques(bank) == (Unique("Card", ("account_id", "kind"), "it.status != 'destroyed'"),)
    (limit,) = limits_kept(bank)
    assert limit.entity == "Customer"
    assert limit.holds == "count(Account, it.customer_id == customer.id and it.status != 'closed') <= 3"
    # A rule of a shop's returns reads orders and makes none: it says nothing of states.
    shop = next(blueprint for blueprint in domains() if blueprint.slug == "online-shop-orders")
    assert {unique.entity for unique in uniques(shop)} == {"OrderLine", "ProductReturn"}
