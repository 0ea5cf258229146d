"""Makes programs out of the attacks of a module: each public function in it becomes the method `attack` of one.

Private functions come along with each.
They are functions so that they can be read, formatted and linted; none of them ever runs in the tests' own process.
"""

from __future__ import annotations

import inspect
import textwrap
from types import ModuleType

CLASS = '''

class Env:
    SHARED = []

    def __init__(self, init_config):
        self.items = {}
        self.n = 0

    def probe(self):
        """What another session could notice."""
        import datetime, json, marshal, random, re, sys, uuid
        self.n += 1
        return [
            len(self.items), self.n, len(self.SHARED), len([1, 2]), sorted("ba"), bool([]), isinstance(1, int),
            json.dumps({"a": [1]}), json.loads("[2]"), marshal.loads(marshal.dumps({1: 2})) == {1: 2}, hash("a"),
            random.random(), str(uuid.uuid4()), datetime.datetime.now().isoformat(), re.sub("a", "b", "aa"),
            sys.getrecursionlimit(), sys.gettrace() is None, "sys" in sys.modules, str(1.5), repr("x"),
        ]

'''


def programs(module: ModuleType) -> dict[str, str]:
    """Texts of programs by what they do."""
    functions = [function for function in vars(module).values() if inspect.isfunction(function)]
    private = "\n\n".join(inspect.getsource(function) for function in functions if function.__name__.startswith("_"))
    return {
        function.__name__.replace("_", " "): private
        + CLASS
        + textwrap.indent(inspect.getsource(function), "    ")
        + f"\n    attack = {function.__name__}\n"
        for function in functions
        if not function.__name__.startswith("_")
    }
