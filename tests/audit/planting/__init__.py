"""The planted-fault benchmark: sound environments and scenarios, the same with one fault each, and hard sound ones.

    for planted in plant(seed=1):        # every kind of fault, ten times
        ...                              # audit planted.skeleton with planted.scenario (or with planted.beside);
                                         # found, if planted.kind or one of planted.also is reported at planted.place
    for skeleton, scenarios in clean():  # whatever is reported here is a false alarm
        ...
    for suspicious in sound():           # looks like suspicious.looks_like, and is right
        ...

Everything comes from the embedded generator and from a seed. Nothing here imports the audit or the proofs, nor was it
written from them: that a fault is what it says is shown by this package's own tests, in the sandbox.
"""

from . import (  # noqa: F401 - each registers its forms
    check_code,
    check_conduct,
    check_scope,
    check_values,
    program_faults,
    rule_faults,
    scenario_faults,
    state_faults,
    suspicious_grounds,
    tool_faults,
    variant_faults,
)
from .bench import Bench
from .faults import FORMS, Evidence, Planted, plant, plant_kind
from .grounds import clean
from .suspicious import Suspicious, sound

__all__ = ["FORMS", "Bench", "Evidence", "Planted", "Suspicious", "clean", "plant", "plant_kind", "sound"]
