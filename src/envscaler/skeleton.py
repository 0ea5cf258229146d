"""`EnvSkeleton`: one synthesized environment E = {F_exec, E_doc, Σ_tool}, as it is stored.

Source: paper section 3. How a skeleton is made is `synth`'s business, how it is run `env`'s.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from envscaler.record import JsonSchema, Record
from envscaler.state import digest


class EnvDescription(Record):
    """E_des: what an environment is, before anything of it exists."""

    summary: str
    """A noun phrase that names the environment, such as "Library lending desk"."""
    introduction: str
    """A paragraph: what it keeps, who uses it, what can be done in it."""


class Initial(Record):
    """What a new record has as an attribute that its maker gives no value for."""

    value: str | bool | None = None
    clock: str | None = None
    """State key of the present time, where the value is this time or its day."""


class Attribute(Record):
    """One field of an entity."""

    name: str
    type: str
    """A Python annotation over JSON types: `str`, `int`, `list[str]`, `str | None`, `dict[str, float]` …"""
    description: str = ""
    references: str | None = None
    """Name of the entity whose key this attribute holds (or holds a list of)."""
    enum: tuple[str, ...] | None = None
    """The only values allowed, for a status or a kind."""
    initial: Initial | None = None
    """None: not known."""


class Entity(Record):
    """E_state, one category of it. Never shown to the agent."""

    name: str
    description: str = ""
    attributes: tuple[Attribute, ...]
    container: str | None = None
    """State key whose value maps ids to records of this entity; None: the attributes are state keys themselves."""
    key: str | None = None
    """Attribute that repeats a record's id in its container."""


class Forbidden(Record):
    """What a rule forbids, where a tool names a record: that an attribute of it has a value."""

    entity: str
    attribute: str
    value: str | bool


class Rule(Record):
    """E_rule: one rule of the domain, told to the agent."""

    text: str
    tools: tuple[str, ...] = ()
    """Tools that have to respect it; empty when not known."""
    predicate: str | None = None
    """A Python expression over `state` that is true in every legal state, where the rule can be read so."""
    forbidden: Forbidden | None = None
    """When its tools refuse a record, where the rule can be read so; `predicate` speaks of states, not of calls."""
    enforced: bool | None = None
    """Whether the program refuses what the rule forbids; None: not known."""


class Effect(Record):
    """What a tool does to one entity, in machine-readable form."""

    kind: Literal["read", "create", "update", "delete"]
    entity: str
    attributes: tuple[str, ...] = ()
    """Attributes read or set; empty: all."""


class ToolSpec(Record):
    """Σ_tool, one tool of the interface."""

    name: str
    description: str
    parameters: JsonSchema
    """A JSON Schema of type object (not OpenAI's wrapper around it)."""
    effect: Literal["query", "update"]
    """`query` never changes the state; `update` may."""
    effects: tuple[Effect, ...] | None = None
    """None when not known."""

    def to_openai(self) -> dict[str, Any]:
        """The tool in the form of OpenAI's `tools` parameter."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


class ModelUse(Record):
    """Calls, tokens and cost spent with one model on one purpose."""

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    """Part of `input_tokens` that the endpoint read from its prompt cache."""
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the price is unknown; 0.0 only for models that are free."""

    def __add__(self, other: ModelUse) -> ModelUse:
        known = None not in (self.cost_usd, other.cost_usd)
        if self.calls == 0:
            return other
        if other.calls == 0:
            return self
        return ModelUse(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


class Origin(Record):
    """Where a record comes from."""

    seed_tasks: tuple[str, ...] = ()
    """Task texts that the environment was inferred from; the first one is its own, others were merged into it."""
    language: str = "en"
    """Language of its texts, an ISO 639-1 code."""
    models: dict[str, str] = {}
    """Model name by role family (builder, tester …). `offline` is a procedural generator, not a language model."""
    prompts: dict[str, str] = {}
    """Digest of each prompt file used, by role."""
    use: dict[str, ModelUse] = {}
    """Tokens and cost of the replies used, by stage."""
    source: str | None = None
    """File or data set it was imported from; None when synthesized."""
    seed: int | None = None
    made_from: str | None = None
    """Id of the scenario that it is a harder or easier version of, and which: `ID (harder)`."""
    dropped: tuple[str, ...] = ()
    """What was given up on the way (a tool that could not be mended …), one sentence each."""


class EnvSkeleton(Record):
    """One environment: a program, a document, an interface."""

    id: str
    """Readable slug, unique in a library, also the name of its folder."""
    description: EnvDescription
    entities: tuple[Entity, ...] = ()
    rules: tuple[Rule, ...] = ()
    tools: tuple[ToolSpec, ...]
    class_name: str
    source: str
    """F_exec: the text of the program."""
    origin: Origin = Origin()
    released: dict[str, Any] | None = None
    """Fields of the authors' published format that have no place here, kept for lossless export."""

    @property
    def doc(self) -> str:
        """E_doc: what the agent reads of the environment (paper 3: description with rules)."""
        rules = "\n".join(f"- {rule.text}" for rule in self.rules)
        text = f"# {self.description.summary}\n\n{self.description.introduction}"
        return f"{text}\n\n## Rules\n{rules}" if rules else text

    @cached_property
    def digest(self) -> str:
        """Pins what an episode depends on: program, class and interface."""
        tools = [tool.model_dump(mode="json") for tool in self.tools]
        return digest({"source": self.source, "class_name": self.class_name, "tools": tools})

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)
