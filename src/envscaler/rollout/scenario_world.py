"""`ScenarioWorld`: one episode of a scenario of our own, with a simulated user where the mode is conversation."""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.agents import Briefing, SystemPrompts, UserSimulator
from envscaler.env import AsyncToolEnv, ObservationStyle, ResetChecks, observations_of
from envscaler.errors import ReplyError
from envscaler.messages import Message, ToolCall, ToolMessage, UserMessage
from envscaler.rollout.world import Identity, Opening, Score, TurnRules
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.trajectory import StopReason


class ScenarioWorld:
    """Plays a scenario in an `AsyncToolEnv`.

    Source: paper section 5. Without a user the task is the first message and a message without tool calls ends the
    episode; with one the user reveals the task and ends it.
    """

    def __init__(
        self,
        skeleton: EnvSkeleton,
        scenario: Scenario,
        sandbox: Sandbox,
        *,
        user: UserSimulator | None = None,
        sample: int = 0,
        agent_seed: int = 0,
        observations: ObservationStyle | None = None,
        coerce: bool = False,
        reset_checks: ResetChecks | None = None,
        prompts: SystemPrompts | None = None,
    ) -> None:
        """
        Args:
            user: the simulated user; with one the mode is conversation.
            agent_seed: seed of agents that draw; the session's seed is the scenario's.
            observations: None: the style that suits where the environment comes from.
            coerce: put arguments into the types that a tool asks for where nothing is lost.
            prompts: the agent's system prompts; None: the package's.
        """
        self._env = AsyncToolEnv(
            skeleton,
            scenario,
            sandbox,
            observations=observations if observations is not None else observations_of(skeleton),
            coerce=coerce,
            reset_checks=reset_checks,
        )
        self.user = user
        self._prompts = prompts if prompts is not None else SystemPrompts()
        self._opened = False
        self.turn_rules = TurnRules()
        self.over: StopReason | None = None
        self.briefing = Briefing(
            mode="non-conversation" if user is None else "conversation",
            sample=sample,
            seed=agent_seed,
            scenario=scenario,
            entities=skeleton.entities,
            language=skeleton.origin.language,
        )
        self.identity = Identity(
            world="scenario",
            env_id=skeleton.id,
            scenario_id=scenario.id,
            env_digest=skeleton.digest,
            scenario_digest=scenario.digest,
            seed=scenario.seed,
        )

    @property
    def state_digest(self) -> str | None:
        return self._env.digest if self._opened else None

    async def open(self) -> Opening:
        task, _ = await self._env.reset()
        self._opened = True
        if self.user is not None:
            first = await self.user.speak(())
            if not first.text:
                raise ReplyError(f"{self.user.role.name}: the user ended the conversation before it began")
            task = first.text
        prompt = self._prompts.text(self._env.skeleton, self.briefing.mode)
        return Opening(system_prompt=prompt, user=UserMessage(content=task))

    def tools(self, turn: int) -> tuple[ToolSpec, ...]:
        return self._env.tools

    async def call(self, call: ToolCall) -> ToolMessage:
        return await self._env.carry_out(call)

    async def next_turn(self, conversation: Sequence[Message]) -> UserMessage | StopReason:
        if self.user is None:
            return StopReason.FINISHED
        answer = await self.user.speak(conversation)
        if answer.stopped or not answer.text:
            return StopReason.USER_STOPPED
        return UserMessage(content=answer.text)

    async def score(self) -> Score:
        return Score(verdict=await self._env.verify())

    async def close(self) -> None:
        self._opened = False
        await self._env.close()
