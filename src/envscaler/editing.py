"""Changes parts of plain JSON data in place, with nothing needed to do so: workers load it too.

Which changes are worth making is the business of whoever tries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class EditError(Exception):
    """An edit that cannot be made: what it is to be made in is not there."""


Edit = Sequence[Any]
"""`[path, value]` sets a part, `[path]` removes it; a path is a list of keys, of indices as numbers or as text."""


def edit(value: Any, edits: Iterable[Edit]) -> Any:
    """Make the edits one after the other and return `value`, which is changed; another value for an empty path.

    An index right behind the end of a list appends.

    Raises:
        EditError: if the container of a part is not there, or the part to be removed.
    """
    for change in edits:
        path = change[0]
        if not path:
            value = change[1]
            continue
        try:
            container = value
            for token in path[:-1]:
                container = container[int(token)] if isinstance(container, list) else container[token]
            _change(container, path[-1], change[1:])
        except (LookupError, ValueError, TypeError):
            raise EditError(f"there is no {'/'.join(map(str, path))} to be changed") from None
    return value


def _change(container: Any, token: Any, values: Sequence[Any]) -> None:
    if isinstance(container, list):
        index = int(token)
        if not values:
            del container[index]
        elif index == len(container):
            container.append(values[0])
        else:
            container[index] = values[0]
    elif values:
        container[token] = values[0]
    else:
        del container[token]
