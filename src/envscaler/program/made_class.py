"""`made_class`: the state class of an environment written by code from its entities, without a model.

Methods are put in by `assembly`.

Source: ours. A class that a model cannot write costs the environment, and all that it has to hold is in the entities.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable

from envscaler.skeleton import Attribute, Entity, Rule
from envscaler.state import State

_TYPES = {"str", "int", "float", "bool", "list", "dict", "None", "Any", "Optional", "Union", "List", "Dict"}


def made_class(summary: str, entities: Iterable[Entity], rules: Iterable[Rule], defaults: State) -> str:
    """The module text: a TypedDict for each entity with a container, and the class with `__init__`.

    Args:
        summary: gives the class its name, where it has words in Latin letters.
        defaults: by state key, the value of what a state lacks.
    """
    entities = tuple(entities)
    records = tuple(entity for entity in entities if entity.container is not None)
    words = re.findall(r"[A-Za-z][A-Za-z0-9]*", summary)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    taken = {entity.name for entity in entities} | {"Any", "Dict", "List", "Optional", "TypedDict", "Union"}
    if not name or name in taken or keyword.iskeyword(name):
        name += "Environment"
    lines = ["import copy", "from typing import Any, Dict, List, Optional, TypedDict, Union", ""]
    for entity in records:
        lines += ["", f"class {entity.name}(TypedDict):", *_docstring([entity.description or entity.name]), ""]
        lines += [f"    {one.name}: {_annotation(one)}{_comment(one)}" for one in entity.attributes]
        lines.append("")
    texts = [f"- {rule.text}" for rule in rules]
    told = [f"{summary}.", *(["", "Rules:", *texts] if texts else [])]
    lines += ["", f"class {name}:", *_docstring(told), ""]
    lines.append("    def __init__(self, init_config: Optional[Dict[str, Any]] = None) -> None:")
    lines.append("        config = copy.deepcopy(init_config or {})")
    for entity in entities:
        if entity.container is not None:
            key = entity.container
            lines.append(f"        self.{key}: Dict[str, {entity.name}] = config.get({key!r}, {{}})")
        else:
            lines += [
                f"        self.{one.name}: {_annotation(one)} = "
                f"config.get({one.name!r}, {defaults.get(one.name)!r}){_comment(one)}"
                for one in entity.attributes
            ]
    return "\n".join(lines) + "\n"


def _annotation(attribute: Attribute) -> str:
    """The type as planned where it consists of types of JSON, else `Any`."""
    try:
        tree = ast.parse(attribute.type.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "Any"
    allowed = (ast.Expression, ast.Name, ast.Subscript, ast.Tuple, ast.BinOp, ast.BitOr, ast.Constant, ast.Load)
    for node in ast.walk(tree):
        named = node.id if isinstance(node, ast.Name) else "None"
        constant = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(node, allowed) or named not in _TYPES or constant is not None:
            return "Any"
    return ast.unparse(tree)


def _comment(attribute: Attribute) -> str:
    said = [attribute.description] if attribute.description else []
    said += [f"id of {attribute.references}"] if attribute.references else []
    said += [f"one of {', '.join(attribute.enum)}"] if attribute.enum else []
    return f"  # {_flat('; '.join(said))}" if said else ""


def _docstring(texts: Iterable[str]) -> list[str]:
    flat = [_flat(text).replace("\\", "\\\\").replace('"', "'") for text in texts]
    if len(flat) == 1:
        return [f'    """{flat[0]}"""']
    return [f'    """{flat[0]}', *(f"    {text}".rstrip() for text in flat[1:]), '    """']


def _flat(text: str) -> str:
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
