"""Tools over a table of numbers."""

from enum import Enum


class ToolType(Enum):
    READ = "read"
    WRITE = "write"
    THINK = "think"
    GENERIC = "generic"


class Kit:
    """Tools by name."""

    def __init__(self, db: dict[str, int], types: dict[str, ToolType]) -> None:
        self.db, self.types = db, types

    def has_tool(self, name: str) -> bool:
        return name in self.types

    def tool_type(self, name: str) -> ToolType:
        return self.types[name]
