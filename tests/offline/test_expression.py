"""The expression language means the same to the evaluator and to the Python that it is translated to."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.offline.domains import domains
from envscaler.offline.expression import Scope, evaluate, to_python
from envscaler.offline.states import make_state

LIBRARY = next(domain for domain in domains() if domain.slug == "library-lending")

EXPRESSIONS = [
    "book.copies_available > 0 and member.status == 'active'",
    "count(Loan, it.member_id == member.id and it.status == 'active') < member.loan_limit",
    "not exists(Hold, it.book_id == book.id and it.status == 'waiting')",
    "total(Member, it.fines_due, it.status != 'expired')",
    "count(Book, exists(Loan, it.book_id == book.id and it.due_date < today))",
    "exists(Loan)",
    "money(member.fines_due * 2 - amount) if amount <= member.fines_due else -amount",
    "book.section in ['fiction', 'science'] and member.status not in ['expired']",
    "0 <= amount <= 100",
    "length(book.title) + least(amount, 3)",
    "lower(book.title) == 'x' or lower(member.name) != 'y'",
    "now > today",
]


class _Program:
    """Stands in for an instance of the generated class."""

    def __init__(self, state: dict) -> None:
        self.__dict__.update(state)


@pytest.mark.parametrize("text", EXPRESSIONS)
@settings(deadline=None)
@given(seed=st.integers(0, 200), amount=st.integers(0, 40), row=st.integers(0, 4))
def test_evaluator_and_translation_agree(text: str, seed: int, amount: int, row: int) -> None:
    state = make_state(LIBRARY, seed=seed, index=0, purpose="scenario")
    book = list(state["books"].values())[row]
    member = list(state["members"].values())[row]
    scope = Scope(LIBRARY, state, {"amount": amount}, {"book": ("Book", book), "member": ("Member", member)})
    source = to_python(text, LIBRARY, {"book": "Book", "member": "Member"})
    names = {"self": _Program(state), "book": book, "member": member, "amount": amount}
    assert evaluate(text, scope) == eval(source, names)  # noqa: S307 - our own translation of our own text


@settings(deadline=None)
@given(day=st.dates(date(1990, 1, 1), date(2090, 1, 1)), days=st.integers(-400, 400))
def test_days_added_lie_that_many_days_apart(day: date, days: int) -> None:
    scope = Scope(LIBRARY, {}, {"day": day.isoformat(), "days": days})
    assert evaluate("add_days(day, days)", scope) == (day + timedelta(days=days)).isoformat()
    assert evaluate("days_between(day, add_days(day, days))", scope) == days


@pytest.mark.parametrize("text", ["[x for x in y]", "book.title.upper()", "lambda: 1", "open('f')", "book['title']"])
def test_what_is_not_of_the_language_is_refused(text: str) -> None:
    state = make_state(LIBRARY, seed=1, index=0, purpose="scenario")
    book = next(iter(state["books"].values()))
    with pytest.raises((ValueError, KeyError)):
        evaluate(text, Scope(LIBRARY, state, {}, {"book": ("Book", book)}))


def test_translation_has_double_quotes_and_single_parentheses() -> None:
    source = to_python("count(Loan, it.status == 'active') < 3", LIBRARY, {})
    assert source == 'sum(1 for loan in self.loans.values() if loan["status"] == "active") < 3'
