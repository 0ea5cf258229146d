"""`BenchWorld`: one episode of a benchmark's task, carried out by the benchmark's own code in a session of its own.

What is said, which tools there are, and what a call does is answered by the worker. Where it has instructions for a
simulated user in place of the user's words, that user is a model of the run, and what it does itself is carried out by
the worker too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from envscaler.agents import Briefing, UserInstructions, UserSimulator, UserTurn
from envscaler.bench.crew import Crew, Session, SessionLost
from envscaler.bench.tasks import BenchTask
from envscaler.env.observation import error_text, unknown_tool_text
from envscaler.errors import ReplyError, WorkerLost
from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from envscaler.roles.role import PLAY_USER
from envscaler.rollout.world import Identity, Opening, Score, TurnRules
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import CheckResult, Mode, StopReason, Verdict

if TYPE_CHECKING:
    from envscaler.bench.installation import Installation

CALL_S = 30.0
"""Time that one tool call may take; one that takes longer is answered by an error."""
SCORE_S = 300.0
_TRIES = 2
_DEEDS = 25
"""Calls of a simulated user's own at most before it says something."""
OFFICIAL = "official"
"""Name of the benchmark's own score."""
PART = "part."
"""What names of scores begin with that the official one is made of."""
VIOLATION = "violation."
"""What names of counted violations begin with."""
RECORDED = "recorded."
"""What names of counted failures of the recorded solution begin with."""


@dataclass
class _Event:
    """What was asked of a session and changes what it answers later."""

    question: dict[str, Any]
    carried_out: bool = True
    """Whether it is asked again where a session is made anew; only told to whoever judges otherwise."""

    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def told(self) -> dict[str, Any]:
        answer = {name: value for name, value in self.answer.items() if name != "tools"}
        return {**self.question, "carried_out": self.carried_out, "answer": answer}


class BenchWorld:
    """Plays one task.

    A call that takes too long, or ends its session twice, leaves no trace: the session is made anew from what was asked
    before, and the agent is told of an error. A session that is lost otherwise is infrastructure.
    """

    def __init__(
        self,
        benchmark: str,
        version: str,
        task: BenchTask,
        crew: Crew,
        *,
        rules: TurnRules,
        options: Mapping[str, str],
        mode: Mode = "non-conversation",
        user: Callable[[UserInstructions], UserSimulator] | None = None,
        sample: int = 0,
        agent_seed: int = 0,
        call_s: float = CALL_S,
    ) -> None:
        """
        Args:
            version: pins the benchmark's code.
            options: what the worker is told of how the task is to be played.
            user: makes the simulated user; needed where the worker has instructions for one.
            agent_seed: seed of agents that draw.
            call_s: time that one tool call may take.
        """
        self._call_s = call_s
        self._task = task
        self._crew = crew
        self._make_user = user
        self.user: UserSimulator | None = None
        self._options = dict(options)
        self._session: Session | None = None
        self._events: list[_Event] = []
        self._tools: list[tuple[ToolSpec, ...]] = [()]
        self._violations: Counter[str] = Counter()
        self._replies = 0
        self.turn_rules = rules
        self.state_digest: str | None = None
        self.over: StopReason | None = None
        self.briefing = Briefing(
            mode=mode,
            sample=sample,
            seed=agent_seed,
            task=f"{benchmark} {task.digest}",
            gold=task.gold,
            gold_said=task.gold_said,
        )
        self.identity = Identity(
            world=benchmark,
            env_id=task.split,
            scenario_id=task.id,
            env_digest=version,
            scenario_digest=task.digest,
            seed=0,
        )

    async def open(self) -> Opening:
        told = await self._opened()
        self._tools = [_tools(told)]
        said = told["user"]
        if said is None:
            assert self._make_user is not None, "nobody is there to play the user"
            self.user = self._make_user(_instructions(told["instructions"]))
            said = (await self._spoken(self.user, ())).text
        return Opening(system_prompt=told["system"], user=UserMessage(content=said))

    def tools(self, turn: int) -> tuple[ToolSpec, ...]:
        # They are asked for before each reply: so the calls of one are told from those of the next.
        self._replies += 1
        return self._tools[min(turn, len(self._tools) - 1)]

    async def call(self, call: ToolCall) -> ToolMessage:
        if self.over is not None:
            text = error_text("the conversation has ended; nothing was carried out")
            return ToolMessage(content=text, tool_call_id=call.id or "", name=call.name, is_error=True, fault="raised")
        return await self._carried_out(call, {})

    async def _carried_out(self, call: ToolCall, who: Mapping[str, str]) -> ToolMessage:
        event = _Event({"do": "call", "name": call.name, "arguments": call.arguments, "reply": self._replies, **who})
        content, is_error, fault = "", True, None
        try:
            answer = await self._made(event)
        except SessionLost as lost:
            event.carried_out = False
            fault = "timeout" if lost.late else "killed"
            why = f"took longer than {self._call_s:.0f} s" if lost.late else "ended the process that it ran in"
            content = error_text(f"{call.name} {why}; nothing was changed")
        else:
            event.answer = answer
            if (violation := answer.get("violation")) is not None:
                self._violations[violation] += 1
            if "refused" in answer:
                event.carried_out = False
                content = error_text(unknown_tool_text(call.name, answer["known"]))
            else:
                content, is_error = answer["content"], answer["raised"]
                fault = "raised" if is_error else None
                self.state_digest = answer["digest"]
            if answer.get("over"):
                self.over = StopReason(answer["over"])
        self._events.append(event)
        return ToolMessage(content=content, tool_call_id=call.id or "", name=call.name, is_error=is_error, fault=fault)

    async def next_turn(self, conversation: Sequence[Message]) -> UserMessage | StopReason:
        event = _Event({"do": "message", "text": conversation[-1].content, "beside": _beside_calls(conversation)})
        answer = event.answer = await self._asked(event)
        self._events.append(event)
        if self.user is not None and not answer.get("over"):
            return await self._answered(self.user, conversation)
        if answer["user"] is None:
            self.over = StopReason.FINISHED
            return self.over
        self._tools.append(_tools(answer))
        return UserMessage(content=answer["user"])

    async def _answered(self, user: UserSimulator, conversation: Sequence[Message]) -> UserMessage | StopReason:
        turn = await self._spoken(user, conversation)
        if turn.stopped or not turn.text:
            self.over = StopReason.USER_STOPPED
            return self.over
        self._tools.append(self._tools[-1])
        return UserMessage(content=turn.text)

    async def _spoken(self, user: UserSimulator, conversation: Sequence[Message]) -> UserTurn:
        """What the simulated user says, after all that it does before."""
        for _ in range(_DEEDS):
            turn = await user.speak(conversation)
            if turn.call is None:
                self._events.append(_Event({"do": "spoken", "text": turn.text}, carried_out=False))
                return turn
            user.saw(conversation, await self._carried_out(turn.call, {"by": "user"}))
        raise ReplyError(f"{PLAY_USER.name}: the user made {_DEEDS} calls and said nothing")

    async def score(self) -> Score:
        # In a session of its own: what an episode did to the benchmark's process must not touch its score.
        session = await self._crew.open()
        try:
            events = [event.told for event in self._events]
            answer = await session.ask(
                "score",
                limit_s=SCORE_S,
                task=self._task.id,
                events=events,
                options=self._options,
                over=self.over,
            )
        finally:
            await session.close()
        passed = bool(answer["passed"])
        reason = None if passed else ": ".join(filter(None, (answer["kind"], answer["reason"])))
        said = f"official checker: {reason}" if reason else "official checker"
        check = CheckResult(description=said, kind="goal", passed=passed)
        scores = {OFFICIAL: float(passed)}
        scores |= {f"{PART}{name}": float(value) for name, value in answer.get("parts", {}).items()}
        scores |= {f"{VIOLATION}{kind}": float(number) for kind, number in sorted(self._violations.items())}
        scores |= {f"{RECORDED}{kind}": float(number) for kind, number in answer["recorded"].items()}
        return Score(verdict=Verdict(checks=(check,)), scores=scores)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _opened(self) -> dict[str, Any]:
        await self.close()
        self._session = await self._crew.open()
        told = await self._session.ask("open", task=self._task.id, options=self._options)
        self.state_digest = told["digest"]
        return told

    async def _asked(self, event: _Event) -> dict[str, Any]:
        """The answer to what never fails by the agent's fault; the session is made anew once if it is lost."""
        try:
            return await self._ask(event)
        except SessionLost:
            await self._rebuild()
        try:
            return await self._ask(event)
        except SessionLost as lost:
            raise WorkerLost(str(lost)) from lost

    async def _made(self, event: _Event) -> dict[str, Any]:
        """The answer to a call.

        Raises:
            SessionLost: if it took too long, or its session ended in it twice; there is a new one then.
        """
        for left in reversed(range(_TRIES)):
            try:
                return await self._ask(event)
            except SessionLost as lost:
                await self._rebuild()
                if lost.late or not left:
                    raise
        raise AssertionError

    async def _rebuild(self) -> None:
        """Make the session anew from what was asked in it."""
        try:
            await self._opened()
            for event in self._events:
                if event.carried_out:
                    answer = await self._ask(event)
                    self.state_digest = answer.get("digest", self.state_digest)
        except SessionLost as lost:
            raise WorkerLost(f"a session of the benchmark could not be made anew: {lost}") from lost

    async def _ask(self, event: _Event) -> dict[str, Any]:
        assert self._session is not None, "nothing is open"
        question = dict(event.question)
        return await self._session.ask(question.pop("do"), limit_s=self._call_s, **question)


def rules_of(installation: Installation) -> TurnRules:
    """What ends a turn in a benchmark."""
    # To somebody who answers, an empty message is no message.
    return TurnRules(steps=installation.installed.steps, empty_replies=not installation.benchmark.conversation)


def _tools(told: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    # Whether a tool only looks is not said anywhere.
    return tuple(ToolSpec(**tool, effect="update") for tool in told["tools"])


def _instructions(told: Mapping[str, Any]) -> UserInstructions:
    return UserInstructions(
        text=told["text"],
        greeting=told.get("greeting", ""),
        tools=_tools(told) if "tools" in told else (),
        clock=told.get("clock", ""),
        language=told.get("language", "en"),
    )


def _beside_calls(conversation: Sequence[Message]) -> list[str]:
    """What the agent wrote beside calls since the user's last message."""
    texts: list[str] = []
    for message in reversed(conversation):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage) and message.tool_calls and message.content:
            texts.insert(0, message.content)
    return texts
