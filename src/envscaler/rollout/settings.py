"""`RolloutSettings`: everything that decides which episodes a run plays and how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from envscaler.agents import AgentKind, OracleStyle, SlipPolicy
from envscaler.agents.dialects import DialectName, Kept
from envscaler.env import ObservationStyle
from envscaler.record import Record
from envscaler.rollout.slip_policy import CallPolicy, OnSlip
from envscaler.sandbox import Isolation
from envscaler.state import digest
from envscaler.trajectory import Mode, Sampling

STEP_LIMITS: dict[Mode, int] = {"non-conversation": 30, "conversation": 40}
"""The agent's turns at most, unless told otherwise (paper section 5)."""


Folder = Annotated[Path, PlainSerializer(str, return_type=str)]
"""A path that is stored as its text."""


class RolloutSettings(Record):
    """What a run plays."""

    agent: AgentKind = "model"
    samples: int = Field(default=1, ge=1)
    """Episodes of each scenario. More of them extend a run that is there."""
    mode: Mode = "non-conversation"
    step_limit: int | None = Field(default=None, ge=1)
    """The agent's turns at most; None: that of the mode."""
    seed: int = 0
    """Seed of agents that draw. Sessions have the seeds of their scenarios."""
    observations: ObservationStyle | None = None
    """None: what suits where an environment comes from."""
    coerce: bool = False
    """Put arguments into the types that a tool asks for where nothing is lost (`"3"` for an integer)."""
    random_calls: int = Field(default=10, ge=1)
    """Calls at most of the random agent."""
    dialect: DialectName | Literal["auto"] = "native"
    """How the model's calls are written; `auto`: what its endpoint can do best, as `run.json` then says."""
    on_slip: OnSlip = "repair"
    """What is made of replies of the model whose form is wrong."""
    parallel_calls: bool = True
    """Carry out all calls of a reply; else the first only."""
    reasoning: Kept | None = None
    """Which reasoning of earlier replies the model is shown again; None: what suits the dialect."""
    oracle: OracleStyle = "plain"
    """Whether the oracle plays the recorded solution alone, or other ways to the same end too."""
    user_slips: SlipPolicy = "retry"
    """What is made of slips of the simulated user."""
    system_prompt: Folder | None = None
    """File of the agent's system prompt; None: the package's."""

    env_ids: tuple[str, ...] | None = None
    """Environments to play; None: all."""
    scenarios_per_env: int | None = Field(default=None, ge=1)
    """Only the first so many scenarios of each environment; None: all."""
    out: Folder | None = None
    """Folder of the run; None: one in the library, named after what is played."""
    purpose: str | None = None
    """Word before that name, for runs that are kept apart from others of the same agent."""
    concurrency: int | None = Field(default=None, ge=1)
    """Episodes side by side; None: 32, and with an endpoint somewhat more than it is given requests at once. Has no
    influence on results."""
    isolation: Isolation = "default"
    """How far apart episodes are kept. Has no influence on results."""

    @property
    def turns(self) -> int:
        """The step limit in force."""
        return self.step_limit if self.step_limit is not None else STEP_LIMITS[self.mode]

    @property
    def call_policy(self) -> CallPolicy:
        """What is made of the model's slips and of several calls at once."""
        return CallPolicy(on_slip=self.on_slip, parallel=self.parallel_calls)

    def pins(self) -> dict[str, str | int | None]:
        """What has to be equal for two episodes to belong to one run."""
        return {
            "agent": self.agent,
            "mode": self.mode,
            "step_limit": self.turns,
            "seed": self.seed,
            "observations": self.observations,
            "coerce": self.coerce,
            "random_calls": self.random_calls if self.agent == "random" else None,
            "dialect": self.dialect if self.agent == "model" else None,
            "on_slip": self.on_slip if self.agent == "model" else None,
            "parallel_calls": self.parallel_calls if self.agent == "model" else None,
            "reasoning": self.reasoning if self.agent == "model" else None,
            "oracle": self.oracle if self.agent == "oracle" else None,
            "user_slips": self.user_slips if self.mode == "conversation" else None,
        }


def run_id(
    settings: RolloutSettings,
    models: dict[str, str],
    prompts: dict[str, str],
    sampling: Sampling | None = None,
    played: Record | None = None,
) -> str:
    """A readable name for a run, the same whenever the same thing is asked for.

    Args:
        played: the benchmark, where one is played.
    """
    name = models.get("agent", settings.agent)
    readable = "".join(char if char.isalnum() or char in "._-" else "-" for char in name)[:60].strip("-._")
    parts: list[str] = [settings.agent, readable] if settings.agent == "model" else [settings.agent]
    if settings.mode == "conversation":
        parts.append("conversation")
    if settings.purpose is not None:
        parts.insert(0, settings.purpose)
    pins = {"settings": settings.pins(), "models": models, "prompts": prompts}
    if sampling is not None and sampling != Sampling():
        pins["sampling"] = sampling.model_dump(exclude_defaults=True)
    if played is not None:
        pins["played"] = played.model_dump(mode="json")
    return "-".join([*parts, digest(pins)[:8]])
