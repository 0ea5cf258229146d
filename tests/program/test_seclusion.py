"""Ways by which a program could be noticed outside its module are seen in its text."""

from __future__ import annotations

import pytest

from envscaler.program import ways_out

PROGRAM = """
from __future__ import annotations
import copy, math, decimal
import datetime as dt
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, Optional

CODES = {"a": 1}
COUNT = 0


class Kind(Enum):
    A = "a"


@dataclass
class Row:
    key: str
    tags: list[str] = field(default_factory=list)


class Base:
    limit = 3

    def __init__(self, init_config: Optional[Dict[str, Any]] = None) -> None:
        self.rows: Dict[str, Any] = {}
        self.rows["a"] = dt.datetime.now().isoformat()


class Shop(Base):
    def __init__(self, init_config):
        super().__init__(init_config)
        global COUNT
        COUNT += 1
        CODES["b"] = 2
        Base.limit = 4

    def look(self, key: str) -> Any:
        local = copy.deepcopy(self.rows)
        local[key] = type(self).__name__
        decimal.getcontext().prec = 5
        return local
"""


def test_a_text_that_is_no_program_cannot_be_read() -> None:
    assert "cannot be read" in ways_out("class Env(:")[0]


def test_what_stays_in_its_module_has_no_way_out() -> None:
    assert ways_out(PROGRAM) == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os", "imports os"),
        ("from os import environ", "imports os"),
        ("import os.path as p", "imports os"),
        ("import logging", "imports logging"),
        ("import sys", "imports sys"),
        ("import locale", "imports locale"),
        ("from . import other", "something relative"),
        ("import string\nstring.digits = '1'", "something of string"),
        ("import string as s\ns.digits += '1'", "something of s"),
        ("import json\ndel json.loads", "something of json"),
        ("import re\nre.template['x'] = 1", "something of re"),
        ("from string import Template\nTemplate.delimiter = '#'", "something of Template"),
        ("import datetime\nfor datetime.x in []: pass", "something of datetime"),
        ("import math\nsetattr(math, 'pi', 3)", "uses setattr"),
        ("vars(int)", "uses vars"),
        ("exec('1')", "uses exec"),
        ("x = ().__class__.__subclasses__()", "uses __subclasses__"),
        ("class A:\n    def __del__(self): pass", "defines __del__"),
    ],
)
def test_a_way_out_is_named_with_its_line(line: str, said: str) -> None:
    found = "; ".join(ways_out(f"{PROGRAM}\n{line}\n"))
    assert said in found
    assert "line 4" in found


def test_all_ways_out_are_told() -> None:
    found = ways_out(f"{PROGRAM}\nimport os, sys\nvars(int)\nexec('1')\n")
    assert [way.partition(" (")[0] for way in found] == [
        "it imports os",
        "it imports sys",
        "it uses vars",
        "it uses exec",
    ]
