"""What is said of single episodes at a lending desk, and of what cannot be explained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from audit.faulty_episodes import PlannedAgent, shelf
from env.lending import SOURCE, scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.audit.explain import choose_check, explain_episode
from envscaler.audit.explain_matching import created_names
from envscaler.audit.explain_records import EpisodeReading
from envscaler.audit.reading_places import changes_between, label_of
from envscaler.audit.reading_source import text_of
from envscaler.editing import edit
from envscaler.errors import UsageError
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.rollout import ScenarioWorld, play
from envscaler.sandbox import Sandbox
from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State, edits_of
from envscaler.trajectory import StopReason, Trajectory

# -- one episode at the lending desk --------------------------------------------------------------------------

DESK = skeleton()
GOAL = scenario(DESK).checks[0]


def call(name: str, **arguments: JsonValue) -> SolutionCall:
    return SolutionCall(name=name, arguments=arguments)


LEND = call("lend_book", book_id="B1", member="Ann")


async def _played(one: Scenario, environment: EnvSkeleton, calls: Sequence[SolutionCall]) -> Trajectory:
    async with Sandbox() as sandbox:
        return await play(ScenarioWorld(environment, one, sandbox), PlannedAgent(calls), step_limit=20)


def read(
    *calls: SolutionCall,
    which: str | None = None,
    environment: EnvSkeleton = DESK,
    now: Scenario | None = None,
    edited: Callable[[Trajectory], Trajectory] = lambda trajectory: trajectory,
    **changes: Any,
) -> EpisodeReading:
    """The explanation of an episode that makes these calls.

    Args:
        now: the scenario that the library has by now; else the one that was played.
        edited: applied to the recorded episode.
        changes: fields of the scenario.
    """
    one = scenario(environment, **changes)
    trajectory = edited(asyncio.run(_played(one, environment, calls)))

    async def explain() -> EpisodeReading:
        async with Sandbox() as sandbox:
            return await explain_episode(trajectory, shelf(environment, now or one), sandbox, which=which)

    return asyncio.run(explain())


def test_nothing_is_explained_where_every_check_holds_unless_one_is_asked_for() -> None:
    reading = read(LEND)
    assert (reading.checks, reading.faults) == ((), ())
    assert [outline.holds for outline in reading.outlines] == [True, True, True]
    (check,) = read(LEND, which="no copy").checks
    assert (check.check.number, check.fault, check.remedy) == (2, None, None)
    assert [(turn.call.name, turn.holds) for turn in check.turned] == [("lend_book", True)]
    (place,) = check.places
    assert (place.pointer, place.label, place.at_reset, place.at_end) == ("/books/B1/copies", "Emma", 1, 0)
    assert [change.call.name for change in place.changes] == ["lend_book"]


def test_a_guard_that_holds_tells_what_it_reads_though_nothing_changed_it() -> None:
    (check,) = read(LEND, which="3").checks
    assert [(place.pointer, place.changes) for place in check.places] == [("/books/B2/copies", ())]
    assert check.turned == ()


def test_who_does_nothing_lacks_each_call_once_and_is_told_what_it_would_have_changed() -> None:
    reading = read()
    (fault,) = reading.faults
    assert (fault.kind, fault.checks, fault.call) == ("missing call", (1, 2), None)
    assert fault.expected is not None
    assert (fault.expected.number, fault.expected.arguments) == (2, {"book_id": "B1", "member": "Ann"})
    remedy = reading.checks[0].remedy
    assert remedy is not None
    assert remedy.found_in == "solution"
    # Only what the check looks at: not the id that the record would have.
    assert [change.after for change in remedy.changes] == [{"book_id": "B1", "member": "Ann"}]


def test_a_created_record_is_told_by_what_it_holds_and_not_by_its_id() -> None:
    reading = read(call("lend_book", book_id="B2", member="Bob"), LEND)
    assert [outline.number for outline in reading.outlines if not outline.holds] == [3]
    (fault,) = reading.faults
    assert (fault.kind, fault.call and fault.call.step) == ("extra edit", 1)
    assert "/books/B2/copies (Œuvres) from 2 to 1" in fault.says


def test_a_book_for_someone_else_is_a_wrong_value_at_the_field_that_holds_it() -> None:
    reading = read(call("lend_book", book_id="B1", member="Bob"))
    (fault,) = reading.faults
    assert (fault.kind, fault.expected and fault.expected.differing) == ("wrong value", ("member",))
    remedy = reading.checks[0].remedy
    assert remedy is not None
    assert [(one.pointer, one.before, one.after) for one in remedy.changes] == [("/loans/L1/member", "Bob", "Ann")]


def test_of_two_calls_that_are_as_near_the_one_stands_for_the_solution_s_that_changes_the_same_places() -> None:
    reading = read(call("lend_book", book_id="B1", member="Bob"), call("lend_book", book_id="B2", member="Ann"))
    said = [(fault.kind, fault.call and fault.call.step, fault.checks) for fault in reading.faults]
    assert said == [("wrong value", 1, (1,)), ("extra edit", 2, (3,))]


def test_an_attempt_that_raised_is_shown_at_the_place_that_it_should_have_changed() -> None:
    reading = read(LEND, call("return_book", loan_id="L9"), call("return_book", loan_id="L1"))
    assert [fault.kind for fault in reading.faults] == ["undone later"]
    assert reading.calls[1].refused
    reading = read(call("lend_book", book_id="B1", member="Ann", until="Friday"))
    (fault,) = reading.faults
    assert fault.kind == "call failed"
    assert [attempt.step for attempt in reading.checks[1].places[0].attempts] == [1]


def test_calls_of_one_step_are_told_apart() -> None:
    def joined(trajectory: Trajectory) -> Trajectory:
        first, second, *rest = trajectory.steps
        both = first.assistant.tool_calls + second.assistant.tool_calls
        step = second.model_copy(
            update={
                "user": first.user,
                "assistant": AssistantMessage(tool_calls=both),
                "observations": first.observations + second.observations,
            }
        )
        return trajectory.model_copy(update={"steps": (step, *rest)})

    reading = read(LEND, call("lend_book", book_id="B2", member="Bob"), edited=joined)
    assert [(one.step, one.number, one.of) for one in reading.calls] == [(1, 1, 2), (1, 2, 2)]
    (fault,) = reading.faults
    assert fault.call is not None
    assert fault.call.number == 2
    assert "step 1 (call 2 of 2)" in fault.says
    assert reading.notes == ()


def test_arguments_that_were_no_object_are_a_call_that_failed() -> None:
    def malformed(trajectory: Trajectory) -> Trajectory:
        (step, *rest) = trajectory.steps
        broken = ToolCall(name="lend_book", malformed="{book: B1", id="c0")
        step = step.model_copy(update={"assistant": AssistantMessage(tool_calls=(broken,)), "state_digest": None})
        return trajectory.model_copy(update={"steps": (step, *rest)})

    reading = read(LEND, edited=malformed)
    (fault,) = reading.faults
    assert (fault.kind, fault.call and fault.call.malformed) == ("call failed", "{book: B1")
    assert any("played again it is otherwise" in note for note in reading.notes)


# -- checks that are odd, scenarios without a solution --------------------------------------------------------


def odd(body: str, description: str = "Has it come about?") -> Check:
    return Check(description=description, source=f"def check_func(final_state):\n{body}", kind="goal")


def test_a_check_that_no_value_can_change_is_said_to_read_nothing() -> None:
    (check,) = read(checks=(odd("    return 'loans' in final_state\n"),), which="1").checks
    assert (check.places, check.also_read) == ((), ())
    assert check.check.held_at_reset is True


def test_a_check_that_raises_shows_its_error_and_what_would_have_satisfied_it() -> None:
    raising = odd("    return final_state['loans']['L1']['member'] == 'Ann'\n")
    (check,) = read(checks=(raising,)).checks
    assert check.check.error == "KeyError: 'L1'"
    assert check.held_after == ()
    assert check.remedy is not None
    assert [change.pointer for change in check.remedy.changes] == ["/loans/L1"]


def test_values_come_from_the_text_where_no_solution_has_them() -> None:
    moved = odd("    return final_state['books']['B2'].get('copies') == 7\n", "Has Œuvres 7 copies?")
    (check,) = read(checks=(moved,), solution=None).checks
    assert check.remedy is not None
    assert check.remedy.found_in == "text"
    assert [(one.pointer, one.after) for one in check.remedy.changes] == [("/books/B2/copies", 7)]
    assert check.fault is not None
    assert check.fault.kind == "missing call"


def test_where_nothing_would_satisfy_a_check_that_is_said_and_nobody_blamed() -> None:
    never = odd("    return final_state['books']['B2']['copies'] < final_state['books']['B2']['copies']\n")
    (check,) = read(LEND, checks=(never,), solution=None).checks
    assert check.remedy is None
    assert check.fault is None


def test_without_a_solution_states_alone_tell_a_wrong_entity_from_a_call_that_failed() -> None:
    loan = odd("    return any(one['book_id'] == 'B2' for one in final_state['loans'].values())\n")
    (fault,) = read(LEND, checks=(loan,), solution=None).faults
    assert (fault.kind, fault.call and fault.call.step) == ("wrong entity", 1)
    none = odd("    return final_state['books']['B1']['copies'] == 5\n")
    refused = call("lend_book", book_id="B1", member="Ann", until="Friday")
    (fault,) = read(refused, checks=(none,), solution=None).faults
    assert (fault.kind, fault.call and fault.call.step) == ("call failed", 1)


def test_a_value_that_no_argument_gave_is_blamed_on_no_call() -> None:
    counted = odd("    return final_state['books']['B2']['copies'] == 0\n")
    (check,) = read(call("lend_book", book_id="B2", member="Ann"), checks=(counted,), solution=None).checks
    assert check.remedy is not None
    assert check.fault is None
    assert [change.call.step for change in check.places[0].changes] == [1]


def test_a_remedy_leaves_alone_what_another_check_asks_for() -> None:
    loans = [
        odd(f"    return any(one['book_id'] == 'B2' and one['member'] == {who!r}"
            " for one in final_state['loans'].values())\n")
        for who in ("Ann", "Bob")
    ]  # fmt: skip
    (check,) = read(call("lend_book", book_id="B2", member="Ann"), checks=tuple(loans), solution=None).checks
    assert check.remedy is not None
    assert [change.kind for change in check.remedy.changes] == ["added"]


def test_an_episode_is_held_against_the_alternative_that_it_is_nearest_to() -> None:
    other = (call("lend_book", book_id="B2", member="Ann"), call("lend_book", book_id="B2", member="Bob"))
    both = odd("    return len(final_state['loans']) == 2\n")
    reading = read(other[1], checks=(both,), solution=(LEND, call("lend_book", book_id="B2", member="Eve")),
                   alternatives=(other,))  # fmt: skip
    (fault,) = reading.faults
    assert (fault.kind, fault.expected and fault.expected.arguments["member"]) == ("missing call", "Ann")


def test_a_call_of_the_solution_that_broke_a_guard_on_its_way_is_not_to_blame() -> None:
    # The solution takes one copy away and gives it back; without the second call the guard is broken by the first.
    swap = (call("lend_book", book_id="B2", member="Ann"), call("return_book", loan_id="L1"), LEND)
    reading = read(swap[0], LEND, solution=swap)
    guard = next(check for check in reading.checks if check.check.number == 3)
    assert guard.fault is not None
    assert (guard.fault.kind, guard.fault.expected and guard.fault.expected.name) == ("missing call", "return_book")


# -- what has changed since, and where nothing can be said ----------------------------------------------------


def test_a_scenario_and_a_program_that_were_changed_since_are_told_before_anything_else() -> None:
    later = scenario(DESK, task="Lend Emma to Ann, now.")
    assert "has been changed since" in read(LEND, now=later).notes[0]
    slower = skeleton(SOURCE.replace('book["copies"] -= 1', 'book["copies"] -= 2'))

    async def explain() -> EpisodeReading:
        trajectory = await _played(scenario(DESK), DESK, [LEND])
        async with Sandbox() as sandbox:
            return await explain_episode(trajectory, shelf(slower, scenario(slower)), sandbox)

    notes = asyncio.run(explain()).notes
    assert any("environment lending-desk has been changed since" in note for note in notes)
    assert any("another state than recorded from step 1 on" in note for note in notes)
    assert any("check 2 held when the episode was recorded" in note for note in notes)


def test_an_episode_that_was_cut_at_a_limit_is_explained_and_said_to_be_cut() -> None:
    reading = read(edited=lambda one: one.model_copy(update={"stop": StopReason.STEP_LIMIT}))
    assert "did not end the episode (step_limit)" in reading.notes[0]
    assert reading.faults


@pytest.mark.parametrize(
    ("update", "changes", "said"),
    [
        ({"stop": StopReason.INFRASTRUCTURE, "verdict": None}, {}, "cut short by the machinery"),
        ({"world": "bfcl"}, {}, "there is no program"),
        ({"scenario_id": "lending-desk-s009"}, {}, "has no scenario 'lending-desk-s009'"),
        ({}, {"checks": ()}, "has no checks"),
    ],
)
def test_where_nothing_can_be_said_one_sentence_says_why(
    update: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        read(LEND, edited=lambda one: one.model_copy(update=update), **changes)


def test_a_check_is_named_by_its_number_or_by_what_only_it_says() -> None:
    checks = scenario(DESK).checks
    assert choose_check(checks, "2") == 1
    assert choose_check(checks, "NO COPY left") == 1
    for which, said in (
        ("0", "checks 1 to 3"),
        ("4", "checks 1 to 3"),
        ("copies as before Emma", "did you mean 3"),
        ("Emma", "said in 2 checks: 1 "),
        ("zzzz", "a number from 1 to 3"),
    ):
        with pytest.raises(UsageError, match=said):
            choose_check(checks, which)


# -- parts ----------------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~é", max_size=3)
VALUES = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), part, max_size=3)
)
STATES = st.dictionaries(st.text("ab/~", min_size=1, max_size=2), VALUES, max_size=4)


@given(STATES, STATES)
def test_the_changes_between_two_states_made_one_after_the_other_lead_from_one_to_the_other(
    before: State, after: State
) -> None:
    changes = changes_between(before, after)
    assert edit(deepcopy(before), edits_of(changes)) == after
    assert edit(deepcopy(before), edits_of(list(reversed(changes)))) == after


def test_a_record_without_a_name_is_called_by_those_it_refers_to() -> None:
    state: State = {
        "people": {"P1": {"id": "P1", "name": "Ann"}},
        "loans": {"L1": {"id": "L1", "person": "P1", "note": "for school"}, "L2": {"id": "L2", "person": "P1"}},
    }
    assert label_of("/people/P1/name", state) == "Ann"
    assert label_of("/loans/L1/note", state) == "Ann, for school"
    assert label_of("/loans", state) is None


def test_created_records_are_paired_by_their_contents() -> None:
    def loan(key: str, book: str) -> JsonValue:
        return {"loan_id": key, "book": book, "days": 7}

    ours: State = {"loans": {"L1": loan("L1", "B2"), "L2": loan("L2", "B1")}}
    solved: State = {"loans": {"L1": loan("L1", "B1"), "L2": loan("L2", "B3"), "L3": loan("L3", "B2")}}
    names = created_names({"loans": {}}, ours, solved)
    assert (names["L1"], names["L3"]) == ("L2", "L1")
    assert names["L2"] not in ours["loans"]


def test_the_text_of_a_check_tells_which_values_it_asks_of_which_fields() -> None:
    text = text_of(
        odd(
            '    """Has nothing to do with it."""\n'
            "    row = final_state['orders'].get('O1')\n"
            "    state = row['status']\n"
            "    def norm(value):\n"
            "        return str(value).lower()\n"
            "    return (norm(row['note']) == 'soon' and abs(row.get('total') - 20.5) < 0.01"
            " and state in ['paid', 'sent'] and row['count'] > 3 and not row['open'])\n",
            "Is the order “O1” paid, 12 times?",
        )
    )
    assert {
        ("note", "soon"), ("total", 20.5), ("status", "paid"), ("status", "sent"), ("count", 4), ("open", False)
    } <= set(text.wanted)  # fmt: skip
    assert {"orders", "O1", "status"} <= text.names
    assert 12 in text.literals
    assert "Has nothing to do with it." not in text.names
