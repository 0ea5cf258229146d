"""`StagedLendingModel`: a fake model that answers small questions only, about the desks of `LendingModel`."""

from __future__ import annotations

from typing import Any

from synth.lending import MEMBERS, LendingModel, called

from envscaler.messages import ToolMessage
from envscaler.roles import staged as s
from envscaler.roles import types as t

CANNOT = "The state would hold things and members.\n- Entity: Thing"
FIELDS = {
    "Thing": [
        {"name": "label", "type": "text"},
        {"name": "status", "type": "status", "values": ["free", "lent"]},
        {"name": "member", "type": "reference", "references": "Member"},
        {"name": "shelf_id", "type": "text"},
    ],
    "Member": [{"name": "name", "type": "text"}, {"name": "joined", "type": "date"}],
}
RULES = ["A Thing whose status is lent cannot get another member.", "Nobody shouts."]
TOOLS = {
    "queries": [
        {
            "kind": "list",
            "entity": "Thing",
            "name": "find_things",
            "description": "Lists things.",
            "fields": ["status"],
        },
        {"kind": "get", "entity": "Thing", "name": "get_thing", "description": "Shows one.", "fields": ["label"]},
        {"kind": "list", "entity": "Member", "name": "find_members", "description": "Lists.", "fields": ["name"]},
        {"kind": "list", "entity": "Thing", "name": "list_things", "description": "The same.", "fields": ["status"]},
    ],
    "updates": [
        {"kind": "create", "entity": "Thing", "name": "add_thing", "description": "Adds one.", "fields": ["label"]},
        {
            "kind": "change",
            "entity": "Thing",
            "name": "lend_thing",
            "description": "Lends one.",
            "fields": ["member_id", "status"],
        },
        {"kind": "delete", "entity": "Thing", "name": "scrap_thing", "description": "Scraps one.", "fields": ["label"]},
        {"kind": "change", "entity": "Thing", "name": "things", "description": "Has a bad name.", "fields": ["label"]},
    ],
}
METHODS = {
    "find_things": """
    found = [copy.deepcopy(one) for one in self.things.values() if status in (None, one["status"])]
    return {"success": True, "data": found}
""",
    "get_thing": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    return {"success": True, "data": copy.deepcopy(self.things[thing_id])}
""",
    "find_members": """
    found = [copy.deepcopy(one) for one in self.members.values() if name in (None, one["name"])]
    return {"success": True, "data": found}
""",
    "add_thing": """
    if not isinstance(label, str) or not label:
        return {"success": False, "error": "label must be a text"}
    if member_id not in self.members:
        return {"success": False, "error": f"There is no member {member_id}."}
    thing_id = f"thing_{self.next_thing_number}"
    record = {"thing_id": thing_id, "label": label, "status": "free", "member_id": member_id}
    self.things[thing_id] = record
    self.next_thing_number += 1
    return {"success": True, "message": "Added.", "data": {"thing_id": thing_id}}
""",
    "lend_thing": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    if member_id not in self.members:
        return {"success": False, "error": f"There is no member {member_id}."}
    if status not in ("free", "lent"):
        return {"success": False, "error": "status is free or lent"}
    self.things[thing_id]["member_id"] = member_id
    self.things[thing_id]["status"] = status
    return {"success": True, "message": f"Thing {thing_id} is {status}."}
""",
    "scrap_thing": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    del self.things[thing_id]
    return {"success": True, "message": f"Thing {thing_id} is gone."}
""",
}


class StagedLendingModel(LendingModel):
    """Cannot plan a whole state, and answers every staged question well."""

    name = "small"

    def plan_state(self, inputs: t.PlanStateInputs) -> Any:
        return CANNOT

    def name_entities(self, inputs: t.PlanStateInputs) -> Any:
        return {
            "entities": [
                {"name": "Thing", "description": "Something to lend"},
                {"name": "Member", "description": "Somebody who borrows"},
                {"name": "thing", "description": "The same again"},
            ]
        }

    def describe_entities(self, inputs: s.DescribeEntitiesInputs) -> Any:
        return {"fields": FIELDS, "rules": RULES}

    def list_tools(self, inputs: s.ListToolsInputs) -> Any:
        return TOOLS

    def write_tool(self, inputs: s.WriteToolInputs) -> Any:
        # The signature is one that a small model might write: without types.
        parameters = ", ".join(["self", *inputs.tool.parameters["properties"]])
        return f"```python\ndef {inputs.tool.name}({parameters}):\n{METHODS[inputs.tool.name].strip(chr(10))}\n```"

    def write_records(self, inputs: s.WriteRecordsInputs) -> Any:
        members = inputs.ids["members"]
        shift = 3 * inputs.index
        return {
            "records": {
                "things": {
                    key: {
                        "label": f"label {shift} {number}",
                        "status": ("free", "lent")[number % 2],
                        "member_id": members[(number + inputs.index) % len(members)],
                    }
                    for number, key in enumerate(inputs.ids["things"])
                },
                "members": {
                    key: {"name": MEMBERS[(number + shift) % len(MEMBERS)], "joined": f"2024-0{number + 1}-11"}
                    for number, key in enumerate(members)
                },
            }
        }

    def test_call(self, inputs: t.TestCallInputs) -> Any:
        things, members = list(inputs.state["things"]), list(inputs.state["members"])
        values = {"thing_id": (things or ["thing_1"])[0], "member_id": members[0], "label": f"round {inputs.round}"}
        values |= {"status": "lent", "name": inputs.state["members"][members[0]]["name"]}
        if inputs.case == "negative":
            values |= {"thing_id": "thing_99", "label": "", "status": "none", "name": "Nobody"}
        names = inputs.tool.parameters["properties"]
        return {"intent": f"{inputs.case} call", "arguments": {name: values[name] for name in names}}

    def write_task(self, inputs: t.WriteTaskInputs) -> Any:
        thing, member = next(iter(inputs.state["things"])), next(iter(inputs.state["members"]))
        return {
            "task": f"Lend {thing} to {member}.",
            "plan": [
                {"name": "lend_thing", "arguments": {"thing_id": thing, "member_id": member, "status": "lent"}},
            ],
        }

    def agent_turn(self, inputs: t.AgentTurnInputs) -> Any:
        if any(isinstance(message, ToolMessage) for message in inputs.conversation):
            return "Done."
        thing, member = _lent(inputs.task)
        return called("lend_thing", thing_id=thing, member_id=member, status="lent")

    def write_checklist(self, inputs: t.WriteChecklistInputs) -> Any:
        thing, member = _lent(inputs.task)
        return {"checklist": [f"Has {thing} been lent to {member}?"]}

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        thing, member = _lent(inputs.task)
        return (
            "```python\ndef check_func(final_state):\n"
            f'    thing = final_state["things"].get("{thing}") or {{}}\n'
            f'    return (thing.get("status"), thing.get("member_id")) == ("lent", "{member}")\n```'
        )


def _lent(task: str) -> tuple[str, str]:
    """The thing and the member that a task is about."""
    words = task.rstrip(".").split()
    return words[1], words[3]
