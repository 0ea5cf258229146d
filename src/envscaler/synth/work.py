"""`carry_out`: one environment from its description as far as asked, with no library at hand.

Everything that it needs comes in a `Work` and everything that it made leaves in a `Made`, so that it runs in this
process or in another and gives the same. A unit that fails is data; budgets and outages pass through.

Source: paper 3.2, 3.3, 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envscaler.agents import prompt_digest
from envscaler.assessment import Assessment
from envscaler.errors import ProgramError, ReplyError, SandboxError
from envscaler.evidence import Proof, Thresholds
from envscaler.roles.role import AGENT_TURN
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvDescription, EnvSkeleton, ModelUse, Origin
from envscaler.synth.asking import Asking, merged
from envscaler.synth.assess import Terms
from envscaler.synth.finishing import Proved, shortfalls
from envscaler.synth.programming import program
from envscaler.synth.repair import assess_and_repair
from envscaler.synth.replies import added_up, mended_in_all
from envscaler.synth.report import Testing
from envscaler.synth.resume import DISCOVERING, PROGRAMMING, WRITING, Unit, scaffold_of
from envscaler.synth.scaffold import falls_back, planned
from envscaler.synth.scenarios import ScenarioWriter, scenario_id
from envscaler.synth.seeds import derived_seed
from envscaler.synth.settings import Scaffold, Stage, SynthSettings
from envscaler.synth.solving import SolverRuns
from envscaler.synth.structures import signature_of

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Prompts, Role


@dataclass(frozen=True)
class Work:
    """What is to be made, and what of it is there."""

    settings: SynthSettings
    scaffold: Scaffold
    description: EnvDescription
    seed_tasks: tuple[str, ...]
    language: str
    discovery_use: dict[str, ModelUse]
    before: Unit
    """How far earlier runs came; it names the environment."""
    assessment_key: str
    """Key of the settings of the assessment."""
    skeleton: EnvSkeleton | None = None
    """With what follows what is in the library; None: it is to be made from the start."""
    assessment: Assessment | None = None
    scenarios: tuple[Scenario, ...] = ()
    proofs: tuple[Proof, ...] = ()
    proving_key: str | None = None
    """Key of what scenarios have to reach."""


@dataclass(frozen=True)
class Made:
    """What became of it."""

    unit: Unit
    lost: bool = False
    """True when infrastructure failed: nothing of it is to be kept."""
    skeleton: EnvSkeleton | None = None
    """The environment, when it is to be in the library as it is here."""
    assessment: Assessment | None = None
    """Also without `skeleton`: what an environment of the library failed."""
    scenarios: tuple[Scenario, ...] = ()
    proofs: tuple[Proof, ...] = ()
    structure: str | None = None
    """Signature of the environment's structure."""


async def carry_out(
    work: Work, *, models: Models, prompts: Prompts, sandbox: Sandbox, done_with: Callable[[Stage], None]
) -> Made:
    """Make what is missing.

    Args:
        done_with: told of each stage when it is over.

    Raises:
        BudgetExhausted: a limit was reached.
        EndpointUnavailable: the endpoint stayed down.
    """
    making = _Making(work, models, prompts, sandbox, done_with)
    try:
        return await making.carry_on()
    except SandboxError as fault:
        return Made(Unit(env_id=work.before.env_id, reached=making.stage, failed=str(fault)), lost=True)
    except (ReplyError, ProgramError) as fault:
        making.failed = str(fault)
        making.unanswered = isinstance(fault, ReplyError)
        return Made(making.unit())


class _Making:
    """One environment in the making: how far it is, and what will be recorded of it."""

    def __init__(
        self, work: Work, models: Models, prompts: Prompts, sandbox: Sandbox, done_with: Callable[[Stage], None]
    ) -> None:
        before = work.before
        self.stage: Stage = before.reached
        self.failed: str | None = None
        self.unanswered = False
        self._work = work
        self._models = models
        self._prompts = prompts
        self._sandbox = sandbox
        self._done_with = done_with
        self._asking = Asking(models, prompts, work.settings.attempts, work.scaffold)
        self._seed = derived_seed(work.settings.seed, before.env_id)
        self._testing = before.testing
        self._assessed_by = before.assessed_by if before.failed is None else None
        # What did not reach something else has another chance.
        again = bool(before.unproved) and before.proved_by != work.proving_key
        self._scenarios_tried = 0 if again else before.scenarios_tried
        self._dropped_tools = before.dropped_tools
        self._dropped_scenarios = [] if again else list(before.dropped_scenarios)
        self._unproved = [] if again else list(before.unproved)
        self._rejected = 0 if again else before.rejected
        self._scenarios: tuple[Scenario, ...] | None = None
        self._proofs = work.proofs

    async def carry_on(self) -> Made:
        work, settings = self._work, self._work.settings
        skeleton = work.skeleton if work.skeleton is not None else await self._programmed()
        assessment, scenarios = work.assessment, work.scenarios
        self._done_with("program")
        self.stage = "program"
        if settings.reaches("assess") and self._assessed_by is None:
            self.stage = "assess"
            self._assessed_by = work.assessment_key
            skeleton, assessment = await assess_and_repair(
                skeleton,
                Terms(settings.rounds, settings.threshold, settings.by, settings.judge, settings.all_rounds),
                # Scenarios are made for one version of a program.
                repairs=0 if scenarios else settings.repairs,
                seed=self._seed,
                asking=self._asking,
                sandbox=self._sandbox,
            )
            self._testing = Testing.of(assessment)
            skeleton = self._with_dropped(skeleton, dropped_tools(assessment))
            if not assessment.accepted:
                self.failed = rejection(assessment)
                repaired = work.skeleton is not None and skeleton.digest != work.skeleton.digest
                return Made(self.unit(), skeleton=skeleton if repaired else None, assessment=assessment)
        self._done_with("assess")
        if settings.reaches("scenarios"):
            self.stage = "scenarios"
            scenarios = await self._written(skeleton, scenarios)
        use = merged(skeleton.origin.use, self._asking.use)
        skeleton = skeleton.model_copy(update={"origin": skeleton.origin.model_copy(update={"use": use})})
        structure = signature_of(skeleton)
        return Made(
            self.unit(),
            skeleton=skeleton,
            assessment=assessment,
            scenarios=scenarios,
            proofs=self._proofs,
            structure=structure,
        )

    async def _programmed(self) -> EnvSkeleton:
        try:
            return await self._written_program()
        except (ReplyError, ProgramError):
            if not falls_back(self._work.settings, self._asking):
                raise
        self._asking.scaffold = "staged"
        return await self._written_program()

    async def _written_program(self) -> EnvSkeleton:
        work = self._work
        made = await planned(work.description, work.seed_tasks, work.language, self._asking, settings=work.settings)
        self._done_with("design")
        self.stage = "program"
        programmed = await program(
            made,
            seed=self._seed,
            asking=self._asking,
            sandbox=self._sandbox,
            methods_per_call=work.settings.methods_per_call,
        )
        self._dropped_tools = programmed.dropped
        start = origin(
            self._models,
            self._prompts,
            (*DISCOVERING, *PROGRAMMING[self._asking.scaffold]),
            work.language,
            work.settings.seed,
        )
        return EnvSkeleton(
            id=work.before.env_id,
            description=work.description,
            entities=made.entities,
            rules=programmed.rules,
            tools=programmed.tools,
            class_name=programmed.class_name,
            source=programmed.source,
            origin=start.model_copy(
                update={
                    "seed_tasks": work.seed_tasks,
                    "use": work.discovery_use,
                    "dropped": programmed.dropped,
                }
            ),
        )

    def _with_dropped(self, skeleton: EnvSkeleton, tools: tuple[str, ...]) -> EnvSkeleton:
        """The environment with what its assessment cost among what was given up on the way."""
        self._dropped_tools = (*self._dropped_tools, *tools)
        origin = skeleton.origin.model_copy(update={"dropped": (*skeleton.origin.dropped, *tools)})
        return skeleton.model_copy(update={"origin": origin}) if tools else skeleton

    async def _written(self, skeleton: EnvSkeleton, there: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
        """The scenarios that are there, and those that were asked for and never tried."""
        settings = self._work.settings
        runs = SolverRuns.of(self._models, settings.solver_runs)
        writer = ScenarioWriter(
            skeleton,
            seed=self._seed,
            asking=self._asking,
            sandbox=self._sandbox,
            origin=writing_origin(self._models, self._prompts, skeleton, settings.seed, runs),
            min_state_distance=settings.min_state_distance,
            thresholds=settings.thresholds,
            solver_runs=runs,
            checks_per_call=settings.checks_per_call,
        )
        ids = {scenario.id for scenario in there}
        untried = range(self._scenarios_tried, settings.scenarios)
        outcomes = await writer.write([n for n in untried if scenario_id(skeleton.id, n) not in ids], there)
        written = [outcome for outcome in outcomes if isinstance(outcome, Proved)]
        kept = [one for one in written if one.accepted or settings.keep_unproved]
        self._unproved += [one.reason for one in written if not one.accepted]
        self._rejected += len(written) - len(kept)
        self._scenarios = (*there, *(one.scenario for one in kept))
        self._proofs = (*self._proofs, *(one.proof for one in kept))
        self._dropped_scenarios += [outcome for outcome in outcomes if isinstance(outcome, str)]
        self._scenarios_tried = max(self._scenarios_tried, settings.scenarios)
        return self._scenarios

    def unit(self) -> Unit:
        """The record of it."""
        before, scenarios = self._work.before, self._scenarios
        return Unit(
            env_id=before.env_id,
            reached=self.stage,
            failed=self.failed,
            unanswered=self.unanswered,
            loads=before.loads or self._asking.loads,
            assessed_by=self._assessed_by,
            testing=self._testing,
            scenarios_tried=self._scenarios_tried,
            scenarios=len(scenarios) if scenarios is not None else before.scenarios,
            solved=sum(one.solution is not None for one in scenarios) if scenarios is not None else before.solved,
            dropped_tools=self._dropped_tools,
            dropped_scenarios=tuple(self._dropped_scenarios),
            proved_by=self._work.proving_key if scenarios is not None else before.proved_by,
            proved=proved(scenarios, self._proofs, self._work.settings.thresholds)
            if scenarios is not None
            else before.proved,
            unproved=tuple(self._unproved),
            rejected=self._rejected,
            use=merged(before.use, self._asking.whole_use),
            replies=added_up([*before.replies, *self._asking.unusable]),
            mended=mended_in_all([*before.mended, *self._asking.mended]),
        )


def proved(scenarios: Iterable[Scenario], proofs: Iterable[Proof], thresholds: Thresholds) -> int:
    """How many of the scenarios have a proof that reaches what is asked for."""
    by_id = {proof.scenario_id: proof for proof in proofs}
    return sum(one.id in by_id and not shortfalls(one, by_id[one.id], thresholds) for one in scenarios)


def dropped_tools(assessment: Assessment) -> tuple[str, ...]:
    """The tools that an assessment cost, each with the reason."""
    return tuple(f"tool {one.tool}: {one.dropped}" for one in assessment.repairs if one.dropped is not None)


def rejection(assessment: Assessment) -> str:
    """Why an environment is not kept, with what was found first."""
    rate = assessment.pass_rate if assessment.by == "pass" else assessment.not_fail_rate
    if rate is None:
        return f"no test call could be made: {'; '.join(assessment.failures[:1])}"
    first = next((case for case in assessment.cases if case.verdict != "pass"), None)
    example = f"; for example {first.call.name}, {first.verdict}: {first.reason}" if first is not None else ""
    if first is None and assessment.at_fault:
        example = f"; for example {assessment.at_fault[0].faults[0].detail}"
    name = "pass" if assessment.by == "pass" else "not-fail"
    return f"{name} rate {rate:.2f} is below {assessment.threshold:.2f}{example}"


def writing_origin(models: Models, prompts: Prompts, skeleton: EnvSkeleton, seed: int, runs: SolverRuns) -> Origin:
    """Where scenarios of an environment come from: who wrote them, and who played them."""
    made = origin(models, prompts, WRITING[scaffold_of(skeleton)], skeleton.origin.language, seed)
    if runs.agent is None:
        return made
    return made.model_copy(
        update={
            "models": {**made.models, "builder": runs.agent.model},
            "prompts": {**made.prompts, AGENT_TURN.name: prompt_digest("non-conversation")},
        }
    )


def origin(models: Models, prompts: Prompts, asked: Iterable[Role[Any]], language: str, seed: int) -> Origin:
    """Where something comes from that was made by these roles."""
    used = list(asked)
    names = models.names
    return Origin(
        language=language,
        models={family: names[family] for family in sorted({role.family for role in used})},
        prompts={role.name: prompts.digest(role) for role in used},
        seed=seed,
    )
