"""The Python of check functions: conditions on rows, and functions around statements.

What is asked for is `goal_checks`' and `guard_checks`' business.
"""

from __future__ import annotations

from envscaler.offline.blueprint import FieldPlan
from envscaler.scenario import Check
from envscaler.state import JsonValue


def condition(row: str, field: FieldPlan, value: JsonValue, *, exact: bool = False) -> str:
    """A Python test that a field of a row holds a value; texts that people write are compared without case and edges.

    Args:
        exact: also for such texts.
    """
    read = f"{row}.get({field.name!r})"
    if value is None or isinstance(value, bool):
        return f"{read} is {value!r}"
    if isinstance(value, float):
        return f"isinstance({read}, (int, float)) and abs({read} - {value!r}) < 0.005"
    if isinstance(value, str) and field.type == "str" and field.enum is None and field.ref is None and not exact:
        return f"str({read}).strip().casefold() == {value.strip().casefold()!r}"
    return f"{read} == {value!r}"


def check(description: str, body: list[str]) -> Check:
    """A check whose function consists of these statements."""
    text = description.replace("\\", "\\\\").replace('"""', "'''")
    lines = "\n".join(body).split("\n")
    indented = "\n".join(f"    {line}" for line in lines)
    return Check(description=description, source=f'def check_func(final_state):\n    """{text}"""\n{indented}\n')
