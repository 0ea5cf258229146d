"""Composes an environment from a task's own nouns and verbs over a structural template and parts.

A template is a domain file with slots (`<<thing>>`) and optional parts (`<% if "waitlist" in parts %>`). The nouns
fill the slots; which of its optional and minor operations stay, and which further parts (`composing`) join it, follows
from what the task's acts ask for and from the digest of the thing: another thing is another structure.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, Template

from envscaler.errors import ProgramError
from envscaler.offline.blueprint import Blueprint, EntityPlan, Language
from envscaler.offline.composing import MOST_TOOLS, Composition, Plan
from envscaler.offline.domains import blueprint_faults, complete
from envscaler.offline.files import load_yaml, packaged
from envscaler.offline.quantities import quantities
from envscaler.offline.queries import standard_queries
from envscaler.offline.reading import Reading, lexicon, plural
from envscaler.offline.wording import wording
from envscaler.offline.writing import article
from envscaler.state import text_digest


class Noun:
    """A noun in the forms that templates need: those of texts, and those of identifiers, which are English.

    Args:
        one: the English singular.
        said: how it is said in a language whose nouns have one form; None: English.
    """

    def __init__(self, one: str, said: str | None = None) -> None:
        self.one = one
        self.said = said or one
        self.many = plural(one)
        self.var = re.sub(r"\W+", "_", one.lower())
        self.container = re.sub(r"\W+", "_", self.many.lower())
        self.Name = "".join(word.capitalize() for word in re.findall(r"\w+", one))
        self.a = article(one)
        self.A, self.Many = self.a[:1].upper() + self.a[1:], self.many[:1].upper() + self.many[1:]
        self.Title = one[:1].upper() + one[1:]
        if said is not None:
            self.many = self.a = self.A = self.Many = self.Title = said
        words = one.upper().split()
        self.prefix = "".join(word[0] for word in words)[:3] if len(words) > 1 else words[0][:3]

    def called(self, noun: str) -> Noun:
        """The same under the noun that its records have in a template: “年假” are kept as “年假申请”."""
        return self if self.said in {noun, self.one} else Noun(self.one, noun)

    @property
    def names(self) -> str:
        """Name of the vocabulary that has names for such a place."""
        named = lexicon()["named"].items()
        return next((vocabulary for vocabulary, places in named if self.one in places), "place_names")

    @property
    def wishes(self) -> str:
        """Name of the vocabulary of what people wish for when they book there."""
        known = lexicon()["wishes"].items()
        return next((vocabulary for vocabulary, places in known if self.one in places), "wishes")

    @property
    def at(self) -> str:
        """The English word before such a place where something happens."""
        return "with" if self.names in {"person_names", "firm_names"} else "at"

    def __str__(self) -> str:
        return self.said


_RESERVED = {"self", "copy", "date", "datetime", "timedelta", "wanted", "part", "now", "today", "it", "state", "data"}


@lru_cache(maxsize=256)
def derive(reading: Reading) -> Blueprint:
    """The environment around the thing that a task is about.

    Raises:
        ProgramError: if the composed blueprint contradicts itself: a fault of a template or a part.
    """
    return compose(reading, None)


def compose(reading: Reading, parts: Collection[str] | None) -> Blueprint:
    """`derive` with the very parts given, as far as they fit; None: those that the task and the thing ask for.

    Raises:
        ProgramError: as `derive` does.
    """
    nouns = _nouns(reading)
    draw = _Draw(reading.thing)
    asked = frozenset(act for act in reading.acts if act != "read")
    where = f"template {reading.entry.template} with {reading.thing!r}"
    try:
        plan = _rendered(
            reading.entry.template,
            reading.language,
            parts=_Parts(asked, draw),
            pick=draw.pick,
            has=draw.keeps,
            **_element(reading),
            **nouns,
        )
        composition = Composition(plan, {role: noun.Name for role, noun in nouns.items()})
        composition.drop({name for name in composition.hooks["minor"] if not draw.keeps(name)})
        if parts is None:
            _attach_drawn(composition, nouns, asked, draw, reading)
        else:
            for name in parts:
                part = _part(name, composition, nouns, draw, reading)
                if composition.takes(part):
                    composition.attach(part)
        composition.tell_ids_apart()
        most = int(draw.pick("tools", range(MOST_TOOLS - 6, MOST_TOOLS + 1)))
        blueprint = _trimmed(complete({**composition.plan, "derived": True}), nouns["thing"].Name, most)
    except (yaml.YAMLError, ValueError, KeyError, TypeError) as fault:
        raise ProgramError(f"{where}: {fault}") from fault
    faults = blueprint_faults(blueprint)
    if faults:
        raise ProgramError(f"{where}: {'; '.join(faults[:3])}")
    return blueprint


_MINOR_LEFT_OUT = 0.35
_PARTS = (2, 3, 3, 4)
"""How many parts join a template: one of these."""


def _nouns(reading: Reading) -> dict[str, Noun]:
    """The nouns of the roles, no two of which are called the same."""
    spoken = reading.spoken if reading.language != "en" else None
    thing = Noun(_usable(reading.thing), spoken.thing if spoken is not None else None)
    taken = {thing.var}
    nouns = {"thing": thing}
    for role, word in (("person", reading.entry.person), ("place", reading.entry.place)):
        word = word if Noun(word).var not in taken else f"{'responsible' if role == 'person' else 'main'} {word}"
        nouns[role] = Noun(word, getattr(spoken, role) if spoken is not None else None)
        taken.add(nouns[role].var)
    return nouns


def _element(reading: Reading) -> dict[str, Any]:
    """What a list holds, for the templates of lists: its noun and what else is known of its kind."""
    english, own = (_elements(language)[reading.entry.element] for language in ("en", reading.language))
    kind = {"type": "int", "measure": english["field"], **english, **own}
    return {"element": Noun(reading.entry.element, own.get("noun")), "kind": kind}


@cache
def _elements(language: str) -> dict[str, Any]:
    loaded: dict[str, Any] = load_yaml(packaged("elements.yaml" if language == "en" else f"elements.{language}.yaml"))
    return loaded


def _usable(thing: str) -> str:
    """The thing, in words that can name a variable and say what it is."""
    taken = keyword.iskeyword(thing) or thing in _RESERVED or plural(thing) == thing
    return f"{thing} entry" if taken else thing


def _attach_drawn(
    composition: Composition, nouns: dict[str, Noun], asked: frozenset[str], draw: _Draw, reading: Reading
) -> None:
    """Attach parts in drawn order; those that the task's acts ask for are passed over less often."""
    wanted, language = int(draw.pick("parts", _PARTS)), reading.language
    for name in sorted(part_names(language), key=lambda name: draw.share("part", name)):
        if wanted == 0 or composition.tools() > MOST_TOOLS - _LEAST_TOOLS:
            return
        if not fits(name, reading.entry.template):
            continue
        if not asked.intersection(_line("acts", name)) and draw.share("passed over", name) < _UNASKED_LEFT_OUT:
            continue
        part = _part(name, composition, nouns, draw, reading)
        if composition.takes(part):
            composition.attach(part)
            wanted -= 1


_LEAST_TOOLS = 2
"""Tools that the smallest part brings."""


def fits(part: str, template: str) -> bool:
    """Whether a part makes sense with a template, whatever the thing is."""
    return template in _line("fits", part)


@cache
def _line(key: str, part: str) -> frozenset[str]:
    """The acts for which a part is there, or the templates that it fits: one line of its English file, unrendered."""
    found = re.search(rf"^{key}: \[(.*)\]$", _source(f"parts/{part}", "en"), re.MULTILINE)
    return frozenset(found[1].split(", ")) if found is not None else frozenset()


def _part(name: str, composition: Composition, nouns: dict[str, Noun], draw: _Draw, reading: Reading) -> Plan:
    own = _Draw(f"{draw.seed}/{name}")
    return _rendered(
        f"parts/{name}",
        reading.language,
        template=reading.entry.template,
        title=composition.entity("thing")["title"],
        called=composition.called,
        said=composition.hooks["said"],
        stopped=composition.hooks["stopped"],
        live=composition.live,
        pick=own.pick,
        alt=own.alternative,
        has_person=composition.references("person"),
        has_place=composition.references("place"),
        **{**nouns, "thing": nouns["thing"].called(composition.entity("thing")["noun"])},
    )


_UNASKED_LEFT_OUT = 0.4
"""How often a part is passed over that no act of the task asks for."""


def _trimmed(blueprint: Blueprint, thing: str, most: int) -> Blueprint:
    """No more tools than that where queries can be spared: lists show as much as what else every entity has."""
    spare = len(blueprint.operations) - most
    if spare <= 0:
        return blueprint
    known = {entity.name: entity for entity in blueprint.entities}

    def need(entity: EntityPlan, kind: str) -> tuple[bool, bool, bool]:
        return entity.name == thing, entity.title is not None, kind == "find"

    queries = [
        (need(entity, query.query.kind), query.name)
        for entity in known.values()
        for query in standard_queries(entity, wording(blueprint.language))
        if query.query is not None and query.query.kind != "list"
    ]
    dropped = {name for _, name in sorted(queries)[:spare]}
    kept = tuple(operation for operation in blueprint.operations if operation.name not in dropped)
    return blueprint.model_copy(update={"operations": kept})


class _Draw:
    """Choices that follow from a text alone."""

    def __init__(self, seed: str) -> None:
        self.seed = seed

    def share(self, *names: str) -> float:
        """A number from 0 to 1."""
        return int(text_digest("/".join((self.seed, *names)))[:12], 16) / 16**12

    def keeps(self, operation: str) -> bool:
        """Whether a minor operation of that name stays."""
        return self.share("minor", operation) >= _MINOR_LEFT_OUT

    def pick(self, name: str, choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.share("pick", name) * len(choices))]

    def alternative(self, name: str) -> bool:
        """Whether the alternative of that name is taken."""
        return self.share("alternative", name) < 0.5


class _Parts:
    """`"waitlist" in parts`: asked for by the task, or drawn for this thing, one part in two."""

    def __init__(self, asked: frozenset[str], draw: _Draw) -> None:
        self._asked = asked
        self._draw = draw

    def __contains__(self, part: str) -> bool:
        return part in self._asked or self._draw.share("own part", part) < 0.5


_JINJA = Environment(
    undefined=StrictUndefined,
    variable_start_string="<<",
    variable_end_string=">>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)
# `每<<thing|measure>><<thing>>`: the measure word of a noun; only Chinese templates count with them.
_JINJA.filters["measure"] = lambda noun: quantities("zh").measure(str(noun))


def _rendered(name: str, language: Language, **names: Any) -> Plan:
    loaded: Plan = load_yaml(_template(name, language).render(**names))
    return loaded


@cache
def _template(name: str, language: Language) -> Template:
    return _JINJA.from_string(_source(name, language))


def _source(name: str, language: Language) -> str:
    return _folder(language).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def _folder(language: Language) -> Traversable:
    """English templates lie in `templates/`, others in a folder of their own there, by the same names."""
    folder = resources.files("envscaler.offline").joinpath("templates")
    return folder if language == "en" else folder.joinpath(language)


@cache
def part_names(language: Language = "en") -> tuple[str, ...]:
    """Names of all parts."""
    return _names(_folder(language).joinpath("parts"))


@cache
def template_names(language: Language = "en") -> tuple[str, ...]:
    """Names of all structural templates."""
    return _names(_folder(language))


def _names(folder: Traversable) -> tuple[str, ...]:
    return tuple(sorted(path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml")))
