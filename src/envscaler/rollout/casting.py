"""`Cast`: who takes part in the episodes of a run, by its settings: the agent, the simulated user, and their models.

How they play is the business of `agents`, what they answered before a kill that of `recall`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from envscaler.agents import (
    Agent,
    ModelAgent,
    NoopAgent,
    OracleAgent,
    RandomAgent,
    SystemPrompts,
    UserInstructions,
    UserSimulator,
)
from envscaler.agents.dialects import Dialect, dialect_of, prompt_file_digest
from envscaler.errors import UsageError
from envscaler.llm.chat import ChatModel
from envscaler.models import Faults
from envscaler.models.settings import OFFLINE
from envscaler.roles.role import PLAY_USER, USER_TURN, Family, Prompts
from envscaler.rollout.recall import EpisodeReplies
from envscaler.rollout.report import OFFLINE_NOTE
from envscaler.rollout.settings import RolloutSettings
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ModelUse
from envscaler.store import ReplyJournal
from envscaler.trajectory import Sampling

if TYPE_CHECKING:
    from envscaler.models import Models

_SIDE_BY_SIDE = 32
"""Episodes in play where no endpoint says how many it can take."""
_BEYOND = 4


class Cast:
    """Makes the agent and the user of each episode.

    Raises:
        UsageError: if a model is needed and none is given.
    """

    def __init__(
        self, settings: RolloutSettings, models: Models | None, prompts: Prompts, *, instructed: bool = True
    ) -> None:
        """
        Args:
            instructed: whether agents and users are given our prompts for scenarios; a world may tell them its own. It
                then has a script for the user of an agent that is no model.
        """
        self._settings = settings
        self._instructed = instructed
        self._models = models
        self._prompts = prompts
        self.system_prompts = SystemPrompts(settings.system_prompt)
        agent: tuple[Family, ...] = ("agent",) if settings.agent == "model" else ()
        simulated = settings.mode == "conversation" and (instructed or settings.agent == "model")
        user: tuple[Family, ...] = ("user",) if simulated else ()
        self.families = agent + user
        """Families of roles whose models take part."""
        for family in self.families:
            self._chat(family, None)

    @cached_property
    def names(self) -> dict[str, str]:
        """Name of the model of each family that takes part."""
        return {family: self._chat(family, None).name for family in self.families}

    @cached_property
    def prompts(self) -> dict[str, str]:
        """Digest of each prompt file used."""
        digests = {}
        if self._instructed and ("agent" in self.families or self._settings.system_prompt is not None):
            digests[f"agent.{self._settings.mode}"] = self.system_prompts.digest(self._settings.mode)
        if "agent" in self.families and (tools := prompt_file_digest(self._dialect.name)) is not None:
            digests[f"agent.tools.{self._dialect.name}"] = tools
        if "user" in self.families:
            role = USER_TURN if self._instructed else PLAY_USER
            digests[role.name] = self._prompts.digest(role)
        return digests

    @cached_property
    def sampling(self) -> Sampling:
        """How the agent's model is asked to sample."""
        if self._models is None or "agent" not in self.families:
            return Sampling()
        return self._models.settings.of("agent").sampling or Sampling()

    @property
    def note(self) -> str | None:
        """What a reader of the scores has to know."""
        return OFFLINE_NOTE if self.names.get("agent") == OFFLINE else None

    @property
    def spent(self) -> ModelUse:
        """What the models were paid for so far."""
        return self._models.meter.report().spent if self._models is not None else ModelUse()

    @property
    def faults(self) -> Faults:
        """What went wrong with the models so far."""
        return self._models.faults if self._models is not None else Faults()

    def room(self) -> int:
        """Episodes that may be in play now: somewhat more than the endpoints are given requests."""
        in_flight = self._models.in_flight(*self.families) if self._models is not None and self.families else None
        # Some are with their tools meanwhile; and somebody has to wait, or it would not be tried to send more.
        return _SIDE_BY_SIDE if in_flight is None else in_flight + in_flight // 4 + _BEYOND

    def replies(self, journal: ReplyJournal, episode: str) -> EpisodeReplies | None:
        """What the models of an episode answered before; None where nobody answers whom it would cost to ask again."""
        if self._models is None or not self.families or self._models.is_embedded:
            return None
        return EpisodeReplies(journal, episode, self._models.meter.count_reused)

    def agent(self, replies: EpisodeReplies | None = None) -> Agent:
        """The agent, of one episode where replies are given."""
        if self._settings.agent == "oracle":
            return OracleAgent(self._settings.oracle)
        if self._settings.agent == "random":
            return RandomAgent(self._settings.random_calls)
        if self._settings.agent == "noop":
            return NoopAgent()
        return ModelAgent(self._chat("agent", replies), dialect=self._dialect)

    @cached_property
    def _dialect(self) -> Dialect:
        settings = self._settings
        name = "native" if settings.dialect == "auto" else settings.dialect
        return dialect_of(name, parallel=settings.parallel_calls, reasoning=settings.reasoning)

    def user(
        self, skeleton: EnvSkeleton, scenario: Scenario, sample: int, replies: EpisodeReplies | None
    ) -> UserSimulator | None:
        """The user of one episode; None where the mode has none."""
        if "user" not in self.families:
            return None
        return UserSimulator(
            self._chat("user", replies),
            scenario,
            prompts=self._prompts,
            sample=sample,
            language=skeleton.origin.language,
            slips=self._settings.user_slips,
        )

    def instructed_user(
        self, instructions: UserInstructions, sample: int, replies: EpisodeReplies | None
    ) -> UserSimulator:
        """The user of one episode of a benchmark."""
        return UserSimulator(
            self._chat("user", replies),
            instructions,
            prompts=self._prompts,
            sample=sample,
            slips=self._settings.user_slips,
        )

    def _chat(self, family: Family, replies: EpisodeReplies | None) -> ChatModel:
        if self._models is None:
            needs = (
                "the model agent needs a model" if family == "agent" else "a conversation needs a model for its user"
            )
            raise UsageError(f"{needs}; name one with --model")
        model = self._models.chat(family)
        return model if replies is None else replies.model(model)
