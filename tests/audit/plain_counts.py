"""Counts over a folder of the authors' release, in plain Python and without the package that they are compared with.

It executes what the files hold, in this process and unguarded: it is for files that are known, and for nothing else.
The clock stands still at `CLOCK` while a program is built and its checks run, since that is when an imported scenario
starts; the few checks that read it are listed under `reads_clock`. Ids are created by calls only, so none at reset.

    python tests/audit/plain_counts.py FOLDER
"""

from __future__ import annotations

import ast
import copy
import datetime
import json
import sys
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

CLOCK = datetime.datetime(2025, 1, 6, 9, 0, 0)
"""When an imported scenario starts, UTC."""
CLASSES = (
    "true_at_reset",
    "raises",
    "not_bool",
    "nondeterministic",
    "changed_by_json",
    "mutates",
    "reads_clock",
)
"""What a check can be found to be; one check may be several."""
_READINGS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter", "gmtime", "localtime"}


class NamedCheck(NamedTuple):
    """One check of the release."""

    task_id: str
    check: int
    """Index in the scenario's list."""
    check_item: str


class Tally(NamedTuple):
    """What a folder holds, and which checks are found to be what."""

    environments: int
    scenarios: int
    checks: int
    found: dict[str, list[NamedCheck]]

    def counts(self) -> dict[str, int]:
        """The same in numbers."""
        of_classes = {name: len(self.found[name]) for name in CLASSES}
        return {
            "environments": self.environments,
            "scenarios": self.scenarios,
            "checks": self.checks,
            **of_classes,
        }


def counts(folder: Path) -> dict[str, int]:
    """How many environments, scenarios and checks there are, and how many checks of each class."""
    return tally(folder).counts()


def tally(folder: Path) -> Tally:
    """Evaluate every check on the state right after reset, `initial_state` bound to the same."""
    environments = _by_id(_decoded(json.loads((folder / "environments.json").read_text(encoding="utf-8"))))
    scenarios = _decoded(json.loads((folder / "scenarios.json").read_text(encoding="utf-8")))
    found: dict[str, list[NamedCheck]] = {name: [] for name in CLASSES}
    total = 0
    for scenario in scenarios:
        raw = reset_state(environments[scenario["env_id"]], _decoded(scenario["init_config"]))
        for index, check in enumerate(_decoded(scenario["checklist_with_func"])):
            name = NamedCheck(scenario["task_id"], index, check["check_item"])
            for kind in _classes(check["check_func"], raw):
                found[kind].append(name)
            total += 1
    return Tally(len(environments), len(scenarios), total, found)


def reset_state(environment: dict[str, Any], initial: dict[str, Any]) -> dict[str, Any]:
    """All attributes of the instance after it is built and every key of `initial` is set as one."""
    module = types.ModuleType("published")
    with standing_clock():
        exec(environment["env_class_code"], module.__dict__)  # noqa: S102 - a script apart, for known files
        cls = getattr(module, environment["env_class_name"])
        instance = _instance(cls, initial)
        for name, value in copy.deepcopy(initial).items():
            setattr(instance, name, value)
    return vars(instance)


def said(source: str, initial: dict[str, Any], final: dict[str, Any]) -> str:
    """What a check says of `final`: `true`, `false`, `raises` or `not_bool`."""
    namespace: dict[str, Any] = {"initial_state": initial}
    try:
        with standing_clock():
            exec(source, namespace)  # noqa: S102 - a script apart, for known files
            value = namespace["check_func"](final)
    except Exception:  # noqa: BLE001 - that it raises is what is counted
        return "raises"
    return str(value).lower() if isinstance(value, bool) else "not_bool"


def reads_clock(source: str) -> bool:
    """Whether a call in the source has the name of one that tells the time."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(getattr(call, "attr", getattr(call, "id", None)) in _READINGS for call in calls)


@contextmanager
def standing_clock() -> Iterator[None]:
    """Let whoever imports `datetime` or `time` meanwhile read `CLOCK`."""

    class StandingDate(datetime.date):
        @classmethod
        def today(cls) -> StandingDate:
            return cls(CLOCK.year, CLOCK.month, CLOCK.day)

    class StandingDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> StandingDatetime:
            moment = CLOCK if tz is None else CLOCK.replace(tzinfo=datetime.UTC).astimezone(tz)
            return cls.combine(moment.date(), moment.timetz())

        utcnow = today = now

    seconds = CLOCK.replace(tzinfo=datetime.UTC).timestamp()
    modules = {
        "datetime": _altered(datetime, date=StandingDate, datetime=StandingDatetime),
        "time": _altered(time, time=lambda: seconds),
    }
    with patch.dict(sys.modules, modules):
        yield


def _altered(module: types.ModuleType, **changes: object) -> types.ModuleType:
    twin = types.ModuleType(module.__name__)
    twin.__dict__.update({**vars(module), **changes})
    return twin


def _instance(cls: type, initial: dict[str, Any]) -> object:
    for arguments in ((copy.deepcopy(initial),), ({},)):
        try:
            return cls(*arguments)
        except Exception:  # noqa: BLE001 - classes differ in what they take
            continue
    return cls()


def _classes(source: str, raw: dict[str, Any]) -> Iterator[str]:
    text = json.dumps(raw)
    initial, final = json.loads(text), json.loads(text)
    first = said(source, initial, final)
    if (initial, final) != (json.loads(text), json.loads(text)):
        yield "mutates"
    if first == "true":
        yield "true_at_reset"
    if first in ("raises", "not_bool"):
        yield first
    if said(source, json.loads(text), json.loads(text)) != first:
        yield "nondeterministic"
    if said(source, copy.deepcopy(raw), copy.deepcopy(raw)) != first:
        yield "changed_by_json"
    if reads_clock(source):
        yield "reads_clock"


def _decoded(value: Any) -> Any:
    """The release has JSON inside JSON in some places and not in others."""
    return json.loads(value) if isinstance(value, str) else value


def _by_id(environments: Any) -> dict[str, dict[str, Any]]:
    listed = environments.values() if isinstance(environments, dict) else environments
    return {environment["env_id"]: environment for environment in listed}


def main(folder: Path) -> None:
    """Print the counts and, by class, the checks."""
    whole = tally(folder)
    print(json.dumps({"counts": whole.counts(), "checks": whole.found}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
