"""Draws E_state as a small graph: a box an entity, a line for each reference. Standalone SVG, no script.

What an entity means is written beside it by the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from envscaler.skeleton import Entity

_ROW = 17
_HEAD = 24
_CHAR = 6.7
_GAP_X = 76
_GAP_Y = 22
_MARGIN = 10
_MAX_ROWS = 9
_MAX_CHARS = 30


@dataclass
class _Box:
    entity: Entity
    rows: list[tuple[str, str, str | None]]
    """Name, type, and the entity referred to, of each attribute shown."""
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


def schema_svg(entities: Sequence[Entity]) -> Markup:
    """The graph as an `<svg>` element, coloured by the page's style variables; empty without entities."""
    if not entities:
        return Markup("")
    boxes = {entity.name: _box(entity) for entity in entities}
    columns = _columns(boxes)
    width, height = _place(columns)
    lines = [_edge(box, row, boxes[target]) for box in boxes.values() for row, target in _references(box, boxes)]
    parts = [_drawn(box) for box in boxes.values()]
    label = escape(", ".join(boxes))
    return Markup(
        f'<svg class="schema" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="State schema: {label}">' + "".join(lines) + "".join(parts) + "</svg>"
    )


def _box(entity: Entity) -> _Box:
    # Attributes that refer to others come first, so that a long entity never hides its lines.
    ordered = sorted(entity.attributes, key=lambda attribute: (attribute.name != entity.key, not attribute.references))
    shown = ordered if len(ordered) <= _MAX_ROWS else ordered[: _MAX_ROWS - 1]
    rows = [(_cut(part.name), _cut(part.type), part.references) for part in shown]
    if len(shown) < len(ordered):
        rows.append((f"… {len(ordered) - len(shown)} more", "", None))
    longest = max([len(entity.name) + 2, *(len(name) + len(kind) + 3 for name, kind, _ in rows)])
    return _Box(entity, rows, longest * _CHAR + 20, _HEAD + len(rows) * _ROW + 8)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def _references(box: _Box, boxes: dict[str, _Box]) -> list[tuple[int, str]]:
    return [(row, target) for row, (_, _, target) in enumerate(box.rows) if target in boxes and target is not None]


def _columns(boxes: dict[str, _Box]) -> list[list[_Box]]:
    """Who refers stands left of whom it refers to, as far as cycles allow."""
    depth: dict[str, int] = {}

    def visit(name: str, path: frozenset[str]) -> int:
        if name in depth:
            return depth[name]
        targets = {target for _, target in _references(boxes[name], boxes)} - path - {name}
        below = [visit(target, path | {name}) for target in sorted(targets)]
        depth[name] = 1 + max(below) if below else 0
        return depth[name]

    for name in boxes:
        visit(name, frozenset())
    deepest = max(depth.values())
    columns: list[list[_Box]] = [[] for _ in range(deepest + 1)]
    for name, box in boxes.items():
        columns[deepest - depth[name]].append(box)
    # Many entities that refer to nothing would make one endless column.
    tall = max(6, round(len(boxes) ** 0.5) + 2)
    return [column[start : start + tall] for column in columns if column for start in range(0, len(column), tall)]


def _place(columns: list[list[_Box]]) -> tuple[float, float]:
    heights = [sum(box.height for box in column) + _GAP_Y * (len(column) - 1) for column in columns]
    tallest = max(heights)
    x = float(_MARGIN)
    for column, height in zip(columns, heights, strict=True):
        y = _MARGIN + (tallest - height) / 2
        for box in column:
            box.x, box.y = x, y
            y += box.height + _GAP_Y
        x += max(box.width for box in column) + _GAP_X
    return x - _GAP_X + _MARGIN, tallest + 2 * _MARGIN


def _edge(box: _Box, row: int, target: _Box) -> str:
    start_y = box.y + _HEAD + row * _ROW + _ROW / 2 + 3
    end_y = target.y + _HEAD / 2
    if target.x > box.x:
        start_x, end_x, bend = box.x + box.width, target.x, 1
        middle = max(36.0, (end_x - start_x) / 2)
        curve = f"C {start_x + middle:.0f} {start_y:.0f} {end_x - middle:.0f} {end_y:.0f} {end_x:.0f} {end_y:.0f}"
    else:
        start_x, end_x, bend = box.x + box.width, target.x + target.width, -1
        out = max(start_x, end_x) + 34
        curve = f"C {out:.0f} {start_y:.0f} {out:.0f} {end_y:.0f} {end_x:.0f} {end_y:.0f}"
    tip = f"M {end_x - bend * 6:.0f} {end_y - 4:.0f} L {end_x:.0f} {end_y:.0f} L {end_x - bend * 6:.0f} {end_y + 4:.0f}"
    return f'<path class="edge" d="M {start_x:.0f} {start_y:.0f} {curve}"/><path class="edge" d="{tip}"/>'


def _drawn(box: _Box) -> str:
    out = [
        f'<g transform="translate({box.x:.0f} {box.y:.0f})">'
        f'<rect class="box" width="{box.width:.0f}" height="{box.height:.0f}" rx="7"/>'
        f'<text class="name" x="10" y="17">{escape(box.entity.name)}</text>'
    ]
    for row, (name, kind, target) in enumerate(box.rows):
        y = _HEAD + row * _ROW + 14
        style = "key" if name == box.entity.key else "ref" if target else "attribute"
        out.append(
            f'<text class="{style}" x="10" y="{y}">{escape(name)}</text>'
            f'<text class="type" x="{box.width - 10:.0f}" y="{y}" text-anchor="end">{escape(kind)}</text>'
        )
    return "".join(out) + "</g>"
