"""Functions taken out of code for several: each stands alone, with what it uses and nothing else."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import ProgramError
from envscaler.program.functions import Functions

SHARED = '''\
import math
from datetime import date as day, timedelta

LIMIT = 3
WORDS: dict[str, int] = {"many": LIMIT}


def rows(state, kind):
    """Records of a kind."""
    return [row for row in state.get(kind, {}).values() if isinstance(row, dict)]


def few(found):
    return len(found) < WORDS["many"]


def unused(x):
    return day(x, 1, 1)


def check_1(final_state: dict) -> bool:
    """Has a book been lent?"""
    # at least one
    return any(row.get("lent") for row in rows(final_state, "books"))


def check_2(final_state):
    return few(rows(final_state, "books")) and not math.isnan(1.0)


def check_3(final_state):
    rows = final_state["loans"]
    return rows == [] or check_3({"loans": rows[1:]})


print(check_1({}))
'''


def called(source: str, name: str, *arguments: Any) -> Any:
    """What the function of a source says, run as code is that keeps globals and locals apart."""
    node = ast.parse(source).body[-1]
    assert isinstance(node, ast.FunctionDef)
    assert node.name == name
    scope: dict[str, Any] = {}
    exec(source, {}, scope)  # noqa: S102 - code that stands in this file
    return scope[name](*arguments)


def test_a_function_takes_along_what_it_uses_and_nothing_else() -> None:
    functions = Functions([SHARED])
    first = functions.alone("check_1", "check_func")
    assert first == (
        "def check_func(final_state: dict) -> bool:\n"
        '    """Has a book been lent?"""\n'
        "    def rows(state, kind):\n"
        '        """Records of a kind."""\n'
        "        return [row for row in state.get(kind, {}).values() if isinstance(row, dict)]\n"
        "    # at least one\n"
        '    return any(row.get("lent") for row in rows(final_state, "books"))\n'
    )
    assert called(first, "check_func", {"books": {"B": {"lent": True}}}) is True
    second = functions.alone("check_2", "check_func")
    assert "unused" not in second
    assert "timedelta" not in second
    assert called(second, "check_func", {"books": {}}) is True


def test_a_local_name_is_not_taken_for_a_helper_and_a_function_may_call_itself() -> None:
    third = Functions([SHARED]).alone("check_3", "check_func")
    assert "def rows" not in third
    assert "check_3" not in third
    scope: dict[str, Any] = {}
    exec(third, scope)  # noqa: S102 - code that stands in this file
    assert scope["check_func"]({"loans": [{}]}) is True


@pytest.mark.parametrize(
    "code",
    [
        "LIMIT = 2\ndef f(x): return x < LIMIT",
        "LIMIT = 2\ndef f(x):\n\t'''Is it\n\tsmall?'''\n\treturn x < LIMIT",
        "LIMIT = 2\n@str\n@(lambda g: g)\ndef g(x):\n    return x\ndef f(x):\n    # small\n    @staticmethod\n"
        "    def h(): return LIMIT\n    return x < LIMIT",
        "try:\n    LIMIT = int('2')\nexcept ValueError:\n    LIMIT = 0\ndef f(x):\n    return x < LIMIT",
        "def f(x):\n    return x < limit()\ndef limit():\n    return len('''a\nb''') - 1",
        "class Limit:\n    of = 2\ndef f(x):\n    return (lambda: x < Limit.of)()",
        "LIMIT = 9\nLIMIT = 2\ndef f(x, *, _limit=LIMIT):\n    return x < _limit and x < LIMIT",
        "def f(x):\r\n    return x < two()\r\ndef two():\r\n    return 2",
        "from typing import Any, Dict\nIs = bool\ndef f(x: Any, y: Dict[str, Any] = {}) -> Is:\n    return x < 2",
    ],
)
def test_whatever_is_used_is_there_wherever_it_stands(code: str) -> None:
    source = Functions([code]).alone("f", "g_func")
    assert called(source, "g_func", 1) is True
    assert called(source, "g_func", 2) is False


def test_blocks_are_scopes_of_their_own_and_lend_what_another_lacks() -> None:
    blocks = (
        "def same(a, b):\n    return a == b\ndef one(x):\n    return same(x, 1)",
        "def same(a, b):\n    return a is b\ndef two(x):\n    return same(x, LIMIT)",
        "LIMIT = 2",
    )
    functions = Functions(blocks)
    assert "a == b" in functions.alone("one", "f")
    assert "a is b" in functions.alone("two", "f")
    assert called(functions.alone("two", "f"), "f", 2) is True


def test_what_does_not_parse_costs_no_other_function() -> None:
    code = "def good(x):\n    return same(x)\n\ndef bad(x):\n    return (x\n\ndef same(x):\n    return x == 1\n"
    functions = Functions([code])
    assert called(functions.alone("good", "f"), "f", 1) is True
    with pytest.raises(ProgramError, match="the code of bad does not parse"):
        functions.alone("bad", "f")
    with pytest.raises(ProgramError, match="there is no function other"):
        functions.alone("other", "f")


@given(st.text(max_size=300))
def test_any_text_is_looked_through(text: str) -> None:
    with pytest.raises(ProgramError):
        Functions([text]).alone("no_such_function", "f")


@given(st.permutations(SHARED.split("\n\n\n")))
def test_the_order_of_definitions_does_not_matter(parts: list[str]) -> None:
    functions = Functions(["\n\n\n".join(parts)])
    for name, state in (("check_1", {"books": {"B": {"lent": 1}}}), ("check_2", {})):
        assert called(functions.alone(name, "f"), "f", state) is True


IN_A_CLASS = """import copy
import re

LIMIT = 3

def near(a, b):
    return abs(a - b) < LIMIT

class Desk:
    def find(self, n):
        \"\"\"Find.\"\"\"
        return [copy.deepcopy(one) for one in self.all if near(one, n)]

    @staticmethod
    def other():
        return re.compile("x")
"""


def test_a_function_stands_below_what_it_uses() -> None:
    block = (
        "import re\nimport copy\n\ndef one(self):\n    return copy.copy(self.x)\n\nasync def two(self):\n    return 2"
    )
    functions = Functions([block])
    assert functions.standing("one") == "import copy\n\n\ndef one(self):\n    return copy.copy(self.x)\n"
    assert functions.standing("two") == "async def two(self):\n    return 2\n"
    with pytest.raises(ProgramError, match="no function three"):
        functions.standing("three")


def test_methods_of_classes_count_only_where_they_are_asked_for() -> None:
    with pytest.raises(ProgramError, match="no function find"):
        Functions([IN_A_CLASS]).standing("find")
    functions = Functions([IN_A_CLASS], of_classes=True)
    found = functions.standing("find")
    assert found.startswith("import copy\nLIMIT = 3\ndef near(a, b):")
    assert "import re" not in found
    assert "class Desk" not in found
    assert functions.standing("other").startswith("import re\n\n\n@staticmethod\ndef other():")
