"""Which of what stands in a reply is the reply of the role, and what is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import ReplyError
from envscaler.roles.fitting import fitted
from envscaler.roles.objects import Found
from envscaler.roles.types import FilterTaskReply, InferEnvironmentReply, WriteChecklistReply, WriteStateReply

YES = {"reason": "Loans are kept.", "stateful": True}


def test_what_has_the_type_counts_wherever_it_stands() -> None:
    reply, mended = fitted(FilterTaskReply, [Found({"loans": {"L-1": {}}}), Found(["x"]), Found(YES, ("JSON syntax",))])
    assert reply == FilterTaskReply(**YES)
    assert mended == ("JSON syntax",)


def test_two_that_differ_are_told_and_two_that_are_equal_are_not() -> None:
    no = {"reason": "Nothing is kept.", "stateful": False}
    assert fitted(FilterTaskReply, [Found(YES), Found(no)]) == (FilterTaskReply(**YES), ("one of several",))
    assert fitted(FilterTaskReply, [Found(YES), Found(dict(YES))]) == (FilterTaskReply(**YES), ())


def test_the_fault_is_that_of_the_first() -> None:
    with pytest.raises(ReplyError, match="stateful: Field required") as refused:
        fitted(FilterTaskReply, [Found({"reason": "x"}), Found({})])
    assert refused.value.kind == "misshapen"


@pytest.mark.parametrize(("given", "told"), [(True, ()), ("yes", ("converted value",)), (1, ("converted value",))])
def test_a_value_of_another_type_is_never_converted_unmarked(given: object, told: tuple[str, ...]) -> None:
    reply, mended = fitted(FilterTaskReply, [Found({"reason": "x", "stateful": given})])
    assert (reply.stateful, mended) == (True, told)


def test_an_object_around_is_taken_off_only_where_it_is_no_part_of_the_reply() -> None:
    assert fitted(FilterTaskReply, [Found({"answer": YES})])[1] == ("unwrapped",)
    assert fitted(FilterTaskReply, [Found([{**YES, "more": 1}])])[1] == ("unwrapped", "extra fields")
    with pytest.raises(ReplyError, match="introduction"):
        fitted(InferEnvironmentReply, [Found({"summary": {"summary": "x", "introduction": "y"}})])


def test_the_only_field_is_put_around_what_can_be_its_value() -> None:
    assert fitted(WriteChecklistReply, [Found(["Is it lent?"])]) == (
        WriteChecklistReply(checklist=("Is it lent?",)),
        ("wrapped",),
    )
    loans = {"loans": {"L-1": {"days": 3}}}
    assert fitted(WriteStateReply, [Found(loans)]) == (WriteStateReply(state=loans), ("wrapped",))
    with pytest.raises(ReplyError, match="state: Field required"):
        fitted(WriteStateReply, [Found({"error": "more details, please"})])


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda parts: (
        st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(["reason", "stateful", "x"]), parts, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=4))
def test_any_values_give_a_reply_or_a_reply_error(values: list[object]) -> None:
    try:
        reply, mended = fitted(FilterTaskReply, [Found(value) for value in values])
    except ReplyError:
        return
    assert mended or reply.model_dump() in values
