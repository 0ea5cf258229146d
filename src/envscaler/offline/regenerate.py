"""`regenerated`: the program that the embedded generator makes for an environment, made anew.

Whoever runs a program only because the generator wrote it must not take anybody's word for that.
"""

from __future__ import annotations

from envscaler.errors import ProgramError
from envscaler.offline.design import class_source
from envscaler.offline.methods import method_source
from envscaler.offline.model import Unservable, blueprint_for
from envscaler.program import assemble
from envscaler.skeleton import EnvSkeleton

_LONGEST = 10_000
"""Characters of a text that is read at all; reading takes more than proportional time."""


def regenerated(skeleton: EnvSkeleton) -> str | None:
    """The text of the program for that description, those seed tasks and those tools; None where the generator has
    none, or where the description is longer than any that it would have written."""
    texts = (skeleton.description.summary, skeleton.description.introduction, *skeleton.origin.seed_tasks)
    if max(map(len, texts)) > _LONGEST:
        return None
    try:
        blueprint = blueprint_for(skeleton.description, skeleton.origin.seed_tasks)
        if blueprint is None:
            return None
        methods = {}
        for tool in skeleton.tools:
            operation = blueprint.operation(tool.name)
            if operation is None:
                return None
            methods[tool.name] = method_source(blueprint, operation)
        return assemble(class_source(blueprint), methods)
    except (Unservable, ProgramError):
        return None
