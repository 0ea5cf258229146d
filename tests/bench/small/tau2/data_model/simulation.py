"""An episode that has come to its end."""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class TerminationReason(Enum):
    USER_STOP = "user_stop"
    AGENT_STOP = "agent_stop"
    MAX_STEPS = "max_steps"
    TOO_MANY_ERRORS = "too_many_errors"


@dataclass
class SimulationRun:
    id: str
    task_id: str
    start_time: str
    end_time: str
    duration: float
    termination_reason: TerminationReason
    messages: list[Any]


@dataclass
class RewardInfo:
    reward: float
    reward_breakdown: dict[Any, float] | None = None
    info: dict[str, Any] | None = None
