"""What an episode was worth."""

from enum import Enum
from math import prod

from loguru import logger

from tau2.data_model.message import AssistantMessage
from tau2.data_model.simulation import RewardInfo, SimulationRun, TerminationReason
from tau2.data_model.tasks import RewardType, Task
from tau2.registry import registry


class EvaluationType(Enum):
    ALL = "all"


def evaluate_simulation(
    run: SimulationRun, task: Task, kind: EvaluationType, solo_mode: bool, domain: str
) -> RewardInfo:
    if run.termination_reason not in (TerminationReason.USER_STOP, TerminationReason.AGENT_STOP):
        return RewardInfo(0.0, info={"note": "it ended before its end"})
    criteria, state = task.evaluation_criteria, task.initial_state
    assert criteria is not None
    made = registry.get_env_constructor(domain)
    reached, wanted = made(solo_mode=solo_mode), made()
    data = state.initialization_data if state is not None else None
    reached.set_state(data, None, run.messages)
    wanted.set_state(data, None, [])
    for action in criteria.actions or []:
        try:
            wanted.make_tool_call(action.name, requestor=action.requestor, **action.arguments)
        except ValueError as error:
            logger.warning(f"Error in golden actions {action.name}: {error}")
    said = [message.content for message in run.messages if isinstance(message, AssistantMessage) and message.content]
    told = {
        RewardType.DB: reached.tools.db["rooms"] == wanted.tools.db["rooms"],
        RewardType.COMMUNICATE: all(any(info in text for text in said) for info in criteria.communicate_info or []),
        RewardType.ENV_ASSERTION: bool(reached.tools.db["on"]) == criteria.lit,
    }
    parts = {basis: float(told[basis]) for basis in criteria.basis}
    return RewardInfo(prod(parts.values()), parts, {})
