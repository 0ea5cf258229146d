"""A session keeps to the environment contract: results, state, rollback, snapshots, forks."""

from __future__ import annotations

import pytest

from envscaler.errors import NotJson, ProgramError, SandboxError
from envscaler.sandbox import BlockingSandbox, Program
from envscaler.state import digest

from .conftest import LEDGER, program_of


def test_a_call_returns_canonical_json_and_the_digest_of_the_state_after_it(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    outcome = session.call("open_account", {"owner": "Ada", "amount": 5})
    assert outcome.fault is None
    assert outcome.changed
    state = session.state()
    assert outcome.digest == session.digest == digest(state)
    assert state["accounts"][outcome.result["id"]]["owner"] == "Ada"
    session.close()


def test_a_call_that_only_reads_changes_nothing(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {"a": {"owner": "Ada", "amount": 1}}})
    before = session.digest
    outcome = session.call("list_accounts", {})
    assert (outcome.changed, outcome.digest) == (False, before)
    assert outcome.result == [{"owner": "Ada", "amount": 1}]
    session.close()


def test_keys_of_results_and_states_keep_the_programs_order(box: BlockingSandbox) -> None:
    program = program_of("    def show(self):\n        self.map = {'z': 1, 'a': 2}\n        return self.map\n")
    session = box.open(program, {})
    assert list(session.call("show", {}).result) == ["z", "a"]
    assert list(session.state()["map"]) == ["z", "a"]
    session.close()


def test_a_call_that_raises_leaves_state_sets_and_shared_objects_as_they_were(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    key = session.call("open_account", {"owner": "Ada"}).result["id"]
    session.call("tag", {"word": "x"})
    before = session.state()
    outcome = session.call("wreck", {})
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.type, outcome.fault.message) == ("raised", "ValueError", "wrecked")
    assert not outcome.changed
    assert session.state() == before
    assert session.call("tag", {"word": "y"}).result == 2
    session.call("raise_last", {"amount": 7})
    assert session.state()["accounts"][key]["amount"] == 7
    session.close()


def test_a_failure_that_is_returned_is_not_rolled_back(box: BlockingSandbox) -> None:
    program = program_of("    def fail(self):\n        self.n += 1\n        return {'success': False}\n")
    session = box.open(program, {})
    outcome = session.call("fail", {})
    assert outcome.changed
    assert session.state()["n"] == 1
    session.close()


@pytest.mark.parametrize(
    "name", ["_secret", "__init__", "kinds", "missing", "", "deposit.__call__", "accounts", "\ud800"]
)
def test_only_public_methods_of_the_class_can_be_called(box: BlockingSandbox, name: str) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    fault = session.call(name, {}).fault
    assert fault is not None
    assert fault.kind == "unknown_tool"
    session.close()


def test_inherited_static_and_class_methods_are_tools_and_state_cannot_shadow_them(box: BlockingSandbox) -> None:
    program = Program(
        "class Base:\n    def hello(self): return 'base'\n    def gone(self): return 1\n"
        "class Env(Base):\n    gone = None\n    @staticmethod\n    def fixed(): return 'static'\n"
        "    @classmethod\n    def name(cls): return cls.__name__\n",
        "Env",
    )
    session = box.open(program, {"hello": "shadow"})
    assert session.call("hello", {}).result == "base"
    assert session.call("fixed", {}).result == "static"
    assert session.call("name", {}).result == "Env"
    fault = session.call("gone", {}).fault
    assert fault is not None
    assert fault.kind == "unknown_tool"
    session.close()


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("object()", "not_json"),
        ("float('nan')", "not_json"),
        ("2 ** 70", "not_json"),
        ("(x for x in [1])", "not_json"),
        ("b'bytes'", "not_json"),
        ("'x' * 200_000", "too_large"),
    ],
)
def test_a_result_that_cannot_be_sent_is_a_fault_and_rolled_back(
    box: BlockingSandbox, expression: str, kind: str
) -> None:
    session = box.open(program_of(f"    def give(self):\n        self.n += 1\n        return {expression}\n"), {})
    fault = session.call("give", {}).fault
    assert fault is not None
    assert fault.kind == kind
    assert session.state() == {"n": 0}
    session.close()


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("object()", "not_json"), ("lambda: 1", "not_json"), ("['x' * 500_000]", "too_large")],
)
def test_a_state_that_cannot_be_kept_is_a_fault_and_rolled_back(
    box: BlockingSandbox, expression: str, kind: str
) -> None:
    session = box.open(program_of(f"    def keep(self):\n        self.thing = {expression}\n        return 1\n"), {})
    fault = session.call("keep", {}).fault
    assert fault is not None
    assert fault.kind == kind
    assert session.state() == {"n": 0}
    session.close()


@pytest.mark.parametrize("value", [float("inf"), 2**70, object()])
def test_arguments_without_a_json_form_are_the_callers_fault_and_an_observation(
    box: BlockingSandbox, value: object
) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    fault = session.call("tag", {"word": value}).fault
    assert fault is not None
    assert (fault.kind, fault.type) == ("not_json", "NotJson")
    assert session.call("tag", {"word": "ü"}).result == 1
    session.close()


def test_a_state_without_a_json_form_cannot_be_opened(box: BlockingSandbox) -> None:
    with pytest.raises(NotJson):
        box.open(LEDGER, {"accounts": {"a": object()}})


def test_half_a_surrogate_pair_passes_in_and_out(box: BlockingSandbox) -> None:
    session = box.open(
        program_of("    def say(self, word):\n        self.word = word\n        return word\n"), {"x": "\ud800"}
    )
    outcome = session.call("say", {"word": "a\udc00"})
    assert outcome.result == "a\udc00"
    assert session.state() == {"n": 0, "x": "\ud800", "word": "a\udc00"}
    assert session.digest == digest(session.state())
    session.close()
    source = "def check_func(s): return s['x'] == '\ud800'"
    (checked,) = box.check([source], initial_state={}, final_state={"x": "\ud800"})
    assert checked.value is True
    odd = box.open(Program("class Env:\n    def say(self): return '\ud800 ü'\n", "Env"), {})
    assert odd.call("say", {}).result == "\ud800 ü"
    odd.close()


def test_attributes_that_marshal_cannot_hold_are_rolled_back_by_replay(box: BlockingSandbox) -> None:
    program = Program(
        "from collections import defaultdict\n"
        "class Env:\n"
        "    def __init__(self, config): self.count = defaultdict(int)\n"
        "    def add(self, key):\n        self.count[key] += 1\n        return self.count[key]\n"
        "    def break_off(self):\n        self.count.clear()\n        raise KeyError('x')\n",
        "Env",
    )
    session = box.open(program, {})
    assert session.call("add", {"key": "a"}).result == 1
    assert session.call("break_off", {}).fault is not None
    assert session.call("add", {"key": "a"}).result == 2
    assert session.call("add", {"key": "b"}).result == 1
    session.close()


def test_the_argument_of_the_constructor_and_the_attributes_share_nothing(box: BlockingSandbox) -> None:
    program = Program(
        "class Env:\n    def __init__(self, init_config):\n"
        "        self.init_config = init_config\n        self.rows = {}\n"
        "    def add(self):\n        self.rows['x'] = 1\n        return len(self.init_config['rows'])\n",
        "Env",
    )
    state = {"rows": {"a": 1}}
    session = box.open(program, state)
    assert session.call("add", {}).result == 1
    assert session.state() == {"init_config": {"rows": {"a": 1}}, "rows": {"a": 1, "x": 1}}
    assert state == {"rows": {"a": 1}}
    session.close()


@pytest.mark.parametrize(
    "constructor",
    ["self, config", "self, config=None", "self"],
)
def test_the_constructor_may_take_the_state_or_nothing(box: BlockingSandbox, constructor: str) -> None:
    program = Program(f"class Env:\n    def __init__({constructor}):\n        self.made = True\n", "Env")
    session = box.open(program, {"rows": [1]})
    assert session.state() == {"made": True, "rows": [1]}
    session.close()


def test_a_constructor_that_refuses_the_state_gets_an_empty_one(box: BlockingSandbox) -> None:
    program = Program(
        "class Env:\n    def __init__(self, config):\n        if config: raise ValueError\n        self.made = True\n",
        "Env",
    )
    session = box.open(program, {"rows": [1]})
    assert session.state() == {"made": True, "rows": [1]}
    session.close()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class Env:\n  def broken(:\n", "SyntaxError.*line 2"),
        ("x = 1\n\n1 / 0\nclass Env: pass\n", "ZeroDivisionError: division by zero .line 3"),
        ("class Other: pass\n", "defines no class Env"),
        ("Env = 3\n", "defines no class Env"),
        ("import torch_that_is_not_there\nclass Env: pass\n", "ModuleNotFoundError.*line 1"),
        ("class Env:\n  def __init__(self, c=None):\n    raise KeyError('nope')\n", "KeyError: 'nope' .line 3"),
        ("class Env:\n  def __init__(self, c=None):\n    self.f = open\n", "NotJson"),
        ("class Env:\n  __slots__ = ('a',)\n", "TypeError"),
        ("while True: pass\n", "Timeout"),
        ("import os\nos._exit(3)\n", "WorkerEnded"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("x = '\x00'\n", "ValueError|SyntaxError"),
        ("x = " + "(" * 5000 + ")" * 5000 + "\n", "SyntaxError|MemoryError|RecursionError"),
    ],
)
def test_a_program_that_cannot_be_built_is_an_error_that_says_why_and_where(
    box: BlockingSandbox, source: str, told: str
) -> None:
    with pytest.raises(ProgramError, match=f"(?s){told}"):
        box.open(Program(source, "Env"), {})


@pytest.mark.parametrize(
    "setter",
    [
        "    def __setattr__(self, name, value):\n"
        "        super().__setattr__(name, value)\n        if name == 'rows': value.append((1, {3, 2}))\n",
        "    @property\n    def b(self): return 1\n"
        "    @b.setter\n    def b(self, value): self.rows.append((1, {3, 2}))\n",
    ],
)
def test_a_setter_may_change_what_was_set_before(box: BlockingSandbox, setter: str) -> None:
    session = box.open(Program(f"class Env:\n{setter}", "Env"), {"rows": [], "b": 1})
    state = session.state()
    assert state["rows"][0] == [1, [2, 3]]
    assert session.digest == digest(state)
    session.close()


def test_nothing_leaks_from_one_session_into_the_next(box: BlockingSandbox) -> None:
    first = box.open(LEDGER, {"accounts": {}})
    first.call("open_account", {"owner": "Ada"})
    assert first.call("journal", {}).result == 1
    second = box.open(LEDGER, {"accounts": {}})
    assert second.call("journal", {}).result == 0
    first.close()
    second.close()


def test_a_snapshot_goes_on_as_the_session_it_was_taken_from(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {}}, seed=7)
    session.call("open_account", {"owner": "Ada"})
    snapshot = session.snapshot()
    went_on = [session.call("draw", {}), session.call("open_account", {"owner": "Bo"})]
    other = box.open(LEDGER, {"accounts": {}}, seed=1)
    other.restore(snapshot)
    assert other.digest == digest(snapshot.state)
    assert other.snapshot() == snapshot
    assert [other.call("draw", {}), other.call("open_account", {"owner": "Bo"})] == went_on
    session.restore(snapshot)
    assert [session.call("draw", {}), session.call("open_account", {"owner": "Bo"})] == went_on
    session.close()
    other.close()


def test_a_snapshot_that_cannot_be_restored_leaves_the_session_as_it_was(box: BlockingSandbox) -> None:
    source = (
        "class Env:\n    def __init__(self, c=None): self.a = 1\n"
        "    @property\n    def b(self): return 2\n    def m(self): return 3\n"
    )
    session = box.open(Program(source, "Env"), {})
    snapshot = session.snapshot()
    bad = type(snapshot)({"b": 5}, snapshot.clock, snapshot.call_index, snapshot.seed)
    with pytest.raises(ProgramError, match="b"):
        session.restore(bad)
    assert session.call("m", {}).result == 3
    session.close()


def test_a_fork_goes_on_by_itself_and_equally(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    session.call("open_account", {"owner": "Ada"})
    session.call("wreck", {})
    twin = session.fork()
    assert twin.digest == session.digest
    assert twin.call("raise_last", {"amount": 3}) == session.call("raise_last", {"amount": 3})
    assert twin.call("draw", {}) == session.call("draw", {})
    twin.call("open_account", {"owner": "Bo"})
    assert twin.digest != session.digest
    session.close()
    assert twin.call("journal", {}).result == 2
    twin.close()


def test_a_closed_session_can_be_closed_again_but_not_used(box: BlockingSandbox) -> None:
    session = box.open(LEDGER, {"accounts": {}})
    session.close()
    session.close()
    with pytest.raises(SandboxError, match="closed"):
        session.call("draw", {})


@pytest.mark.parametrize(
    "source", ["@dataclass\nclass Row:\n    a: 'int'\n    b: list[int] = field(default_factory=list)\n"]
)
def test_ordinary_python_works(box: BlockingSandbox, source: str) -> None:
    program = Program(
        "from __future__ import annotations\n"
        "import enum, re, typing\nfrom dataclasses import asdict, dataclass, field\n"
        "from typing import Dict, TypedDict, Optional, get_type_hints\n"
        "TABLE = {'x': 1}\n"
        "class Colour(str, enum.Enum):\n    RED = 'red'\n"
        f"{source}"
        "class Typed(TypedDict):\n    row: Row\n"
        "class Env:\n"
        "    def __init__(self, config): self.colour = Colour.RED\n"
        "    @property\n    def size(self): return 4\n"
        "    def run(self):\n"
        "        row = Row(1, [2])\n"
        "        hints = sorted(get_type_hints(Typed))\n"
        "        return [asdict(row), self.colour, self.size, TABLE, hints, bool(re.match('a+', 'aa'))]\n",
        "Env",
    )
    session = box.open(program, {})
    assert session.call("run", {}).result == [{"a": 1, "b": [2]}, "red", 4, {"x": 1}, ["row"], True]
    assert session.state() == {"colour": "red"}
    session.close()
