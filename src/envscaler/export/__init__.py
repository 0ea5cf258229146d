"""Trajectories as files that trainers read, and libraries in the authors' format."""

from envscaler.export.messages import chat_row, format_fault
from envscaler.export.released import ReleasedExport, export_released
from envscaler.export.sft import ExportReport, SftFilters, export_sft

__all__ = [
    "ExportReport",
    "ReleasedExport",
    "SftFilters",
    "chat_row",
    "export_released",
    "export_sft",
    "format_fault",
]
