"""Typed inputs and replies of every role of the paper.

A role's inputs hold all that its prompt may show and all that the offline model needs; nothing else reaches a
model. `seed` makes draws of the offline model repeatable and tells apart requests that are otherwise equal.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import Field

from envscaler.assessment import CallVerdict, CaseType
from envscaler.messages import Message, ToolCall
from envscaler.record import JsonSchema, Record
from envscaler.scenario import SolutionCall, UserProfile
from envscaler.skeleton import Entity, EnvDescription, Rule, ToolSpec
from envscaler.state import Change, JsonValue, State


def _line(most: int) -> Any:
    """A text that decoding held to the schema ends after so many characters: small models repeat themselves for ever.

    A longer one from an endpoint that does not hold to the schema is as good.
    """
    return Field(json_schema_extra={"pattern": f"^[^\\n]{{1,{most}}}$"})


# -- 3.1 discovery ------------------------------------------------------------------------------------------


class FilterTaskInputs(Record):
    task: str


class FilterTaskReply(Record):
    """P_filter: does the task live in a stateful, domain-specific environment?"""

    reason: str = _line(400)
    stateful: bool
    """Needs persistent state, depends on it, belongs to a domain, and can be acted on."""


class InferEnvironmentInputs(Record):
    task: str
    language: str
    """Language the description is to be written in, an ISO 639-1 code."""


class InferEnvironmentReply(Record):
    """P_infer: the environment behind the task."""

    summary: str = _line(100)
    introduction: str = _line(1200)
    usefulness: int = Field(ge=1, le=10)
    modelability: int = Field(ge=1, le=10)


# -- 3.2 construction ---------------------------------------------------------------------------------------


class PlanStateInputs(Record):
    description: EnvDescription
    seed_tasks: tuple[str, ...] = ()
    """Task texts that the environment has to serve, the first one first; empty when it began from a description."""
    language: str = "en"


class PlanStateReply(Record):
    """P_plan^state: E_state and E_rule."""

    entities: tuple[Entity, ...] = Field(min_length=1)
    rules: tuple[Rule, ...] = ()


class PlanToolsInputs(PlanStateInputs):
    entities: tuple[Entity, ...]
    rules: tuple[Rule, ...]


class PlanToolsReply(Record):
    """P_plan^tool: Σ_tool, each a query or an update."""

    tools: tuple[ToolSpec, ...] = Field(min_length=1)


class WriteClassInputs(PlanToolsInputs):
    tools: tuple[ToolSpec, ...]


class CodeReply(Record):
    """A reply that is Python source, given in a code fence."""

    source: str


class CodeBlocksReply(Record):
    """A reply that holds Python source in one or more code fences."""

    blocks: tuple[str, ...] = Field(min_length=1)


class WriteMethodInputs(WriteClassInputs):
    class_source: str
    """The state class, without methods other than `__init__`."""
    class_name: str
    tool: ToolSpec
    """The tool to write as a method of that class."""
    fault: str | None = None
    """What was wrong with the method written before (traceback, failing call …); None at first."""
    previous: str | None = None
    """Source of the method that had the fault."""


class MethodQuestion(Record):
    """A tool to write as a method; the fields are those of `WriteMethodInputs`."""

    tool: ToolSpec
    fault: str | None = None
    previous: str | None = None


class WriteMethodsInputs(WriteClassInputs):
    """Several methods at once."""

    class_source: str
    class_name: str
    questions: tuple[MethodQuestion, ...] = Field(min_length=1)


# -- 3.3 assessment -----------------------------------------------------------------------------------------


class EnvironmentInputs(Record):
    """What every role knows of a finished environment."""

    description: EnvDescription
    seed_tasks: tuple[str, ...] = ()
    language: str = "en"
    entities: tuple[Entity, ...]
    rules: tuple[Rule, ...]
    tools: tuple[ToolSpec, ...]


class Wanted(Record):
    """A scenario that is written anew, harder or easier."""

    direction: Literal["harder", "easier"]
    task: str
    """Its task."""
    state: State
    """Its initial state."""
    calls: int | None = None
    """Calls of its shortest known solution; None: unknown."""


class WriteStateInputs(EnvironmentInputs):
    source: str
    """The program that the state is for."""
    purpose: Literal["assessment", "scenario"]
    index: int
    """Which of the states of this environment it is."""
    seed: int
    wanted: Wanted | None = None
    """What it is a harder or easier version of; None: it is one of its own."""
    fault: str | None = None
    """What was wrong with the state written before."""


class WriteStateReply(Record):
    """P_state: an initial state."""

    state: State


class TestCallInputs(EnvironmentInputs):
    """The tester sees no code (paper 3.3)."""

    __test__ = False

    state: State
    tool: ToolSpec
    """Tool whose turn it is."""
    case: CaseType
    round: int
    seed: int
    history: tuple[str, ...] = ()
    """Earlier calls of the same tool and case, as text, so that they are not made again."""


class TestCallReply(Record):
    __test__ = False

    intent: str = _line(400)
    """What the call is to find out."""
    arguments: dict[str, JsonValue]


class JudgeCallInputs(Record):
    """What the checker judges by (paper 3.3, where it sees the whole state)."""

    description: EnvDescription
    seed_tasks: tuple[str, ...] = ()
    rules: tuple[Rule, ...]
    tool: ToolSpec
    source: str
    """Source of the method that was called, with the class head."""
    call: ToolCall
    case: CaseType
    intent: str
    result: JsonValue
    error: str | None
    before: State
    after: State
    changes: tuple[Change, ...]
    shown: State
    """The part of `before` that the call has to do with."""
    left_out: dict[str, int] = {}
    """Entries that are not in it, by state key."""
    language: str = "en"


class JudgeCallReply(Record):
    reason: str = _line(600)
    verdict: CallVerdict


# -- 4 scenarios --------------------------------------------------------------------------------------------


class WriteTaskInputs(EnvironmentInputs):
    state: State
    clock: str
    """Time at which the episode starts."""
    index: int
    """Which of the scenarios of this environment it is."""
    seed: int
    earlier: tuple[str, ...] = ()
    """Tasks written before for this environment."""
    wanted: Wanted | None = None
    """What it is a harder or easier version of; None: it is one of its own."""
    fault: str | None = None


class PacedFact(Record):
    """A detail of a task that is not told before its time."""

    fact: str
    after: int = Field(ge=0)
    """The assistant's messages after which it is told at the earliest."""


class TaskProfile(Record):
    """What the simulated user knows, as a model writes it: each fact with its time, so that the two cannot disagree."""

    opening: str
    facts: tuple[str | PacedFact, ...] = ()
    persona: str = ""
    refuses: tuple[str, ...] = ()

    @property
    def told(self) -> UserProfile:
        """The same as a scenario holds it."""
        paced = [one if isinstance(one, PacedFact) else PacedFact(fact=one, after=0) for one in self.facts]
        return UserProfile(
            opening=self.opening,
            facts=tuple(one.fact for one in paced),
            persona=self.persona,
            refuses=self.refuses,
            reveal=tuple(one.after for one in paced) if any(one.after for one in paced) else None,
        )


class WriteTaskReply(Record):
    """P_task: the task text, and the plan it was made from."""

    plan: tuple[SolutionCall, ...] = ()
    """Calls that carry the task out, with bindings; empty when the writer knows none."""
    alternatives: tuple[tuple[SolutionCall, ...], ...] = ()
    """Other plans that are as right: goals in another order, other queries on the way."""
    task: str
    user_profile: TaskProfile | None = None


class WriteChecklistInputs(EnvironmentInputs):
    state: State
    clock: str
    task: str
    index: int
    seed: int
    wanted: Wanted | None = None
    """As in `WriteTaskInputs`. Only `offline` reads it, which makes its draft again; no prompt shows it."""


class WriteChecklistReply(Record):
    """P_check: independent items, one boolean each."""

    checklist: tuple[str, ...] = Field(min_length=1)


class WriteCheckInputs(WriteChecklistInputs):
    item: str
    """The item of the checklist to write a check function for."""
    position: int
    """Its index in the checklist."""
    fault: str | None = None
    """What the function written before does wrong; None at first."""
    previous: str | None = None
    """Source of that function."""


class CheckQuestion(Record):
    """An item of the checklist to write a check function for; the fields are those of `WriteCheckInputs`."""

    item: str
    position: int
    fault: str | None = None
    previous: str | None = None

    @property
    def function(self) -> str:
        """Name of the function that answers it, where one reply answers several."""
        return f"check_{self.position + 1}"


class WriteChecksInputs(WriteChecklistInputs):
    """P_func for several items at once."""

    questions: tuple[CheckQuestion, ...] = Field(min_length=1)


# -- 5 use --------------------------------------------------------------------------------------------------


class AgentTurnInputs(Record):
    """What an agent that is not a language model may look at."""

    task: str
    solution: tuple[SolutionCall, ...] | None
    """The recorded solution. Only `offline` reads it, and run records say so; it is never sent to an endpoint."""
    conversation: tuple[Message, ...] = ()
    """All messages so far."""
    language: str = "en"


class UserTurnInputs(Record):
    """What the simulated user knows."""

    task: str
    profile: UserProfile | None
    transcript: tuple[Message, ...] = ()
    """User and assistant messages so far, without tool calls."""
    stop_token: str
    language: str = "en"


class HeardLine(Record):
    """One thing that the user of a conversation said, heard, did or saw."""

    speaker: Literal["user", "assistant", "tool"]
    """`tool`: what came of a call of the user's own."""
    text: str


class PlayUserInputs(Record):
    """What the user of a benchmark's conversation knows."""

    instructions: str
    """In the benchmark's own words."""
    greeting: str = ""
    """What the assistant says first; empty where the user begins."""
    tools: tuple[ToolSpec, ...] = ()
    """What the user can do itself."""
    transcript: tuple[HeardLine, ...] = ()
    stop_token: str
    language: str = "en"


class TextReply(Record):
    """A reply that is free text."""

    text: str


@cache
def reply_schema(reply: type[Record]) -> JsonSchema:
    """The JSON Schema of a reply type; made once, and not to be changed by who gets it."""
    return reply.model_json_schema()
