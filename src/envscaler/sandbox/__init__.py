"""Generated code, run in worker processes with limits; nothing else in the package executes it."""

from envscaler.sandbox.blocking import BlockingSandbox, BlockingSession
from envscaler.sandbox.contract import (
    DEFAULT_CLOCK,
    Arguments,
    CheckOutcome,
    FaultKind,
    Home,
    Isolation,
    IsolationReport,
    Limits,
    Outcome,
    Program,
    Snapshot,
    ToolFault,
)
from envscaler.sandbox.judge import Judge
from envscaler.sandbox.sandbox import Sandbox
from envscaler.sandbox.session import Session
from envscaler.sandbox.traceless import leaves_nothing

__all__ = [
    "DEFAULT_CLOCK",
    "Arguments",
    "BlockingSandbox",
    "BlockingSession",
    "CheckOutcome",
    "FaultKind",
    "Home",
    "Isolation",
    "IsolationReport",
    "Judge",
    "Limits",
    "Outcome",
    "Program",
    "Sandbox",
    "Session",
    "Snapshot",
    "ToolFault",
    "leaves_nothing",
]
