"""`play`: one agent in one World, from the first message to the verdict, as a `Trajectory`.

A bad episode is data. A failure of the machinery is neither data nor a reward: the trajectory then has no verdict.
Which episodes are played, and again after a failure, is `run`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from envscaler.agents import Agent, AgentReply, Player
from envscaler.agents.dialects import EMPTY_REPLY
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
from envscaler.messages import Message, SystemMessage, ToolMessage, UserMessage
from envscaler.roles.ask import use_of
from envscaler.roles.role import AGENT_TURN
from envscaler.rollout.slip_policy import CallPolicy
from envscaler.rollout.world import Opening, Score, TurnRules, World
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Sampling, Step, StopReason, Trajectory

_LENGTH_WORDS = ("context", "too long", "maximum length", "too many tokens")


@dataclass(frozen=True)
class Episode:
    """A trajectory, and the failure that cut it short."""

    trajectory: Trajectory
    failure: EnvScalerError | None = None


async def play(
    world: World, agent: Agent, *, step_limit: int, sampling: Sampling | None = None, policy: CallPolicy | None = None
) -> Trajectory:
    """Play one episode and close the world.

    Args:
        step_limit: the agent's turns at most (paper: 30, in conversation 40); what was reached by then is judged.
        sampling: how the agent's model was asked to sample, for the record.
        policy: what is made of replies whose form is wrong, and of several calls at once; None: the defaults.

    Raises:
        ProgramError: if the environment's program cannot be loaded.
        EndpointRejected: if the endpoint refuses the agent's model for good.
    """
    return (await play_episode(world, agent, step_limit=step_limit, sampling=sampling, policy=policy)).trajectory


async def play_episode(
    world: World, agent: Agent, *, step_limit: int, sampling: Sampling | None = None, policy: CallPolicy | None = None
) -> Episode:
    """As `play`, also saying which failure ended the episode, if one did.

    A call is handed to the world once. When the machinery fails in it, whether it was carried out is not known: the
    episode ends there, and another attempt begins with a new session.
    """
    course = _Course(world, agent.start(world.briefing), step_limit, policy if policy is not None else CallPolicy())
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
    policy: CallPolicy
    opening: Opening | None = None
    conversation: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    use: ModelUse = field(default_factory=ModelUse)
    stop: StopReason = StopReason.STEP_LIMIT
    error: str | None = None
    bad_replies: int = 0
    """Replies in a row whose form was wrong and not put right."""
    timeouts: int = 0
    """Tool calls in a row that ran out of time."""
    _ended: bool = False

    async def run(self) -> None:
        self.opening = await self.world.open()
        prompt = self.opening.system_prompt
        self.conversation = [*([SystemMessage(content=prompt)] if prompt else []), self.opening.user]
        told: UserMessage | None = self.opening.user
        turn, steps = 0, 0
        while len(self.steps) < self.step_limit:
            completion = await self._act(turn)
            if completion is None:
                return
            self.use = self.use + use_of(completion)
            answered = await self._record(turn, told, completion)
            told = None
            if self._ended:
                return
            if answered:
                steps += 1
                if steps == self.world.turn_rules.steps:
                    return
                continue
            if len(self.steps) >= self.step_limit and self.world.briefing.mode == "conversation":
                return
            following = await self.world.next_turn(self.conversation)
            if isinstance(following, StopReason):
                self.stop = following
                return
            told = following
            turn, steps = turn + 1, 0
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
        """Carry a reply out and write the step down.

        Returns:
            Whether something in it was answered, so that it is the agent's turn again.
        """
        if self.world.turn_rules.empty_replies:
            completion = _silent(completion)
        message = completion.message
        reply = completion if isinstance(completion, AgentReply) else None
        self.conversation.append(message)
        observations: list[ToolMessage] = []
        slips = reply.slips if reply is not None else ()
        end = _unusable(completion, self.world.turn_rules)
        if end is None:
            ruling = self.policy.ruling(message, reply)
            slips = ruling.slips
            self.bad_replies = self.bad_replies + 1 if ruling.bad else 0
            if ruling.stop is not None:
                end = StopReason.INVALID_ACTION, ruling.stop
            else:
                # A call's refusal is known before, what a call does only after those before it.
                for call, refusal in zip(message.tool_calls, ruling.refusals, strict=True):
                    seen = await self.world.call(call) if refusal is None else refusal
                    observations.append(seen)
                    self.conversation.append(seen)
                    self._count_timeout(seen)
                end = self._limit_reached()
        self.steps.append(
            Step(
                turn=turn,
                user=told,
                assistant=message,
                observations=tuple(observations),
                state_digest=self.world.state_digest,
                raw=reply.raw if reply is not None else None,
                slips=slips,
                usage=completion.usage,
                latency_s=completion.latency_s,
            )
        )
        if end is not None:
            self._ended = True
            self.stop, self.error = end
        elif self.world.over is not None:
            self._ended, self.stop = True, self.world.over
        return bool(observations)

    def _count_timeout(self, seen: ToolMessage) -> None:
        self.timeouts = self.timeouts + 1 if seen.fault == "timeout" else 0

    def _limit_reached(self) -> tuple[StopReason, str] | None:
        if self.timeouts >= self.policy.timeout_limit:
            return StopReason.ENVIRONMENT_TIMEOUT, f"{self.timeouts} tool calls in a row ran out of time"
        if self.bad_replies >= self.policy.slip_limit:
            return StopReason.INVALID_ACTION, f"{self.bad_replies} replies in a row that could not be carried out"
        return None


def _silent(completion: Completion) -> Completion:
    """The reply, with an empty one as what it is instead of a slip to be complained of."""
    if not isinstance(completion, AgentReply) or completion.fault != EMPTY_REPLY:
        return completion
    message = completion.message.model_copy(update={"tool_calls": ()})
    return completion.model_copy(update={"message": message, "slips": (), "fault": None})


def _unusable(completion: Completion, rules: TurnRules) -> tuple[StopReason, str] | None:
    """Why nothing of a reply is carried out, and the episode ends; None when that is not so."""
    # Of a reply that was cut off, what is missing is not known.
    if completion.finish_reason == "length":
        return StopReason.TOKEN_LIMIT, "the reply was cut off at the token limit"
    if completion.finish_reason == "content_filter":
        return StopReason.INVALID_ACTION, "the endpoint's content filter withheld the reply"
    if not completion.message.tool_calls and not completion.message.content.strip() and not rules.empty_replies:
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
    user = world.user
    use = {user.role.name: user.use} if user is not None and user.use.calls else {}
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
        dialect=agent.dialect,
        system_prompt=course.opening.system_prompt if course.opening is not None else "",
        tools=world.tools(0),
        steps=tuple(course.steps),
        use=use,
        user=user.record if user is not None else None,
        masked=user.masked if user is not None else None,
        stop=course.stop,
        verdict=score.verdict,
        scores=dict(score.scores),
        error=exception_text(type(failure).__name__, str(failure)) if failure is not None else course.error,
    )
