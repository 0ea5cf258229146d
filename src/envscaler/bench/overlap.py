"""`overlap_with`: how like the environments, tools and tasks of a library are to those of a benchmark.

Who trains on copies of what a benchmark asks measures memory. What becomes of near-copies is not this module's
business.

Source: the paper's analysis of whether gains depend on likeness to BFCL (section 6). That tools, tasks and single
messages are compared too, and that an environment is as like another as its tools are, is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from envscaler.bench.contents import Contents
from envscaler.llm.embedding import EmbeddingModel, Vectors
from envscaler.record import Record
from envscaler.rollout.settings import Folder
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton

Kind = Literal["environments", "tools", "tasks"]
THRESHOLDS: Mapping[Kind, float] = {"environments": 0.8, "tools": 0.9, "tasks": 0.8}
"""Likeness from which on something counts as a near-copy. They are made for the built-in embedding."""
NEAREST = 5
BINS = 10
_QUANTILES = {"lowest": 0.0, "median": 0.5, "90%": 0.9, "99%": 0.99, "highest": 1.0}
_BATCH = 256
_FEWEST_WORDS = 6
"""A single message of fewer words is common to too many tasks; it counts only as a part of its task."""


class Alike(Record):
    """Something of the library, with that of the benchmark which it is most like."""

    env_id: str
    name: str
    """Id of the environment or scenario, or name of the tool."""
    text: str
    theirs: str
    """Its counterpart's name."""
    their_text: str
    score: float
    """Cosine of their vectors; of environments its mean over their tools."""


class Likeness(Record):
    """All of one kind."""

    compared: int
    """How many the library has."""
    against: int
    """How many texts the benchmark has, equal ones once."""
    threshold: float
    quantiles: dict[str, float] = {}
    """Of the score of each with its counterpart; empty where nothing is compared."""
    histogram: tuple[int, ...] = ()
    """How many have a score in each tenth from 0 to 1."""
    nearest: tuple[Alike, ...] = ()
    """The most similar pairs, best first."""
    near_copies: tuple[Alike, ...] = ()
    """All pairs that reach the threshold, best first."""


class Overlap(Record):
    """One library against one benchmark."""

    benchmark: str
    packages: tuple[str, ...]
    environments: Likeness
    tools: Likeness
    tasks: Likeness

    def of(self, kind: Kind) -> Likeness:
        """One kind of pairs."""
        return {"environments": self.environments, "tools": self.tools, "tasks": self.tasks}[kind]

    @property
    def copied_environments(self) -> frozenset[str]:
        """Environments that are near-copies."""
        return frozenset(pair.env_id for pair in self.environments.near_copies)

    @property
    def copied_scenarios(self) -> frozenset[tuple[str, str]]:
        """Scenarios whose task is a near-copy, each with its environment."""
        return frozenset((pair.env_id, pair.name) for pair in self.tasks.near_copies)


class OverlapReport(Record):
    """One library against benchmarks."""

    library: Folder
    embedding: str
    """Name of the embedding model."""
    benchmarks: tuple[Overlap, ...]

    @property
    def found(self) -> bool:
        """Whether an environment or a task is a near-copy. A tool alone is none: many desks can cancel an order."""
        return any(one.copied_environments or one.copied_scenarios for one in self.benchmarks)


async def overlap_with(
    benchmark: str,
    packages: tuple[str, ...],
    contents: Contents,
    environments: Iterable[tuple[EnvSkeleton, Sequence[Scenario]]],
    embedder: EmbeddingModel,
    *,
    thresholds: Mapping[Kind, float] = THRESHOLDS,
    nearest: int = NEAREST,
) -> Overlap:
    """Compare a library with a benchmark.

    Args:
        environments: those of the library, with their scenarios.
        thresholds: by kind; those of `THRESHOLDS` where one is missing.
        nearest: pairs to keep of each kind, whatever their score.
    """
    theirs = await _Benchmark.read(contents, embedder)
    pairs: dict[Kind, list[Alike]] = {"environments": [], "tools": [], "tasks": []}
    for skeleton, scenarios in environments:
        texts = [tool_text(tool.name, tool.description, tool.parameters) for tool in skeleton.tools]
        tools = await _embedded(embedder, texts)
        if texts and theirs.tool_names:
            likeness = tools @ theirs.tools.T
            pairs["environments"].append(theirs.nearest_environment(skeleton, likeness))
            for tool, text, row in zip(skeleton.tools, texts, likeness, strict=True):
                pairs["tools"].append(_pair(skeleton.id, tool.name, text, row, theirs.tool_names, theirs.tool_texts))
        if scenarios and theirs.messages:
            said = await _embedded(embedder, [scenario.task for scenario in scenarios])
            for scenario, vector in zip(scenarios, said, strict=True):
                row = theirs.said @ vector
                pairs["tasks"].append(
                    _pair(skeleton.id, scenario.id, scenario.task, row, theirs.message_names, theirs.messages)
                )
    sizes: dict[Kind, int] = {
        "environments": len(contents.environments),
        "tools": len(theirs.tool_texts),
        "tasks": len(theirs.messages),
    }
    told = {
        kind: _likeness(own, sizes[kind], thresholds.get(kind, THRESHOLDS[kind]), nearest)
        for kind, own in pairs.items()
    }
    return Overlap(benchmark=benchmark, packages=packages, **told)


def tool_text(name: str, description: str, parameters: Mapping[str, object]) -> str:
    """A tool as it is compared: its name in words, what it does, and the names of its parameters."""
    properties = parameters.get("properties")
    names = ", ".join(map(_words, properties)) if isinstance(properties, dict) else ""
    return " ".join(filter(None, (f"{_words(name)}.", description.strip(), f"({names})" if names else "")))


class _Benchmark:
    """The texts of a benchmark with their vectors, equal ones once."""

    def __init__(self, contents: Contents) -> None:
        self.environments = contents.environments
        self.tool_names: list[str] = []
        self.tool_texts: list[str] = []
        self.owned: list[list[int]] = []
        """For each environment the places of its tools."""
        for environment in contents.environments:
            own = []
            for tool in environment.tools:
                own.append(len(self.tool_texts))
                self.tool_names.append(f"{environment.name}.{tool.name}")
                self.tool_texts.append(tool_text(tool.name, tool.description, tool.parameters))
            self.owned.append(own)
        named: dict[str, str] = {}
        for task in contents.tasks:
            whole = "\n".join(filter(None, task.said))
            if whole.strip():
                named.setdefault(whole, task.id)
            for number, message in enumerate(task.said, start=1):
                if len(task.said) > 1 and len(message.split()) >= _FEWEST_WORDS:
                    named.setdefault(message, f"{task.id}, message {number}")
        self.messages = list(named)
        self.message_names = list(named.values())
        self.tools: Vectors
        self.said: Vectors

    @classmethod
    async def read(cls, contents: Contents, embedder: EmbeddingModel) -> _Benchmark:
        """The benchmark with its vectors."""
        made = cls(contents)
        made.tools = await _embedded(embedder, made.tool_texts)
        made.said = await _embedded(embedder, made.messages)
        return made

    def nearest_environment(self, skeleton: EnvSkeleton, likeness: Vectors) -> Alike:
        """The environment that one of the library is most like.

        That is the mean, over the tools of the smaller one of both, of how like each is to its counterpart: an
        environment that holds a whole one of the benchmark beside other tools is a copy of it as well.

        Args:
            likeness: of each tool of the environment (rows) with each tool of the benchmark.
        """
        scores = []
        for own in self.owned:
            block = likeness[:, own]
            scores.append(float(block.max(axis=int(len(block) <= len(own))).mean()) if own else 0.0)
        best = int(np.argmax(np.round(scores, 4)))
        theirs = self.environments[best]
        return Alike(
            env_id=skeleton.id,
            name=skeleton.id,
            text=_told(skeleton.description.summary, [tool.name for tool in skeleton.tools]),
            theirs=theirs.name,
            their_text=_told(theirs.about, [tool.name for tool in theirs.tools]),
            score=round(scores[best], 4),
        )


def _told(about: str, tools: Sequence[str]) -> str:
    return f"{about.rstrip('.')}. Tools: {', '.join(tools)}" if about else f"Tools: {', '.join(tools)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _pair(env_id: str, name: str, text: str, row: Vectors, names: Sequence[str], texts: Sequence[str]) -> Alike:
    # Which of two equally similar ones is told must not hang on the last digit.
    best = int(np.argmax(np.round(row, 4)))
    return Alike(
        env_id=env_id,
        name=name,
        text=text,
        theirs=names[best],
        their_text=texts[best],
        score=min(1.0, round(float(row[best]), 4)),
    )


def _likeness(pairs: Sequence[Alike], against: int, threshold: float, nearest: int) -> Likeness:
    ordered = sorted(pairs, key=lambda pair: (-pair.score, pair.env_id, pair.name))
    scores = np.array([pair.score for pair in ordered])
    if not len(scores):
        return Likeness(compared=0, against=against, threshold=threshold)
    counts, _ = np.histogram(np.clip(scores, 0.0, 1.0), bins=BINS, range=(0.0, 1.0))
    return Likeness(
        compared=len(ordered),
        against=against,
        threshold=threshold,
        quantiles={name: round(float(np.quantile(scores, share)), 4) for name, share in _QUANTILES.items()},
        histogram=tuple(int(number) for number in counts),
        nearest=tuple(ordered[:nearest]),
        near_copies=tuple(pair for pair in ordered if pair.score >= threshold),
    )


async def _embedded(embedder: EmbeddingModel, texts: Sequence[str]) -> Vectors:
    """Unit vectors, one a row, asked for in parts."""
    parts = [await embedder.embed(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
