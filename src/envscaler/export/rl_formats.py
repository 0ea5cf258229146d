"""How each trainer wants the rows of reinforcement learning: a prompt, and by what an adapter opens the scenario.

Every row names library, environment and scenario and pins both by their digests. Which scenarios become rows is
`rl`'s business.

Source: TRL 1.16 (GRPOTrainer with environment_factory), verl 0.9 (RLHFDataset and agent loops), NeMo Gym
(responses_create_params), SkyRL 0.4 (PromptDataset).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envscaler.errors import require_one_of
from envscaler.export.files import Column
from envscaler.export.formats.layout import json_of
from envscaler.export.messages import Row
from envscaler.skeleton import ToolSpec

NAME = "envscaler"
"""What adapters and agent loops are registered as with the trainers."""

_TURNS: list[Column] = [{"role": "string", "content": "string"}]


@dataclass(frozen=True)
class RlPrompt:
    """One scenario as it is put to a policy."""

    system: str
    task: str
    """The first message of the user."""
    tools: tuple[ToolSpec, ...]
    reference: dict[str, str]
    """By what the scenario is opened: library, ids, digests, mode, split."""
    index: int
    """Number of the row in its file."""

    @property
    def messages(self) -> list[Row]:
        """The conversation at reset."""
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.task}]


REFERENCE = ("library", "env_id", "scenario_id", "env_digest", "scenario_digest", "mode", "split")
"""Keys of every reference."""


@dataclass(frozen=True)
class RlFormat:
    """What one trainer takes."""

    name: str
    summary: str
    """One sentence for whoever chooses."""
    row: Callable[[RlPrompt], Row]
    columns: dict[str, Column]
    """Types of the columns in a Parquet file."""


def _trl(prompt: RlPrompt) -> Row:
    # TRL hands every column but `environment` to `reset`.
    return {"prompt": prompt.messages, "environment": prompt.reference["env_id"], **prompt.reference}


def _verl(prompt: RlPrompt) -> Row:
    return {
        "data_source": NAME,
        "agent_name": NAME,
        "prompt": prompt.messages,
        "ability": "tool_use",
        "reward_model": {"style": "rule", "ground_truth": prompt.reference["scenario_digest"]},
        "extra_info": {"index": prompt.index, "tools": _tools(prompt), **prompt.reference},
    }


def _nemo_gym(prompt: RlPrompt) -> Row:
    tools = [
        # Not strict: that would ask for every parameter, also where a tool does not.
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in prompt.tools
    ]
    return {"responses_create_params": {"input": prompt.messages, "tools": tools}, **prompt.reference}


def _skyrl(prompt: RlPrompt) -> Row:
    # Whatever is neither prompt nor class is given to the environment as `extras`.
    return {"prompt": prompt.messages, "env_class": NAME, "tools": _tools(prompt), **prompt.reference}


def _tools(prompt: RlPrompt) -> str:
    # As text, because a table would merge the schemas of all tools into one.
    return json_of([tool.to_openai() for tool in prompt.tools])


_REFERENCE: dict[str, Column] = dict.fromkeys(REFERENCE, "string")

RL_FORMATS: dict[str, RlFormat] = {
    entry.name: entry
    for entry in (
        RlFormat(
            "trl",
            "`prompt`, `environment` and the columns that `reset` is given, for TRL's environment_factory.",
            _trl,
            {"prompt": _TURNS, "environment": "string", **_REFERENCE},
        ),
        RlFormat(
            "verl",
            "`prompt`, `data_source`, `reward_model`, `extra_info` and `agent_name`, for an agent loop of verl.",
            _verl,
            {
                "data_source": "string",
                "agent_name": "string",
                "prompt": _TURNS,
                "ability": "string",
                "reward_model": {"style": "string", "ground_truth": "string"},
                "extra_info": {"index": "int64", "tools": "string", **_REFERENCE},
            },
        ),
        RlFormat(
            "nemo-gym",
            "`responses_create_params` with input and tools, for a resources server of NeMo Gym.",
            _nemo_gym,
            {"responses_create_params": "json", **_REFERENCE},
        ),
        RlFormat(
            "skyrl",
            "`prompt`, `env_class` and what the environment is given as extras, for SkyRL.",
            _skyrl,
            {"prompt": _TURNS, "env_class": "string", "tools": "string", **_REFERENCE},
        ),
    )
}


def rl_format(name: str) -> RlFormat:
    """The format of that name.

    Raises:
        UsageError: if there is none.
    """
    require_one_of("format", name, RL_FORMATS)
    return RL_FORMATS[name]
