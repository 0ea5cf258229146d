from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.bench.inside.states import digest_of

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Folder:
    def __init__(self, parent: Folder | None, **contents: Any) -> None:
        self.parent = parent
        self.contents = contents
        self._seen = 0


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, VALUES)
def test_other_values_have_another_digest(one: Any, other: Any) -> None:
    assert (digest_of(one) == digest_of(other)) == (one == other)


def test_objects_that_lead_back_to_themselves_are_followed_once() -> None:
    root = Folder(None)
    root.contents["inner"] = Folder(root, text="a")
    before = digest_of(root)
    root.contents["inner"].contents["text"] = "b"
    assert digest_of(root) != before


def test_private_attributes_do_not_count() -> None:
    folder = Folder(None)
    before = digest_of(folder)
    folder._seen += 1
    assert digest_of(folder) == before
