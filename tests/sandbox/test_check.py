"""Check functions and predicates are judged in a process of their own, each on copies of its own."""

from __future__ import annotations

import copy

import pytest

from envscaler.editing import Edit, edit
from envscaler.sandbox import BlockingSandbox, CheckOutcome, Limits, Sandbox

INITIAL = {"rows": {"a": 1}}
FINAL = {"rows": {"a": 2}, "names": ["x"]}


def judged(box: BlockingSandbox, *sources: str, clock: str = "2025-01-06T09:00:00") -> tuple[CheckOutcome, ...]:
    return box.check(sources, initial_state=INITIAL, final_state=FINAL, clock=clock)


def one(box: BlockingSandbox, body: str) -> CheckOutcome:
    (outcome,) = judged(box, f"def check_func(final_state):\n    {body}\n")
    return outcome


def test_a_check_sees_both_states(box: BlockingSandbox) -> None:
    assert one(box, "return initial_state['rows']['a'] + 1 == final_state['rows']['a']") == CheckOutcome(
        True, None, False
    )
    assert one(box, "return 'unverified' in final_state['names']").value is False


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 1", "TypeError: it returned int, not a bool"),
        ("return None", "TypeError: it returned NoneType, not a bool"),
        ("return final_state['missing']", "KeyError: 'missing'"),
        ("return undefined", "NameError: name 'undefined' is not defined"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("while True: pass", "Timeout: it used more than 0.3 s of CPU time"),
        ("import os; os._exit(0)", "WorkerEnded: it ended the process that it ran in"),
    ],
)
def test_what_is_no_bool_is_an_error_and_no_value(box: BlockingSandbox, body: str, told: str) -> None:
    outcome = one(box, body)
    assert outcome.value is None
    assert outcome.error == told


def test_a_check_can_read_no_file_where_the_sandbox_is_hardened(box: BlockingSandbox) -> None:
    if box.isolation.level != "hardened":
        pytest.skip(f"missing here: {', '.join(box.isolation.missing)}")
    outcome = one(box, "return bool(open('/etc/passwd').read())")
    assert outcome.error is not None
    assert outcome.error.startswith("PermissionError")


@pytest.mark.parametrize("source", ["x = 1", "def check_func(:\n", "check_func = 3", ""])
def test_a_source_without_a_check_is_an_error(box: BlockingSandbox, source: str) -> None:
    (outcome,) = judged(box, source)
    assert outcome.value is None
    assert outcome.error


@pytest.mark.parametrize(
    "change",
    ["final_state['new'] = 1", "final_state['rows'].clear()", "initial_state['rows']['a'] = 5", "final_state[1] = {1}"],
)
def test_a_check_that_changes_what_it_looks_at_is_seen_and_harms_no_other(box: BlockingSandbox, change: str) -> None:
    mutating = f"def check_func(final_state):\n    {change}\n    return True\n"
    looking = "def check_func(final_state):\n    return final_state == {'rows': {'a': 2}, 'names': ['x']}\n"
    first, second = judged(box, mutating, looking)
    assert first == CheckOutcome(True, None, True)
    assert second == CheckOutcome(True, None, False)
    assert FINAL == {"rows": {"a": 2}, "names": ["x"]}


def test_a_check_that_kills_its_worker_takes_no_other_with_it(box: BlockingSandbox) -> None:
    good = "def check_func(s): return True"
    deadly = "import os\ndef check_func(s): os._exit(1)"
    endless = "def check_func(s):\n  while True:\n    try:\n      while True: pass\n    except BaseException: pass\n"
    assert [outcome.value for outcome in judged(box, good, deadly, good, endless, good)] == [
        True,
        None,
        True,
        None,
        True,
    ]


def test_checks_see_the_clock_that_they_are_given(box: BlockingSandbox) -> None:
    source = "import datetime\ndef check_func(s): return datetime.datetime.now().year == 2040\n"
    assert [outcome.value for outcome in judged(box, source, clock="2040-02-03T04:05:06")] == [True]


def test_no_checks_give_no_outcomes(box: BlockingSandbox) -> None:
    assert judged(box) == ()


def test_expressions_are_evaluated_over_the_state(box: BlockingSandbox) -> None:
    outcomes = box.evaluate(
        [
            "all(v > 0 for v in state['rows'].values())",
            "state['rows'] == {}",
            "len(state)",
            "state.pop('rows') == 1",
            "1 +",
        ],
        {"rows": {"a": 1}},
    )
    assert [outcome.value for outcome in outcomes] == [True, False, None, False, None]
    assert [outcome.mutated for outcome in outcomes] == [False, False, False, True, False]
    assert outcomes[4].error is not None
    assert outcomes[4].error.startswith("SyntaxError")


def test_checks_that_go_together_say_what_each_says_alone(box: BlockingSandbox) -> None:
    sources = [
        "def check_func(final_state):\n    return final_state['n'] == 1\n",
        "def check_func(final_state):\n    final_state['n'] = 5\n    return True\n",
        "def check_func(final_state):\n    return final_state['n'] == 1 and initial_state == {'n': 1, 'more': [1]}\n",
        "def check_func(final_state):\n    initial_state['more'].append(2)\n    return final_state['missing']\n",
        "def check_func(final_state):\n    return initial_state == {'n': 1, 'more': [1]}\n",
        "def check_func(final_state):\n    return 'yes'\n",
        "def check_func(final_state):\n    while True:\n        pass\n",
        "def check_func(final_state):\n    return len([0] * (final_state['n'] << 40)) > 0\n",
        "def check_func(final_state)\n    return True\n",
        "import os\ndef check_func(final_state):\n    os._exit(3)\n",
        "def check_func(final_state):\n    return final_state['n'] != 2\n",
    ]
    states = {"initial_state": {"n": 1, "more": [1]}, "final_state": {"n": 1}}
    together = box.check(sources, **states)
    assert together == tuple(box.check([source], **states)[0] for source in sources)
    assert [outcome.value for outcome in together] == [True, True, True, None, True, None, None, None, None, None, True]
    assert [outcome.mutated for outcome in together] == [False, True, *[False] * 9]


def test_a_check_that_never_lets_go_costs_itself_only(box: BlockingSandbox) -> None:
    stubborn = (
        "def check_func(final_state):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass\n"
    )
    fine = "def check_func(final_state):\n    return True\n"
    outcomes = box.check([fine, stubborn, fine, fine], initial_state={}, final_state={})
    assert [outcome.value for outcome in outcomes] == [True, None, True, True]


@pytest.mark.anyio
async def test_many_edited_states_are_judged_as_each_would_be_by_itself() -> None:
    state = {"orders": {"O1": {"status": "open", "lines": [1, 2]}, "O2": {"status": "open", "lines": []}}, "count": 2}
    sources = [
        "def check_func(final_state):\n    return final_state['orders']['O1']['status'] == 'shipped'",
        "def check_func(final_state):\n    return len(final_state['orders']) == len(initial_state['orders'])",
        "def check_func(final_state):\n    return final_state['count']",
        "def check_func(final_state):\n    final_state['orders'].clear()\n    return True",
        "import os\ndef check_func(final_state):\n    return 3 in final_state['orders']['O1']['lines']",
    ]
    edits: list[list[Edit]] = [
        [],
        [[["orders", "O1", "status"], "shipped"]],
        [[["orders", "O1"]]],
        [[["orders", "O3"], {"status": "new"}], [["count"], True]],
        [[["orders", "O1", "lines", 2], 3], [["orders", "O1", "lines", "0"]]],
    ]
    async with Sandbox() as sandbox, sandbox.judge() as judge:
        together = await judge.check_edited(sources, initial_state=state, final_state=state, edits=edits)
        for changes, said in zip(edits, together, strict=True):
            final = edit(copy.deepcopy(state), changes)
            assert said == await judge.check(sources, initial_state=state, final_state=final)
    assert [outcome.value for outcome in together[4]] == [False, True, None, True, True]


@pytest.mark.anyio
async def test_one_that_never_ends_among_many_edited_states_costs_nobody_else_its_answer() -> None:
    sources = [
        "def check_func(final_state):\n    while final_state['n'] == 1:\n        pass\n    return True",
        "def check_func(final_state):\n    return final_state['n'] == 2",
    ]
    async with Sandbox(Limits(cpu_s=0.3, cpu_kill_s=1.0)) as sandbox, sandbox.judge() as judge:
        said = await judge.check_edited(
            sources, initial_state={"n": 0}, final_state={"n": 0}, edits=[[[["n"], n]] for n in range(3)]
        )
    assert [[outcome.value for outcome in row] for row in said] == [[True, False], [None, False], [True, True]]
