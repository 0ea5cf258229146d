"""What somebody wants, and how it is judged."""

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class RewardType(Enum):
    DB = "DB"
    COMMUNICATE = "COMMUNICATE"
    ENV_ASSERTION = "ENV_ASSERTION"


@dataclass
class Action:
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    requestor: str = "assistant"


@dataclass
class Criteria:
    actions: list[Action] | None
    communicate_info: list[str] | None = None
    lit: bool | None = None
    """What the light of the line has to be."""
    basis: tuple[RewardType, ...] = (RewardType.DB, RewardType.COMMUNICATE)


@dataclass
class InitialState:
    initialization_data: dict[str, int] | None
    initialization_actions: None = None
    message_history: None = None


@dataclass
class Task:
    id: str
    user_scenario: str
    evaluation_criteria: Criteria | None
    initial_state: InitialState | None = None

    def model_dump_json(self) -> str:
        return json.dumps(asdict(self), default=str)
