"""`findings_of`: what one call has to mean, put together from the oracles of queries, updates, states and rules."""

from __future__ import annotations

from dataclasses import dataclass

from envscaler.assessment import Finding
from envscaler.env.meaning.made import Made
from envscaler.env.meaning.queries import examine_get, examine_list, rows_of
from envscaler.env.meaning.reading import Known
from envscaler.env.meaning.said import Said, shown
from envscaler.env.meaning.standing import Evaluator, Standing, is_evaluated, standing_of
from envscaler.env.meaning.updates import examine_update
from envscaler.messages import ToolCall
from envscaler.program import state_faults
from envscaler.sandbox import DEFAULT_CLOCK, Outcome, ToolFault
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State

_SLIPS = frozenset(
    {"AttributeError", "ImportError", "IndexError", "KeyError", "ModuleNotFoundError", "NameError", "RecursionError"}
    | {"TypeError", "UnboundLocalError", "ZeroDivisionError"}
)
"""Exceptions that no tool raises on purpose for arguments that its schema allows."""


@dataclass(frozen=True)
class Meaning:
    """What can be said of one call without a model."""

    findings: tuple[Finding, ...]
    doubts: tuple[str, ...] = ()
    """What only a judge can tell, a clause each."""
    remarks: tuple[Finding, ...] = ()
    """What is worth telling and no fault for certain; each is among the doubts as well."""

    @property
    def settled(self) -> bool:
        """Whether no judge is needed: something is certainly wrong, or all that there is to say was said and holds."""
        return bool(self.findings) or not self.doubts


def findings_of(
    known: EnvSkeleton | Known,
    tool: ToolSpec,
    call: ToolCall,
    outcome: Outcome,
    before: State,
    after: State,
    *,
    standing: Standing | None = None,
) -> Meaning:
    """Hold one call against what is machine-readable of the tool and its environment.

    Args:
        standing: which rules the call broke; None leaves to a judge the rules that could have been evaluated.
    """
    if isinstance(known, EnvSkeleton):
        known = Known(known.entities, known.rules)
    said = Said(tool.name)
    made = Made(known, tool, call, outcome, before, after)
    if outcome.fault is not None:
        _examine_fault(said, made, outcome.fault)
    elif not isinstance(outcome.result, dict) or not isinstance(outcome.result.get("success"), bool):
        said.doubts_whether("whether the result tells whether the call succeeded")
    elif outcome.result["success"]:
        _examine_success(said, made, standing)
    else:
        _examine_refusal(said, made, outcome.result)
    return Meaning(tuple(said.findings), tuple(dict.fromkeys(said.doubts)), tuple(said.remarks))


async def meaning_of(
    evaluator: Evaluator,
    known: EnvSkeleton | Known,
    tool: ToolSpec,
    call: ToolCall,
    outcome: Outcome,
    before: State,
    after: State,
    *,
    clock: str = DEFAULT_CLOCK,
) -> Meaning:
    """As `findings_of`, with the standing rules evaluated where the call changed the state.

    Args:
        evaluator: a `Sandbox`, or its `judge()` where many calls follow each other.

    Raises:
        SandboxError: if no process can be started.
    """
    if isinstance(known, EnvSkeleton):
        known = Known(known.entities, known.rules)
    changed = tool.effect == "update" and outcome.fault is None and before != after
    standing = (
        await standing_of(evaluator, known.rules, before, after, clock=clock) if changed else Standing(known.rules, ())
    )
    return findings_of(known, tool, call, outcome, before, after, standing=standing)


def _examine_fault(said: Said, made: Made, fault: ToolFault) -> None:
    if fault.kind == "raised" and made.misfit:
        # An environment refuses such arguments before they reach the program, and what was done is taken back.
        return
    if fault.kind == "raised" and fault.type in _SLIPS:
        said.finds("raised", f"raised {fault} for arguments that its schema allows")
    else:
        said.doubts_whether(f"whether it may end with {fault.type}")


def _examine_refusal(said: Said, made: Made, result: dict[str, JsonValue]) -> None:
    if not isinstance(result.get("error"), str) and not isinstance(result.get("message"), str):
        said.doubts_whether("whether a refusal may go without a reason")
    if made.misfit or made.unknown:
        return
    read, arguments = made.read, made.arguments
    forbidding = [made.forbids(rule) for rule in made.known.rules if made.tool.name in rule.tools]
    if True in forbidding:
        return
    if None in forbidding:
        said.doubts_whether("whether a rule refuses it")
    elif read.kind == "get" and arguments:
        said.finds("refused_existing", f"refused to show {shown(next(iter(arguments.values())))}, which exists")
    elif read.kind == "list" and not any(value is not None for value in arguments.values()) and read.entity:
        if rows_of(made.before, read.entity):
            said.finds("refused_existing", f"refused to list {read.entity.name} records, of which there are some")
    else:
        said.doubts_whether("whether the call had to be refused")


def _examine_success(said: Said, made: Made, standing: Standing | None) -> None:
    tool, read = made.tool, made.read
    if made.misfit:
        # An environment refuses them before they reach the program, so that nobody meets what they do.
        if tool.effect == "update":
            said.doubts_whether("whether arguments that the schema refuses may succeed")
        return
    if made.unknown and (tool.effect == "update" or read.kind == "get"):
        _examine_unknown(said, made)
    if read.kind == "get":
        examine_get(said, made)
    elif read.kind == "list":
        examine_list(said, made)
    elif read.kind == "update":
        _examine_state(said, made.known, made.before, made.after)
        _examine_rules(said, made, standing)
        examine_update(said, made)
    else:
        said.doubts_whether("whether the result answers what was asked")


def _examine_unknown(said: Said, made: Made) -> None:
    lists = [value for value in made.arguments.values() if isinstance(value, list)]
    for container, names in made.unknown.items():
        # The caller may choose the key of what is made, also where no effect says that anything is.
        new = bool(made.read.creates) or (not made.read.declared and names[0] in made.after.get(container, {}))
        if new:
            said.doubts_whether(f"whether {names[0]!r} may be a new key")
        elif any(names[0] in parts for parts in lists):
            said.doubts_whether(f"whether {names[0]!r}, which does not exist, may be passed over")
        else:
            said.finds("unknown_accepted", f"succeeded with {names[0]!r}, which does not exist")


def _examine_state(said: Said, known: Known, before: State, after: State) -> None:
    """Whether the state is still one that the entities describe."""
    if before == after:
        return
    faults = state_faults(after, known.entities)
    earlier = state_faults(before, known.entities) if faults else ()
    new = [fault for fault in faults if fault not in earlier]
    # Where a state was not all that the entities say before, one fault more in the same part of it tells little.
    spoiled = {_part(fault) for fault in earlier}
    certain = [fault for fault in new if _part(fault) not in spoiled]
    if certain:
        said.finds("state_broken", f"left a state that its entities do not describe: {certain[0]}")
    elif new:
        said.doubts_whether(f"whether the state may have this: {new[0]}")


def _part(fault: str) -> str:
    """The container that a fault of a state lies in; empty for what stands beside the containers."""
    place = fault.partition(":")[0].split("/")
    return place[1] if len(place) > 2 else ""


def _examine_rules(said: Said, made: Made, standing: Standing | None) -> None:
    known, tool = made.known, made.tool
    for rule in standing.broken if standing is not None else ():
        said.finds("rule_broken", f"broke the rule: {rule.text}")
    concerned = [
        rule for rule in known.rules if (tool.name in rule.tools or not rule.tools) and rule.enforced is not False
    ]
    held = standing.held if standing is not None else ()
    unread = []
    for rule in concerned:
        forbids = made.forbids(rule)
        if forbids:
            said.finds("rule_broken", f"did what a rule forbids: {rule.text}")
        elif forbids is None and (not is_evaluated(rule) or rule not in held):
            unread.append(rule)
    if standing is None and any(is_evaluated(rule) for rule in known.rules):
        said.doubts_whether("whether the rules hold after it")
    elif unread:
        said.doubts_whether(f"whether the rules allowed it: {unread[0].text}")
