"""A shop in which calls change what is in store."""

import copy
from typing import Any

from litellm import completion

from tau_bench.types import RESPOND_ACTION_NAME, Action, EnvInfo, EnvResponse, Info, RewardResult, Task

calls_made = 0
"""Kept in the module, as a benchmark should not."""


def load_user(**_: Any) -> Any:
    """Somebody to talk to."""
    return completion(model="a model that is not there")


class Env:
    """One shop."""

    def __init__(self, data: dict[str, Any], tasks: list[Task], task_index: int) -> None:
        self._first = data
        self.tasks = tasks
        self.wiki = "Sell tea."
        self.user = load_user(model="none")
        self.terminate_tools = ["hang_up"]
        self.tools_map = {"order": self._order, "hang_up": self._hang_up}
        properties = {"tea": {"type": "string"}, "bags": {"type": "integer"}}
        self.tools_info = [
            _tool("order", {"type": "object", "properties": properties, "required": ["tea", "bags"]}),
            _tool("hang_up", {"type": "object", "properties": {}}),
        ]
        self.reset(task_index)

    def reset(self, task_index: int) -> None:
        self.data = copy.deepcopy(self._first)
        self.task = self.tasks[task_index]
        self.said: list[str] = []
        self.user.reset(self.task.instruction)

    def step(self, action: Action) -> EnvResponse:
        info, done = EnvInfo(), False
        if action.name == RESPOND_ACTION_NAME:
            self.said.append(action.kwargs["content"])
            observation = self.user.step(action.kwargs["content"])
            done = "###STOP###" in observation
        elif action.name in self.tools_map:
            try:
                observation = self.tools_map[action.name](**action.kwargs)
            except Exception as error:  # noqa: BLE001 - as the benchmark does
                observation = f"Error: {error}"
            done = action.name in self.terminate_tools
        else:
            observation = f"Unknown action {action.name}"
        if done:
            info.reward_info = self.calculate_reward()
        return EnvResponse(observation, done, info)

    def calculate_reward(self) -> RewardResult:
        reached, self.data = self.data, copy.deepcopy(self._first)
        for action in self.task.actions:
            if action.name not in self.terminate_tools:
                self.step(action)
        told = all(any(output in text for text in self.said) for output in self.task.outputs)
        parts = {"r_outputs": float(told)} if self.task.outputs else {"r_actions": float(reached == self.data)}
        return RewardResult(float(told and reached == self.data), Info(**parts))

    def _order(self, tea: str, bags: int) -> str:
        global calls_made
        calls_made += 1
        if self.data[tea] < bags:
            return f"Error: there are {self.data[tea]} bags of {tea}"
        self.data[tea] -= bags
        return f"{self.data[tea]} left, call {calls_made}"

    def _hang_up(self) -> str:
        return "gone"


def _tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": parameters}}
