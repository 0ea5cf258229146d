"""Libraries, runs and task files on disk. The only writer of library and run files; imports records only."""

from envscaler.store.atomic import json_text, write_atomic
from envscaler.store.grounds import begins_with, require_free, require_replaceable
from envscaler.store.journal import Journal
from envscaler.store.library import LibraryIndex, LibraryStore
from envscaler.store.lock import sole_writer
from envscaler.store.reading import read_jsonl, read_record
from envscaler.store.replies import ReplyJournal
from envscaler.store.run import EpisodeHead, RunStore
from envscaler.store.splits import held_out, split_of, splits_of
from envscaler.store.tasks import DescriptionFile, Problem, SourceTask, TaskFile, read_descriptions, read_tasks

__all__ = [
    "DescriptionFile",
    "EpisodeHead",
    "Journal",
    "LibraryIndex",
    "LibraryStore",
    "Problem",
    "ReplyJournal",
    "RunStore",
    "SourceTask",
    "TaskFile",
    "begins_with",
    "held_out",
    "json_text",
    "read_descriptions",
    "read_jsonl",
    "read_record",
    "read_tasks",
    "require_free",
    "require_replaceable",
    "sole_writer",
    "split_of",
    "splits_of",
    "write_atomic",
]
