"""Trajectories as files that trainers read, and libraries in the authors' format."""

from envscaler.export.card import DataCard
from envscaler.export.filters import SftFilters
from envscaler.export.formats import SFT_FORMATS, SftFormat
from envscaler.export.messages import chat_row, format_fault
from envscaler.export.released import ReleasedExport, export_released
from envscaler.export.rl import RlFilters, RlReport, export_rl
from envscaler.export.rl_formats import RL_FORMATS, RlFormat
from envscaler.export.sft import ExportReport, export_sft

__all__ = [
    "RL_FORMATS",
    "SFT_FORMATS",
    "DataCard",
    "ExportReport",
    "ReleasedExport",
    "RlFilters",
    "RlFormat",
    "RlReport",
    "SftFilters",
    "SftFormat",
    "chat_row",
    "export_released",
    "export_rl",
    "export_sft",
    "format_fault",
]
