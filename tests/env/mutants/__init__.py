"""Mutants of sound programs: one fault each, in one tool, of the kinds that generated programs have.

    for mutant in mutants("wrong key", programs()):
        ...                      # examine mutant.skeleton from mutant.sound.state; mutant.tool is the faulty one

The programs come from the embedded generator. Nothing here knows the oracles; that a mutant behaves otherwise than the
sound program is shown by calls that both are given.
"""

from .grow import Mutant, differs, mutants
from .programs import Sound, programs
from .semantic import SEMANTIC
from .structural import STRUCTURAL
from .study import Study, examined

__all__ = ["SEMANTIC", "STRUCTURAL", "Mutant", "Sound", "Study", "differs", "examined", "mutants", "programs"]
