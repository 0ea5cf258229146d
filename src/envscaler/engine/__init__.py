"""Runs many units of work side by side: on one event loop, or in processes of this package's own."""

from envscaler.engine.mapping import NullProgress, Progress, bounded_map
from envscaler.engine.processes import Processes
from envscaler.engine.serving import Serve, Tell
from envscaler.engine.spreading import spread

__all__ = ["NullProgress", "Processes", "Progress", "Serve", "Tell", "bounded_map", "spread"]
