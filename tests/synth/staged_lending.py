"""`StagedLendingModel`: a fake model that answers small questions only, about the desks of `LendingModel`."""

from __future__ import annotations

from typing import Any

from synth.lending import MEMBERS, LendingModel, called

from envscaler.messages import ToolMessage
from envscaler.roles import staged as s
from envscaler.roles import types as t

CANNOT = "The state would hold things and members.\n- Entity: Thing"
KINDS = {
    "Thing": {
        "fields": [{"name": "label", "type": "text"}, {"name": "shelf_id", "type": "text"}],
        "status": ["free", "lent"],
        "belongs_to": ["Member", "Nobody"],
    },
    "Member": {
        "fields": [
            {"name": "name", "type": "text"},
            {"name": "joined", "type": "date"},
            {"name": "id", "type": "text"},
        ],
        "status": [],
        "belongs_to": [],
    },
}
TOOLS = {
    "lists": [
        {"entity": "Thing", "name": "find_things", "description": "Lists things.", "fields": ["status"]},
        {"entity": "Member", "name": "find_members", "description": "Lists members.", "fields": ["name"]},
        {"entity": "Thing", "name": "list_things", "description": "The same again.", "fields": ["status"]},
    ],
    "gets": [{"entity": "Thing", "name": "get_thing", "description": "Shows one."}],
    "creates": [{"entity": "Thing", "name": "add_thing", "description": "Adds one.", "fields": ["label", "status"]}],
    "changes": [
        {
            "entity": "Thing",
            "name": "lend_thing",
            "description": "Lends one.",
            "fields": ["member_id"],
            "refused_when": {"field": "status", "value": "lent"},
        },
        {"entity": "Thing", "name": "give_back", "description": "Takes one back.", "fields": ["status"]},
        {"entity": "Thing", "name": "delete_things", "description": "Removes all.", "fields": ["shelf_code"]},
        {
            "entity": "Thing",
            "name": "label_thing",
            "description": "Labels one.",
            "fields": ["label"],
            "refused_when": {"field": "status", "value": "on the moon"},
        },
    ],
    "deletes": [{"entity": "Thing", "name": "scrap_thing", "description": "Scraps one."}],
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
    if not isinstance(label, str) or not label or not isinstance(shelf_code, str) or not shelf_code:
        return {"success": False, "error": "label and shelf_code must be texts"}
    if status not in ("free", "lent"):
        return {"success": False, "error": "status is free or lent"}
    if member_id not in self.members:
        return {"success": False, "error": f"There is no member {member_id}."}
    thing_id = f"thing_{self.next_thing_number}"
    given = {"label": label, "shelf_code": shelf_code, "status": status, "member_id": member_id}
    self.things[thing_id] = {"thing_id": thing_id, **given}
    self.next_thing_number += 1
    return {"success": True, "message": "Added.", "data": {"thing_id": thing_id}}
""",
    "lend_thing": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    if member_id not in self.members:
        return {"success": False, "error": f"There is no member {member_id}."}
    if self.things[thing_id]["status"] == "lent":
        return {"success": False, "error": f"Thing {thing_id} is lent."}
    self.things[thing_id]["member_id"] = member_id
    return {"success": True, "message": f"Thing {thing_id} goes to {member_id}."}
""",
    "give_back": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    if status not in ("free", "lent"):
        return {"success": False, "error": "status is free or lent"}
    self.things[thing_id]["status"] = status
    return {"success": True, "message": f"Thing {thing_id} is {status}."}
""",
    "set_thing_shelf_code": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    if not isinstance(shelf_code, str) or not shelf_code:
        return {"success": False, "error": "shelf_code must be a text"}
    self.things[thing_id]["shelf_code"] = shelf_code
    return {"success": True, "message": f"Thing {thing_id} is on {shelf_code}."}
""",
    "label_thing": """
    if thing_id not in self.things:
        return {"success": False, "error": f"There is no thing {thing_id}."}
    if not isinstance(label, str) or not label:
        return {"success": False, "error": "label must be a text"}
    self.things[thing_id]["label"] = label
    return {"success": True, "message": f"Thing {thing_id} is labelled {label}."}
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
        return {"kinds": KINDS}

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
                        "shelf_code": f"S{number + shift}",
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

    def write_task(self, inputs: t.WriteTaskInputs) -> Any:
        thing = next(key for key, one in inputs.state["things"].items() if one["status"] == "lent")
        return {
            "task": f"Take {thing} back.",
            "plan": [{"name": "give_back", "arguments": {"thing_id": thing, "status": "free"}}],
        }

    def agent_turn(self, inputs: t.AgentTurnInputs) -> Any:
        if any(isinstance(message, ToolMessage) for message in inputs.conversation):
            return "Done."
        return called("give_back", thing_id=inputs.task.split()[1], status="free")

    def write_checklist(self, inputs: t.WriteChecklistInputs) -> Any:
        return {"checklist": [f"Is {inputs.task.split()[1]} free?"]}

    def write_check(self, inputs: t.WriteCheckInputs) -> Any:
        thing = inputs.task.split()[1]
        return (
            "```python\ndef check_func(final_state):\n"
            f'    return (final_state["things"].get("{thing}") or {{}}).get("status") == "free"\n```'
        )
