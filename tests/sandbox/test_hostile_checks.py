"""Check functions that mean harm can neither make later checks true or false, nor reach anything of the host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.sandbox import BlockingSandbox
from envscaler.sandbox.traceless import leaves_nothing

from .hostile import Bait, need

FINAL = {"rows": {"a": 1}, "names": ["x", "y"]}
VICTIM = """
def check_func(final_state):
    import datetime, json
    return [
        len(final_state) == 2 and isinstance(final_state, dict) and not bool([]) and any([0, 1]) and not all([0, 1]),
        sorted(final_state["names"], reverse=True) == ["y", "x"], sum([1, 2]) == 3, max(1, 2) == 2, str(1) == "1",
        json.dumps({"a": 1}) == '{"a": 1}', initial_state == {"rows": {}}, datetime.date(2025, 1, 6).year == 2025,
        final_state.get("forged") is None, repr(1) == "1", list(range(2)) == [0, 1],
    ] == [True] * 11
"""
PLAIN_VICTIM = """
def check_func(final_state):
    return (
        len(final_state) == 2 and isinstance(final_state, dict) and not bool([]) and any([0, 1]) and not all([0, 1])
        and sorted(final_state["names"], reverse=True) == ["y", "x"] and sum([1, 2]) == 3 and str(1) == "1"
        and initial_state == {"rows": {}} and final_state.get("forged") is None
    )
"""
LIAR = "def check_func(final_state): return final_state['rows'] == {}"

TAMPERING = {
    "patches every builtin": "import builtins\n"
    "for name in ('len', 'bool', 'isinstance', 'any', 'all', 'sorted', 'sum', 'max', 'str', 'repr', 'range', 'list'):\n"
    "  setattr(builtins, name, lambda *a, **k: True)\n",
    "patches through the namespace": "__builtins__.len = lambda x: 99\n__builtins__.sorted = lambda *a, **k: []\n",
    "patches through its globals": "(lambda: 0).__globals__['__builtins__'].any = lambda x: False\n",
    "patches through a traceback": "try:\n  1 / 0\nexcept Exception as error:\n"
    "  frame = error.__traceback__.tb_frame\n  frame.f_builtins['any'] = lambda x: False\n",
    "patches through a generator": "g = (i for i in [1])\ng.gi_frame.f_builtins['all'] = lambda x: True\n",
    "patches through the subclasses": "for c in ().__class__.__base__.__subclasses__():\n"
    "  g = getattr(c.__init__, '__globals__', None)\n  if g and 'sys' in g:\n"
    "    g['sys'].modules['builtins'].len = lambda x: 99\n    break\n",
    "patches a module": "import json\njson.dumps = lambda *a, **k: 'PATCHED'\n",
    "stores in a module": "import datetime\ndatetime.date = None\ndatetime.forged = True\n",
    "takes modules away": "import sys\nsys.modules['json'] = None\nsys.modules['datetime'] = None\n",
    "patches the loader": "import sys\nloader = sys.modules['envscaler.sandbox.inside.loader']\n"
    "loader.check_value = lambda *a: True\n",
    "patches the worker": "import sys\nw = sys.modules['envscaler.sandbox.inside.worker']\n"
    "w.from_json = lambda text: {}\nw.Worker._judged = lambda self, request: None\n",
    "leaves a finalizer": "class Last:\n  def __del__(self):\n    import builtins\n    builtins.len = lambda x: 99\n"
    "loop = [Last()]\nloop.append(loop)\n",
    "leaves a generator with a last word": "def last():\n  try:\n    yield\n  finally:\n    while True: pass\n"
    "loop = [last()]\nnext(loop[0])\nloop.append(loop)\n",
    "leaves a timer": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: 1 / 0)\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n",
    "leaves a trace": "import sys\nsys.settrace(lambda *a: 1 / 0)\n",
    "leaves a low limit": "import sys\nsys.setrecursionlimit(50)\n",
    "makes a class by its name": "Forged = type('Forged', (), {'__del__': lambda self: print(self)})\n",
    "evaluates": "eval('__import__(\"builtins\")').len = lambda x: 99\n",
    "spells a name otherwise": "ｅｖａｌ('_' * 2 + 'import' + '_' * 2)('builtins').len = lambda x: 99\n",
}


def _said(sandbox: BlockingSandbox, *sources: str) -> list[bool | None]:
    outcomes = sandbox.check(sources, initial_state={"rows": {}}, final_state=FINAL)
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("name", TAMPERING)
@pytest.mark.parametrize("at_call", [False, True])
def test_a_check_that_tampers_with_its_process_meets_no_other_check(
    guarded: BlockingSandbox, name: str, at_call: bool
) -> None:
    lines = TAMPERING[name]
    if at_call:
        body = "".join(f"    {line}\n" for line in lines.splitlines())
        hostile = f"def check_func(final_state):\n{body}    return True\n"
    else:
        hostile = lines + "def check_func(final_state): return True\n"
    assert _said(guarded, hostile, PLAIN_VICTIM, hostile, VICTIM, LIAR)[1::2] == [True, True]
    assert _said(guarded, VICTIM, PLAIN_VICTIM, LIAR) == [True, True, False]


FORGING = """
def check_func(final_state):
    import os, sys
    import msgspec
    from envscaler.sandbox.inside.wire import Reply
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("request"), "serial"):
        frame = frame.f_back
    serial = frame.f_locals["request"].serial
    for number in range(serial, serial + 3):
        body = msgspec.msgpack.encode(Reply(serial=number, result=b"true"))
        os.write(3, len(body).to_bytes(4, "big") + body)
    {then}
"""


@pytest.mark.parametrize("then", ["while True: pass", "return True", "import os; os._exit(0)"])
def test_a_check_that_answers_for_those_after_it_is_not_believed(guarded: BlockingSandbox, then: str) -> None:
    for _ in range(3):
        assert _said(guarded, FORGING.format(then=then), LIAR, PLAIN_VICTIM)[1:] == [False, True]


@pytest.mark.parametrize(
    "body",
    [
        "open('@CANARY@/pwn', 'w')",
        "return '@' not in open('@CANARY@/secret.txt').read()",
        "import socket; return bool(socket.create_connection(('127.0.0.1', @PORT@), 2))",
        "import os; return os.fork() >= 0",
        "import os; return os.system('touch @CANARY@/pwn') == 0",
    ],
)
def test_a_check_reaches_nothing_of_the_host(guarded: BlockingSandbox, bait: Bait, body: str) -> None:
    need(guarded, kernel=True)
    assert _said(guarded, bait.fill(f"def check_func(final_state):\n    {body}\n"), PLAIN_VICTIM) in (
        [None, True],
        [False, True],
    )
    assert bait.untouched()


@pytest.mark.parametrize("name", TAMPERING)
def test_what_tampers_is_not_taken_for_harmless(name: str) -> None:
    assert not leaves_nothing(TAMPERING[name] + "def check_func(final_state): return True\n")


@pytest.mark.parametrize(
    "source",
    [
        PLAIN_VICTIM,
        LIAR,
        "len(state['rows']) == 1 and 'open' not in state",
        "from datetime import datetime, timedelta\ndef check_func(s):\n"
        "    return datetime.fromisoformat(s['at']) - timedelta(days=1) > datetime(2025, 1, 1)\n",
        "def check_func(s):\n    import datetime\n    return s['at'] < datetime.datetime.now().isoformat()\n",
        "def check_func(s):\n    try:\n        return s['类型'] == 'type'  # import what it says\n"
        "    except KeyError:\n        return False\n",
    ],
)
def test_what_only_looks_at_states_is_harmless(source: str) -> None:
    assert leaves_nothing(source)


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert leaves_nothing(text) in (True, False)


@pytest.mark.parametrize("text", ["-" * 19_999 + "1", "(" * 9_999, "a" + "[0]" * 6_600, "x" * 30_000, "import " * 999])
def test_texts_that_overwhelm_parsers_are_judged(text: str) -> None:
    assert leaves_nothing(text) in (True, False)


@pytest.mark.parametrize(
    "change",
    [
        "final_state['names'] = tuple(final_state['names'])",
        "final_state['rows'] = dict(reversed(final_state['rows'].items()))",
        "final_state['numbers'] = {int(key): value for key, value in final_state['numbers'].items()}",
        "initial_state['names'] = tuple(initial_state['names'])",
        "final_state['rows']['a'], final_state['rows']['b'] = final_state['rows']['b'], final_state['rows']['a']",
    ],
)
def test_a_change_that_json_does_not_show_meets_no_other_check_either(guarded: BlockingSandbox, change: str) -> None:
    state = {"names": ["x"], "rows": {"a": 1, "b": True}, "numbers": {"1": 2}}
    changing = f"def check_func(final_state):\n    {change}\n    return True\n"
    looking = (
        "def check_func(final_state):\n"
        "    expected = {'names': ['x'], 'rows': {'a': 1, 'b': True}, 'numbers': {'1': 2}}\n"
        "    equal = final_state == expected == initial_state\n"
        "    return equal and str(final_state) == str(expected) == str(initial_state)\n"
    )
    assert leaves_nothing(changing)
    outcomes = guarded.check([looking, changing, looking, looking], initial_state=state, final_state=state)
    assert [outcome.value for outcome in outcomes] == [True] * 4
