"""A ticket desk in the authors' format, with everything that their programs do to be hard to replay.

Episodes are recorded by playing it with another seed and at another time, and written as the authors' runner does.
"""

from __future__ import annotations

import copy
from typing import Any

from envscaler.sandbox import BlockingSandbox, Program

SOURCE = '''\
import random
import time
import uuid
from datetime import datetime
from typing import Dict, List, TypedDict


class TicketInfo(TypedDict):
    ticket_id: str
    title: str
    opened_at: str
    due: str
    closed: bool


class TicketDesk:
    def __init__(self, init_config: dict):
        self.tickets: Dict[str, TicketInfo] = {}
        self.log: List[str] = []
        self.clerk = init_config.get("clerk", "nobody")

    def open_ticket(self, title: str, due: str = "2025-03-01") -> dict:
        """Open a ticket."""
        ticket_id = str(uuid.uuid4())
        self.tickets[ticket_id] = {
            "ticket_id": ticket_id,
            "title": title,
            "opened_at": datetime.now().isoformat(),
            "due": due,
            "closed": False,
        }
        self.log.append(f"LOG{int(time.time() * 1000)}")
        return {"success": True, "message": f"Ticket {ticket_id} opened", "ticket_id": ticket_id}

    def get_ticket(self, ticket_id: str) -> dict:
        """Read a ticket."""
        if ticket_id not in self.tickets:
            return {"success": False, "error": "Ticket not found"}
        return {"success": True, "data": self.tickets[ticket_id]}

    def close_ticket(self, ticket_id: str) -> dict:
        """Close a ticket."""
        if ticket_id not in self.tickets:
            return {"success": False, "error": "Ticket not found"}
        self.tickets[ticket_id]["closed"] = True
        return {"success": True, "message": "closed"}

    def list_tickets(self) -> dict:
        """All tickets, with the last entry of the log."""
        return {"success": True, "data": list(self.tickets.values()), "last": self.log[-1] if self.log else None}

    def forget_log(self, entry: str) -> dict:
        """Take an entry out of the log."""
        if entry not in self.log:
            return {"success": False, "error": "No such entry"}
        self.log.remove(entry)
        return {"success": True}

    def overdue(self) -> dict:
        """Titles of the tickets that are overdue today."""
        today = datetime.now().date().isoformat()
        late = [ticket["title"] for ticket in self.tickets.values() if ticket["due"] < today]
        self.clerk = "late" if late else "calm"
        return {"success": True, "any": bool(late), "data": late}

    def pair(self) -> tuple:
        """Two numbers."""
        return (1, {2, 3})

    def assign(self, ticket_id: str, clerk: str) -> dict:
        """Give a ticket to a clerk."""
        self.tickets[ticket_id]["clerk"] = clerk
        return {"success": True}
'''

ENVIRONMENT: dict[str, Any] = {
    "env_id": "env_7_rl",
    "environment_summary": "Ticket desk",
    "environment_introduction": "Keeps tickets.",
    "state_space_definition": [
        {"entity": "Ticke", "attributes": "ticket_id, title, opened_a, due, closed", "description": "A ticket."},
        {"entity": "Ghost", "attributes": "nothing, at, all", "description": "In no program."},
    ],
    "constraints_rules": ["A ticket is closed once."],
    "operation_list": [
        {"operation_name": name, "operation_description": f"short: {name}", "operation_type": kind, "code": "…"}
        for name, kind in (
            ("open_ticket", "state_change"),
            ("get_ticket", "query"),
            ("close_ticket", "state_change"),
            ("list_tickets", "query"),
            ("forget_log", "state_change"),
            ("assign", "state_change"),
        )
    ],
    "env_class_name": "TicketDesk",
    "env_class_code": SOURCE,
    "env_class_def": "class TicketDesk: ...",
    "tools": [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"long: {name}",
                "parameters": {
                    "type": "object",
                    "properties": {part: {"type": "string"} for part in parameters},
                    "required": parameters,
                },
            },
        }
        for name, parameters in (
            ("open_ticket", ["title"]),
            ("get_ticket", ["ticket_id"]),
            ("close_ticket", ["ticket_id"]),
            ("list_tickets", []),
            ("forget_log", ["entry"]),
            ("overdue", []),
            ("pair", []),
            ("assign", ["ticket_id", "clerk"]),
        )
    ],
}

SCENARIO: dict[str, Any] = {
    "env_id": "env_7_rl",
    "env_class_name": "TicketDesk",
    "task_id": "env_7_rl-task_1",
    "init_config": {"clerk": "Ann"},
    "task": "Open a ticket named broken lamp and close it.",
    "checklist_with_func": [
        {
            "check_item": "Has a ticket been opened?",
            "check_func": "def check_func(final_state):\n"
            "    return len(final_state['tickets']) > len(initial_state['tickets'])",
        },
        {
            "check_item": "Has it been closed?",
            "check_func": "def check_func(final_state):\n"
            "    return any(part['closed'] for part in final_state['tickets'].values())",
        },
        {
            "check_item": "Is the clerk still there?",
            "check_func": "def check_func(final_state):\n    return final_state['clerk'] == 'Ann'",
        },
    ],
}

FINAL = ("chat_with_user", {"content": "Task Completed"})


def recorded(
    *actions: tuple[str, dict[str, Any]],
    checks: list[dict[str, str]] | None = None,
    seed: int = 99,
    clock: str = "2025-10-27T07:10:00",
    **changes: Any,
) -> dict[str, Any]:
    """An episode as somebody recorded it who had other ids and another clock, rewarded by the authors' rule.

    An argument `$N.KEY` is what call N gave under that key.
    """
    checklist = SCENARIO["checklist_with_func"] if checks is None else checks
    steps: list[dict[str, Any]] = []
    results: list[Any] = []
    reward, raised = 0.0, False
    with BlockingSandbox() as sandbox:
        program = Program(SOURCE, "TicketDesk")
        session = sandbox.open(program, SCENARIO["init_config"], seed=seed, clock=clock)
        reset = session.state()
        for name, arguments in actions:
            given = {key: _resolved(value, results) for key, value in arguments.items()}
            if name == "chat_with_user":
                outcomes = sandbox.check(
                    [part["check_func"] for part in checklist],
                    initial_state=reset,
                    final_state=session.state(),
                    clock=session.snapshot().clock,
                )
                reward = round(sum(outcome.value is True for outcome in outcomes) / len(outcomes), 4)
                observation = {"type": "user", "content": "Task finished"}
            else:
                outcome = session.call(name, given)
                results.append(outcome.result)
                raised = outcome.fault is not None
                # What the program would have shown outside a sandbox: sets and tuples are no JSON.
                shown = "(1, {2, 3})" if name == "pair" else str(outcome.result)
                observation = (
                    {"type": "user", "content": f"Error: <Exception>\nTraceback …:\n  File …\n    …\n{outcome.fault}\n"}
                    if raised
                    else {"type": "tool", "content": shown}
                )
            ended = raised or name == "chat_with_user"
            steps.append(
                {
                    "action": {"name": name, "arguments": given},
                    "observation": observation,
                    "reward": reward,
                    "terminated": ended,
                    "truncated": False,
                }
            )
    return {
        "env_id": "env_7_rl",
        "task_id": "env_7_rl-task_1",
        "model": "somebody",
        "init_config": copy.deepcopy(SCENARIO["init_config"]),
        "task": SCENARIO["task"],
        "checklist_with_func": checklist,
        "steps": steps,
        "terminated": steps[-1]["terminated"],
        "truncated": False,
        "total_reward": reward,
        **changes,
    }


def as_runner(episode: dict[str, Any]) -> dict[str, Any]:
    """The episode in the form that the authors' runner writes: no state and checks of its own."""
    rows = [{"step": number, **step} for number, step in enumerate(episode["steps"], 1)]
    return {
        "task_info": {name: episode[name] for name in ("env_id", "task_id", "task")},
        "tools": ENVIRONMENT["tools"],
        "messages": [
            {"role": "system", "content": "You work at a desk."},
            {"role": "user", "content": episode["task"]},
            *(
                {"role": "assistant", "content": f"Let me see.\n<tool_call>\n{step['action']}\n</tool_call>"}
                for step in episode["steps"]
            ),
        ],
        "user_messages": None,
        "trajectory": [{"step": 0, "observation": episode["task"]}, *rows],
        "total_reward": episode["total_reward"],
        "terminated": episode["terminated"],
        "truncated": False,
        "steps": len(rows),
        "traj_type": "non_conv",
    }


def _resolved(value: Any, results: list[Any]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        number, key = value[1:].split(".")
        return results[int(number)][key]
    return value
