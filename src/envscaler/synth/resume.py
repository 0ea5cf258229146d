"""What a synthesis has done already: keys that name a unit of work by all that decides it, and records under them.

Where the journal lies and how it survives a kill is `store`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from envscaler.program.structure import MEASURE
from envscaler.record import Record
from envscaler.roles import role as roles
from envscaler.roles.role import Family, Prompts, Role
from envscaler.skeleton import EnvDescription, EnvSkeleton, ModelUse
from envscaler.state import JsonValue, digest
from envscaler.store import Journal
from envscaler.synth.design import Design
from envscaler.synth.discover import Discovered
from envscaler.synth.replies import MendedReplies, Unusable
from envscaler.synth.report import Testing
from envscaler.synth.settings import RUNNING, Scaffold, Stage, SynthSettings

if TYPE_CHECKING:
    from envscaler.models import Models

DISCOVERING = (roles.FILTER_TASK, roles.INFER_ENVIRONMENT)
PROGRAMMING: dict[Scaffold, tuple[Role[Any], ...]] = {
    "whole": (
        roles.PLAN_STATE,
        roles.PLAN_TOOLS,
        roles.WRITE_CLASS,
        roles.WRITE_METHOD,
        roles.WRITE_METHODS,
        roles.WRITE_STATE,
    ),
    "staged": (
        roles.NAME_ENTITIES,
        roles.DESCRIBE_ENTITIES,
        roles.LIST_TOOLS,
        roles.WRITE_TOOL,
        roles.WRITE_RECORDS,
    ),
}
"""By scaffold, the roles that make a program."""
ASSESSING: dict[Scaffold, tuple[Role[Any], ...]] = {
    "whole": (roles.WRITE_STATE, roles.TEST_CALL, roles.JUDGE_CALL, roles.WRITE_METHOD),
    "staged": (roles.WRITE_RECORDS, roles.TEST_CALL, roles.JUDGE_CALL, roles.WRITE_TOOL),
}
_CHECKING = (roles.WRITE_TASK, roles.WRITE_CHECKLIST, roles.WRITE_CHECK, roles.WRITE_CHECKS)
WRITING: dict[Scaffold, tuple[Role[Any], ...]] = {
    "whole": (roles.WRITE_STATE, *_CHECKING),
    "staged": (roles.WRITE_RECORDS, *_CHECKING),
}
_ANY_PROGRAMMING, _ANY_ASSESSING, _ANY_WRITING = (
    tuple(dict.fromkeys(role for asked in stage.values() for role in asked))
    for stage in (PROGRAMMING, ASSESSING, WRITING)
)

RecordT = TypeVar("RecordT", bound=Record)


class Decision(Record):
    """Whether a description is an environment of its own."""

    env_id: str
    """Its own id, or that of the environment it is merged into."""
    how: Literal["new", "summary", "similar", "cluster"]
    similarity: float = 1.0


class Decisions(Record):
    """The decisions on all descriptions of a clustering, in input order."""

    decisions: tuple[Decision, ...]


class Structured(Record):
    """The structure of a finished environment, and whether it is one of its own."""

    signature: str
    env_digest: str
    """Digest of the environment that has this signature."""
    same_as: str | None = None
    """The earlier environment that has the same structure."""


class Scaffolding(Record):
    """How the environments of a run are asked for, and why."""

    scaffold: Scaffold
    reason: str
    use: dict[str, ModelUse] = {}
    """What finding it out took."""
    replies: tuple[Unusable, ...] = ()
    """Replies that could not be used."""
    mended: tuple[MendedReplies, ...] = ()
    """Replies whose form was made good."""


class Unit(Record):
    """How far one environment came."""

    env_id: str
    reached: Stage
    """The last stage that was carried out."""
    failed: str | None = None
    """Why it ended in that stage."""
    unanswered: bool = False
    """Whether that is because no reply to a question could be used."""
    loads: bool = False
    """Whether its program, or a first version of it, could be loaded."""
    assessed_by: str | None = None
    """Key of the settings of the assessment."""
    testing: Testing = Testing()
    """Its test calls."""
    scenarios_tried: int = 0
    scenarios: int = 0
    solved: int = 0
    proved: int = 0
    """Those among the scenarios whose proof reaches what was asked for."""
    dropped_tools: tuple[str, ...] = ()
    dropped_scenarios: tuple[str, ...] = ()
    """Why a scenario could not be written."""
    proved_by: str | None = None
    """Key of what scenarios had to reach."""
    unproved: tuple[str, ...] = ()
    """Why a scenario that was written does not reach it."""
    rejected: int = 0
    """Those of them that were not kept."""
    use: dict[str, ModelUse] = {}
    """Use of the replies of all stages after discovery, also of those that could not be used."""
    replies: tuple[Unusable, ...] = ()
    """Replies that could not be used."""
    mended: tuple[MendedReplies, ...] = ()
    """Replies that were used after something in their form was made good."""


def scaffold_of(skeleton: EnvSkeleton) -> Scaffold:
    """How an environment was made, and is therefore to be asked about."""
    return "staged" if roles.NAME_ENTITIES.name in skeleton.origin.prompts else "whole"


class Keys:
    """Names units of work; equal keys mean that doing the work again would give the same result."""

    def __init__(self, settings: SynthSettings, models: Models, prompts: Prompts) -> None:
        self._settings = settings
        self._names = models.names
        self._prompts = prompts

    def task(self, text: str, language: str) -> str:
        """Key of the discovery of one task."""
        return f"task:{digest([text, language, self._asked(DISCOVERING)])}"

    def unit(self, source: str | EnvDescription, language: str) -> str:
        """Key of the environment made from a task text or a description."""
        begun = self.task(source, language) if isinstance(source, str) else [source.summary, source.introduction]
        settings = self._settings
        how = [settings.scaffold, settings.methods_per_call, self._asked(_ANY_PROGRAMMING)]
        return f"unit:{digest([begun, language, settings.seed, *how])}"

    def scaffold(self) -> str:
        """Key of how environments are asked for."""
        return f"scaffold:{digest(self._asked(_ANY_PROGRAMMING))}"

    def design(self, unit: str) -> str:
        """Key of a design alone."""
        return f"design:{unit}"

    def decision(self, unit: str) -> str:
        """Key of the greedy decision on a description."""
        return f"decision:{digest([unit, self._settings.similarity])}"

    def clustering(self, units: Iterable[str]) -> str:
        """Key of the decisions of a clustering."""
        settings = self._settings
        return f"clusters:{digest([list(units), settings.clusters, settings.seed, settings.similarity])}"

    def assessment(self) -> str:
        """Key of the settings of an assessment."""
        settings = self._settings
        testing = [settings.rounds, settings.all_rounds, settings.judge, settings.repairs]
        return digest([testing, settings.threshold, settings.by, self._asked(_ANY_ASSESSING)])

    def proving(self) -> str:
        """Key of what scenarios have to reach."""
        settings = self._settings
        thresholds = settings.thresholds.model_dump(mode="json")
        writing = [settings.solver_runs, settings.attempts, settings.checks_per_call]
        return digest([thresholds, settings.keep_unproved, *writing])

    def begun(self, unit: str) -> str:
        """Key of what is to be recorded of an environment, put before the environment is written."""
        return f"begun:{unit}"

    def command(self) -> str:
        """Key of what library.json says of the command."""
        return digest(self.provenance())

    def provenance(self) -> dict[str, JsonValue]:
        """What decides the result of the command, for library.json; no path but the name of the input file."""
        settings = self._settings
        named = settings.model_dump(
            mode="json",
            exclude={"library", "tasks", "descriptions", *RUNNING},
        )
        for name in ("target", "environments"):
            if named[name] is None:
                del named[name]
        source = settings.tasks or settings.descriptions
        return {
            "command": "synth",
            "source": source.name if source is not None else None,
            "settings": named,
            "models": {family: name for family, name in sorted(self._names.items()) if family not in ("agent", "user")},
            "prompts": self._digests((*DISCOVERING, *_ANY_PROGRAMMING, *_ANY_ASSESSING, *_ANY_WRITING)),
        }

    def _asked(self, asked: Iterable[Role[Any]]) -> JsonValue:
        """What a reply in these roles depends on beside its inputs."""
        used = list(asked)
        families: list[Family] = sorted({role.family for role in used})
        return [self._settings.attempts, {name: self._names[name] for name in families}, self._digests(used)]

    def _digests(self, asked: Iterable[Role[Any]]) -> dict[str, str]:
        return {role.name: self._prompts.digest(role) for role in asked}


class SynthJournal:
    """The journal of a library's syntheses, typed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def discovered(self, key: str) -> Discovered | None:
        """What became of a task."""
        return self._read(key, Discovered)

    def scaffolding(self, key: str) -> Scaffolding | None:
        """How environments are asked for."""
        return self._read(key, Scaffolding)

    def decision(self, key: str) -> Decision | None:
        """The decision on a description."""
        return self._read(key, Decision)

    def decisions(self, key: str) -> Decisions | None:
        """The decisions of a clustering."""
        return self._read(key, Decisions)

    def unit(self, key: str) -> Unit | None:
        """How far an environment came."""
        return self._read(key, Unit)

    def structure(self, env_id: str) -> Structured | None:
        """What was decided on the structure of an environment."""
        return self._read(self.structure_key(env_id), Structured)

    def structure_key(self, env_id: str) -> str:
        """Key of the decision on an environment's structure."""
        return f"structure:{MEASURE}:{env_id}"

    def design(self, key: str) -> Design | None:
        """A design made with `until` design."""
        return self._read(key, Design)

    def put(self, key: str, record: Record) -> None:
        """Keep a record; it survives a kill from here on."""
        self._journal.put(key, record.model_dump(mode="json", exclude_defaults=True))

    def ids(self) -> set[str]:
        """Every id that was ever given to an environment, also to one that failed."""
        given: set[str] = set()
        for key in self._journal:
            if key.startswith("decision:"):
                decision = self.decision(key)
                given |= {decision.env_id} if decision is not None else set()
            elif key.startswith("clusters:"):
                decided = self.decisions(key)
                given |= {decision.env_id for decision in decided.decisions} if decided is not None else set()
        return given

    def _read(self, key: str, kind: type[RecordT]) -> RecordT | None:
        value = self._journal.get(key)
        if value is None:
            return None
        try:
            return kind.model_validate(value)
        except ValidationError:
            # Written by another version of this package: the work is done again.
            return None
