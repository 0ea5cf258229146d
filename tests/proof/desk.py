"""A small environment with one scenario whose checks are good, to be made worse by the tests."""

from __future__ import annotations

from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import Attribute, Entity, EnvDescription, EnvSkeleton, ToolSpec

SOURCE = '''
import datetime
import uuid


class Desk:
    def __init__(self, state):
        self.members = state.get("members", {})
        self.things = state.get("things", {})
        self.loans = state.get("loans", {})
        self.loans_made = state.get("loans_made", 0)

    def find_thing(self, name):
        """Find a thing by its name."""
        for thing in self.things.values():
            if thing["name"] == name:
                return {"success": True, "data": dict(thing)}
        return {"success": False, "error": f"there is no {name}"}

    def lend(self, thing_id, member_id):
        """Lend a thing."""
        thing = self.things.get(thing_id)
        if thing is None or member_id not in self.members:
            return {"success": False, "error": "no such thing or member"}
        if thing["status"] != "free":
            return {"success": False, "error": "it is lent"}
        loan_id = str(uuid.uuid4())
        self.loans_made += 1
        thing["status"] = "lent"
        self.loans[loan_id] = {
            "loan_id": loan_id,
            "thing_id": thing_id,
            "member_id": member_id,
            "lent_at": datetime.datetime.now().isoformat(),
        }
        return {"success": True, "data": dict(self.loans[loan_id])}

    def set_limit(self, member_id, limit):
        """Set how many things a member may have."""
        if member_id not in self.members:
            return {"success": False, "error": "no such member"}
        self.members[member_id]["limit"] = limit
        return {"success": True, "message": "done"}
'''

STATE = {
    "members": {
        "M1": {"member_id": "M1", "name": "Ana", "limit": 2},
        "M2": {"member_id": "M2", "name": "Bo", "limit": 2},
        "M3": {"member_id": "M3", "name": "Chi", "limit": 4},
    },
    "things": {
        "T1": {"thing_id": "T1", "name": "Red kayak", "status": "free"},
        "T2": {"thing_id": "T2", "name": "Blue kayak", "status": "free"},
        "T3": {"thing_id": "T3", "name": "Tent", "status": "broken"},
    },
    "loans": {},
    "loans_made": 0,
}

IS_LENT = Check(
    description='Is the status of the Red kayak "lent"?',
    source="def check_func(final_state):\n    return final_state['things']['T1']['status'] == 'lent'\n",
    kind="goal",
)
HAS_LOAN = Check(
    description="Has a new loan of the Red kayak to Bo been made?",
    source=(
        "def check_func(final_state):\n"
        "    return any(\n"
        "        loan['thing_id'] == 'T1' and loan['member_id'] == 'M2'\n"
        "        for key, loan in final_state['loans'].items()\n"
        "        if key not in initial_state['loans']\n"
        "    )\n"
    ),
    kind="goal",
)
HAS_LIMIT = Check(
    description="Is the limit of Bo 3?",
    source="def check_func(final_state):\n    return final_state['members']['M2']['limit'] == 3\n",
    kind="goal",
)
REST = Check(
    description="Has nothing else changed?",
    source=(
        "def check_func(final_state):\n"
        "    if set(final_state['members']) != set(initial_state['members']):\n"
        "        return False\n"
        "    if set(final_state['things']) != set(initial_state['things']):\n"
        "        return False\n"
        "    if len(final_state['loans']) > len(initial_state['loans']) + 1:\n"
        "        return False\n"
        "    for container, allowed in (('members', ('M2', 'limit')), ('things', ('T1', 'status'))):\n"
        "        for key, record in initial_state[container].items():\n"
        "            for name, value in record.items():\n"
        "                if (key, name) != allowed and final_state[container][key].get(name) != value:\n"
        "                    return False\n"
        "    return True\n"
    ),
    kind="guard",
)


def skeleton(source: str = SOURCE) -> EnvSkeleton:
    def tool(name: str, effect: str, /, **parameters: str) -> ToolSpec:
        schema = {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in parameters.items()},
            "required": list(parameters),
            "additionalProperties": False,
        }
        return ToolSpec.model_validate(
            {"name": name, "description": f"{name}.", "parameters": schema, "effect": effect}
        )

    def entity(name: str, container: str, /, **attributes: str) -> Entity:
        fields = tuple(Attribute(name=key, type=kind) for key, kind in attributes.items())
        return Entity(name=name, attributes=fields, container=container, key=fields[0].name)

    return EnvSkeleton(
        id="desk",
        description=EnvDescription(summary="Lending desk", introduction="Members borrow things."),
        entities=(
            entity("Member", "members", member_id="str", name="str", limit="int"),
            entity("Thing", "things", thing_id="str", name="str", status="str"),
            entity("Loan", "loans", loan_id="str", thing_id="str", member_id="str", lent_at="str"),
            Entity(name="Desk", attributes=(Attribute(name="loans_made", type="int"),)),
        ),
        tools=(
            tool("find_thing", "query", name="string"),
            tool("lend", "update", thing_id="string", member_id="string"),
            tool("set_limit", "update", member_id="string", limit="integer"),
        ),
        class_name="Desk",
        source=source,
    )


def scenario(*checks: Check, **changes: object) -> Scenario:
    """The scenario with these checks, by default all of them."""
    solution = (
        SolutionCall(name="find_thing", arguments={"name": "Red kayak"}),
        SolutionCall(name="set_limit", arguments={"member_id": "M2", "limit": 3}),
        SolutionCall(name="lend", arguments={"thing_id": "T1", "member_id": "M2"}),
    )
    made = Scenario(
        id="desk-s001",
        env_id="desk",
        env_digest=skeleton().digest,
        initial_state=STATE,
        task="Lend the Red kayak to Bo and let him have 3 things.",
        checks=checks or (IS_LENT, HAS_LOAN, HAS_LIMIT, REST),
        solution=solution,
    )
    return made.model_copy(update=changes)
