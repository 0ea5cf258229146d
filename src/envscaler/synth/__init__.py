"""Synthesis: from task texts to environments that were checked, and scenarios whose solution was executed."""

from envscaler.synth.redo import run_assess, run_scenarios
from envscaler.synth.report import AssessReport, ScenariosReport, SynthReport
from envscaler.synth.run import run_synth
from envscaler.synth.settings import STAGES, Stage, SynthSettings

__all__ = [
    "STAGES",
    "AssessReport",
    "ScenariosReport",
    "Stage",
    "SynthReport",
    "SynthSettings",
    "run_assess",
    "run_scenarios",
    "run_synth",
]
