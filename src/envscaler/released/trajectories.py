"""Published episodes as `Trajectory` records, and back.

What a trajectory cannot hold (the recorder's tracebacks, replies that were no action, the messages word for word)
is kept beside it. Playing an episode again is `rollout`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envscaler.errors import StoreError
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, all_as_carried_out, to_openai
from envscaler.released.episodes import CHAT, EXCEPTION, Episode, ends_talk, episode_of, is_flat, published_episode
from envscaler.released.fields import Published, kept, rejoined
from envscaler.released.scenarios import rendered_scenario
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue
from envscaler.trajectory import Mode, Step, StopReason, Trajectory

_CALL_TEXT = re.compile(r"<tool_call>.*?(</tool_call>|\Z)", re.DOTALL)
_OF_THE_SCENARIO = ("init_config", "task", "checklist_with_func", "task_info")
_STOPS = {
    "finished": StopReason.FINISHED,
    "ended_by_exception": StopReason.INVALID_ACTION,
    "cut_at_limit": StopReason.STEP_LIMIT,
}


def trajectory_of(
    value: JsonValue,
    where: str,
    *,
    skeleton: EnvSkeleton,
    scenario: Scenario | None,
    file: str,
    sample: int = 0,
) -> Trajectory:
    """The trajectory that a published episode describes. It has a recorded reward and no verdict.

    Args:
        scenario: the library's scenario of its id, where it has one.
        file: name of the file that it stands in, kept for export.
        sample: index among the episodes of the same task.

    Raises:
        StoreError: naming the field that is missing or wrong, or if there is nothing to start the episode from.
    """
    published = published_episode(value, where)
    episode = episode_of(published, where)
    played = played_scenario(episode, skeleton, scenario, where)
    conversation = _conversation(published)
    trajectory = Trajectory(
        id=f"{episode.task_id if episode.task_id.startswith(episode.env_id) else f'{episode.env_id}.{episode.task_id}'}"
        f".{sample}",
        env_id=episode.env_id,
        scenario_id=episode.task_id,
        env_digest=skeleton.digest,
        scenario_digest=played.digest,
        agent="model",
        model=episode.model,
        mode=_mode(published, episode),
        sample=sample,
        seed=played.seed,
        system_prompt=_system_prompt(conversation),
        tools=skeleton.tools,
        steps=tuple(_steps(episode, conversation)),
        stop=_STOPS[episode.ending],
        recorded_reward=episode.reward,
        error=_exception(episode),
    )
    flat = is_flat(published)
    released: dict[str, Any] = {"file": file, "form": "flat" if flat else "runner"}
    released |= kept(published, rendered_trajectory(trajectory, skeleton, scenario, flat=flat), _OF_THE_SCENARIO)
    return trajectory.model_copy(update={"released": released})


def published_trajectory(trajectory: Trajectory, skeleton: EnvSkeleton | None, scenario: Scenario | None) -> Published:
    """The trajectory in the authors' format; what an import kept comes back as it was.

    Args:
        skeleton: the environment that was played, where it is at hand.
        scenario: the scenario that was played, where it is at hand.
    """
    flat = (trajectory.released or {}).get("form") == "flat"
    rendered = rendered_trajectory(trajectory, skeleton, scenario, flat=flat)
    # Episodes are records of what happened: nobody edits them, and what was kept of one is what it was.
    return rejoined(rendered, trajectory.released, lambda _: True)


def played_scenario(episode: Episode, skeleton: EnvSkeleton, scenario: Scenario | None, where: str) -> Scenario:
    """What an episode started from: its own state and checks where it brings them, else those of its scenario.

    Raises:
        StoreError: if it has neither.
    """
    if scenario is None and episode.initial_state is None:
        raise StoreError(f"{where}: it brings no `init_config`, and {skeleton.id} has no scenario {episode.task_id!r}")
    base = scenario or Scenario(
        id=episode.task_id, env_id=skeleton.id, env_digest=skeleton.digest, initial_state={}, task=episode.task
    )
    changes: dict[str, Any] = {"env_digest": skeleton.digest}
    if episode.initial_state is not None:
        changes["initial_state"] = episode.initial_state
    if episode.checks is not None:
        changes["checks"] = episode.checks
    if episode.task:
        changes["task"] = episode.task
    # Made anew: a copy would keep the digest that the original has remembered.
    return Scenario(**{**{name: getattr(base, name) for name in Scenario.model_fields}, **changes})


# -- reading ------------------------------------------------------------------------------------------------


def _conversation(published: Published) -> list[Published]:
    messages = published.get("messages")
    return [part for part in messages if isinstance(part, dict)] if isinstance(messages, list) else []


def _system_prompt(conversation: list[Published]) -> str:
    for message in conversation[:1]:
        if message.get("role") == "system" and isinstance(message.get("content"), str):
            return str(message["content"])
    return ""


def _mode(published: Published, episode: Episode) -> Mode:
    if published.get("user_messages"):
        return "conversation"
    talks = any(step.call is None and not step.observation.startswith("Error:") for step in episode.steps[:-1])
    return "conversation" if talks else "non-conversation"


def _steps(episode: Episode, conversation: list[Published]) -> Iterator[Step]:
    replies = [message for message in conversation if message.get("role") == "assistant"]
    opening = next((part["content"] for part in conversation if part.get("role") == "user"), episode.task)
    told: str | None = opening if isinstance(opening, str) else episode.task
    turn = 0
    for index, played in enumerate(episode.steps):
        reply = replies[index] if index < len(replies) else {}
        reasoning = reply.get("reasoning_content") or played.reasoning
        call = played.call.model_copy(update={"id": f"call_{index + 1}"}) if played.call is not None else None
        yield Step(
            turn=turn,
            user=UserMessage(content=told) if told is not None else None,
            assistant=AssistantMessage(
                content=played.said if call is None else _beside(reply.get("content")),
                reasoning=reasoning if isinstance(reasoning, str) and reasoning else None,
                tool_calls=(call,) if call is not None else (),
            ),
            observations=(_observed(call, played.observation, played.raised or not played.called),) if call else (),
        )
        told = None
        if call is None and not ends_talk(played.observation):
            told = played.observation
            turn += 1


def _beside(content: JsonValue) -> str:
    """What a reply says beside its call, which stands in it as text where the model was prompted so."""
    return _CALL_TEXT.sub("", content).strip() if isinstance(content, str) else ""


def _observed(call: ToolCall, content: str, is_error: bool) -> ToolMessage:
    return ToolMessage(content=content, tool_call_id=call.id or "", name=call.name, is_error=is_error)


def _exception(episode: Episode) -> str | None:
    if episode.ending != "ended_by_exception":
        return None
    return episode.steps[-1].observation.rstrip().rsplit("\n", 1)[-1]


# -- writing ------------------------------------------------------------------------------------------------


def rendered_trajectory(
    trajectory: Trajectory, skeleton: EnvSkeleton | None, scenario: Scenario | None, *, flat: bool
) -> Published:
    """What the records alone say, in one of the two published forms."""
    reward = trajectory.recorded_reward
    if reward is None:
        reward = round(trajectory.reward("fraction") or 0.0, 4) if _finished(trajectory) else 0.0
    task = _task(trajectory, scenario)
    played = list(_rows(trajectory, reward))
    terminated = _finished(trajectory) or trajectory.stop == StopReason.INVALID_ACTION
    if flat:
        class_name = skeleton.class_name if skeleton is not None else ""
        own = rendered_scenario(scenario, class_name) if scenario is not None else {}
        return {
            "env_id": trajectory.env_id,
            "task_id": trajectory.scenario_id,
            "model": trajectory.model,
            **{name: own[name] for name in ("init_config", "task", "checklist_with_func") if name in own},
            "steps": played,
            "terminated": terminated,
            "truncated": False,
            "total_reward": reward,
        }
    return {
        "task_info": {"env_id": trajectory.env_id, "task_id": trajectory.scenario_id, "task": task},
        "tools": [tool.to_openai() for tool in trajectory.tools],
        "messages": list(_messages(trajectory)),
        "user_messages": None,
        "trajectory": [
            {"step": 0, "observation": task},
            *({"step": number, **row} for number, row in enumerate(played, 1)),
        ],
        "total_reward": reward,
        "terminated": terminated,
        "truncated": False,
        "steps": len(played),
    }


def _finished(trajectory: Trajectory) -> bool:
    return trajectory.stop in (StopReason.FINISHED, StopReason.USER_STOPPED)


def _task(trajectory: Trajectory, scenario: Scenario | None) -> str:
    own = (trajectory.released or {}).get("fields", {}).get("task_info")
    if isinstance(own, dict) and isinstance(own.get("task"), str):
        return str(own["task"])
    if scenario is not None:
        return scenario.task
    first = trajectory.steps[0].user if trajectory.steps else None
    return first.content if first is not None else ""


def _rows(trajectory: Trajectory, reward: float) -> Iterator[Published]:
    """One row for each action: a reply with several calls was several actions."""
    actions: list[tuple[Published, Published]] = []
    for number, step in enumerate(trajectory.steps):
        # The format has no place for what the program was given beside what the agent wrote, and is played again by it.
        carried_out = all_as_carried_out(step.assistant, step.observations)
        for call, seen in zip(carried_out.tool_calls, step.observations, strict=False):
            raised = seen.is_error and seen.content.startswith(EXCEPTION)
            actions.append(
                (
                    {"name": call.name, "arguments": call.arguments},
                    {"type": "user" if raised else "tool", "content": seen.content},
                )
            )
        if not step.assistant.tool_calls:
            following = trajectory.steps[number + 1].user if number + 1 < len(trajectory.steps) else None
            answer = following.content if following is not None else "Task finished"
            actions.append(
                (
                    {"name": CHAT, "arguments": {"content": step.assistant.content}},
                    {"type": "user", "content": answer},
                )
            )
    ended = _finished(trajectory) or trajectory.stop == StopReason.INVALID_ACTION
    for index, (action, observation) in enumerate(actions, 1):
        last = index == len(actions)
        yield {
            "action": action,
            "observation": observation,
            "reward": reward if last else 0.0,
            "terminated": ended and last,
            "truncated": False,
        }


def _messages(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    if trajectory.system_prompt:
        yield {"role": "system", "content": trajectory.system_prompt}
    for step in trajectory.steps:
        if step.user is not None:
            yield {"role": "user", "content": step.user.content}
        message = to_openai(all_as_carried_out(step.assistant, step.observations))
        if step.assistant.reasoning:
            message["reasoning_content"] = step.assistant.reasoning
        yield message
        for seen in step.observations:
            yield {"role": "tool", "tool_call_id": seen.tool_call_id, "name": seen.name, "content": seen.content}
