"""Where the boxes of a cluster lie: units in columns under the switch of their rack, racks in rows under theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .scene import FloatArray, IntArray

STUB, GAP, BELOW, HEAD = 1.3, 0.7, 0.35, 1.9
"""Of a rack: from its switch to a unit, between columns, below a unit, and above the units."""
SPINE, BETWEEN, RISE, UNDER = 1.0, 1.1, 1.6, 0.7
"""Of a group of racks: left of them, between them, above a row of them, below it."""
ASPECT = 1.6
"""Width over height that groups are given."""
MOST_TRIED = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes and lines, y down; a box is x, y, width, height.

    Attributes:
        width, height: of all.
        units: float (n, 4).
        groups: per level its groups, float (., 4); the last is all there is.
        links: per level the line from each member up to its switch, float (., 2, 2): of units, then of groups.
        switches: lines that are one switch where they meet, float (., 2, 2).
    """

    width: float
    height: float
    units: FloatArray
    groups: tuple[FloatArray, ...]
    links: tuple[FloatArray, ...]
    switches: FloatArray


def arrange(parents: list[IntArray], unit: tuple[float, float], room: tuple[float, float], largest: float) -> Layout:
    """Lay out a tree as large as the room allows, and as flat as that allows.

    Args:
        parents: per level the group of each member of the level below, the units' first; the last level has one.
        unit: width and height of each.
        room: width and height, in any unit.
        largest: scale, that unit over the layout's, beyond which nothing is gained.
    """
    most = int(np.bincount(parents[0]).max())
    best: tuple[float, float, Layout] | None = None
    for columns in _tried(most):
        tried = _lay_out(parents, unit, -(-most // columns))
        score = min(largest, room[0] / tried.width, room[1] / tried.height), -tried.height
        if best is None or score > best[:2]:
            best = *score, tried
    assert best is not None
    return best[2]


def _lay_out(parents: list[IntArray], unit: tuple[float, float], tall: int) -> Layout:
    """Lay out the tree with at most `tall` units in a column."""
    count = np.bincount(parents[0])
    column, row = np.divmod(_rank(parents[0]), tall)
    pitch = STUB + unit[0] + GAP
    width, height = GAP + -(-count // tall) * pitch, HEAD + np.minimum(count, tall) * (unit[1] + BELOW)
    sizes = [(width, height)]
    places = [np.stack([GAP + STUB + column * pitch, HEAD + row * (unit[1] + BELOW)], axis=1)]
    shelf: list[FloatArray] = []
    for parent in parents[1:]:
        top = len(sizes) + 1 == len(parents)
        found = [_shelves(width[parent == g], height[parent == g], top) for g in range(parent.max() + 1)]
        place, above = np.zeros((len(parent), 2)), np.zeros(len(parent))
        for g, (_, _, inside, y) in enumerate(found):
            place[parent == g], above[parent == g] = inside, y
        width, height = (np.array([f[k] for f in found]) for k in (0, 1))
        sizes.append((width, height))
        places.append(place)
        shelf.append(above)
    corner = [np.zeros((1, 2))]
    for parent, place in zip(reversed(parents), reversed(places), strict=True):
        corner.append(corner[-1][parent] + place)
    corner.reverse()
    units = np.concatenate([corner[0], np.tile(unit, (len(corner[0]), 1))], axis=1)
    groups = tuple(np.concatenate([c, np.stack(s, axis=1)], axis=1) for c, s in zip(corner[1:], sizes, strict=True))
    links, switches = _lines(parents, units, groups, shelf)
    return Layout(float(width[0]), float(height[0]), units, groups, links, switches)


def _tried(n: int) -> list[int]:
    """Return numbers from 1 to `n`: all if these are few, else ever fewer."""
    found: list[int] = np.unique(np.geomspace(1, n, MOST_TRIED).round().astype(int)).tolist()
    return found if n > MOST_TRIED else list(range(1, n + 1))


def _rank(parent: IntArray) -> IntArray:
    """Return which of its group each member is, from 0."""
    order = np.argsort(parent, kind="stable")
    count = np.bincount(parent)
    rank = np.empty(len(parent), dtype=np.int64)
    rank[order] = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    return rank


def _shelves(width: FloatArray, height: FloatArray, top: bool) -> tuple[float, float, FloatArray, FloatArray]:
    """Put boxes in rows; return width and height of all, the corner of each, and the height of the switch above it."""
    n = len(width)
    best: tuple[float, float, float, FloatArray, FloatArray] | None = None
    for each in sorted({-(-n // k) for k in _tried(n)}):
        place, above = np.zeros((n, 2)), np.zeros(n)
        y, wide = 0.2 if top else HEAD - 0.9, 0.0
        for first in range(0, n, each):
            mine = slice(first, first + each)
            step = width[mine] + BETWEEN
            place[mine, 0] = SPINE + np.cumsum(step) - step
            place[mine, 1], above[mine] = y + RISE, y + 0.4
            wide = max(wide, float(SPINE + step.sum()))
            y += RISE + float(height[mine].max()) + UNDER
        off = abs(float(np.log(wide / y / ASPECT)))
        if best is None or off < best[0]:
            best = off, wide, y, place, above
    assert best is not None
    return best[1:]


def _lines(
    parents: list[IntArray], units: FloatArray, groups: tuple[FloatArray, ...], shelf: list[FloatArray]
) -> tuple[tuple[FloatArray, ...], FloatArray]:
    """Return the links of each level, and the lines of the switches."""
    end = units[:, :2] + np.stack([np.zeros(len(units)), units[:, 3] / 2], axis=1)
    links = [np.stack([end - [STUB, 0], end], axis=1)]
    lines: list[list[tuple[float, float]]] = []
    for rack, (x, y, _, _) in enumerate(groups[0].tolist()):
        ends = links[0][parents[0] == rack, 0]
        bar = y + HEAD - 0.5
        lines += [[(spine, bar), (spine, float(low))] for spine, low in _furthest(ends[:, 0], ends[:, 1])]
        lines.append([(x + GAP, bar), (float(ends[:, 0].max()), bar)])
    ports = groups[0][:, :2] + [GAP, HEAD - 0.5]  # of each member the place of its own switch where its link begins
    for parent, group, above in zip(parents[1:], groups[1:], shelf, strict=True):
        y = group[parent, 1] + above
        links.append(np.stack([np.stack([ports[:, 0], y], axis=1), ports], axis=1))
        left = group[:, 0] + SPINE / 2
        first = np.zeros(len(group))
        for g, spine in enumerate(left.tolist()):
            mine = parent == g
            first[g] = y[mine].min()
            lines.append([(spine, float(first[g])), (spine, float(y[mine].max()))])
            lines += [[(spine, shelf_y), (right, shelf_y)] for shelf_y, right in _furthest(y[mine], ports[mine, 0])]
        ports = np.stack([left, first], axis=1)
    return tuple(links), np.array(lines)


def _furthest(at: FloatArray, reach: FloatArray) -> list[tuple[float, float]]:
    """Return each value of `at` with the largest `reach` there."""
    return [(float(a), float(reach[at == a].max())) for a in np.unique(at)]
