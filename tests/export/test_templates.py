from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envscaler.errors import TemplateError, UsageError
from envscaler.export.templates import ChatTemplate, template_names
from envscaler.export.tokens import load_tokenizer, special_tokens

PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
CALLS = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}"
    "</s>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
ASK: list[dict[str, Any]] = [{"role": "user", "content": "Is it <b>“图”</b>?"}]


def test_text_is_neither_escaped_for_html_nor_for_ascii() -> None:
    written = ChatTemplate("{{ messages | tojson }} {{ messages[0].content }}").render(ASK)
    assert written == '[{"role": "user", "content": "Is it <b>“图”</b>?"}] Is it <b>“图”</b>?'


def test_json_keeps_the_order_of_keys_and_takes_an_indent() -> None:
    written = ChatTemplate("{{ messages[0] | tojson(indent=1) }}").render([{"role": "user", "content": "?", "a": 1}])
    assert written == '{\n "role": "user",\n "content": "?",\n "a": 1\n}'


def test_lines_of_blocks_leave_no_white_space_behind() -> None:
    source = "{% for m in messages %}\n  {% if true %}\n{{ m.role }}\n  {% endif %}\n{% endfor %}"
    assert ChatTemplate(source).render(ASK) == "user\n"


def test_the_day_is_always_the_same() -> None:
    assert ChatTemplate("{{ strftime_now('%d %b %Y') }}").render(ASK) == "26 Jul 2024"


def test_marks_of_training_templates_and_loop_controls_are_known() -> None:
    source = "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% break %}{% endfor %}"
    assert ChatTemplate(source).render(ASK * 2) == "user"


def test_what_a_template_refuses_is_said_in_one_sentence() -> None:
    strict = ChatTemplate("{{ raise_exception('Roles must\\n alternate!') }}", name="strict")
    with pytest.raises(TemplateError, match=r"^strict does not take these messages: Roles must alternate!$"):
        strict.render(ASK)


@pytest.mark.parametrize(
    "source",
    ["{{ messages[0].content + 1 }}", "{{ messages[0]['content'].nothing.more }}", "{{ messages.append(1) }}"],
)
def test_a_template_that_fails_on_messages_or_would_change_them_is_refused(source: str) -> None:
    with pytest.raises(TemplateError, match="does not take these messages"):
        ChatTemplate(source).render(ASK)
    assert len(ASK) == 1


def test_a_broken_template_is_refused_when_it_is_read() -> None:
    with pytest.raises(TemplateError, match=r"^the chat template is no chat template|^the chat template.*endfor"):
        ChatTemplate("{% for m in messages %}")


def test_a_special_token_has_to_be_known() -> None:
    source = "{{ bos_token }}" + PLAIN
    with pytest.raises(TemplateError, match="writes bos_token, which only the model's tokenizer knows"):
        ChatTemplate(source, name="llama")
    assert ChatTemplate(source, variables={"bos_token": "<s>"}).render(ASK).startswith("<s><user>")


def test_variables_are_what_a_server_calls_chat_template_kwargs() -> None:
    source = "{% if enable_thinking is defined and enable_thinking is false %}quick{% else %}slow{% endif %}"
    assert ChatTemplate(source).render(ASK) == "slow"
    assert ChatTemplate(source, variables={"enable_thinking": False}).render(ASK) == "quick"


def test_a_template_that_writes_tools_calls_and_results_is_fine() -> None:
    ChatTemplate(CALLS).require_tools()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (PLAIN, "does not tell the model its tools"),
        ("{{ tools | tojson }}" + PLAIN, "does not write the model's calls"),
        (
            CALLS.replace("for m in messages", "for m in messages if m.role != 'tool'"),
            "does not write what calls return",
        ),
    ],
)
def test_a_template_without_tools_is_refused_by_what_it_lacks(source: str, complaint: str) -> None:
    with pytest.raises(TemplateError, match=complaint):
        ChatTemplate(source).require_tools()


def test_a_template_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(PLAIN + "\n", encoding="utf-8")
    loaded = ChatTemplate.load(tmp_path / "t.jinja")
    assert loaded.render(ASK) == "<user>Is it <b>“图”</b>?</s>"
    assert loaded.name == str(tmp_path / "t.jinja")


def test_a_template_comes_from_a_tokenizers_folder_with_its_special_tokens(tmp_path: Path) -> None:
    settings = {"chat_template": "old", "bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert ChatTemplate.load(tmp_path).render(ASK) == "old"
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}new{{ eos_token }}", encoding="utf-8")
    assert ChatTemplate.load(tmp_path).render(ASK) == "<s>new</s>"
    assert ChatTemplate.load(tmp_path, variables={"eos_token": "<end>"}).render(ASK) == "<s>new<end>"
    assert special_tokens(tmp_path) == {"bos_token": "<s>", "eos_token": "</s>"}


def test_of_several_templates_the_one_for_tools_is_taken(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "with tools"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}), encoding="utf-8")
    assert ChatTemplate.load(tmp_path).render(ASK) == "with tools"


def test_a_tokenizers_folder_may_go_with_a_template_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "special_tokens_map.json").write_text('{"bos_token": "<s>"}', encoding="utf-8")
    (tmp_path / "t.jinja").write_text("{{ bos_token }}", encoding="utf-8")
    assert ChatTemplate.load(tmp_path / "t.jinja", tokenizer=tmp_path).render(ASK) == "<s>"


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"chat_template": 3}'])
def test_a_folder_without_a_template_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds no chat template|is no JSON"):
        ChatTemplate.load(tmp_path)


def test_a_name_that_nobody_carries_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(TemplateError, match="qwen9 is neither a file, nor a tokenizer's folder, nor the name of a tem"):
        ChatTemplate.load("qwen9")


def test_names_come_from_an_installed_package_that_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trl" / "chat_templates").mkdir(parents=True)
    (tmp_path / "trl" / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    (tmp_path / "trl" / "chat_templates" / "small.jinja").write_text(PLAIN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert template_names() == ("small",)
    assert ChatTemplate.load("small").source == PLAIN


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no tokenizer in|needs the package tokenizers"):
        load_tokenizer(tmp_path)
