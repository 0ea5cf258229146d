"""`TextDialect`: a dialect in which tools, calls and results are text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import resources
from typing import ClassVar

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from envscaler.agents.dialects.dialect import NO_REPLY, DialectName, Memory
from envscaler.agents.dialects.lenient_json import json_text
from envscaler.agents.dialects.reply_reader import ReplyReader
from envscaler.agents.dialects.shape import Tools
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec
from envscaler.state import text_digest


class TextDialect(ReplyReader):
    """Its law: `parse(text_of(m)) == m` for every message that it can write."""

    sends_tools: ClassVar[bool] = False
    sends_reasoning: ClassVar[bool] = False
    separator: ClassVar[str] = "\n"
    """Between what is said and the calls."""

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

    @abstractmethod
    def calls_text(self, calls: Sequence[ToolCall], tools: Tools) -> str:
        """Calls as the model writes them; malformed ones as it had written them."""

    @abstractmethod
    def results_text(self, results: Sequence[ToolMessage]) -> str:
        """The results of one turn's calls, as the model is shown them."""


def one_by_one(calls: Sequence[ToolCall], write: Callable[[ToolCall], str], between: str = "\n") -> str:
    """Calls of which each is written by itself; malformed ones as the model had written them."""
    return between.join(call.malformed if call.malformed is not None else write(call) for call in calls)


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
