"""`Role`: a prompt file with typed inputs and a typed reply. `ROLES` lists every role of the paper, and those of the
staged scaffold.

A prompt file is a Jinja2 template in two parts: the system message, a line `=== user ===`, the user message.
What is common to many calls stands first, so that prompt caches of servers hold it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from envscaler.errors import UsageError
from envscaler.messages import Message, SystemMessage, UserMessage
from envscaler.record import Record
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.state import encode, text_digest

ReplyT = TypeVar("ReplyT", bound=Record)

Family = Literal["builder", "tester", "checker", "scenario_writer", "agent", "user"]
"""Families of roles that can be given a model of their own."""

FAMILIES: tuple[Family, ...] = ("builder", "tester", "checker", "scenario_writer", "agent", "user")

USER_MARK = "=== user ==="

_MARK_LINE = re.compile(rf"^{re.escape(USER_MARK)}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Role(Generic[ReplyT]):
    """One role."""

    name: str
    """Also the stem of its prompt file."""
    family: Family
    stage: str
    """Stage of the pipeline that its tokens are counted for."""
    inputs: type[Record]
    reply: type[ReplyT]
    form: Literal["json", "code", "blocks", "text"] = "json"
    """All but `json` are not wrapped in JSON: an unescaped quote would end the string. `code` is one program that
    parses, `blocks` are all blocks of Python, whether they parse or not."""


FILTER_TASK = Role("filter_task", "builder", "discover", t.FilterTaskInputs, t.FilterTaskReply)
INFER_ENVIRONMENT = Role("infer_environment", "builder", "discover", t.InferEnvironmentInputs, t.InferEnvironmentReply)
PLAN_STATE = Role("plan_state", "builder", "design", t.PlanStateInputs, t.PlanStateReply)
PLAN_TOOLS = Role("plan_tools", "builder", "design", t.PlanToolsInputs, t.PlanToolsReply)
NAME_ENTITIES = Role("name_entities", "builder", "design", t.PlanStateInputs, s.NameEntitiesReply)
DESCRIBE_ENTITIES = Role("describe_entities", "builder", "design", s.DescribeEntitiesInputs, s.DescribeEntitiesReply)
LIST_TOOLS = Role("list_tools", "builder", "design", s.ListToolsInputs, s.ListToolsReply)
WRITE_CLASS = Role("write_class", "builder", "program", t.WriteClassInputs, t.CodeReply, "code")
WRITE_METHOD = Role("write_method", "builder", "program", t.WriteMethodInputs, t.CodeReply, "code")
WRITE_METHODS = Role("write_methods", "builder", "program", t.WriteMethodsInputs, t.CodeBlocksReply, "blocks")
WRITE_TOOL = Role("write_tool", "builder", "program", s.WriteToolInputs, t.CodeReply, "code")
WRITE_STATE = Role("write_state", "scenario_writer", "state", t.WriteStateInputs, t.WriteStateReply)
WRITE_RECORDS = Role("write_records", "scenario_writer", "state", s.WriteRecordsInputs, s.WriteRecordsReply)
TEST_CALL = Role("test_call", "tester", "assess", t.TestCallInputs, t.TestCallReply)
JUDGE_CALL = Role("judge_call", "checker", "assess", t.JudgeCallInputs, t.JudgeCallReply)
WRITE_TASK = Role("write_task", "scenario_writer", "scenarios", t.WriteTaskInputs, t.WriteTaskReply)
WRITE_CHECKLIST = Role("write_checklist", "scenario_writer", "scenarios", t.WriteChecklistInputs, t.WriteChecklistReply)
WRITE_CHECK = Role("write_check", "scenario_writer", "scenarios", t.WriteCheckInputs, t.CodeReply, "code")
WRITE_CHECKS = Role("write_checks", "scenario_writer", "scenarios", t.WriteChecksInputs, t.CodeBlocksReply, "blocks")
AGENT_TURN = Role("agent_turn", "agent", "rollout", t.AgentTurnInputs, t.TextReply, "text")
USER_TURN = Role("user_turn", "user", "rollout", t.UserTurnInputs, t.TextReply, "text")
PLAY_USER = Role("play_user", "user", "rollout", t.PlayUserInputs, t.TextReply, "text")

ROLES: tuple[Role[Any], ...] = (
    FILTER_TASK,
    INFER_ENVIRONMENT,
    PLAN_STATE,
    PLAN_TOOLS,
    NAME_ENTITIES,
    DESCRIBE_ENTITIES,
    LIST_TOOLS,
    WRITE_CLASS,
    WRITE_METHOD,
    WRITE_METHODS,
    WRITE_TOOL,
    WRITE_STATE,
    WRITE_RECORDS,
    TEST_CALL,
    JUDGE_CALL,
    WRITE_TASK,
    WRITE_CHECKLIST,
    WRITE_CHECK,
    WRITE_CHECKS,
    AGENT_TURN,
    USER_TURN,
    PLAY_USER,
)


class Prompts:
    """The prompt files in force: those of the package, replaced by those of a folder of the user's."""

    def __init__(self, folder: Path | None = None) -> None:
        """
        Raises:
            UsageError: if `folder` is missing or holds a file that is no prompt of ours or cannot be read as one.
        """
        self._replaced: dict[str, str] = {}
        if folder is not None:
            if not folder.is_dir():
                raise UsageError(f"--prompts {folder}: no such folder; give a folder with files like plan_tools.md")
            known = {role.name for role in ROLES}
            for path in sorted(folder.glob("*.md")):
                if path.stem not in known:
                    raise UsageError(f"{path}: no role has that name; roles are {', '.join(sorted(known))}")
                try:
                    self._replaced[path.stem] = path.read_text(encoding="utf-8")
                    _parts(self._replaced[path.stem])
                except (OSError, UnicodeDecodeError, TemplateError) as fault:
                    raise UsageError(f"{path}: cannot be used as a prompt: {fault}") from fault

    def text(self, role: Role[Any]) -> str:
        """The text of a role's prompt file."""
        return self._replaced.get(role.name) or _packaged(role.name)

    def digest(self, role: Role[Any]) -> str:
        """Digest of the prompt file in force."""
        return text_digest(self.text(role))

    def render(self, role: Role[Any], inputs: Record) -> tuple[Message, ...]:
        """The messages of one request.

        Raises:
            UsageError: if a prompt file of the user's does not render.
        """
        values = {name: getattr(inputs, name) for name in type(inputs).model_fields}
        try:
            rendered = [part.render(values).strip() for part in _parts(self.text(role))]
        except (TemplateError, TypeError, ValueError) as fault:
            raise UsageError(f"prompt {role.name}.md does not render: {fault}") from fault
        messages: list[Message] = []
        if rendered[0]:
            messages.append(SystemMessage(content=rendered[0]))
        if rendered[1]:
            messages.append(UserMessage(content=rendered[1]))
        return tuple(messages)


@cache
def _packaged(name: str) -> str:
    return resources.files("envscaler.roles").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def _as_json(value: Any) -> str:
    if isinstance(value, Record):
        value = value.model_dump(mode="json", exclude_none=True)
    elif isinstance(value, tuple):
        value = [
            part.model_dump(mode="json", exclude_none=True) if isinstance(part, Record) else part for part in value
        ]
    return encode(value).decode()


class _PromptEnvironment(ImmutableSandboxedEnvironment):
    """Lets templates read the fields of records without a look at each value, which is most of what rendering takes."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return (isinstance(obj, Record) and attr in type(obj).model_fields) or super().is_safe_attribute(
            obj, attr, value
        )


# A prompt folder may come from somebody else: its templates must not reach Python through an attribute.
_JINJA = _PromptEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
_JINJA.filters["json"] = _as_json


@cache
def _parts(text: str) -> tuple[Template, Template]:
    """The system part and the user part of a prompt file."""
    mark = _MARK_LINE.search(text)
    if mark is None:
        raise TemplateError(f"it has no line {USER_MARK!r} between the system part and the user part")
    return _JINJA.from_string(text[: mark.start()]), _JINJA.from_string(text[mark.end() :])
