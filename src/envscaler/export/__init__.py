"""Trajectories as files that trainers read."""

from envscaler.export.messages import chat_row, format_fault
from envscaler.export.sft import ExportReport, SftFilters, export_sft

__all__ = ["ExportReport", "SftFilters", "chat_row", "export_sft", "format_fault"]
