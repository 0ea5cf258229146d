"""What a dialect is: how a model is told of its tools, how calls and results are written to it, and how its replies are
read.

Whether a slip is put right, answered by an error or ends the episode is `rollout.play`'s business: a reading says what
can be put right, and marks it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import ClassVar, Literal, Protocol, TypeVar

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from envscaler.agents.dialects.bare import bare_calls
from envscaler.agents.dialects.foreign import foreign_calls
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.made_calls import made_call
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools
from envscaler.agents.dialects.slips import LIKELY, slip
from envscaler.agents.dialects.thinking import split_thinking
from envscaler.llm.chat import Completion, FinishReason
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec
from envscaler.state import text_digest
from envscaler.trajectory import Slip

DialectName = Literal["native", "hermes", "qwen3.5", "llama", "mistral", "react", "schema"]
"""`native` is the endpoint's own function calling; in the others calls are text."""

Kept = Literal["none", "turn", "all"]
"""Which reasoning of earlier replies a model is shown again: none, that since the last user message, or all."""

MadeT = TypeVar("MadeT")

NO_REPLY = "(no reply)"
"""What stands for an empty message of the model, which many servers refuse."""


@dataclass(frozen=True)
class Reading:
    """What a reply comes to."""

    message: AssistantMessage
    """As it is recorded. A call that cannot be carried out is `malformed` and has its text."""
    slips: tuple[Slip, ...] = ()
    fault: str | None = None
    """Kind of the first slip that leaves nothing to be carried out; None when all calls, or the answer, are good."""


class Memory:
    """What was rendered for one episode: a conversation only grows, and is rendered again at each of its turns."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[tuple[object, ...], object]] = {}

    def kept(self, sources: tuple[object, ...], key: object, make: Callable[[], MadeT]) -> MadeT:
        """What `make` gives, made once for these very objects."""
        place = (*map(id, sources), key)
        held = self._made.get(place)
        # Kept with what it was made of, so that an id is never another object's.
        if held is None:
            held = self._made[place] = (sources, make())
        return held[1]  # type: ignore[return-value]


class Dialect(Protocol):
    """How one family of models is spoken to."""

    @property
    def name(self) -> DialectName: ...

    @property
    def form(self) -> str:
        """One sentence that tells a model how a call is written."""
        ...

    @property
    def sends_tools(self) -> bool:
        """Whether tools go to the endpoint as tools."""
        ...

    @property
    def sends_reasoning(self) -> bool:
        """Whether the endpoint is sent `reasoning_content`."""
        ...

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which the endpoint is asked to stop."""
        ...

    def tools_text(self, tools: Sequence[ToolSpec]) -> str:
        """What the system prompt says of the tools; empty where the endpoint says it."""
        ...

    def system_text(self, prompt: str, tools: Sequence[ToolSpec]) -> str:
        """The whole system message for a system prompt and tools, the same bytes for the same input."""
        ...

    def response_schema(self, tools: Sequence[ToolSpec]) -> JsonSchema | None:
        """The schema that a reply is held to; None where there is none."""
        ...

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], memory: Memory | None = None
    ) -> tuple[Message, ...]:
        """A conversation as the endpoint is sent it.

        Args:
            memory: of the episode; what was rendered once is then the same object again.
        """
        ...

    def read(self, completion: Completion, tools: Sequence[ToolSpec]) -> Reading:
        """What a completion comes to."""
        ...


class TextDialect(ABC):
    """A dialect in which calls are text. Its law: `parse(text_of(m)) == m` for every message that it can write."""

    name: ClassVar[DialectName]
    form: ClassVar[str]
    keys: ClassVar[Keys] = Keys()
    """Under what a call without its wrapper is expected to have name and arguments."""
    sends_tools: ClassVar[bool] = False
    sends_reasoning: ClassVar[bool] = False
    stops: ClassVar[tuple[str, ...]] = ()
    inventions: ClassVar[re.Pattern[str]] = re.compile(
        r"<\|im_start\|>|<\|start_header_id\|>|<tool_response>|\[TOOL_RESULTS\]"
    )
    """Where a reply goes on with what only others can say."""
    default_reasoning: ClassVar[Kept] = "none"

    def __init__(self, *, parallel: bool = True, reasoning: Kept | None = None) -> None:
        """
        Args:
            parallel: whether the model is told that it may make several calls at once.
            reasoning: which reasoning it is shown again; None: what its family is used to.
        """
        self.parallel = parallel
        self.reasoning: Kept = reasoning if reasoning is not None else self.default_reasoning

    # -- writing --------------------------------------------------------------------------------------------

    def tools_text(self, tools: Sequence[ToolSpec]) -> str:
        listed = "\n".join(json_text(tool.to_openai()) for tool in tools)
        return _template(self.name).render(tools=listed, parallel=self.parallel)

    def system_text(self, prompt: str, tools: Sequence[ToolSpec]) -> str:
        return f"{prompt}\n\n{self.tools_text(tools)}" if prompt else self.tools_text(tools)

    def response_schema(self, tools: Sequence[ToolSpec]) -> JsonSchema | None:
        return None

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], memory: Memory | None = None
    ) -> tuple[Message, ...]:
        memory = memory if memory is not None else Memory()
        told = max((index for index, message in enumerate(messages) if isinstance(message, UserMessage)), default=-1)
        by_name = {tool.name: tool for tool in tools}
        prompts: list[str] = []
        out: list[Message] = []
        results: list[ToolMessage] = []

        def end_results() -> None:
            if results:
                shown = tuple(results)
                out.append(memory.kept((shown[0],), len(shown), lambda: UserMessage(content=self.results_text(shown))))
                results.clear()

        for index, message in enumerate(messages):
            if isinstance(message, ToolMessage):
                results.append(message)
                continue
            end_results()
            if isinstance(message, SystemMessage):
                prompts.append(message.content)
            elif isinstance(message, AssistantMessage):
                kept = message.reasoning is None or self.shows(index, told)
                out.append(memory.kept((message,), kept, partial(self._written, message, kept, by_name)))
            else:
                out.append(message)
        end_results()
        prompt = "\n\n".join(prompts)
        system = memory.kept((tools,), prompt, lambda: SystemMessage(content=self.system_text(prompt, tools)))
        return (system, *out)

    def shows(self, index: int, told: int) -> bool:
        """Whether the reasoning of a message is shown, by its place and that of the last user message."""
        return self.reasoning == "all" or (self.reasoning == "turn" and index > told)

    def _written(self, message: AssistantMessage, kept: bool, tools: Tools) -> AssistantMessage:
        shown = message if kept else message.model_copy(update={"reasoning": None})
        return AssistantMessage(content=self.text_of(shown, tools) or NO_REPLY)

    def text_of(self, message: AssistantMessage, tools: Tools) -> str:
        """A message as the model writes it."""
        thought = f"<think>\n{message.reasoning}\n</think>\n\n" if message.reasoning else ""
        if not message.tool_calls:
            return thought + message.content
        calls = self.calls_text(message.tool_calls, tools)
        return thought + (f"{message.content}{self.separator}{calls}" if message.content else calls)

    separator: ClassVar[str] = "\n"
    """Between what is said and the calls."""

    @abstractmethod
    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        """Calls as the model writes them; malformed ones as it had written them."""

    @abstractmethod
    def results_text(self, results: Sequence[ToolMessage]) -> str:
        """The results of one turn's calls, as the model is shown them."""

    # -- reading --------------------------------------------------------------------------------------------

    def read(self, completion: Completion, tools: Sequence[ToolSpec]) -> Reading:
        message = completion.message
        if message.tool_calls and completion.finish_reason != "length":
            # Some servers read calls out of text though no tools were sent.
            by_name = {tool.name: tool for tool in tools}
            attempts = [made_call(call, by_name) for call in message.tool_calls]
            found = [slip("native_call", message.tool_calls[0].name)]
            return assembled(message.content, message.reasoning, attempts, by_name, found)
        if completion.text is not None:
            return self.parse(completion.text, tools, completion.finish_reason)
        reading = self.parse(message.content, tools, completion.finish_reason)
        thoughts = [part for part in (message.reasoning, reading.message.reasoning) if part]
        joined = reading.message.model_copy(update={"reasoning": "\n".join(thoughts) or None})
        return Reading(joined, reading.slips, reading.fault)

    def parse(self, text: str, tools: Sequence[ToolSpec], finish: FinishReason = "stop") -> Reading:
        """What a reply's text comes to.

        Args:
            finish: why it ended; one that was cut off is never carried out.
        """
        by_name = {tool.name: tool for tool in tools}
        thought = split_thinking(text, lambda whole, place: self._is_inside(whole, place, by_name))
        slips: list[Slip] = []
        if thought.reasoning and any(stretch.attempts for stretch in self._all_calls(thought.reasoning, by_name)):
            slips.append(slip("drafted_call", repaired=False))
        if finish == "length":
            said = AssistantMessage(content=thought.rest.strip(), reasoning=thought.reasoning)
            return Reading(said, (*slips, slip("cut_reply", repaired=False)), "cut_reply")
        if not thought.rest.strip():
            kind = "empty_reply" if thought.closed else "unclosed_thinking"
            return faulty(kind, "", thought.reasoning, slips)
        return self._read_body(thought.rest, thought.reasoning, by_name, slips)

    @abstractmethod
    def find(self, text: str, tools: Tools) -> list[Found]:
        """The calls that have this dialect's form, more or less."""

    def strays(self, text: str, tools: Tools) -> list[Found]:
        """The calls of a text in which none has this dialect's form."""
        return foreign_calls(text, tools, self.name) or bare_calls(text, tools, self.keys)

    def answered(self, text: str, reasoning: str | None, slips: list[Slip]) -> Reading:
        """A reply without calls."""
        return Reading(AssistantMessage(content=text.strip(), reasoning=reasoning), tuple(slips))

    def said_before(self, text: str, reasoning: str | None, slips: list[Slip]) -> tuple[str, str | None]:
        """Content and reasoning of a reply with calls, by what stands before them."""
        return text.strip(), reasoning

    def after_calls(self, rest: str) -> str | None:
        """The kind of slip that text after calls is."""
        return "text_after_call"

    def _all_calls(self, text: str, tools: Tools) -> list[Found]:
        return self.find(text, tools) or self.strays(text, tools)

    def _is_inside(self, text: str, place: int, tools: Tools) -> bool:
        return any(stretch.start < place < stretch.end for stretch in self._all_calls(text, tools))

    def _read_body(self, body: str, reasoning: str | None, tools: Tools, slips: list[Slip]) -> Reading:
        found, rest, invented = self._kept(body, self._all_calls(body, tools))
        if invented:
            slips.append(slip("invented_turn", invented))
        if not found:
            answer, leaked = without_tokens(rest)
            if leaked and not invented:
                slips.append(slip("leaked_token", leaked))
            return self.answered(answer, reasoning, slips) if answer else faulty("empty_reply", "", reasoning, slips)
        content, reasoning = self.said_before(body[: found[0].start], reasoning, slips)
        after, leaked = without_tokens(rest)
        if leaked and not invented:
            slips.append(slip("leaked_token", leaked))
        attempts = [attempt for stretch in found for attempt in stretch.attempts]
        told = {kind for attempt in attempts for kind in attempt.slips}
        if after and "call_in_prose" not in told and (kind := self.after_calls(after)) is not None:
            if kind in LIKELY:
                attempts[-1].slips.append(kind)
            else:
                slips.append(slip(kind, after))
        return assembled(content, reasoning, attempts, tools, slips)

    def _kept(self, body: str, found: list[Found]) -> tuple[list[Found], str, str]:
        """The calls before anything invented, the text between and after them, and what was invented."""
        kept: list[Found] = []
        between: list[str] = []
        position = 0
        for stretch in found:
            gap = body[position : stretch.start]
            if invention := self.inventions.search(gap):
                before = gap[: invention.start()]
                return kept, "".join([*between, before]), body[position + invention.start() :]
            if kept and gap.strip(" \t\n,;"):
                between.append(gap)
            kept.append(stretch)
            position = stretch.end
        rest = body[position:]
        if invention := self.inventions.search(rest):
            return kept, "".join([*between, rest[: invention.start()]]), rest[invention.start() :]
        return kept, "".join([*between, rest]), ""


_TOKENS = re.compile(
    r"(?:\s*(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end)\|>|</s>|<｜end▁of▁sentence｜>))+\s*\Z"
)


def without_tokens(text: str) -> tuple[str, str]:
    """The text without control tokens at its end, and those."""
    tokens = _TOKENS.search(text)
    return (text[: tokens.start()].strip(), tokens.group()) if tokens else (text.strip(), "")


def faulty(kind: str, text: str, reasoning: str | None, slips: Sequence[Slip]) -> Reading:
    """The reading of a reply in which there is nothing to carry out or to say."""
    message = AssistantMessage(reasoning=reasoning, tool_calls=(ToolCall(name="", malformed=text.strip()),))
    return Reading(message, (*slips, slip(kind, text, repaired=False)), kind)


def assembled(
    content: str, reasoning: str | None, attempts: Sequence[Attempt], tools: Tools, slips: Sequence[Slip]
) -> Reading:
    """The reading of a reply with calls. What is only likely meant is carried out where it changes nothing."""
    calls: list[ToolCall] = []
    all_slips = list(slips)
    fault: str | None = None
    for attempt in attempts:
        broken = attempt.fault
        doubtful = next((kind for kind in attempt.slips if kind in LIKELY), None)
        tool = tools.get(attempt.name)
        if broken is None and doubtful is not None and (tool is None or tool.effect != "query"):
            broken = doubtful
        if broken is None:
            calls.append(ToolCall(name=attempt.name, arguments=attempt.arguments))
            all_slips += [slip(kind, attempt.text) for kind in attempt.slips]
        else:
            calls.append(ToolCall(name=attempt.name, malformed=attempt.text))
            all_slips += [slip(kind, attempt.text) for kind in attempt.slips if kind not in LIKELY and kind != broken]
            all_slips.append(slip(broken, attempt.text, repaired=False))
            fault = fault or broken
    message = AssistantMessage(content=content, reasoning=reasoning, tool_calls=tuple(calls))
    unique = {(found.kind, found.repaired): found for found in reversed(all_slips)}
    return Reading(message, tuple(reversed(unique.values())), fault)


def prompt_file_digest(name: DialectName) -> str | None:
    """Digest of the prompt file of a dialect, for run records; None for `native`, which has none."""
    return None if name == "native" else text_digest(_prompt_file(name))


@cache
def _prompt_file(name: DialectName) -> str:
    folder = resources.files("envscaler.agents.dialects").joinpath("prompts")
    return folder.joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip()


@cache
def _template(name: DialectName) -> Template:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_prompt_file(name))
