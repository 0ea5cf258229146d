"""Programs put together from a class and methods as models write them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import ProgramError
from envscaler.program import assemble, class_name_of, method_source, methods_of, remove_method, replace_method

CLASS = '''"""A lending desk."""
# Written for tests.
from typing import Dict, TypedDict  # types


class Loan(TypedDict):
    loan_id: str  # its key


class Desk:
    """Lends books.

    from now on it is open.
    """

    def __init__(self, state: dict = None):
        # id -> loan
        self.loans: Dict[str, Loan] = {}
        # Rule: at most three loans.
'''


def run(source: str) -> dict[str, Any]:
    """The names of a program, loaded; what is run here is written in this file."""
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program", "exec"), space)  # noqa: S102 - text of this test module only
    return space


def meaning(source: str) -> str:
    """The syntax tree without the indentation of docstrings, and without blanks at the ends of their lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node) is not None:
            text = "\n".join(line.rstrip() for line in (ast.get_docstring(node) or "").splitlines())
            node.body[0] = ast.Expr(ast.Constant(text))
    return ast.dump(tree)


def test_imports_of_the_methods_move_to_the_top_and_are_merged() -> None:
    source = assemble(
        CLASS,
        {
            "renew": "import json\nfrom typing import Dict, Optional\nfrom __future__ import annotations\n\n"
            "def renew(self, days: Optional[int] = None) -> dict:\n    return {'text': json.dumps(days)}\n",
            "count": "import json, math\ndef count(self):\n    return math.floor(len(self.loans))\n",
        },
    )
    lines = [line for line in source.splitlines() if line.startswith(("import", "from"))]
    assert lines == [
        "from __future__ import annotations",
        "import json",
        "import math",
        "from typing import Dict, Optional, TypedDict",
    ]
    assert source.startswith('"""A lending desk."""\n')
    assert "    from now on it is open.\n" in source
    assert run(source)["Desk"]().renew(2) == {"text": "2"}


def test_comments_and_annotations_survive() -> None:
    source = assemble(CLASS, {"count": "# counts\n@staticmethod\ndef count(self):  # here\n    return 1  # one\n"})
    for comment in (
        "# Written for tests.",
        "# types",
        "# its key",
        "# id -> loan",
        "# Rule: at most",
        "# here",
        "# one",
    ):
        assert comment in source
    assert "self.loans: Dict[str, Loan] = {}" in source
    assert source.index("# Rule: at most") < source.index("def count")


@pytest.mark.parametrize(
    "code",
    [
        "def count(self):\n    return 7\n",
        "    def count(self):\n        return 7\n",
        "import math\n\n    @property_free\n    def count(self):\n        return 7\n".replace(
            "    @property_free\n", ""
        ),
        "\tdef count(self):\n\t\treturn 7\n",
        "def count():\n  return 7\n",
        "@staticmethod\ndef count():\n    return 7\n",
        "class Desk:\n    def count(self):\n        return 7\n",
        "class Anything:\n    def count(self):\n        return 7\n",
        "def count(self): return 7",
        "def count(self):\r\n    return 7\r\n",
        "def count(self):\n    return 7\n\nif __name__ == '__main__':\n    desk = Desk()\n    print(desk.count())\n",
        "def count(self):\n    return 7\n\ndesk = Desk()\nprint(desk.count())\n",
    ],
)
def test_a_method_is_taken_in_every_form_that_models_write(code: str) -> None:
    space = run(assemble(CLASS, {"count": code}))
    assert space["Desk"]().count() == 7
    assert "desk" not in space


def test_strings_keep_their_content_when_a_method_is_indented() -> None:
    code = 'def text(self):\n    """Doc.\n\n    More:\n        deep\n    """\n    return """a\nb\n  c"""\n'
    source = assemble(CLASS, {"text": code})
    assert run(source)["Desk"]().text() == "a\nb\n  c"
    assert '        """Doc.\n\n        More:\n            deep\n        """\n' in source


def test_helpers_come_along() -> None:
    code = (
        "from enum import Enum\nLIMIT = 3\n\nclass Kind(Enum):\n    A = 'a'\n\n"
        "def _clean(text):\n    return text.strip()\n\n"
        "def _own(self, text):\n    return _clean(text) * LIMIT + Kind.A.value\n\n"
        "def count(self, text):\n    return self._own(text)\n"
    )
    source = assemble(CLASS, {"count": code})
    assert run(source)["Desk"]().count(" x ") == "xxxa"
    assert methods_of(source, "Desk") == ("count",)


def test_a_helper_that_two_methods_bring_differently_is_named() -> None:
    one = "def _clean(text):\n    return text\n\ndef one(self):\n    return _clean('a')\n"
    assert assemble(CLASS, {"one": one, "two": one.replace("one", "two")}).count("def _clean") == 1
    with pytest.raises(ProgramError, match="method `two`: its helper `_clean` differs"):
        assemble(CLASS, {"one": one, "two": one.replace("one", "two").replace("return text", "return text.strip()")})


def test_an_import_that_would_rebind_a_name_stays_in_its_method() -> None:
    source = assemble(
        CLASS,
        {
            "now": "import datetime\ndef now(self):\n    return datetime.date(2025, 1, 6).isoformat()\n",
            "parse": "from datetime import datetime\ndef parse(self, t):\n    return datetime.fromisoformat(t).year\n",
        },
    )
    desk = run(source)["Desk"]()
    assert (desk.now(), desk.parse("2025-01-06")) == ("2025-01-06", 2025)


def test_missing_imports_of_well_known_names_are_added() -> None:
    code = (
        "def check(self, when: Optional[List[str]] = None):\n"
        "    made = datetime.strptime('2025-01-06', '%Y-%m-%d') + timedelta(days=1)\n"
        "    return re.sub('-', '', made.isoformat()[:10]), defaultdict(int), deepcopy(when)\n"
    )
    source = assemble(CLASS, {"check": code})
    assert run(source)["Desk"]().check()[0] == "20250107"
    assert "from datetime import datetime, timedelta" in source
    as_module = assemble(CLASS, {"check": "def check(self):\n    return datetime.datetime(2025, 1, 6)\n"})
    assert "\nimport datetime\n" in as_module
    unclear = assemble(CLASS, {"check": "def check(self):\n    return datetime.now(), datetime.timedelta(1)\n"})
    assert "datetime import" not in unclear
    assert "import datetime" not in unclear


def test_a_method_that_is_there_is_replaced_in_its_place() -> None:
    first = assemble(CLASS, {"a": "def a(self):\n    return 1\n", "b": "def b(self):\n    return 2\n"})
    second = replace_method(first, "Desk", "a", "def a(self):\n    return self.b() + 9\n")
    assert methods_of(second, "Desk") == ("a", "b")
    assert run(second)["Desk"]().a() == 11
    third = remove_method(second, "Desk", "b")
    assert methods_of(third, "Desk") == ("a",)
    with pytest.raises(ProgramError, match="Desk has no method b"):
        remove_method(third, "Desk", "b")


def test_of_methods_defined_twice_the_last_stays() -> None:
    source = assemble(CLASS + "\n    def a(self):\n        return 1\n\n    def a(self):\n        return 2\n", {})
    assert source.count("def a(") == 1
    assert run(source)["Desk"]().a() == 2


def test_an_empty_class_takes_methods() -> None:
    for body in ("pass", "...", "'''Doc.'''"):
        source = assemble(f"class Desk: {body}\n", {"a": "def a(self):\n    return 1\n"})
        assert run(source)["Desk"]().a() == 1
        assert "pass" not in source
    ast.parse(assemble("class Desk:\n    pass\n", {}))


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("def count(self:\n", r"method `count`: the code does not parse"),
        ("def other(self):\n    return 1\n", r"method `count`: it defines `other` instead"),
        ("x = 1\n", r"method `count`: it defines no function"),
        ("", r"method `count`: it defines no function"),
    ],
)
def test_what_cannot_be_put_in_names_the_method(code: str, sentence: str) -> None:
    with pytest.raises(ProgramError, match=sentence):
        assemble(CLASS, {"count": code})


def test_a_broken_class_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"does not parse.*line 1"):
        assemble("class Desk(:\n", {})
    with pytest.raises(ProgramError, match="no class"):
        assemble("x = 1\n", {})
    with pytest.raises(ProgramError, match="no class Other"):
        assemble(CLASS, {}, class_name="Other")


@given(st.lists(st.sampled_from(["a", "b", "c", "_d"]), unique=True), st.integers(0, 3))
def test_assembly_is_settled_after_one_pass(names: list[str], blanks: int) -> None:
    gap = "\n" * blanks
    code = {
        name: f"{gap}import json{gap}\n# note\ndef {name}(self, x=1):{gap}\n    # inside\n    return x\n{gap}"
        for name in names
    }
    source = assemble(CLASS, code)
    assert assemble(source, {}) == source
    assert not any(line != line.rstrip() for line in source.splitlines())


def test_the_released_programs_keep_their_meaning(shared_data: Path) -> None:
    path = shared_data / "data" / "envscaler_release" / "environments.json"
    for record in json.loads(path.read_text(encoding="utf-8")).values():
        source = record["env_class_code"]
        assert class_name_of(source) == record["env_class_name"]
        result = assemble(source, {})
        assert assemble(result, {}) == result
        [before] = [part for part in ast.parse(source).body if getattr(part, "name", "") == record["env_class_name"]]
        [after] = [part for part in ast.parse(result).body if getattr(part, "name", "") == record["env_class_name"]]
        assert meaning(ast.unparse(after)) == meaning(ast.unparse(before))
        assert result.count("#") == source.count("#")


def test_the_walkthrough_is_assembled_as_its_authors_did(shared_data: Path) -> None:
    path = shared_data / "data" / "walkthrough" / "environment_build.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    methods = {operation["operation_name"]: operation["code"] for operation in record["operation_list"]}
    source = assemble(record["class_definition"], methods)
    assert meaning(source) == meaning(record["env_class_code"])
    for name, code in methods.items():
        assert meaning(method_source(source, record["env_class_name"], name)) == meaning(code)
