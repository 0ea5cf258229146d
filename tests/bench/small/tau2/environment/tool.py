from dataclasses import dataclass
from typing import Any


@dataclass
class Tool:
    name: str

    @property
    def openai_schema(self) -> dict[str, Any]:
        about = {"name": self.name, "description": f"To {self.name}.", "parameters": {"type": "object"}}
        return {"type": "function", "function": about}
