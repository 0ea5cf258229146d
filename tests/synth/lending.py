"""`LendingModel`: a fake chat model that answers every role of synthesis, for desks that lend one kind of thing.

A task "Lend a bicycle …" lives at a bicycle desk; every other task lives nowhere. Tests override single answers to see
what becomes of bad ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from envscaler.llm.chat import Completion, ModelRequest
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.roles import types as t
from envscaler.trajectory import Usage

MEMBERS = ("Ana", "Bo", "Chi", "Dov", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon")

_CLASS = '''
import copy
from typing import Any, TypedDict


class Thing(TypedDict):
    """Something to lend."""

    thing_id: str
    label: str
    status: str  # free, lent
    member_id: str | None


class Member(TypedDict):
    """Somebody who may borrow."""

    member_id: str
    name: str


class LendingDesk:
    """A desk that lends things."""

    def __init__(self, init_config: dict[str, Any] | None = None) -> None:
        config = copy.deepcopy(init_config or {})
        self.things: dict[str, Thing] = config.get("things", {})
        self.members: dict[str, Member] = config.get("members", {})
        self.next_number: int = config.get("next_number", 1)
'''

METHODS = {
    "find_things": '''
import copy
from typing import Any


def find_things(self, status: str | None = None) -> dict[str, Any]:
    """List things.

    Args:
        status: Only things with this status.
    """
    found = [copy.deepcopy(thing) for thing in self.things.values() if status in (None, thing["status"])]
    return {"success": True, "data": found}
''',
    "find_member": '''
import copy
from typing import Any


def find_member(self, name: str) -> dict[str, Any]:
    """Look a member up by name.

    Args:
        name: Name of the member.
    """
    for member in self.members.values():
        if member["name"] == name:
            return {"success": True, "data": copy.deepcopy(member)}
    return {"success": False, "error": f"There is no member named {name!r}."}
''',
    "lend_thing": '''
from typing import Any


def lend_thing(self, thing_id: str, member_id: str) -> dict[str, Any]:
    """Lend a thing.

    Args:
        thing_id: The thing.
        member_id: Who gets it.
    """
    if not isinstance(thing_id, str) or thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id!r}."}
    if not isinstance(member_id, str) or member_id not in self.members:
        return {"success": False, "error": f"There is no member {member_id!r}."}
    if self.things[thing_id]["status"] != "free":
        return {"success": False, "error": f"{thing_id} is lent."}
    self.things[thing_id].update(status="lent", member_id=member_id)
    return {"success": True, "message": f"{thing_id} was lent to {member_id}."}
''',
    "add_thing": '''
from typing import Any


def add_thing(self, label: str) -> dict[str, Any]:
    """Add a thing.

    Args:
        label: What it says.
    """
    if not isinstance(label, str) or not label:
        return {"success": False, "error": "label must be a text"}
    thing_id = f"T-{self.next_number}"
    self.next_number += 1
    self.things[thing_id] = {"thing_id": thing_id, "label": label, "status": "free", "member_id": None}
    return {"success": True, "message": f"{thing_id} was added.", "data": {"thing_id": thing_id}}
''',
}


def _attribute(name: str, type_: str = "str", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


_ENTITIES = [
    {
        "name": "Thing",
        "container": "things",
        "key": "thing_id",
        "attributes": [
            _attribute("thing_id"),
            _attribute("label"),
            _attribute("status", enum=["free", "lent"]),
            _attribute("member_id", "str | None", references="Member"),
        ],
    },
    {
        "name": "Member",
        "container": "members",
        "key": "member_id",
        "attributes": [_attribute("member_id"), _attribute("name")],
    },
    {"name": "Desk", "attributes": [_attribute("next_number", "int")]},
]


def _tool(name: str, effect: str, required: list[str], /, **properties: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"{name.replace('_', ' ').capitalize()}.",
        "effect": effect,
        "parameters": {
            "type": "object",
            "properties": {key: {"type": "string", "description": text} for key, text in properties.items()},
            "required": required,
        },
    }


_TOOLS = [
    _tool("find_things", "query", [], status="free or lent"),
    _tool("find_member", "query", ["name"], name="As written"),
    _tool("lend_thing", "update", ["thing_id", "member_id"], thing_id="Which", member_id="To whom"),
    _tool("add_thing", "update", ["label"], label="What it says"),
]


def thing_of(text: str) -> str | None:
    """What a task or description speaks of."""
    found = re.search(r"\b(?:lend an?|for every) (\w+)", text, re.IGNORECASE)
    return found.group(1).lower() if found else None


def called(name: str, /, **arguments: Any) -> AssistantMessage:
    """One tool call of an agent."""
    return AssistantMessage(tool_calls=(ToolCall(name=name, arguments=arguments),))


class LendingModel:
    """Answers by role; each answer is a method of the role's name, for tests to override."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.before_answer: Callable[[ModelRequest], Awaitable[None]] | None = None

    @property
    def name(self) -> str:
        return "lending"

    @property
    def calls(self) -> int:
        return sum(self.asked.values())

    async def complete(self, request: ModelRequest) -> Completion:
        self.asked[request.role] += 1
        if self.before_answer is not None:
            await self.before_answer(request)
        reply = getattr(self, request.role)(request.inputs)
        if isinstance(reply, AssistantMessage):
            message, text = reply, str(reply.tool_calls)
        else:
            text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
            message = AssistantMessage(content=text)
        return Completion(
            message=message,
            model=self.name,
            usage=Usage(input_tokens=len(text), output_tokens=len(request.role)),
            cost_usd=0.1,
        )

    async def aclose(self) -> None:
        return None

    def filter_task(self, inputs: t.FilterTaskInputs) -> Any:
        return {
            "reason": "lends something" if thing_of(inputs.task) else "lends nothing",
            "stateful": bool(thing_of(inputs.task)),
        }

    def infer_environment(self, inputs: t.InferEnvironmentInputs) -> Any:
        thing = thing_of(inputs.task) or ""
        return {
            "summary": f"{thing.capitalize()} lending desk",
            "introduction": " ".join(f"It keeps a card for every {thing}; {thing}s come and go." for _ in range(3)),
            "usefulness": 8,
            "modelability": 9,
        }

    def plan_state(self, inputs: t.PlanStateInputs) -> Any:
        return {
            "entities": _ENTITIES,
            "rules": [
                {
                    "text": "A lent thing is lent to somebody.",
                    "tools": ["lend_thing", "burn_thing"],
                    "predicate": "all((x['status'] == 'lent') == (x['member_id'] is not None)"
                    " for x in state['things'].values())",
                }
            ],
        }

    def plan_tools(self, inputs: t.PlanToolsInputs) -> Any:
        return {"tools": _TOOLS}

    def write_class(self, inputs: t.WriteClassInputs) -> Any:
        return f"```python\n{_CLASS}\n```"

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        return f"```python\n{METHODS[inputs.tool.name]}\n```"

    def write_methods(self, inputs: t.WriteMethodsInputs) -> Any:
        """What `write_method` answers to each of the questions."""
        common = {name: getattr(inputs, name) for name in t.WriteClassInputs.model_fields}
        common |= {"class_source": inputs.class_source, "class_name": inputs.class_name}
        replies = [self.write_method(t.WriteMethodInputs(**common, **dict(asked))) for asked in inputs.questions]
        return "\n\n".join(replies)

    def write_state(self, inputs: t.WriteStateInputs) -> Any:
        shift = inputs.index + (5 if inputs.purpose == "assessment" else 0)
        members = {f"M-{n}": {"member_id": f"M-{n}", "name": MEMBERS[(n + shift) % len(MEMBERS)]} for n in range(1, 4)}
        things = {
            f"T-{n}": {
                "thing_id": f"T-{n}",
                "label": f"{thing_of(inputs.description.introduction)} {n + 10 * shift}",
                "status": "lent" if n == 1 else "free",
                "member_id": "M-2" if n == 1 else None,
            }
            for n in range(1, 5)
        }
        return {"state": {"things": things, "members": members, "next_number": 5}}

    def test_call(self, inputs: t.TestCallInputs) -> Any:
        free = [key for key, thing in inputs.state["things"].items() if thing["status"] == "free"]
        right = {
            "find_things": {"status": "free"},
            "find_member": {"name": inputs.state["members"]["M-1"]["name"]},
            "lend_thing": {"thing_id": (free or ["T-1"])[0], "member_id": "M-1"},
            "add_thing": {"label": f"round {inputs.round}"},
        }[inputs.tool.name]
        wrong = {"find_things": {"colour": "red"}, "find_member": {"name": "Nobody"}}
        wrong |= {"lend_thing": {"thing_id": "T-99", "member_id": "M-1"}, "add_thing": {"label": ""}}
        return {
            "intent": f"{inputs.case} call, seen before: {len(inputs.history)}",
            "arguments": right if inputs.case == "positive" else wrong[inputs.tool.name],
        }

    def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
        succeeded = isinstance(inputs.result, dict) and inputs.result["success"]
        right = succeeded == (inputs.case == "positive") or not inputs.before["things"]
        return {
            "reason": "as it should be" if right else "not as it should be",
            "verdict": "pass" if right else "warning",
        }

    def write_task(self, inputs: t.WriteTaskInputs) -> Any:
        member = inputs.state["members"]["M-1"]["name"]
        return {
            "task": f"Lend {member} the first thing that is free.",
            "plan": [
                {"name": "find_member", "arguments": {"name": member}},
                {"name": "find_things", "arguments": {"status": "free"}},
                {
                    "name": "lend_thing",
                    "arguments": {"thing_id": "?", "member_id": "?"},
                    "bindings": {
                        "/thing_id": {"call": 1, "pointer": "/data/0/thing_id"},
                        "/member_id": {"call": 0, "pointer": "/data/member_id"},
                    },
                },
            ],
        }

    def write_checklist(self, inputs: t.WriteChecklistInputs) -> Any:
        return {"checklist": ["Has T-2 been lent to M-1?", "Has T-1 stayed with M-2?"]}

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        thing, member = ("T-2", "M-1") if inputs.position == 0 else ("T-1", "M-2")
        return (
            "```python\ndef check_func(final_state):\n"
            f'    thing = final_state["things"].get("{thing}") or {{}}\n'
            f'    return (thing.get("status"), thing.get("member_id")) == ("lent", "{member}")\n```'
        )

    def write_checks(self, inputs: t.WriteChecksInputs) -> Any:
        """What `write_check` answers to each of the questions, under the names asked for."""
        common = {name: getattr(inputs, name) for name in t.WriteChecklistInputs.model_fields}
        blocks = []
        for asked in inputs.questions:
            reply = self.write_check(t.WriteCheckInputs(**common, **dict(asked)))
            blocks.append(reply.replace("def check_func(", f"def {asked.function}(", 1))
        return "\n\n".join(blocks)

    def agent_turn(self, inputs: t.AgentTurnInputs) -> Any:
        """Plays the task as an agent would: it looks member and things up, lends, and says so."""
        seen = [json.loads(message.content) for message in inputs.conversation if isinstance(message, ToolMessage)]
        name = inputs.task.split()[1]
        match len(seen):
            case 0:
                return called("find_member", name=name)
            case 1:
                return called("find_things", status="free")
            case 2:
                return called(
                    "lend_thing", thing_id=seen[1]["data"][0]["thing_id"], member_id=seen[0]["data"]["member_id"]
                )
        return "It is lent."


class Variant(LendingModel):
    """A model some of whose answers are replaced by functions of the inputs and of the usual answer."""

    def __init__(self, **answers: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.answers = answers

    def __getattribute__(self, name: str) -> Any:
        usual = super().__getattribute__(name)
        answers = super().__getattribute__("__dict__").get("answers", {})
        if name in answers:
            return lambda inputs: answers[name](inputs, usual(inputs))
        return usual


def check_code(body: str) -> str:
    """A reply with one check function of that body."""
    return f"```python\ndef check_func(final_state):\n    {body}\n```"
