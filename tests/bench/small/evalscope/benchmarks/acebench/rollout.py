import json
from dataclasses import dataclass, field

from evalscope.api.agent import AgentTrace
from evalscope.api.messages import ChatMessage
from evalscope.utils.logger import get_logger

logger = get_logger()
FINISH_MARKER = "the tea is served"


@dataclass
class Result:
    messages: list[ChatMessage] = field(default_factory=list)
    trace: AgentTrace = field(default_factory=AgentTrace)


def _dispatch(calls, instances):
    seen = []
    for call in calls:
        ((name, arguments),) = call.items()
        outcome = f"Error during execution: name '{name}' is not defined"
        for one in instances.values():
            if hasattr(one, name):
                try:
                    outcome = getattr(one, name)(**arguments)
                except (RuntimeError, TypeError) as error:
                    outcome = f"Error during execution: {error}"
                    break
        seen.append(outcome)
    return seen


def _serialize(outcome):
    return outcome if isinstance(outcome, str) else json.dumps(outcome)
