"""Published scenarios as `Scenario` records, and back. Whether their checks run is not this module's business."""

from __future__ import annotations

from envscaler.errors import StoreError
from envscaler.released.fields import Published, entry_of, folder_name, identifier, kept, kind_of, rejoined, rows, text
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import Origin
from envscaler.state import JsonValue

_ENCODED = ("init_config", "checklist_with_func", "checklist")


def scenario_of(
    value: JsonValue, where: str, *, env_digest: str, class_name: str, source: str, position: int = 0
) -> Scenario:
    """The scenario that a published entry describes.

    Args:
        env_digest: digest of the environment that it belongs to.
        class_name: class of that environment.
        source: name of the file, kept as the record's origin.
        position: index of the entry in its file; it is exported in that order.

    Raises:
        StoreError: naming the field that is missing or wrong.
    """
    published = entry_of(value, where, _ENCODED)
    scenario = _read(published, where, env_digest, source)
    released = {"position": position, **kept(published, rendered_scenario(scenario, class_name))}
    return scenario.model_copy(update={"released": released})


def env_id_of(value: JsonValue, where: str) -> str:
    """The id, in a library, of the environment that a published scenario or episode belongs to.

    Raises:
        StoreError: if it names none.
    """
    entry = entry_of(value, where, ("task_info",))
    inner = entry.get("task_info")
    return folder_name(identifier(inner if isinstance(inner, dict) else entry, "env_id", where))


def published_scenario(scenario: Scenario, class_name: str) -> Published:
    """The scenario in the authors' format; what an import kept comes back as it was."""

    def agrees(trial: Published) -> bool:
        try:
            again = _read(trial, scenario.id, scenario.env_digest, "")
        except StoreError:
            return False
        fields = {"env_id", "initial_state", "task", "checks"}
        # The id may have been made different from that of an earlier scenario.
        named = scenario.id.startswith(again.id)
        return named and again.model_dump(include=fields) == scenario.model_dump(include=fields)

    return rejoined(rendered_scenario(scenario, class_name), scenario.released, agrees)


def rendered_scenario(scenario: Scenario, class_name: str) -> Published:
    """What the record alone says, in the authors' format."""
    return {
        "env_id": scenario.env_id,
        "env_class_name": class_name,
        "task_id": scenario.id,
        "init_config": scenario.initial_state,
        "task": scenario.task,
        "checklist_with_func": [
            {"check_item": check.description, "check_func": check.source} for check in scenario.checks
        ],
    }


def checks_of(published: Published, where: str) -> tuple[Check, ...]:
    """The checks of a published scenario or episode; their kind is not known.

    Raises:
        StoreError: naming the field that is missing or wrong.
    """
    return tuple(
        Check(
            description=text(part, "check_item", f"{where}, checklist_with_func[{index}]"),
            source=text(part, "check_func", f"{where}, checklist_with_func[{index}]"),
        )
        for index, part in enumerate(rows(published, "checklist_with_func", where))
    )


def initial_state_of(published: Published, where: str) -> dict[str, JsonValue]:
    """The state that a published scenario or episode starts from.

    Raises:
        StoreError: if the field is no object.
    """
    value = published.get("init_config")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StoreError(f"{where}: field `init_config` holds {kind_of(value)}; an object is needed")
    return value


def _read(published: Published, where: str, env_digest: str, source: str) -> Scenario:
    if "init_config" not in published:
        raise StoreError(f"{where}: field `init_config` is missing")
    return Scenario(
        id=identifier(published, "task_id", where),
        env_id=folder_name(identifier(published, "env_id", where)),
        env_digest=env_digest,
        initial_state=initial_state_of(published, where),
        task=text(published, "task", where),
        checks=checks_of(published, where),
        origin=Origin(source=source),
    )
