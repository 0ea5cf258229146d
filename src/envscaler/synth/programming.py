"""From a design to a program whose every tool was tried: class, methods, assembly, mending.

Whether the tools do the right thing is `assess`' business.

Source: paper 3.2, program modelling and assembly. Ours: a method that does not work goes back with its fault, and
one that stays broken is made to do less (`salvage`), and else costs its tool, not the environment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from envscaler.errors import ProgramError, ReplyError
from envscaler.program import FaultKind, analyze, assemble, class_name_of, tool_schemas
from envscaler.program.made_class import made_class
from envscaler.record import JsonSchema
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import DEFAULT_CLOCK, Program, Sandbox
from envscaler.skeleton import Attribute, Entity, Rule, ToolSpec
from envscaler.state import JsonValue, State
from envscaler.synth.asking import Asking
from envscaler.synth.design import Design, rules_left
from envscaler.synth.methods import MethodWriter
from envscaler.synth.salvage import Salvage, Salvaged
from envscaler.synth.seeds import derived_seed
from envscaler.synth.settings import METHODS_PER_CALL
from envscaler.synth.smoke import smoke
from envscaler.synth.states import write_state
from envscaler.synth.turns import local_work

ONE_AT_A_TIME = "methods: asked for one at a time, because of several at once fewer than half could be used"
_NO_METHOD = "it is no public method that can be called on an instance"
_LIGHT: frozenset[FaultKind] = frozenset({"signature", "import", "undeclared_tool"})
"""Kinds of static faults that do not cost a tool: the interface follows the signature whatever was planned, an import
that cannot be had shows when the program is loaded, and what is no tool is never offered."""


@dataclass(frozen=True)
class Programmed:
    """A design with its program."""

    source: str
    class_name: str
    tools: tuple[ToolSpec, ...]
    rules: tuple[Rule, ...]
    dropped: tuple[str, ...]
    """What was given up, with the reason: tools, refusals, predicates, a class by the model, several methods a call."""


async def program(
    design: Design, *, seed: int, asking: Asking, sandbox: Sandbox, methods_per_call: int = METHODS_PER_CALL
) -> Programmed:
    """Write the program of a design and try it.

    Args:
        methods_per_call: methods asked for at once; 1: each in a call of its own, as in the paper.

    Raises:
        ReplyError: if a test state stays unusable, or the class, and none can be made of the entities.
        ProgramError: if no query or no update tool is left.
    """
    return await _Programming(design, seed, asking, sandbox, methods_per_call).run()


async def first_attempt(design: Design, *, seed: int, asking: Asking, sandbox: Sandbox) -> dict[str, str]:
    """Write the program of a design and try it, and mend nothing: the tools that do not stand, with the reason.

    Raises:
        ReplyError: if a test state stays unusable, or the class, and none can be made of the entities.
        ProgramError: if the program cannot be loaded and no single method is to blame.
    """
    return await _Programming(design, seed, asking, sandbox, METHODS_PER_CALL).attempt()


@dataclass(frozen=True)
class _Assembled:
    """What was assembled last, kept because assembling costs more than all else here."""

    methods: dict[str, str]
    source: str
    schemas: dict[str, JsonSchema]


class _Programming:
    def __init__(self, design: Design, seed: int, asking: Asking, sandbox: Sandbox, methods_per_call: int) -> None:
        self._design = design
        self._seed = seed
        self._asking = asking
        self._sandbox = sandbox
        self._methods_per_call = methods_per_call
        # Models that need the staged scaffold hardly ever mend what they are told is wrong.
        self._rewritings = asking.attempts - 1 if asking.scaffold == "whole" else 0
        self._known = t.WriteClassInputs(
            description=design.description,
            seed_tasks=design.seed_tasks,
            language=design.language,
            entities=design.entities,
            rules=design.rules,
            tools=design.tools,
        )
        self._class_source = ""
        self._class_name = ""
        self._methods: dict[str, str] = {}
        self._dropped: dict[str, str] = {}
        self._state: State | None = None
        self._broken: tuple[str, ...] = ()
        self._last: _Assembled | None = None
        self._salvaged: list[Salvaged] = []
        self._class_told: tuple[str, ...] = ()

    async def run(self) -> Programmed:
        await self._write_all()
        self._salvage = Salvage(self._design.rules, self._writer, self._fault_of)
        broken_predicates = await self._mend()
        source = self._assembled()
        tools = self._tools()
        rules = rules_left(self._design.rules, tools)
        return Programmed(
            source=source,
            class_name=self._class_name,
            tools=tools,
            rules=tuple(self._as_it_came(rule, broken_predicates) for rule in rules),
            dropped=(
                *self._class_told,
                *(() if self._writer.is_up_to_several else (ONE_AT_A_TIME,)),
                *(one.told for one in self._salvaged if one.tool in self._methods),
                *(f"tool {name}: {self._dropped[name]}" for name in self._names() if name in self._dropped),
                *(f"predicate {text!r}: no written state satisfied it" for text in broken_predicates),
            ),
        )

    async def attempt(self) -> dict[str, str]:
        """Write everything once; by tool, why it does not stand."""
        await self._write_all()
        grave, _ = await self._faults()
        return {**self._dropped, **grave}

    def _as_it_came(self, rule: Rule, broken_predicates: tuple[str, ...]) -> Rule:
        """A rule with what is known of it now."""
        if rule.predicate in broken_predicates:
            rule = rule.model_copy(update={"predicate": None})
        if any(rule.text in one.unenforced for one in self._salvaged if one.tool in self._methods):
            rule = rule.model_copy(update={"enforced": False})
        return rule

    # -- writing --

    async def _write_all(self) -> None:
        self._class_source = await self._written_class()
        self._class_name = class_name_of(self._class_source)
        self._writer = MethodWriter(
            self._known,
            class_source=self._class_source,
            class_name=self._class_name,
            per_call=self._methods_per_call,
            asking=self._asking,
        )
        await self._write({tool.name: None for tool in self._design.tools})

    async def _write(self, faults: Mapping[str, str | None]) -> None:
        """Write the methods of these tools; one that cannot be had stays as it was, or is dropped."""
        questions = [
            t.MethodQuestion(tool=tool, fault=faults[tool.name], previous=self._methods.get(tool.name))
            for tool in self._design.tools
            if tool.name in faults
        ]
        written, reasons = await self._writer.write(questions)
        self._methods |= written
        for name, why in reasons.items():
            if name not in self._methods:
                self._drop(name, why)

    async def _written_class(self) -> str:
        """The state class as the model writes it; where it cannot, as code makes it from the entities."""
        design, bare = self._design, _bare_state(self._design.entities)
        if self._asking.scaffold == "staged":
            return made_class(design.description.summary, design.entities, design.rules, bare)
        try:
            reply = await self._asking(roles.WRITE_CLASS, self._known, doubt=self._class_doubt)
        except ReplyError as fault:
            source = made_class(design.description.summary, design.entities, design.rules, bare)
            if await self._class_doubt(t.CodeReply(source=source)) is not None:
                raise
            self._class_told = (f"class: made by code, because {' '.join(str(fault).split())[:300]}",)
            return source
        return reply.source

    async def _class_doubt(self, reply: t.CodeReply) -> str | None:
        bare = _bare_state(self._design.entities)
        try:
            program = Program(reply.source, class_name_of(reply.source))
            async with self._sandbox.trial(program, bare):
                pass
        except ProgramError as fault:
            return str(fault)
        try:
            async with self._sandbox.trial(program, {}) as session:
                own = await session.state()
        except ProgramError:
            return None  # it needs every key; whether it takes them all shows when a state is loaded
        missing = [f"self.{key}" for key in bare if key not in own]
        return f"__init__ does not set {', '.join(missing)}" if missing else None

    # -- trying and mending --

    async def _mend(self) -> tuple[str, ...]:
        """Try all methods, have faulty ones rewritten, drop those that stay gravely faulty.

        Returns:
            The predicates that the test state does not satisfy.
        """
        rewritten: Counter[str] = Counter()
        usable: dict[str, str] = {}
        while True:
            self._require_both_kinds()
            grave, light = await self._faults()
            again: dict[str, str | None] = {}
            for name, message in {**light, **grave}.items():
                if name not in grave:
                    usable.setdefault(name, self._methods[name])
                if rewritten[name] < self._rewritings:
                    rewritten[name] += 1
                    again[name] = message
                elif name in grave and name in usable:
                    self._methods[name] = usable.pop(name)  # mending it made it worse
                elif name in grave:
                    await self._give_up(name, message)
            if not grave and not again:
                return self._broken
            await self._write(again)

    async def _give_up(self, name: str, message: str) -> None:
        """Make a method that stays faulty do less, or drop its tool."""
        salvaged = await self._salvage.of(self._tool(name), self._methods[name], message)
        if salvaged is None:
            self._drop(name, message)
        else:
            self._methods[name] = salvaged.source
            self._salvaged.append(salvaged)

    async def _fault_of(self, name: str, source: str) -> str | None:
        """What is gravely wrong with a method alone in the class, or None."""
        try:
            whole = assemble(self._class_source, {name: source})
            schemas = tool_schemas(whole, self._class_name)
            tool = self._tool(name)
            for fault in analyze(whole, self._class_name, [tool]):
                if fault.tool == name and fault.kind not in _LIGHT:
                    return fault.message
            if name not in schemas:
                return _NO_METHOD
            program = Program(whole, self._class_name)
            if self._state is None:
                unloadable = await self._loading_fault(whole)
                return str(unloadable) if unloadable is not None else None
            tool = tool.model_copy(update={"parameters": interface(tool.parameters, schemas[name])})
            found = await smoke(program, self._state, [tool], self._design.entities, self._seed, self._sandbox)
        except ProgramError as fault_of_all:
            return str(fault_of_all)
        return next((one.message for one in found if one.grave), None)

    def _tool(self, name: str) -> ToolSpec:
        return next(tool for tool in self._design.tools if tool.name == name)

    async def _faults(self) -> tuple[dict[str, str], dict[str, str]]:
        """The faults of the methods as they stand: those that cost the tool, and those that do not."""
        async with local_work():
            grave, light = await self._faults_of_text()
        if grave:
            return grave, light
        self._asking.loads = True
        program = Program(self._assembled(), self._class_name)
        tools = self._tools()
        if self._state is None:
            written = await write_state(
                t.EnvironmentInputs(**{**dict(self._known), "tools": tools}),
                program,
                purpose="assessment",
                index=0,
                seed=derived_seed(self._seed, "assessment"),
                asking=self._asking,
                sandbox=self._sandbox,
                tolerate_predicates=True,
            )
            self._state, self._broken = written.state, written.broken
        async with local_work():
            smoked = await smoke(program, self._state, tools, self._design.entities, self._seed, self._sandbox)
        for found in smoked:
            (grave if found.grave else light).setdefault(found.tool, found.message)
        return grave, light

    async def _faults_of_text(self) -> tuple[dict[str, str], dict[str, str]]:
        """The same, of what shows before anything is called."""
        grave: dict[str, str] = {}
        light: dict[str, str] = {}
        try:
            source = self._assembled()
        except ProgramError as whole:
            return self._blamed(whole, self._assembling_fault), light
        planned = [tool for tool in self._design.tools if tool.name in self._methods]
        for fault in analyze(source, self._class_name, planned):
            if fault.tool in self._methods:
                (light if fault.kind in _LIGHT else grave).setdefault(fault.tool, fault.message)
        for name in [name for name in self._methods if name not in self._schemas()]:
            grave.setdefault(name, _NO_METHOD)
        # What cannot be loaded cannot be tried, and one method keeps all others from being loaded.
        return grave or await self._loading_faults(source), light

    async def _loading_faults(self, source: str) -> dict[str, str]:
        """The tools without which the program could be loaded, when it cannot."""
        whole = await self._loading_fault(source)
        if whole is None:
            return {}
        alone = {
            name: await self._loading_fault(assemble(self._class_source, {name: method}))
            for name, method in self._methods.items()
        }
        return self._blamed(whole, alone.get)

    async def _loading_fault(self, source: str) -> ProgramError | None:
        program = Program(source, self._class_name)
        try:
            async with self._sandbox.trial(program, _bare_state(self._design.entities)):
                return None
        except ProgramError as fault:
            return fault

    def _assembling_fault(self, name: str) -> ProgramError | None:
        try:
            assemble(self._class_source, {name: self._methods[name]})
        except ProgramError as fault:
            return fault
        return None

    def _blamed(self, whole: ProgramError, alone: Callable[[str], ProgramError | None]) -> dict[str, str]:
        """The fault of each method that has one by itself.

        Raises:
            ProgramError: `whole`, if no single method is to blame.
        """
        faults = {name: str(fault) for name in self._methods if (fault := alone(name)) is not None}
        if not faults:
            raise whole
        return faults

    def _require_both_kinds(self) -> None:
        left = {tool.effect for tool in self._design.tools if tool.name in self._methods}
        for kind in ("query", "update"):
            if kind not in left:
                reasons = "; ".join(f"{name}: {why}" for name, why in self._dropped.items())
                raise ProgramError(f"no {kind} tool is left ({reasons})")

    def _drop(self, name: str, reason: str) -> None:
        self._methods.pop(name, None)
        self._dropped[name] = " ".join(reason.split())[:500]

    def _assembled(self) -> str:
        ordered = {name: self._methods[name] for name in self._names() if name in self._methods}
        if self._last is None or self._last.methods != ordered:
            source = assemble(self._class_source, ordered)
            self._last = _Assembled(ordered, source, tool_schemas(source, self._class_name))
        return self._last.source

    def _schemas(self) -> dict[str, JsonSchema]:
        self._assembled()
        return self._last.schemas if self._last is not None else {}

    def _names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self._design.tools)

    def _tools(self) -> tuple[ToolSpec, ...]:
        schemas = self._schemas()
        return tuple(
            tool.model_copy(update={"parameters": interface(tool.parameters, schemas[tool.name])})
            for tool in self._design.tools
            if tool.name in self._methods and tool.name in schemas
        )


def interface(planned: JsonSchema, derived: JsonSchema) -> JsonSchema:
    """The schema of a tool: the parameters of its signature, described as planned.

    Where plan and signature agree on a type, the plan's limits (enum, minimum …) stay; where they do not, the
    signature is right, because it is what is called.
    """
    plans = planned.get("properties", {})
    properties: dict[str, JsonValue] = {}
    for name, signature in derived.get("properties", {}).items():
        plan = plans.get(name, {})
        described = {"description": plan["description"]} if plan.get("description") else {}
        properties[name] = {**_limited(signature, plan), **described}
    return {**derived, "properties": properties}


def _limited(signature: JsonSchema, plan: JsonSchema) -> JsonSchema:
    """A parameter's schema with the plan's limits where both name the type: as the only one, or beside null."""
    if "type" in plan and plan["type"] == signature.get("type"):
        return {**signature, **{key: value for key, value in plan.items() if key not in ("type", "default")}}
    if "anyOf" not in signature:
        return signature
    plan = {key: value for key, value in plan.items() if key != "description"}
    return {**signature, "anyOf": [_limited(option, plan) for option in signature["anyOf"]]}


def _bare_state(entities: Iterable[Entity]) -> State:
    """A state without records, for loading what there is of a program before any state was written."""
    state: State = {}
    for entity in entities:
        if entity.container is not None:
            state[entity.container] = {}
        else:
            state.update({attribute.name: _bare_value(attribute) for attribute in entity.attributes})
    return state


def _bare_value(attribute: Attribute) -> JsonValue:
    if attribute.enum:
        return attribute.enum[0]
    head = attribute.type.strip().lower().partition("[")[0]
    empty: dict[str, JsonValue] = {"int": 0, "float": 0.0, "bool": False, "str": DEFAULT_CLOCK, "list": [], "dict": {}}
    return empty.get(head)
