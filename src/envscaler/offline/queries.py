"""The queries that every entity has without being asked for: one by id, some by name, a filtered list."""

from __future__ import annotations

from envscaler.offline.blueprint import EntityPlan, OperationPlan, ParamPlan, QueryPlan
from envscaler.offline.labels import said
from envscaler.offline.wording import Wording


def standard_queries(entity: EntityPlan, wording: Wording) -> tuple[OperationPlan, ...]:
    """`get_<record>`, `find_<records>_by_<title>` where records have a name, and `list_<records>` with filters."""
    get = OperationPlan(
        name=f"get_{entity.variable}",
        description=wording.say("get_one", noun=entity.noun),
        params=(ParamPlan(name=entity.variable, ref=entity.name),),
        query=QueryPlan(kind="get"),
    )
    return (get, *_find(entity, wording), _list(entity, wording))


def _find(entity: EntityPlan, wording: Wording) -> tuple[OperationPlan, ...]:
    field = entity.field(entity.title) if entity.title is not None else None
    if field is None:
        return ()
    return (
        OperationPlan(
            name=f"find_{entity.container}_by_{field.name}",
            description=wording.say("find_many", plural=entity.plural, field=said(field)),
            params=(ParamPlan(name=field.name, description=wording.say("text_contained", field=said(field))),),
            query=QueryPlan(kind="find", entity=entity.name, field=field.name),
        ),
    )


def _list(entity: EntityPlan, wording: Wording) -> OperationPlan:
    params: list[ParamPlan] = []
    filters: list[str] = []
    for field in entity.fields:
        if field.ref is not None and field.name.endswith("_id"):
            params.append(ParamPlan(name=field.name.removesuffix("_id"), ref=field.ref, optional=True))
        elif field.enum is not None or (field.type == "date" and not field.optional and not field.stamp):
            description = wording.say("only_with", plural=entity.plural, field=said(field))
            params.append(
                ParamPlan(name=field.name, type=field.type, description=description, enum=field.enum, optional=True)
            )
        else:
            continue
        filters.append(said(field))
    description = (
        wording.say("list_filtered", plural=entity.plural, fields=wording.listed(filters))
        if filters
        else wording.say("list_all", plural=entity.plural)
    )
    return OperationPlan(
        name=f"list_{entity.container}",
        description=description,
        params=tuple(params),
        query=QueryPlan(kind="list", entity=entity.name),
    )
