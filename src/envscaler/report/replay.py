"""Plays the recorded calls of an episode again, to tell what each of them changed.

Nothing of it is stored: a trajectory holds digests, from which nobody reads what happened.
"""

from __future__ import annotations

from envscaler.env import Library, ToolEnv, observations_of
from envscaler.errors import ProgramError, SandboxError, StoreError, UsageError
from envscaler.messages import as_carried_out
from envscaler.report.views import EpisodeView, StepView
from envscaler.sandbox import BlockingSandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import Change, diff
from envscaler.trajectory import Trajectory


def view_episode(
    trajectory: Trajectory, library: Library | None, sandbox: BlockingSandbox | None = None
) -> EpisodeView:
    """The episode with the state changes of each call, where the library still has what was played.

    Args:
        library: the library that the run played; None when it is not at hand.
        sandbox: an open sandbox to play in; None: one is opened for this episode, with the library's isolation.
    """
    if library is None:
        return _without_changes(trajectory, None, "the library that was played is not at hand")
    if sandbox is None:
        with BlockingSandbox(isolation=library.isolation) as own:
            return view_episode(trajectory, library, own)
    try:
        skeleton = library.skeleton(trajectory.env_id)
        scenario = library.scenario(trajectory.env_id, trajectory.scenario_id)
    except (UsageError, StoreError) as fault:
        return _without_changes(trajectory, None, str(fault))
    stale = _staleness(trajectory, skeleton, scenario)
    if stale is not None:
        return _without_changes(trajectory, scenario, stale)
    try:
        steps = _played(trajectory, skeleton, scenario, sandbox)
    except (ProgramError, SandboxError) as fault:
        return _without_changes(trajectory, scenario, f"the calls could not be played again: {fault}")
    return EpisodeView(trajectory=trajectory, task=scenario.task, steps=steps)


def _without_changes(trajectory: Trajectory, scenario: Scenario | None, reason: str) -> EpisodeView:
    return EpisodeView(
        trajectory=trajectory,
        task=scenario.task if scenario is not None else None,
        steps=tuple(StepView(step=step) for step in trajectory.steps),
        replay=reason,
    )


def _staleness(trajectory: Trajectory, skeleton: EnvSkeleton, scenario: Scenario) -> str | None:
    if trajectory.env_digest != skeleton.digest:
        return f"environment {skeleton.id} is no longer the one that was played"
    if trajectory.scenario_digest != scenario.digest:
        return f"scenario {scenario.id} is no longer the one that was played"
    return None


def _played(
    trajectory: Trajectory, skeleton: EnvSkeleton, scenario: Scenario, sandbox: BlockingSandbox
) -> tuple[StepView, ...]:
    views: list[StepView] = []
    style = observations_of(skeleton)
    with ToolEnv(skeleton, scenario, sandbox, seed=trajectory.seed, observations=style) as env:
        env.reset()
        state = env.state()
        for step in trajectory.steps:
            changes: list[tuple[Change, ...]] = []
            for call, seen in zip(step.assistant.tool_calls, step.observations, strict=False):
                env.carry_out(as_carried_out(call, seen))
                after = env.state()
                changes.append(diff(state, after))
                state = after
            agrees = env.digest == step.state_digest if step.state_digest is not None else None
            views.append(StepView(step=step, changes=tuple(changes), agrees=agrees))
    return tuple(views)
