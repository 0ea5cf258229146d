"""The import statements of a module: merged, sorted, and completed where a name is missing and has one source.

Works on names only; where the statements stand in the text is `assembly`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

_TYPING = (
    "Any", "Callable", "ClassVar", "DefaultDict", "Dict", "Final", "FrozenSet", "Iterable", "Iterator", "List",
    "Literal", "Mapping", "MutableMapping", "NamedTuple", "NewType", "NotRequired", "Optional", "Required", "Sequence",
    "Set", "Tuple", "Type", "TypedDict", "Union", "cast",
)  # fmt: skip
_MODULES = (
    "ast", "bisect", "calendar", "collections", "copy", "decimal", "functools", "hashlib", "heapq", "itertools", "json",
    "math", "operator", "random", "re", "secrets", "statistics", "string", "textwrap", "time", "typing", "uuid",
)  # fmt: skip
_FROM = {
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "copy": ("deepcopy",),
    "dataclasses": ("asdict", "dataclass"),
    "datetime": ("date", "timedelta", "timezone"),
    "decimal": ("ROUND_HALF_UP", "Decimal", "InvalidOperation"),
    "enum": ("Enum", "IntEnum", "StrEnum"),
    "fractions": ("Fraction",),
    "functools": ("reduce",),
    "uuid": ("uuid4",),
    "zoneinfo": ("ZoneInfo",),
}
_SOURCES = {
    **{name: ("typing", name) for name in _TYPING},
    **{module: (module, None) for module in _MODULES},
    **{name: (module, name) for module, names in _FROM.items() for name in names},
}
_DATETIME_CLASS = {
    "combine", "fromisoformat", "fromtimestamp", "max", "min", "now", "strptime", "today", "utcfromtimestamp", "utcnow",
}  # fmt: skip
_DATETIME_MODULE = {"UTC", "date", "datetime", "time", "timedelta", "timezone", "tzinfo"}


@dataclass(frozen=True, slots=True)
class Imported:
    """What one name of a module is bound to by an import."""

    module: str
    """Dotted name, with leading dots of a relative import."""
    name: str | None
    """The name taken from it; None for the module itself."""
    bound: str
    """The name that it is known by."""


@dataclass
class Imports:
    """The imports of one module, by the name that they bind; of two that bind the same, the later counts."""

    by_name: dict[str, Imported] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules of `from … import *`."""

    def add(self, imported: Iterable[Imported]) -> None:
        """Add imports after those that are there."""
        for each in imported:
            if each.bound == "*":
                self.stars = list(dict.fromkeys([*self.stars, each.module]))
            else:
                self.by_name[each.bound] = each

    def conflicts(self, imported: Iterable[Imported]) -> list[Imported]:
        """Those of `imported` that would rebind a name to something else."""
        return [each for each in imported if self.by_name.get(each.bound, each) != each]

    def lines(self) -> list[str]:
        """The statements: `__future__`, then modules, then names, sorted."""
        taken: dict[str, list[Imported]] = {}
        modules: list[str] = []
        for each in self.by_name.values():
            if each.name is None:
                # `import a.b` binds `a`; its dotted name is what has to be imported.
                head = each.module.split(".")[0]
                modules.append(
                    f"import {each.module}" + ("" if each.bound in (each.module, head) else f" as {each.bound}")
                )
            else:
                taken.setdefault(each.module, []).append(each)
        lines = sorted(set(modules)) + [f"from {module} import *" for module in sorted(self.stars)]
        for module in sorted(taken, key=lambda module: (module.startswith("."), module)):
            names = sorted(
                {f"{each.name}" + (f" as {each.bound}" if each.bound != each.name else "") for each in taken[module]}
            )
            lines.append(f"from {module} import {', '.join(names)}")
        future = [line for line in lines if line.startswith("from __future__ ")]
        return [*future, *(line for line in lines if line not in future)]


def imports_in(statement: cst.BaseSmallStatement) -> list[Imported] | None:
    """What an import statement binds; None when the statement is no import."""
    if isinstance(statement, cst.Import):
        out = []
        for alias in statement.names:
            module = _dotted(alias.name)
            bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            # Two submodules of one package bind the same name without a conflict, so each keeps its dotted one.
            out.append(Imported(module, None, bound or module))
        return out
    if isinstance(statement, cst.ImportFrom):
        module = "." * len(statement.relative) + (_dotted(statement.module) if statement.module is not None else "")
        if isinstance(statement.names, cst.ImportStar):
            return [Imported(module, "*", "*")]
        return [
            Imported(
                module,
                _dotted(alias.name),
                alias.asname.name.value
                if alias.asname and isinstance(alias.asname.name, cst.Name)
                else _dotted(alias.name),
            )
            for alias in statement.names
        ]
    return None


def well_known(names: Iterable[str], attributes: dict[str, set[str]]) -> list[Imported]:
    """Imports for those of the undefined `names` whose source is beyond doubt.

    Args:
        attributes: by name, the attributes that the program takes from it: they tell `datetime` the class from
            `datetime` the module.
    """
    found = []
    for name in sorted(names):
        if name == "datetime":
            used = attributes.get(name, set())
            if used <= _DATETIME_CLASS:
                found.append(Imported("datetime", "datetime", "datetime"))
            elif used <= _DATETIME_MODULE:
                found.append(Imported("datetime", None, "datetime"))
        elif name in _SOURCES:
            module, taken = _SOURCES[name]
            found.append(Imported(module, taken, name))
    return found


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""
