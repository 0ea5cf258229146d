"""One module from a state class and its methods, by concrete syntax tree: comments and string contents survive."""

from __future__ import annotations

from collections.abc import Mapping


def assemble(class_source: str, methods: Mapping[str, str]) -> str:
    """One program from the state class and the code written for each tool.

    Args:
        class_source: a module that defines the state class, perhaps with methods already.
        methods: by tool name, the code that defines it: a bare `def` (at any indentation), with imports and helper
            definitions around it, or inside the class.

    Raises:
        ProgramError: naming the method that cannot be put in.

    Source: paper 3.2, assembly.
    """
    raise NotImplementedError


def replace_method(source: str, class_name: str, name: str, method: str) -> str:
    """The program with another method of that name."""
    raise NotImplementedError


def remove_method(source: str, class_name: str, name: str) -> str:
    """The program without a method."""
    raise NotImplementedError
