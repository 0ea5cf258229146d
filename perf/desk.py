"""A small environment of our own writing, shaped like synthesized ones; it is loaded by the sandbox as text and by the
re-enacted baseline as a module, so that both do the same work."""

from typing import Any


class LendingDesk:
    """Members borrow things."""

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.members: dict[str, dict[str, Any]] = init_config.get("members", {})
        self.things: dict[str, dict[str, Any]] = init_config.get("things", {})
        self.loans: dict[str, dict[str, Any]] = init_config.get("loans", {})
        self.next_loan_number: int = init_config.get("next_loan_number", 1)

    def get_member(self, member_id: str) -> dict[str, Any]:
        """Get a member."""
        member = self.members.get(member_id)
        if member is None:
            return {"success": False, "error": f"Member {member_id} does not exist"}
        return {"success": True, "data": dict(member)}

    def lend(self, member_id: str, thing_id: str) -> dict[str, Any]:
        """Lend a thing to a member."""
        if member_id not in self.members or thing_id not in self.things:
            return {"success": False, "error": "No such member or thing"}
        thing = self.things[thing_id]
        if thing["status"] != "free":
            return {"success": False, "error": f"{thing['name']} is {thing['status']}"}
        loan_id = f"LN-{self.next_loan_number:04d}"
        self.next_loan_number += 1
        self.loans[loan_id] = {"loan_id": loan_id, "member_id": member_id, "thing_id": thing_id, "status": "active"}
        thing["status"] = "lent"
        return {"success": True, "data": dict(self.loans[loan_id])}

    def give_back(self, thing_id: str) -> dict[str, Any]:
        """Take a thing back; its loan is forgotten, so that the state keeps its size."""
        thing = self.things.get(thing_id)
        if thing is None or thing["status"] != "lent":
            return {"success": False, "error": "That thing is not lent"}
        thing["status"] = "free"
        self.loans = {key: loan for key, loan in self.loans.items() if loan["thing_id"] != thing_id}
        return {"success": True, "message": "It is back"}


def state_of(size: int) -> dict[str, Any]:
    """A state with `size` members and as many things; about 170 bytes of JSON each pair."""
    members = {f"M{n:05d}": {"member_id": f"M{n:05d}", "name": f"Member number {n}", "limit": 3} for n in range(size)}
    things = {
        f"T{n:05d}": {"thing_id": f"T{n:05d}", "name": f"Thing number {n}", "status": "free"} for n in range(size)
    }
    return {"members": members, "things": things, "loans": {}, "next_loan_number": 1}


def calls_of(size: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Calls that go round: look, lend, give back."""
    out: list[tuple[str, dict[str, Any]]] = []
    for n in range(count):
        key = f"{(n // 3) % size:05d}"
        out.append(
            [
                ("get_member", {"member_id": f"M{key}"}),
                ("lend", {"member_id": f"M{key}", "thing_id": f"T{key}"}),
                ("give_back", {"thing_id": f"T{key}"}),
            ][n % 3]
        )
    return out
