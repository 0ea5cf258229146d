from __future__ import annotations

from pathlib import Path

import pytest
from env.lending import skeleton

from envscaler.agents import SystemPrompts, prompt_digest, system_prompt
from envscaler.errors import UsageError
from envscaler.skeleton import Origin

ENVIRONMENT = skeleton()
CHINESE = skeleton(origin=Origin(language="zh"))


def test_environments_are_played_in_their_language_and_in_english_where_there_is_no_other() -> None:
    prompts = SystemPrompts()
    for mode in ("conversation", "non-conversation"):
        assert "你是一名助手" in prompts.text(CHINESE, mode)
        assert prompts.text(CHINESE, mode).endswith(ENVIRONMENT.doc)
        assert prompts.text(ENVIRONMENT, mode) == system_prompt(ENVIRONMENT.doc, mode)
        assert prompts.text(skeleton(origin=Origin(language="fr")), mode) == system_prompt(ENVIRONMENT.doc, mode)
        assert prompts.digest(mode) == prompt_digest(mode)


def test_a_file_of_the_users_replaces_every_prompt_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("Serve.\n\n{{ doc }}\n\n{% raw %}", encoding="utf-8")
    prompts = SystemPrompts(file)
    expected = f"Serve.\n\n{ENVIRONMENT.doc}\n\n{{% raw %}}"
    assert prompts.text(ENVIRONMENT, "conversation") == prompts.text(CHINESE, "non-conversation") == expected
    assert prompts.digest("conversation") != prompt_digest("conversation")
    file.write_text("Serve well.\n\n{{ doc }}", encoding="utf-8")
    assert SystemPrompts(file).digest("conversation") != prompts.digest("conversation")


def test_a_doc_that_looks_like_the_placeholder_is_put_in_as_it_is() -> None:
    assert system_prompt("{{ doc }} again", "conversation").count("{{ doc }} again") == 1


def test_a_file_without_a_place_for_the_environment_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("Serve.", encoding="utf-8")
    with pytest.raises(UsageError, match="has no"):
        SystemPrompts(file)
    with pytest.raises(UsageError, match="cannot be read"):
        SystemPrompts(tmp_path / "none.md")
    file.write_bytes(b"\xff{{ doc }}")
    with pytest.raises(UsageError, match="cannot be read"):
        SystemPrompts(file)
