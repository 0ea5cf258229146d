"""Prompt files: which is in force, and what happens with one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.errors import UsageError
from envscaler.roles.role import FAMILIES, FILTER_TASK, INFER_ENVIRONMENT, ROLES, Prompts
from envscaler.roles.types import FilterTaskInputs
from envscaler.state import text_digest

TASK = FilterTaskInputs(task="Book table 4.")


def test_every_role_has_a_name_a_prompt_and_a_known_family() -> None:
    assert len({role.name for role in ROLES}) == len(ROLES) == 22
    assert {role.family for role in ROLES} == set(FAMILIES)
    assert all(Prompts().text(role) for role in ROLES)


def test_a_file_of_the_folder_replaces_one_prompt_and_leaves_the_others(tmp_path: Path) -> None:
    text = "Sort.\n=== user ===\nTask: {{ task }}\n"
    (tmp_path / "filter_task.md").write_text(text, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a prompt", encoding="utf-8")
    prompts = Prompts(tmp_path)
    assert [message.content for message in prompts.render(FILTER_TASK, TASK)] == ["Sort.", "Task: Book table 4."]
    assert prompts.digest(FILTER_TASK) == text_digest(text) != Prompts().digest(FILTER_TASK)
    assert prompts.digest(INFER_ENVIRONMENT) == Prompts().digest(INFER_ENVIRONMENT)


def test_a_prompt_saved_with_windows_line_ends_renders_the_same(tmp_path: Path) -> None:
    (tmp_path / "filter_task.md").write_bytes(b"Sort.\r\n=== user ===\r\n{{ task }}\r\n")
    assert [message.content for message in Prompts(tmp_path).render(FILTER_TASK, TASK)] == ["Sort.", TASK.task]


def test_a_prompt_may_have_no_system_part(tmp_path: Path) -> None:
    (tmp_path / "filter_task.md").write_text("=== user ===\n{{ task }}", encoding="utf-8")
    (message,) = Prompts(tmp_path).render(FILTER_TASK, TASK)
    assert (message.role, message.content) == ("user", TASK.task)


def test_prompts_stay_what_they_were_when_the_run_began(tmp_path: Path) -> None:
    path = tmp_path / "filter_task.md"
    path.write_text("Sort.\n=== user ===\n{{ task }}", encoding="utf-8")
    prompts = Prompts(tmp_path)
    before = prompts.digest(FILTER_TASK)
    path.write_text("Guess.\n=== user ===\n{{ task }}", encoding="utf-8")
    assert prompts.digest(FILTER_TASK) == before


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("filter_tasks.md", b"x\n=== user ===\ny", "no role has that name"),
        ("filter_task.md", b"only one part {{ task }}", "no line '=== user ==='"),
        ("filter_task.md", b"x\n=== user ===\n{{ task", "cannot be used as a prompt"),
        ("filter_task.md", b"\xff\xfe", "cannot be used as a prompt"),
    ],
)
def test_a_file_that_is_no_prompt_is_named_at_once(tmp_path: Path, name: str, text: bytes, fault: str) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(UsageError, match=fault) as caught:
        Prompts(tmp_path)
    assert name in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        Prompts(tmp_path / "absent")


@pytest.mark.parametrize(
    "expression", ["{{ tasks }}", "{{ task.no.such }}", "{{ 1 + task }}", "{{ task.__class__.mro() }}"]
)
def test_a_prompt_that_does_not_render_is_named(tmp_path: Path, expression: str) -> None:
    (tmp_path / "filter_task.md").write_text(f"x\n=== user ===\n{expression}", encoding="utf-8")
    with pytest.raises(UsageError, match=r"filter_task\.md does not render"):
        Prompts(tmp_path).render(FILTER_TASK, TASK)
