"""The shops."""

from typing import Any

from tau_bench.envs.base import Env
from tau_bench.types import Action, Task

GREEN = Action("order", {"tea": "green", "bags": 2})
TASKS = {
    "retail": [
        Task("You are Ann and want two bags of green tea. If asked for your age, you are 40.", [GREEN], []),
        Task("You are Bob. You want to know how much green tea is left once you have two bags.", [GREEN], ["3"]),
    ],
    "airline": [
        Task("You want nine bags of black tea; there are too few, and you want nothing else.", [], []),
        Task("You want two bags of green tea and then to be put through.", [GREEN, Action("hang_up", {})], []),
    ],
}


def get_env(name: str, strategy: str, model: str, split: str, provider: str, task_index: int) -> Any:
    """A shop of that name."""
    return Env({"green": 5, "black": 1}, TASKS[name], task_index)
