"""`Blueprint`: a declarative environment from which program, tools, rules, states, tasks and checks follow.

A blueprint is read from a domain file or composed by `derive`. It says what exists and what each operation requires
and changes, in a small expression language (`expression`). It holds no Python and no state.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from envscaler.record import Record

FieldType = Literal["str", "int", "float", "bool", "date", "time", "datetime", "list[str]"]
"""`date` is `YYYY-MM-DD`, `time` is `HH:MM`, `datetime` is `YYYY-MM-DDTHH:MM:SS`: all are strings in the state."""


Language = Literal["en", "zh"]
"""Languages that environments can be in."""


class Make(Record):
    """How a field's value is made for an initial state, or a parameter's value for a call: exactly one way."""

    pick: str | tuple[Any, ...] | None = None
    """Name of a vocabulary (the blueprint's or a common one), or the JSON values themselves."""
    text: tuple[str, ...] | None = None
    """Templates over other fields and references: `{book.title}, second edition`. A name that is neither is that of a
    vocabulary, of which an entry is put in; entries of vocabularies may name further ones."""
    whole: tuple[int, int] | None = None
    """A whole number: bounds, both included."""
    number: tuple[float, float] | None = None
    """A number with two decimals: bounds."""
    step: float | None = None
    """With `whole` or `number`: values are multiples of this."""
    date: tuple[int, int] | None = None
    """Bounds in days from the clock, both included; also for `datetime` fields."""
    time: tuple[int, int] | None = None
    """Bounds in hours of the day; on the hour or the half hour."""
    ref: bool = False
    """A random record of the entity that the field references."""
    weights: dict[str, float] | None = None
    """Enumerated values with weights."""
    value: Any = None
    """Always this."""
    derive: str | None = None
    """An expression over the record, evaluated once all records exist. The record is `it`, and also has its entity's
    variable: `count(Loan, it.book_id == book.id)`, where the inner `it` is a loan."""
    only_if: str | None = None
    """An expression over `it`: the value is None where it does not hold. Goes with any of the others."""


class FieldPlan(Record):
    """One attribute of an entity."""

    name: str
    type: FieldType = "str"
    description: str = ""
    enum: tuple[str, ...] | None = None
    ref: str | None = None
    """Entity whose id it holds."""
    optional: bool = False
    """Whether None is allowed."""
    make: Make
    label: str | None = None
    """How people call it; default: the name with spaces, in other languages than English the description."""
    stamp: bool = False
    """A time stamp or counter value set by the system: no check demands its value."""


class EntityPlan(Record):
    """One kind of record."""

    name: str
    """CamelCase singular, such as `BookCopy`."""
    noun: str
    """Singular as people say it: `book copy`."""
    plural: str = ""
    """Plural as people say it: `book copies`; left out: the noun, as in languages that have no plural."""
    variable: str = ""
    """Name of a record in expressions and programs; left out: the noun with underscores."""
    container: str = ""
    """State key of its records; left out: the plural with underscores."""
    description: str
    prefix: str
    """Prefix of its ids: `BC` gives `BC-0001`."""
    fields: tuple[FieldPlan, ...]
    title: str | None = None
    """Field whose value people use to name a record and that is unique in a state; None: only by its references."""
    label: str
    """Template of how people name a record: `{title}`, `the loan of {book.title} by {member.name}`."""
    count: tuple[int, int] = (5, 8)
    """How many records an initial state has, bounds included."""

    @model_validator(mode="before")
    @classmethod
    def _with_names(cls, plan: Any) -> Any:
        """Fill in the identifiers that follow from the nouns."""
        if not isinstance(plan, dict) or "noun" not in plan:
            return plan
        plural = plan.get("plural") or plan["noun"]
        return {
            **plan,
            "plural": plural,
            "variable": plan.get("variable") or _identifier(plan["noun"]),
            "container": plan.get("container") or _identifier(plural),
        }

    @property
    def key(self) -> str:
        """Attribute that holds its id."""
        return f"{self.variable}_id"

    @property
    def counter(self) -> str:
        """State key of the number that the next new record gets."""
        return f"next_{self.variable}_number"

    def field(self, name: str) -> FieldPlan | None:
        """The field of that name, or None."""
        return next((field for field in self.fields if field.name == name), None)


def _identifier(said: str) -> str:
    return said.lower().replace(" ", "_").replace("-", "_")


class ParamPlan(Record):
    """One parameter of an operation."""

    name: str
    """For a reference: the variable of the record (`book`); the tool's parameter is then `book_id`."""
    type: FieldType = "str"
    description: str = ""
    ref: str | None = None
    """Entity of the record that it names."""
    enum: tuple[str, ...] | None = None
    optional: bool = False
    default: Any = None
    """With `optional`: value used when left out; expressions see it."""
    make: Make | None = None
    """How a value for a task is made; None for references."""
    minimum: float | None = None
    """For numbers: least value allowed, checked by the program and stated in the schema."""
    maximum: float | None = None


class Requirement(Record):
    """A precondition that the program enforces."""

    when: str
    """Expression that must hold."""
    error: str
    """Message template when it does not; may use `{book.title}` and parameters."""
    rule: str
    """The rule of the domain in a sentence; equal sentences of several operations are one rule."""


class EffectPlan(Record):
    """One thing that an operation does to the state; exactly one of `create`, `change`, `delete`, `each`."""

    create: str | None = None
    """Entity of which a record is made; its variable is `var`. Fields that `values` leaves out get the field's
    `make.value`, else None."""
    change: str | None = None
    """Variable of a record whose fields are set."""
    delete: str | None = None
    """Variable of a record that is removed."""
    each: str | None = None
    """Entity of which every record that satisfies `where` (an expression over `it`) is changed."""
    var: str | None = None
    where: str | None = None
    values: dict[str, str] = {}
    """Field → expression."""
    when: str | None = None
    """The effect happens only if this holds, judged before any effect of the operation."""

    @model_validator(mode="after")
    def _one_kind(self) -> EffectPlan:
        if sum(part is not None for part in (self.create, self.change, self.delete, self.each)) != 1:
            raise ValueError("an effect has exactly one of create, change, delete, each")
        return self


class QueryPlan(Record):
    """What a query returns under `data`."""

    kind: Literal["get", "find", "list", "value"]
    """`get`: the record of the (only) reference parameter. `find`: records whose field contains the text, any case.
    `list`: records equal to all given optional parameters, and for which `where` holds. `value`: an expression."""
    entity: str | None = None
    field: str | None = None
    """For `find`: the field that is searched; the parameter has the same name."""
    where: str | None = None
    """For `list`: expression over `it` and the parameters."""
    sort: str | None = None
    """For `list`: field to sort by; default: order of the container."""
    descending: bool = False
    value: str | None = None
    """For `value`: the expression."""


class OperationPlan(Record):
    """One tool."""

    name: str
    description: str
    params: tuple[ParamPlan, ...] = ()
    requires: tuple[Requirement, ...] = ()
    effects: tuple[EffectPlan, ...] = ()
    query: QueryPlan | None = None
    returns: str | None = None
    """Variable of the record that an update returns under `data`; None: only a message."""
    message: str = "Done."
    """Message template of a successful update."""
    ask: tuple[str, ...] = ()
    """How a person asks for it, as a clause in the imperative: `lend {book} to {member}`. Variables of records are
    put in by their label, parameters by their value; `{closed:close|reopen}` is a word for yes and one for no. A
    plural behind a number becomes a singular where the number is 1. Empty: never asked for in a task."""

    @property
    def effect(self) -> Literal["query", "update"]:
        return "query" if self.query is not None else "update"

    def param(self, name: str) -> ParamPlan | None:
        """The parameter of that name, or None."""
        return next((param for param in self.params if param.name == name), None)


class Invariant(Record):
    """A rule that every legal state satisfies."""

    rule: str
    entity: str
    holds: str
    """Expression over a record of the entity: `it`, which also has its entity's variable."""


class Blueprint(Record):
    """One declarative environment."""

    slug: str
    summary: str
    introduction: str
    class_name: str
    language: Language = "en"
    """Of every text in it; identifiers are English in either."""
    entities: tuple[EntityPlan, ...] = Field(min_length=1)
    """A referenced entity stands before the one that references it."""
    operations: tuple[OperationPlan, ...] = Field(min_length=2)
    invariants: tuple[Invariant, ...] = ()
    vocabularies: dict[str, tuple[str, ...]] = {}
    keywords: tuple[str, ...] = ()
    """Words of a task that point to this domain."""
    derived: bool = False
    """Composed from a task over a structural template, rather than read from a domain file."""

    def __hash__(self) -> int:  # dictionaries inside forbid the generated one; what is derived from it is memoized
        return hash((self.slug, self.language, self.summary))

    def entity(self, name: str) -> EntityPlan:
        """The entity of that name.

        Raises:
            KeyError: if there is none.
        """
        for entity in self.entities:
            if entity.name == name:
                return entity
        raise KeyError(name)

    def operation(self, name: str) -> OperationPlan | None:
        """The operation of that name, or None."""
        return next((operation for operation in self.operations if operation.name == name), None)

    @property
    def created(self) -> tuple[EntityPlan, ...]:
        """Entities of which some operation makes records."""
        names = {effect.create for operation in self.operations for effect in operation.effects}
        return tuple(entity for entity in self.entities if entity.name in names)
