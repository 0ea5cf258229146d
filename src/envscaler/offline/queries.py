"""The queries that every entity has without being asked for: one by id, some by name, a filtered list."""

from __future__ import annotations

from envscaler.offline.blueprint import EntityPlan, OperationPlan, ParamPlan, QueryPlan


def standard_queries(entity: EntityPlan) -> tuple[OperationPlan, ...]:
    """`get_<record>`, `find_<records>_by_<title>` where records have a name, and `list_<records>` with filters."""
    get = OperationPlan(
        name=f"get_{entity.variable}",
        description=f"Get all details of one {entity.noun}.",
        params=(ParamPlan(name=entity.variable, ref=entity.name),),
        query=QueryPlan(kind="get"),
    )
    return (get, *_find(entity), _list(entity))


def _find(entity: EntityPlan) -> tuple[OperationPlan, ...]:
    if entity.title is None:
        return ()
    label = entity.title.replace("_", " ")
    return (
        OperationPlan(
            name=f"find_{entity.container}_by_{entity.title}",
            description=f"Find {entity.plural} whose {label} contains a text, in upper or lower case.",
            params=(ParamPlan(name=entity.title, description=f"Text that the {label} contains"),),
            query=QueryPlan(kind="find", entity=entity.name, field=entity.title),
        ),
    )


def _list(entity: EntityPlan) -> OperationPlan:
    params: list[ParamPlan] = []
    for field in entity.fields:
        said = field.label or field.name.replace("_", " ")
        if field.ref is not None and field.name.endswith("_id"):
            params.append(ParamPlan(name=field.name.removesuffix("_id"), ref=field.ref, optional=True))
        elif field.enum is not None:
            params.append(
                ParamPlan(
                    name=field.name,
                    description=f"Only {entity.plural} with this {said}",
                    enum=field.enum,
                    optional=True,
                )
            )
        elif field.type == "date" and not field.optional and not field.stamp:
            params.append(
                ParamPlan(
                    name=field.name, type="date", description=f"Only {entity.plural} with this {said}", optional=True
                )
            )
    filters = " and ".join(
        filter(
            None,
            [
                ", ".join(p.name.replace("_", " ") for p in params[:-1]),
                *(p.name.replace("_", " ") for p in params[-1:]),
            ],
        )
    )
    how = f", all or only those with a given {filters}" if params else ""
    return OperationPlan(
        name=f"list_{entity.container}",
        description=f"List {entity.plural}{how}.",
        params=tuple(params),
        query=QueryPlan(kind="list", entity=entity.name),
    )
