"""`SynthSettings`: everything that decides what a synthesis makes. How models are reached is `models`' business."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from envscaler.assessment import Judging, Threshold
from envscaler.evidence import Thresholds
from envscaler.record import Record

Stage = Literal["discover", "design", "program", "assess", "scenarios"]
STAGES: tuple[Stage, ...] = ("discover", "design", "program", "assess", "scenarios")
"""Stages in their order; `until` names the last one that is carried out."""
BUILDING: tuple[Stage, ...] = ("program", "assess", "scenarios")
"""Stages that one environment goes through after another."""


Scaffold = Literal["whole", "staged"]
"""How an environment is asked for: in whole plans and programs, or in small questions around parts made by code."""

CHECKS_PER_CALL = 8
"""Check functions asked for in one call, unless told otherwise."""
METHODS_PER_CALL = 6
"""Methods asked for in one call, unless told otherwise; replies then stay below 4,096 tokens, a usual limit."""


RUNNING = ("concurrency", "environments_at_once", "environment_minutes", "workers")
"""Settings that say how it is made and have no influence on what is made."""


class SynthSettings(Record):
    """What `synth` is to make, from what, and how carefully."""

    library: Path
    """Folder of the library; made when missing, extended when there."""
    tasks: Path | None = None
    """File of task texts. Exactly one of `tasks` and `descriptions` is given."""
    descriptions: Path | None = None
    """File of environment descriptions to begin from instead of tasks."""
    limit: int | None = Field(default=None, ge=1)
    """Tasks (or descriptions) read at most; None: all."""
    target: int | None = Field(default=None, ge=1)
    """Environments wanted: tasks are taken in an order drawn by the seed until so many are accepted; None: all tasks
    in the order of their file."""
    environments: int | None = Field(default=None, ge=1)
    """Environments begun, whatever becomes of them: tasks are taken in an order drawn by the seed until there are so
    many; None: all."""
    until: Stage = "scenarios"
    """Last stage carried out."""
    language: Literal["keep", "en"] = "keep"
    """`keep`: an environment speaks the language of its task; `en`: English."""
    seed: int = 0

    min_usefulness: int = Field(default=7, ge=1, le=10)
    """Paper 3.1, released code: 7."""
    min_modelability: int = Field(default=7, ge=1, le=10)
    similarity: float = Field(default=0.85, ge=0.0, le=1.0)
    """Cosine from which two descriptions count as the same environment."""
    clusters: int | None = Field(default=None, ge=1)
    """Instead of greedy de-duplication keep the description nearest to each of K k-means centres (released code)."""
    keep_equal_structures: bool = False
    """Keep environments whose programs differ only in names from an earlier one's; else they are merged into it."""
    max_seed_tasks: int = Field(default=20, ge=1)
    """Task texts kept in the origin of one environment."""

    attempts: int = Field(default=3, ge=1)
    """Questions at most until a reply can be used; also how often a method is written."""
    scaffold: Scaffold | Literal["auto"] = "auto"
    """How environments are asked for; `auto`: whole, unless the model's first replies show that it cannot."""
    methods_per_call: int = Field(default=METHODS_PER_CALL, ge=1)
    """Methods asked for in one call; 1: each in a call of its own, as in the paper."""
    rounds: int = Field(default=100, ge=1)
    """Test calls of an assessment at most (paper 3.3: 100)."""
    all_rounds: bool = False
    """Make all of them; else no more once the verdict is settled."""
    judge: Judging = "auto"
    """Calls that the checking agent is asked about (paper 3.3: all)."""
    repairs: int = Field(default=2, ge=0)
    """Versions of a method asked for at most when some of its test calls fail; 0: nothing is repaired."""
    threshold: float = Field(default=0.85, ge=0.0, le=1.0)
    """Rate from which an environment is kept (paper 3.3: 0.85)."""
    by: Threshold = "pass"
    """Rate compared with the threshold: the paper speaks of the pass rate, its code uses not-fail."""

    scenarios: int = Field(default=3, ge=0)
    """Scenarios asked for in each environment."""
    checks_per_call: int = Field(default=CHECKS_PER_CALL, ge=1)
    """Check functions asked for in one call; 1: each in a call of its own, as in the paper."""
    min_state_distance: float = Field(default=0.02, ge=0.0, le=1.0)
    """Share of values in which the initial states of an environment differ at least, ids aside."""
    thresholds: Thresholds = Thresholds()
    """What the proof of a scenario has to reach."""
    keep_unproved: bool = False
    """Keep scenarios whose proof does not reach the thresholds; else they are dropped."""
    solver_runs: int | None = Field(default=None, ge=0)
    """How often the builder's model plays each task, to find solutions and false positives beside the writer's plan;
    None: twice. The embedded offline model plays none: it could only repeat its plan."""

    concurrency: int | None = Field(default=None, ge=1)
    """Tasks looked at side by side; None: as many as the endpoint is given questions, 32 without one. Has no influence
    on what is made."""
    environments_at_once: int | None = Field(default=None, ge=1)
    """Environments built side by side; each asks up to ten questions at once. None: as many as keep the endpoint busy,
    4 without one. Has no influence on what is made."""
    environment_minutes: float | None = Field(default=None, gt=0)
    """Minutes after which an environment that is not finished is left to the next run, which goes on where it was;
    None: it may take any time. Has no influence on what is made in the end."""
    workers: int = Field(default=1, ge=1)
    """Processes that environments are built in; 1: this one. More are used only where the embedded offline model does
    all of it, within no limit on calls or tokens. Has no influence on what is made."""

    isolation: Literal["default", "required"] = "default"
    """`required`: refuse where generated code cannot be contained. Has no influence on what is made."""

    @model_validator(mode="after")
    def _one_source(self) -> SynthSettings:
        if (self.tasks is None) == (self.descriptions is None):
            raise ValueError("give either tasks or descriptions")
        if self.draws and self.clusters is not None:
            raise ValueError("a number of environments and clusters exclude each other: clusters need all descriptions")
        if self.target is not None and self.environments is not None:
            raise ValueError("a target and a number of environments exclude each other")
        return self

    @property
    def draws(self) -> bool:
        """Whether tasks are taken in an order drawn by the seed."""
        return self.target is not None or self.environments is not None

    def reaches(self, stage: Stage) -> bool:
        """Whether `stage` is carried out."""
        return STAGES.index(stage) <= STAGES.index(self.until)
