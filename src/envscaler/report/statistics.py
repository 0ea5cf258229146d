"""What a library holds, counted, beside what the paper says of its own: one record for terminal, JSON and pages.

Environments are read one after the other, so that memory holds numbers and no scenario. How it looks is the business
of the command line and of `statistics_page`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
import numpy.typing as npt

from envscaler.errors import ProgramError
from envscaler.program.colours import Colours
from envscaler.program.structure import structure_of
from envscaler.record import Record
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""A word, or a character of a script that puts no blanks between words."""
_GRADES = ((1, 3), (4, 6), (7, 10), (11, None))
"""Lengths of solutions that are counted together."""


class Spread(Record):
    """How the values of one figure lie."""

    count: int
    mean: float
    median: float
    least: float
    most: float


class Figure(Record):
    """One line of the table."""

    name: str
    value: int | None = None
    """For what is counted once for the library."""
    spread: Spread | None = None
    """For what every environment, scenario or text has; None where there is nothing to count."""
    paper: str | None = None
    """What the paper says of its 191 environments (section 3 and 4); None where it says nothing."""


class Statistics(Record):
    """The figures of one library."""

    library: str
    figures: tuple[Figure, ...]
    languages: dict[str, int]
    """Environments by language."""
    equal: tuple[tuple[str, str], ...]
    """Pairs of environments whose programs differ only in names."""
    without_structure: tuple[str, ...] = ()
    """Environments whose programs cannot be read."""
    made_by: tuple[str, ...] = ()
    """The commands that made the library, as it tells itself."""


class _Counts:
    """Numbers by the name of their figure."""

    def __init__(self) -> None:
        self.values: defaultdict[str, list[float]] = defaultdict(list)

    def spread(self, name: str) -> Spread | None:
        values = self.values[name]
        if not values:
            return None
        return Spread(
            count=len(values),
            mean=round(fmean(values), 4),
            median=median(values),
            least=min(values),
            most=max(values),
        )


def statistics_of(
    library: str,
    environments: Iterable[tuple[EnvSkeleton, Iterable[Scenario]]],
    provenance: Mapping[str, Any] | None = None,
) -> Statistics:
    """The statistics of a library.

    Args:
        library: what it is called.
        environments: each with its scenarios, streamed.
        provenance: what library.json says of its origin.

    Source: the figures that the paper states are those of its section on statistics of the 191 environments.
    """
    counts = _Counts()
    languages: Counter[str] = Counter()
    packed: list[_Packed] = []
    signatures: dict[str, list[str]] = {}
    broken: list[str] = []
    for skeleton, scenarios in environments:
        languages[skeleton.origin.language] += 1
        _count_environment(skeleton, counts)
        _count_scenarios(scenarios, counts)
        try:
            structure = structure_of(skeleton)
        except ProgramError:
            broken.append(skeleton.id)
            continue
        signatures.setdefault(structure.signature, []).append(skeleton.id)
        packed.append(_packed(structure.colours))
    counts.values["nearest"] = _nearest(packed)
    equal = tuple((ids[0], other) for ids in signatures.values() for other in ids[1:])
    return Statistics(
        library=library,
        figures=tuple(_figures(counts, languages.total(), len(equal))),
        languages=dict(sorted(languages.items(), key=lambda entry: (-entry[1], entry[0]))),
        equal=equal,
        without_structure=tuple(broken),
        made_by=tuple(_told(command) for command in (provenance or {}).get("commands", ())),
    )


def _told(command: Mapping[str, Any]) -> str:
    """One command of the provenance in a few words."""
    settings = command.get("settings") or {}
    parts = [f"{command.get('command', 'unknown')} of {command.get('source') or 'what was there'}"]
    if settings.get("limit") is not None:
        parts.append(f"the first {settings['limit']} of it")
    parts += [f"{name} {settings[name]}" for name in ("scenarios", "rounds", "seed") if name in settings]
    models = sorted(set((command.get("models") or {}).values()))
    return ", ".join([*parts, *([f"models {' and '.join(models)}"] if models else [])])


def _count_environment(skeleton: EnvSkeleton, counts: _Counts) -> None:
    queries = sum(tool.effect == "query" for tool in skeleton.tools)
    attributes = {(entity.name, part.name) for entity in skeleton.entities for part in entity.attributes}
    for name, value in (
        ("tools", len(skeleton.tools)),
        ("queries", queries),
        ("updates", len(skeleton.tools) - queries),
        ("entities", len(skeleton.entities)),
        ("attributes", len(attributes)),
        ("references", sum(part.references is not None for one in skeleton.entities for part in one.attributes)),
        ("rules", len(skeleton.rules)),
        ("enforced", sum(rule.enforced is True for rule in skeleton.rules)),
        ("lines", len(skeleton.source.splitlines())),
    ):
        counts.values[name].append(value)


def _count_scenarios(scenarios: Iterable[Scenario], counts: _Counts) -> None:
    number = 0
    for scenario in scenarios:
        number += 1
        counts.values["checks"].append(len(scenario.checks))
        counts.values["characters"].append(len(scenario.task))
        counts.values["words"].append(len(_WORD.findall(scenario.task)))
        if scenario.solution is not None:
            calls = len(scenario.solution)
            counts.values["calls"].append(calls)
            grade = next((grade for grade in _GRADES if grade[0] <= calls <= (grade[1] or calls)), None)
            if grade is not None:
                counts.values[_grade_name(grade)].append(calls)
    counts.values["scenarios"].append(number)


def _grade_name(grade: tuple[int, int | None]) -> str:
    least, most = grade
    return f"{least} to {most} calls" if most is not None else f"{least} calls and more"


def _figures(counts: _Counts, environments: int, equal: int) -> Iterable[Figure]:
    def spread(name: str, key: str, paper: str | None = None) -> Figure:
        return Figure(name=name, spread=counts.spread(key), paper=paper)

    yield Figure(name="environments", value=environments, paper="191")
    yield spread("tools an environment", "tools")
    yield spread("query tools", "queries", "mean 10.44, median 10")
    yield spread("update tools", "updates", "mean 8.14, median 8")
    yield spread("entities", "entities")
    yield spread("state attributes", "attributes", "mean 21.38, median 21 (“state categories”)")
    yield spread("references between entities", "references")
    yield spread("rules", "rules", "mean about 4.6")
    yield spread("rules that the program enforces", "enforced")
    yield spread("lines of a program", "lines")
    yield Figure(name="scenarios", value=int(sum(counts.values["scenarios"])))
    yield spread("scenarios an environment", "scenarios", "mean 37.28, median 42")
    yield spread("checks a scenario", "checks", "median 14")
    yield Figure(name="solutions executed", value=len(counts.values["calls"]))
    yield spread("calls a solution", "calls")
    for grade in _GRADES:
        name = _grade_name(grade)
        yield Figure(name=f"solutions of {name}", value=len(counts.values[name]))
    yield spread("characters of a task text", "characters")
    yield spread("words of a task text", "words")
    yield Figure(name="pairs of equal structure", value=equal)
    yield spread("distance to the nearest structure", "nearest")


_Packed = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]
"""Colours in order, and how often each occurs: a tenth of the memory of a dict."""


def _packed(colours: Colours) -> _Packed:
    keys = np.fromiter(colours.keys(), dtype=np.uint64, count=len(colours))
    numbers = np.fromiter(colours.values(), dtype=np.int32, count=len(colours))
    return keys, numbers


def _nearest(packed: Sequence[_Packed]) -> list[float]:
    """The distance of each structure to the one that is most like it, as `program.structure` measures it."""
    if len(packed) < 2:
        return []
    keys = np.concatenate([part for part, _ in packed])
    numbers = np.concatenate([part for _, part in packed])
    owners = np.repeat(np.arange(len(packed)), [len(part) for part, _ in packed])
    order = np.argsort(keys, kind="stable")
    keys, numbers, owners = keys[order], numbers[order], owners[order]
    shared = np.zeros((len(packed), len(packed)), dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        if end - start > 1:
            rows, often = owners[start:end], numbers[start:end]
            shared[np.ix_(rows, rows)] += np.minimum.outer(often, often)
    totals = np.array([int(part.sum()) for _, part in packed])
    every = totals[:, None] + totals[None, :] - shared
    distances = 1.0 - shared / np.maximum(every, 1)
    np.fill_diagonal(distances, np.inf)
    return [round(float(distance), 4) for distance in distances.min(axis=1)]
