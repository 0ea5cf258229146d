"""`ChatTemplate`: the text that a model is served and trained on, made of messages as transformers makes it.

The project carries no template: one comes from a file, from a tokenizer's folder, or by its name from an installed
package. Which part of the text is learned is the business of `segmentation`; what tokens it becomes, that of `tokens`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError as JinjaError
from jinja2 import meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from envscaler.errors import TemplateError
from envscaler.export.tokens import SPECIAL_TOKENS, special_tokens

Row = dict[str, Any]
DAY = datetime.datetime(2024, 7, 26)
"""What templates that write the day are told, so that the same episodes give the same rows; it is the day that Llama's
templates write themselves where there is no clock."""

_PROBE = "look_up_zeppelin"
_PROBE_TOOL: Row = {
    "type": "function",
    "function": {
        "name": _PROBE,
        "description": "Look up.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    },
}
_ANSWERED: list[Row] = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _PROBE}]


class ChatTemplate:
    """A chat template and the variables that it is rendered with.

    Example:
        >>> ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}").render(
        ...     [{"role": "user", "content": "Hello"}]
        ... )
        '<user>Hello</s>'
    """

    def __init__(self, source: str, *, name: str = "the chat template", variables: Mapping[str, Any] | None = None):
        """
        Args:
            variables: What the template may read beside messages and tools: special tokens (`bos_token` …) and
                switches (`enable_thinking` …), as `chat_template_kwargs` of a server.

        Raises:
            TemplateError: if it is no template, or reads a special token that is not among the variables.
        """
        self.source = source
        self.name = name
        self.variables = dict(variables or {})
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = DAY.strftime
        try:
            read = meta.find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except JinjaError as error:
            raise TemplateError(f"{name} is no chat template: {_sentence(error)}") from error
        missing = sorted(read & SPECIAL_TOKENS - self.variables.keys())
        if missing:
            raise TemplateError(
                f"{name} writes {' and '.join(missing)}, which only the model's tokenizer knows: "
                f"name the tokenizer's folder, or give {missing[0]} as a variable of the template"
            )

    @classmethod
    def load(
        cls, name: Path | str, *, tokenizer: Path | str | None = None, variables: Mapping[str, Any] | None = None
    ) -> ChatTemplate:
        """The template that a file, a tokenizer's folder or a name of `template_names` stands for.

        Args:
            tokenizer: A tokenizer's folder, whose special tokens the template is given; by default the folder itself
                where `name` is one.
            variables: Further variables; they win over the tokenizer's.

        Raises:
            TemplateError: if there is none, or it is broken.
        """
        path = Path(name)
        if path.exists():
            source = _read(path)
            tokenizer = path if path.is_dir() and tokenizer is None else tokenizer
        elif path.name in template_names() and path.name == str(name):
            source = _read_text(_installed() / f"{name}.jinja")
        else:
            known = ", ".join(template_names()) or "none (trl, which carries templates, is not installed)"
            raise TemplateError(
                f"{name} is neither a file, nor a tokenizer's folder, nor the name of a template: {known}"
            )
        tokens = special_tokens(tokenizer) if tokenizer is not None else {}
        return cls(source, name=str(name), variables={**tokens, **(variables or {})})

    def render(self, messages: Sequence[Row], tools: Sequence[Row] = (), *, add_generation_prompt: bool = False) -> str:
        """The messages as text; with `add_generation_prompt` up to where the model begins to write.

        Raises:
            TemplateError: if the template refuses them.
        """
        try:
            return self._template.render(
                {
                    **self.variables,
                    "messages": list(messages),
                    "tools": list(tools) or None,
                    "documents": None,
                    "add_generation_prompt": add_generation_prompt,
                }
            )
        # A template is a program of someone else's: what its expressions raise is what they do with our messages.
        except (JinjaError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise TemplateError(f"{self.name} does not take these messages: {_sentence(error)}") from error

    @cached_property
    def ends_with_a_mark(self) -> bool:
        """Whether the model's turns end with something other than white space."""
        return bool(self.render(_ANSWERED).rpartition(_PROBE)[2].strip())

    @cached_property
    def empty_reasoning(self) -> str:
        """What is written before a turn without reasoning as long as it is the newest, and later no more; mostly none.

        Qwen3 writes an empty `<think>` block there.
        """
        asked = self.render(_ANSWERED[:1], add_generation_prompt=True)
        newest, later = self.render(_ANSWERED), self.render([*_ANSWERED, _ANSWERED[0]])
        if not newest.startswith(asked) or not later.startswith(f"{asked}{_PROBE}"):
            return ""
        return newest[len(asked) :].partition(_PROBE)[0]

    def require_tools(self) -> None:
        """
        Raises:
            TemplateError: if tools, calls or their results are not in what it writes; it says which.
        """
        arguments = {"key": "indigo"}
        call: Row = {"id": "call00001", "type": "function", "function": {"name": _PROBE, "arguments": arguments}}
        messages: list[Row] = [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call00001", "name": _PROBE, "content": "marmalade"},
        ]
        if _PROBE not in self.render(messages[:2], [_PROBE_TOOL], add_generation_prompt=True):
            raise TemplateError(f"{self.name} does not tell the model its tools: take a template that does")
        if "indigo" not in self.render(messages[:3], [_PROBE_TOOL]):
            raise TemplateError(f"{self.name} does not write the model's calls: take a template that does")
        if "marmalade" not in self.render(messages, [_PROBE_TOOL], add_generation_prompt=True):
            raise TemplateError(f"{self.name} does not write what calls return: take a template that does")


def template_names() -> tuple[str, ...]:
    """Names of the templates that installed packages carry; trl, so far. Nothing is imported for it."""
    folder = _installed()
    return tuple(sorted(path.stem for path in folder.glob("*.jinja"))) if folder.is_dir() else ()


def _installed() -> Path:
    spec = find_spec("trl")
    return Path(spec.origin).parent / "chat_templates" if spec is not None and spec.origin else Path("trl/-")


def _read(path: Path) -> str:
    """The template of a file, or of a tokenizer's folder: a file of its own goes before the one in its settings."""
    if path.is_dir():
        held = [path / name for name in ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")]
        sources = [source for file in held if file.is_file() and (source := _of_file(file)) is not None]
        if not sources:
            raise TemplateError(f"{path} holds no chat template: name a file with one")
        return sources[0]
    source = _of_file(path)
    if source is None:
        raise TemplateError(f"{path} holds no chat_template")
    return source


def _of_file(path: Path) -> str | None:
    text = _read_text(path)
    if path.suffix != ".json":
        return text
    try:
        held = json.loads(text)
    except ValueError as error:
        raise TemplateError(f"{path} is no JSON: {error}") from error
    template = held.get("chat_template") if isinstance(held, dict) else None
    if isinstance(template, list):
        # As transformers chooses where there are tools.
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("tool_use", named.get("default"))
    return template if isinstance(template, str) else None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path} cannot be read as a chat template: {error}") from error


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes and with readable text, which is where transformers differs from Jinja."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise JinjaError(message)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class _Generation(Extension):
    """`{% generation %}`, by which training templates mark the model's turns: it writes what stands inside."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)
