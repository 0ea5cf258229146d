"""A small lending library as an environment, with scenarios: what the tests of env, agents and rollout play."""

from __future__ import annotations

from typing import Any

from envscaler.program import tool_schemas
from envscaler.scenario import Binding, Check, Scenario, SolutionCall, UserProfile
from envscaler.skeleton import Attribute, Entity, EnvDescription, EnvSkeleton, Origin, Rule, ToolSpec

SOURCE = '''\
from typing import Any, Dict, Optional


class LendingDesk:
    """Lends books to members."""

    def __init__(self, init_config: Optional[Dict[str, Any]] = None) -> None:
        config = init_config or {}
        self.books: Dict[str, Dict[str, Any]] = dict(config.get("books", {}))
        self.loans: Dict[str, Dict[str, Any]] = dict(config.get("loans", {}))
        self.next_loan: int = config.get("next_loan", 1)

    def find_books(self, title: str = "") -> Dict[str, Any]:
        """Find books whose title contains a text.

        Args:
            title: Part of the title.
        """
        found = [book for book in self.books.values() if title.lower() in book["title"].lower()]
        return {"success": True, "data": found}

    def lend_book(self, book_id: str, member: str) -> Dict[str, Any]:
        """Lend a book to a member.

        Args:
            book_id: Id of the book.
            member: Name of the member.
        """
        book = self.books.get(book_id)
        if book is None:
            return {"success": False, "error": f"no book {book_id}"}
        if book["copies"] < 1:
            return {"success": False, "error": f"no copy of {book['title']} left"}
        book["copies"] -= 1
        loan_id = f"L{self.next_loan}"
        self.next_loan += 1
        self.loans[loan_id] = {"loan_id": loan_id, "book_id": book_id, "member": member}
        return {"success": True, "data": {"loan_id": loan_id}}

    def return_book(self, loan_id: str) -> Dict[str, Any]:
        """Take a lent book back.

        Args:
            loan_id: Id of the loan.
        """
        loan = self.loans.pop(loan_id)
        self.books[loan["book_id"]]["copies"] += 1
        return {"success": True, "message": "returned"}
'''

EFFECTS = {"find_books": "query", "lend_book": "update", "return_book": "update"}

STATE: dict[str, Any] = {
    "books": {
        "B1": {"book_id": "B1", "title": "Emma", "copies": 1},
        "B2": {"book_id": "B2", "title": "Œuvres", "copies": 2},
    },
    "loans": {},
    "next_loan": 1,
}


def skeleton(source: str = SOURCE, effects: dict[str, str] = EFFECTS, **changes: Any) -> EnvSkeleton:
    """The environment, or one with another program."""
    schemas = tool_schemas(source, "LendingDesk")
    fields: dict[str, Any] = {
        "id": "lending-desk",
        "description": EnvDescription(summary="Lending desk", introduction="Lends books to members."),
        "entities": (
            Entity(
                name="Book",
                container="books",
                key="book_id",
                attributes=(
                    Attribute(name="book_id", type="str"),
                    Attribute(name="title", type="str"),
                    Attribute(name="copies", type="int"),
                ),
            ),
            Entity(
                name="Loan",
                container="loans",
                key="loan_id",
                attributes=(
                    Attribute(name="loan_id", type="str"),
                    Attribute(name="book_id", type="str", references="Book"),
                    Attribute(name="member", type="str"),
                ),
            ),
        ),
        "rules": (Rule(text="A book is lent only while a copy is left."),),
        "tools": tuple(
            ToolSpec(name=name, description=f"{name} of the desk", parameters=schemas[name], effect=effect)
            for name, effect in effects.items()
        ),
        "class_name": "LendingDesk",
        "source": source,
        "origin": Origin(),
    }
    return EnvSkeleton(**{**fields, **changes})


def scenario(skeleton: EnvSkeleton, number: int = 1, **changes: Any) -> Scenario:
    """Lend Emma to Ann: two goals that do not hold at reset, one guard that does."""
    fields: dict[str, Any] = {
        "id": f"{skeleton.id}-s{number:03d}",
        "env_id": skeleton.id,
        "env_digest": skeleton.digest,
        "initial_state": STATE,
        "task": "Lend Emma to Ann.",
        "checks": (
            Check(
                description="Has Ann a loan of Emma?",
                source="def check_func(final_state):\n"
                "    return any(loan['member'] == 'Ann' and loan['book_id'] == 'B1'"
                " for loan in final_state['loans'].values())\n",
                kind="goal",
            ),
            Check(
                description="Has Emma no copy left?",
                source="def check_func(final_state):\n    return final_state['books']['B1']['copies'] == 0\n",
                kind="goal",
            ),
            Check(
                description="Have all other books as many copies as before?",
                source="def check_func(final_state):\n"
                "    return final_state['books']['B2']['copies'] == initial_state['books']['B2']['copies']\n",
                kind="guard",
            ),
        ),
        "solution": (
            SolutionCall(name="find_books", arguments={"title": "Emma"}),
            SolutionCall(
                name="lend_book",
                arguments={"book_id": "B1", "member": "Ann"},
                bindings={"/book_id": Binding(call=0, pointer="/data/0/book_id")},
            ),
        ),
        "user_profile": UserProfile(opening="Hello, I want to borrow a book.", facts=("It is Emma.", "For Ann.")),
    }
    return Scenario(**{**fields, **changes})
