"""What static analysis finds, and what it must not take for a fault."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from envscaler.program import Fault, analyze, tool_schemas
from envscaler.skeleton import ToolSpec

HEAD = """import time
from datetime import datetime
from typing import Dict


class Desk:
    def __init__(self):
        self.loans: Dict[str, dict] = {}

"""


def faults(body: str, *, head: str = HEAD, names: tuple[str, ...] = ("tool",)) -> tuple[Fault, ...]:
    """The faults of a desk whose methods are `body`, with the tools declared as the methods are written."""
    source = head + textwrap.indent(textwrap.dedent(body), "    ")
    derived = tool_schemas(source, "Desk")
    tools = [
        ToolSpec(name=name, description="", parameters=derived.get(name, {"type": "object"}), effect="query")
        for name in names
    ]
    return analyze(source, "Desk", tools)


def tool(*lines: str) -> str:
    return "def tool(self, key: str = ''):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "body",
    [
        tool("return {k: v for k, v in self.loans.items() if k != key}"),
        tool("total = sum(x for x in range(3))", "return [y for z in [[1]] for y in z], total, __name__"),
        tool("import json", "return json.dumps(key)"),
        tool("def inner(n):", "    return n + offset", "offset = 1", "return inner(2)"),
        tool("try:", "    return time.time()", "except (KeyError, ValueError) as error:", "    return str(error)"),
        tool("if (n := len(key)) > 3:", "    return n", "return [m for m in key if (last := m)], last"),
        tool("while True:", "    if key:", "        return 1"),
        tool("with open_lock(self):", "    return 1", "").replace("open_lock(self)", "self.lock()")
        + "def lock(self):\n    return self\n",
        tool("match key:", "    case 'a':", "        return 1", "    case [first, *others]:", "        return others",
             "    case _:", "        return 2"),
        tool("for k in key:", "    if k:", "        return k", "else:", "    return 0"),
        tool("try:", "    x = 1", "finally:", "    return 2"),
        tool("self.seen = 1", "return self.seen"),
        tool("return getattr(self, '_x', None), self.__dict__, self.anything"),
        tool("return sorted(self.loans, key=lambda loan: (loan, key))"),
        tool("global COUNT", "COUNT = 1", "return COUNT"),
        tool("raise ValueError(key)"),
        tool("return datetime.now().isoformat(), datetime.strptime(key, '%Y').date()"),
        tool("time = self.loans", "return time.whatever"),
        tool("return __import__('time').time()"),
    ],
)  # fmt: skip
def test_sound_code_has_no_fault(body: str) -> None:
    names = ("tool", "lock") if "def lock" in body else ("tool",)
    assert faults(body, names=names) == ()


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (tool("return missing_name"), "undefined_name", "`missing_name`"),
        (tool("return [x for x in y]"), "undefined_name", "`y`"),
        (tool("x = [n for n in key]", "return n"), "undefined_name", "`n`"),
        (tool("import os", "return os.getcwd()"), "import", "`os` may not be imported"),
        (tool("from subprocess import run", "return run"), "import", "`subprocess`"),
        (tool("from typing import Nothing", "return Nothing"), "import", "`typing` has no `Nothing`"),
        (
            tool("return datetime.datetime.now()"),
            "import",
            "the class `datetime.datetime` here, which has no `datetime`",
        ),
        (tool("return time.now()"), "import", "the module `time` here, which has no `now`"),
        (tool("return open(key)"), "forbidden", "`open`"),
        (tool("return __import__('os')"), "forbidden", "`__import__`"),
        (tool("return self.loan"), "missing_attribute", "did you mean `loans`"),
        (tool("return self._helper(key)"), "missing_attribute", "`self._helper`"),
        (tool("if key:", "    return 1"), "no_return", "can reach its end"),
        (tool("for k in key:", "    return k"), "no_return", "can reach its end"),
        (tool("while True:", "    break"), "no_return", "can reach its end"),
        (tool("try:", "    return 1", "except KeyError:", "    pass"), "no_return", "can reach its end"),
        (tool("match key:", "    case 'a':", "        return 1"), "no_return", "can reach its end"),
        (tool("self.loans[key] = {}", "return"), "no_return", "returns nothing"),
        (tool("yield key"), "no_return", "generator"),
        ("async def tool(self):\n    return 1\n", "signature", "async"),
        (tool("return 1") + "def other(self):\n    return 1\n", "undeclared_tool", "`other`"),
        ("def tolo(self):\n    return 1\n", "missing_method", "`tool` has no method"),
        ("@staticmethod\ndef tool():\n    return 1\n", "missing_method", "no method that can be called"),
    ],
)
def test_a_fault_is_found_and_placed(body: str, kind: str, words: str) -> None:
    found = [fault for fault in faults(body) if fault.kind == kind]
    assert len(found) == 1, faults(body)
    assert words in found[0].message
    assert found[0].tool in ("tool", "other", "tolo")


def test_a_fault_carries_its_line() -> None:
    [fault] = faults(tool("x = 1", "return missing_name"))
    assert (fault.line, fault.tool) == (12, "tool")


def test_a_signature_that_differs_from_the_schema_is_a_fault() -> None:
    source = HEAD + "    def tool(self, key: int):\n        return key\n"
    declared = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    [fault] = analyze(source, "Desk", [ToolSpec(name="tool", description="", parameters=declared, effect="query")])
    assert fault.kind == "signature"
    assert "string" in fault.message


@pytest.mark.parametrize(
    "source",
    ["class Desk(:\n", "x = 1\n", "", "class Desk:\n    def f(self):\n        x = 1\n        global x\n", "\0"],
)
def test_what_does_not_compile_is_one_fault(source: str) -> None:
    [fault] = analyze(source, "Desk", [])
    assert fault.kind == "syntax"


def test_attributes_of_bases_in_the_program_are_known() -> None:
    head = "class Base:\n    limit = 3\n    def _find(self):\n        self.found = 1\n\nclass Desk(Base):\n"
    assert faults(tool("return self.limit, self._find(), self.found"), head=head) == ()
    assert faults(tool("return self.anything"), head="from json import JSONEncoder\nclass Desk(JSONEncoder):\n") == ()


def test_the_released_programs_have_only_their_known_fault(shared_data: Path) -> None:
    path = shared_data / "data" / "envscaler_release" / "environments.json"
    found = {}
    for env_id, record in json.loads(path.read_text(encoding="utf-8")).items():
        source, class_name = record["env_class_code"], record["env_class_name"]
        tools = [
            ToolSpec(name=name, description="", parameters=schema, effect="query")
            for name, schema in tool_schemas(source, class_name).items()
        ]
        if shown := [(fault.kind, fault.tool) for fault in analyze(source, class_name, tools)]:
            found[env_id] = shown
    # `from datetime import datetime` is undone by a later `import datetime`: the tool always answers with an error.
    assert found == {"env_147_rl": [("import", "check_if_loan_is_overdue")] * 2}
