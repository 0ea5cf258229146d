"""`play`: one agent in one World, from the first message to the verdict, as a `Trajectory`.

A bad episode is data. A failure of the machinery is neither data nor a reward: the trajectory then has no verdict.
Which episodes are played, and again after a failure, is `run`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from envscaler.agents import Agent, Player
from envscaler.errors import (
    BudgetExhausted,
    EndpointUnavailable,
    EnvScalerError,
    ReplyError,
    RequestFailed,
    SandboxError,
    exception_text,
)
from envscaler.llm.chat import Completion
from envscaler.messages import AssistantMessage, Message, SystemMessage, UserMessage
from envscaler.roles.ask import use_of
from envscaler.roles.role import AGENT_TURN
from envscaler.rollout.world import Opening, Score, World
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Sampling, Step, StopReason, Trajectory

_LENGTH_WORDS = ("context", "too long", "maximum length", "too many tokens")


@dataclass(frozen=True)
class Episode:
    """A trajectory, and the failure that cut it short."""

    trajectory: Trajectory
    failure: EnvScalerError | None = None


async def play(world: World, agent: Agent, *, step_limit: int, sampling: Sampling | None = None) -> Trajectory:
    """Play one episode and close the world.

    Args:
        step_limit: the agent's turns at most (paper: 30, in conversation 40); what was reached by then is judged.
        sampling: how the agent's model was asked to sample, for the record.

    Raises:
        ProgramError: if the environment's program cannot be loaded.
        EndpointRejected: if the endpoint refuses the agent's model for good.
    """
    return (await play_episode(world, agent, step_limit=step_limit, sampling=sampling)).trajectory


async def play_episode(world: World, agent: Agent, *, step_limit: int, sampling: Sampling | None = None) -> Episode:
    """As `play`, also saying which failure ended the episode, if one did."""
    course = _Course(world, agent.start(world.briefing), step_limit)
    failure: EnvScalerError | None = None
    score = Score(verdict=None)
    try:
        try:
            await course.run()
            score = await world.score()
        except BudgetExhausted as error:
            failure, course.stop = error, StopReason.BUDGET
        except (EndpointUnavailable, SandboxError, ReplyError) as error:
            failure, course.stop = error, StopReason.INFRASTRUCTURE
    finally:
        await world.close()
    return Episode(_trajectory(world, agent, course, score, failure, sampling or Sampling()), failure)


@dataclass
class _Course:
    """How far an episode has come."""

    world: World
    player: Player
    step_limit: int
    opening: Opening | None = None
    conversation: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    use: ModelUse = field(default_factory=ModelUse)
    stop: StopReason = StopReason.STEP_LIMIT
    error: str | None = None

    async def run(self) -> None:
        self.opening = await self.world.open()
        self.conversation = [SystemMessage(content=self.opening.system_prompt), self.opening.user]
        told: UserMessage | None = self.opening.user
        turn = 0
        while len(self.steps) < self.step_limit:
            completion = await self._act(turn)
            if completion is None:
                return
            self.use = self.use + use_of(completion)
            calls_made = await self._record(turn, told, completion)
            told = None
            fault = _unusable(completion)
            if fault is not None:
                self.stop, self.error = fault
                return
            if calls_made:
                continue
            if len(self.steps) >= self.step_limit and self.world.briefing.mode == "conversation":
                return
            following = await self.world.next_turn(self.conversation)
            if isinstance(following, StopReason):
                self.stop = following
                return
            told = following
            turn += 1
            self.conversation.append(following)

    async def _act(self, turn: int) -> Completion | None:
        try:
            return await self.player.act(self.conversation, self.world.tools(turn))
        except RequestFailed as error:
            # A conversation that outgrew the model's context would outgrow it again on every resume: the episode
            # ends there, like at any other limit.
            if not self.steps or not any(word in str(error).lower() for word in _LENGTH_WORDS):
                raise
            self.stop, self.error = StopReason.TOKEN_LIMIT, str(error)
            return None

    async def _record(self, turn: int, told: UserMessage | None, completion: Completion) -> bool:
        message = completion.message
        self.conversation.append(message)
        # Calls of a reply that was cut off are not carried out: what is missing of them is not known.
        calls = message.tool_calls if _unusable(completion) is None else ()
        observations = []
        for call in calls:
            observation = await self.world.call(call)
            observations.append(observation)
            self.conversation.append(observation)
        self.steps.append(
            Step(
                turn=turn,
                user=told,
                assistant=message,
                observations=tuple(observations),
                state_digest=self.world.state_digest,
                usage=completion.usage,
                latency_s=completion.latency_s,
            )
        )
        return bool(calls)


def _unusable(completion: Completion) -> tuple[StopReason, str] | None:
    message: AssistantMessage = completion.message
    if completion.finish_reason == "length":
        return StopReason.TOKEN_LIMIT, "the reply was cut off at the token limit"
    if completion.finish_reason == "content_filter":
        return StopReason.INVALID_ACTION, "the endpoint's content filter withheld the reply"
    if not message.tool_calls and not message.content.strip():
        return StopReason.INVALID_ACTION, "the reply is empty: neither text nor a tool call"
    return None


def _trajectory(
    world: World,
    agent: Agent,
    course: _Course,
    score: Score,
    failure: EnvScalerError | None,
    sampling: Sampling,
) -> Trajectory:
    identity, briefing = world.identity, world.briefing
    use = {role: part for role, part in world.use.items() if part.calls}
    if agent.model is not None and course.use.calls:
        use[AGENT_TURN.name] = course.use
    # Scenario ids of ours begin with the environment's; those of imported libraries need not.
    named = identity.scenario_id.startswith(identity.env_id)
    return Trajectory(
        id=f"{identity.scenario_id if named else f'{identity.env_id}.{identity.scenario_id}'}.{briefing.sample}",
        world=identity.world,
        env_id=identity.env_id,
        scenario_id=identity.scenario_id,
        env_digest=identity.env_digest,
        scenario_digest=identity.scenario_digest,
        agent=agent.kind,
        model=agent.model,
        mode=briefing.mode,
        sample=briefing.sample,
        seed=identity.seed,
        sampling=sampling,
        system_prompt=course.opening.system_prompt if course.opening is not None else "",
        tools=world.tools(0),
        steps=tuple(course.steps),
        use=use,
        user=world.user_record,
        masked=world.masked,
        stop=course.stop,
        verdict=score.verdict,
        scores=dict(score.scores),
        error=exception_text(type(failure).__name__, str(failure)) if failure is not None else course.error,
    )
