"""Results that are a part of the state itself, so that whoever changes what was returned changes the environment.

In a sandbox results leave as JSON and share nothing; in plain Python, as programs are published, they do. So the
sharing is looked for inside, by a method that is added to the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.assessment import Finding
from envscaler.errors import ProgramError
from envscaler.messages import ToolCall
from envscaler.sandbox import Program, Sandbox, Snapshot
from envscaler.state import State

ALIASED = "aliased_result"
"""Name of the oracle."""
_METHOD = "shared_parts_of_result"
_ADDED = '''

class {name}({base}):
    def {method}(self, tool, arguments):
        """Pointers to the parts of a result that are parts of the state as well."""
        result = getattr(self, tool)(**arguments)
        parts, seen, shared = [vars(self)], set(), []
        while parts:
            part = parts.pop()
            if id(part) not in seen:
                seen.add(id(part))
                inner = part.values() if isinstance(part, dict) else part
                parts += [one for one in inner if isinstance(one, (dict, list))]
        asked = [("", result)]
        while asked:
            pointer, part = asked.pop()
            if id(part) in seen:
                shared.append(pointer or "/")
            elif isinstance(part, (dict, list)):
                pairs = part.items() if isinstance(part, dict) else enumerate(part)
                asked += [(f"{{pointer}}/{{key}}", one) for key, one in pairs if isinstance(one, (dict, list))]
        return sorted(shared)
'''


async def aliases(
    sandbox: Sandbox, program: Program, state: State, calls: Sequence[tuple[Snapshot, ToolCall]]
) -> dict[int, tuple[Finding, ...]]:
    """What is found of each call, by its index; calls that give no result find nothing.

    Args:
        calls: each is made from its moment.

    Raises:
        ProgramError: if the program cannot be loaded.
    """
    name = f"{program.class_name}WatchedForSharing"
    added = _ADDED.format(name=name, base=program.class_name, method=_METHOD)
    found: dict[int, tuple[Finding, ...]] = {}
    async with sandbox.trial(Program(program.source + added, name), state) as session:
        for index, (moment, call) in enumerate(calls):
            try:
                await session.restore(moment, fresh=False)
            except ProgramError:
                continue  # found elsewhere: the program does not take a state of its own
            outcome = await session.call(_METHOD, {"tool": call.name, "arguments": dict(call.arguments)})
            if isinstance(outcome.result, list) and outcome.result:
                places = ", ".join(str(pointer) for pointer in outcome.result[:3])
                detail = f"{call.name} returned a part of the state itself at {places}, and no copy of it"
                found[index] = (Finding(oracle=ALIASED, detail=detail),)
    return found
