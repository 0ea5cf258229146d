"""Libraries made from what others published."""

from envscaler.ingest.released import ReleasedFiles, import_released
from envscaler.ingest.report import Counts, ImportedEnvironment, ImportReport

__all__ = ["Counts", "ImportReport", "ImportedEnvironment", "ReleasedFiles", "import_released"]
