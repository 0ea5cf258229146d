"""Wishes about records that are known by what they have in common: the cheapest one, the three largest, all overdue.

The records are not named: whoever carries out the wish has to list, filter, compare, and call once for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from envscaler.offline.blueprint import OperationPlan
from envscaler.offline.goals import Evidence, Kind, Proposal, Step, would_change
from envscaler.offline.scenes import Scene, scenes
from envscaler.offline.selections import Selection
from envscaler.offline.situation import Situation

_MOST = 4
"""Records of a group."""
_TRIED = 40
"""Selections tried for one scene."""
_PARTLY = 0.4
"""How often a group is taken of which rules stand against a part."""


def chosen(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """One record, which has to be found by comparing several; for some, the next one where rules stand against it."""
    for scene in scenes(situation, operation):
        for selection in filter(lambda selection: selection.sensible, scene.one(_TRIED)):
            keys = selection.chosen(situation.state, allowed=scene.allowed)
            fitting = selection.fitting(situation.state)
            if keys is None or len(fitting) < 2 or not scene.allowed[keys[0]]:
                continue
            passed_over = fitting[: fitting.index(keys[0])]
            if selection.allowed_only is not bool(passed_over):
                continue
            wish = _said_of_one(scene, selection)
            if wish is not None:
                yield _proposal(scene, "chosen", wish, keys, passed_over, (selection,))
                break


def group(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """Several records: all that fit, or the first few in an order; some may have to be left out."""
    for scene in scenes(situation, operation):
        if scene.personal():
            continue
        partly = situation.rng.random() < _PARTLY
        for selection in filter(lambda selection: selection.sensible, scene.several(_TRIED)):
            keys = selection.chosen(situation.state)
            if keys is None or not 2 <= len(keys) <= _MOST:
                continue
            good = [key for key in keys if scene.allowed[key]]
            bad = [key for key in keys if key not in good]
            # Of the first few in an order none may be missing: which ones take its place would not be clear.
            if len(good) < 2 or bool(bad) is not partly or (bad and selection.order is not None):
                continue
            wish = _said_of_several(scene, selection)
            if wish is not None and (not bad or _evidence(scene, bad)):
                yield _proposal(scene, "group", wish, good, bad, (selection,))
                break


def enumerated(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """The same for two or three records that are named; one of them may have to be left out."""
    for scene in scenes(situation, operation):
        if scene.personal() or not scene.reads_well("place_of_list"):
            continue
        names = situation.texts(scene.entity)
        keys = [key for key in situation.untouched(scene.entity) if key in scene.allowed]
        good = [key for key in keys if scene.allowed[key]][: situation.rng.choice((2, 2, 3))]
        bad = [key for key in keys if not scene.allowed[key]][: situation.rng.choice((0, 1, 1))]
        mixed = [*good, *bad]
        situation.rng.shuffle(mixed)
        wish = _each_one(scene, scene.wish(situation.wording.listed([names[key] for key in mixed])))
        if len(good) > 1 and wish is not None and (not bad or _evidence(scene, bad)):
            yield _proposal(scene, "group", wish, [key for key in mixed if key in good], bad, ())


def _said_of_one(scene: Scene, selection: Selection) -> str | None:
    wording, rng = scene.situation.wording, scene.situation.rng
    choice = selection.phrase(wording)
    if scene.reads_well("place_of_long"):
        wish = scene.wish(choice)
    else:
        wish = scene.wish(wording.say("that_one", noun=scene.entity.noun))
        wish = wording.say("find_one", rng, choice=choice, wish=wish) if wish is not None else None
    if wish is None or not selection.allowed_only:
        return wish
    measure = wording.quantities.measure(scene.entity.noun)
    return wording.say("fallback", rng, wish=wish, noun=scene.entity.noun, measure=measure)


def _said_of_several(scene: Scene, selection: Selection) -> str | None:
    wording = scene.situation.wording
    if scene.reads_well("place_of_long"):
        return _each_one(scene, scene.wish(selection.phrase(wording)))
    wish = scene.wish(wording.say("each_of_them", noun=scene.entity.noun))
    if wish is None:
        return None
    choice = selection.phrase(wording, together=True)
    measure = wording.quantities.measure(scene.entity.noun)
    return wording.say("find_each", scene.situation.rng, choice=choice, wish=wish, measure=measure)


def _each_one(scene: Scene, wish: str | None) -> str | None:
    """The wish, so said that a number in it is given to every record and not shared among them."""
    wording = scene.situation.wording
    ahead = [scene.phrase.partition(f"{{{p.name}}}") for p in scene.operation.params if p.type in {"int", "float"}]
    # What a number is set to cannot be shared.
    set_to = tuple(wording.phrases["before_value"])
    if wish is None or all(before.endswith(set_to) for before, found, _ in ahead if found):
        return wish
    return wording.say("each_one", wish=wish)


def _proposal(
    scene: Scene, kind: Kind, wish: str, good: list[str], bad: list[str], readings: tuple[Selection, ...]
) -> Proposal:
    steps: tuple[Step, ...] = tuple(map(scene.step, good))
    refused: tuple[Step, ...] = tuple(map(scene.step, bad))
    return Proposal(
        kind,
        wish,
        steps,
        tuple(dict.fromkeys(record for step in (*steps, *refused) for record in scene.situation.records(step))),
        readings,
        frozenset((scene.entity.name, None, column) for selection in readings for column in selection.columns),
        _evidence(scene, bad),
        refused,
    )


def _evidence(scene: Scene, keys: list[str]) -> frozenset[Evidence]:
    """What the operation would do to records that rules keep from it."""
    situation = scene.situation
    return frozenset(
        mark for key in keys for mark in would_change(situation.blueprint, scene.step(key), situation.state)
    )
