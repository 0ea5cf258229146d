"""Domains and tasks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from litellm import completion

from tau2.data_model.tasks import Action, Criteria, InitialState, RewardType, Task
from tau2.environment.environment import Environment

ask = completion
"""What is imported and not called."""
BOOK = Action("book", {"rooms": 2})
PRESS = Action("press", requestor="user")
LINE = (RewardType.ENV_ASSERTION,)
TASKS = {
    "airline": [
        Task("0", "You want nine rooms, which there are not.", Criteria(actions=[])),
        Task("1", "You want two rooms and to know how many are left.", Criteria([BOOK], ["3"])),
    ],
    "retail": [
        Task(
            "0",
            "You want two of the last rooms, and failing that nine.",
            Criteria([Action("book", {"rooms": 9}), BOOK]),
            InitialState({"rooms": 2}),
        )
    ],
    "telecom": [
        Task("on", "Your line (555-0199) is dark. You want light.", Criteria([BOOK, PRESS], lit=True, basis=LINE)),
        Task("off", "Press twice.", Criteria([PRESS, BOOK, PRESS, BOOK], lit=False, basis=(*LINE, RewardType.DB))),
    ],
}


class _Registry:
    def get_tasks_loader(self, domain: str) -> Callable[[], list[Task]]:
        return lambda: TASKS[domain]

    def get_env_constructor(self, domain: str) -> Callable[..., Any]:
        def made(solo_mode: bool = False, *, name: str) -> Environment:
            return Environment(name)

        return partial(made, name=domain)


registry = _Registry()
