"""Test calls made again with another version of a program: whether failing ones fail no more, and good ones are kept.

Which versions there are is `repair`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from envscaler.env.oracles import ExaminedCall, try_call
from envscaler.errors import ProgramError
from envscaler.sandbox import Program, Sandbox, Session
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, encode
from envscaler.synth.assess import Trial
from envscaler.synth.judging import CallJudge


async def made_again(
    trials: Iterable[Trial], skeleton: EnvSkeleton, changed: str, *, state: State, sandbox: Sandbox, judge: CallJudge
) -> tuple[Trial, ...] | str:
    """The calls that failed or passed, made again with a program in which one tool is another or is gone.

    Calls of other tools that passed have to do exactly what they did. What passed of the changed tool may do something
    else that passes as well, and what failed must not fail again.

    Args:
        trials: calls of earlier versions.
        changed: the tool.
        state: one that the program accepts.
        judge: judges calls of the program.

    Returns:
        The calls of the changed tool with what they do and how they are judged now; or why the program is refused.

    Raises:
        ReplyError: if the checking agent gives no verdict.
    """
    own: list[Trial] = []
    doubtful: list[Trial] = []
    try:
        async with sandbox.trial(Program(skeleton.source, skeleton.class_name), state) as session:
            for trial in trials:
                verdict, is_own = trial.case.verdict, trial.tried.tool.name == changed
                if verdict == "warning" or (verdict == "fail" and not is_own):
                    continue
                examined = await _call(session, trial, repeat=verdict == "fail")
                if verdict == "pass" and (examined is None or _is_same(examined, trial)):
                    own += [trial] if is_own else []
                elif is_own:
                    doubtful.append(Trial(replace(trial.tried, examined=examined), trial.case))
                else:
                    return f"{trial.tried.call.name} no longer does what was right"
    except ProgramError as fault:
        return f"the program cannot go on from a state of its test calls: {fault}"
    # Only now, since questions cost: what breaks another tool is found out without one.
    for trial in doubtful:
        case = await judge.judge(trial.tried)
        failed_before = trial.case.verdict == "fail"
        if case.verdict == "fail" or (case.verdict != "pass" and not failed_before):
            how = "still fails" if failed_before else "no longer passes"
            return f"{_written(trial)} {how}: {case.reason}"
        own.append(Trial(trial.tried, case))
    return tuple(own)


async def _call(session: Session, trial: Trial, *, repeat: bool) -> ExaminedCall | None:
    """The call made again; None where the interface refuses it, now as before."""
    before = trial.tried.examined
    if before is None:
        return None
    # A state is not all: ids and times that a call makes follow from the moment.
    await session.restore(before.moment, fresh=False)
    return await try_call(session, trial.tried.tool, trial.tried.call, repeat=repeat)


def _is_same(examined: ExaminedCall, trial: Trial) -> bool:
    before = trial.tried.examined
    assert before is not None
    return (
        not examined.findings
        and examined.error == before.error
        and examined.outcome.digest == before.outcome.digest
        and encode(examined.outcome.result) == encode(before.outcome.result)
    )


def _written(trial: Trial) -> str:
    return f"{trial.tried.call.name}(**{encode(trial.tried.call.arguments).decode('utf-8', 'replace')[:200]})"
