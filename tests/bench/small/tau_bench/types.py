"""What is handed about."""

import json
from typing import Any

RESPOND_ACTION_NAME = "respond"


class Action:
    """A call, or a message."""

    def __init__(self, name: str, kwargs: dict[str, Any]) -> None:
        self.name, self.kwargs = name, kwargs


class Task:
    """What somebody wants."""

    def __init__(self, instruction: str, actions: list[Action], outputs: list[str]) -> None:
        self.instruction, self.actions, self.outputs = instruction, actions, outputs

    def model_dump_json(self) -> str:
        actions = [[action.name, action.kwargs] for action in self.actions]
        return json.dumps([self.instruction, actions, self.outputs])


class Info:
    """What the reward is made of."""

    def __init__(self, **parts: float) -> None:
        self.parts = parts

    def model_dump(self) -> dict[str, float]:
        return self.parts


class RewardResult:
    """The reward of an episode."""

    def __init__(self, reward: float, info: Info) -> None:
        self.reward, self.info = reward, info


class EnvInfo:
    """What is told beside an observation."""

    reward_info: RewardResult | None = None


class EnvResponse:
    """What comes of an action."""

    def __init__(self, observation: str, done: bool, info: EnvInfo) -> None:
        self.observation, self.done, self.info = observation, done, info
        self.reward = info.reward_info.reward if info.reward_info is not None else 0.0
