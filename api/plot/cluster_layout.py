"""Where the boxes of a cluster lie: units under the switch of their rack, racks under theirs, GPUs in their units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem

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
    ports = groups[0][:, :2] + [GAP, HEAD - 0.5]  # of each member the place of its own switch where its link begins
    lines: list[FloatArray] = []
    for rack, bar in enumerate(ports[:, 1].tolist()):
        at, reach = links[0][parents[0] == rack, 0].T
        lines += _comb(at, reach, bar)
    for parent, group, above in zip(parents[1:], groups[1:], shelf, strict=True):
        y = group[parent, 1] + above
        links.append(np.stack([np.stack([ports[:, 0], y], axis=1), ports], axis=1))
        left = group[:, 0] + SPINE / 2
        for g, spine in enumerate(left.tolist()):
            lines += [line[:, ::-1] for line in _comb(y[parent == g], ports[parent == g, 0], spine)]
        ports = np.stack([left, [y[parent == g].min() for g in range(len(group))]], axis=1)
    return tuple(links), np.array(lines)


def _comb(at: FloatArray, reach: FloatArray, base: float) -> list[FloatArray]:
    """Return a line from `base` to the largest `reach` at each value of `at`, and one that joins them at `base`."""
    teeth = [np.array([(a, base), (a, reach[at == a].max())]) for a in np.unique(at)]
    return [*teeth, np.array([(at.min(), base), (at.max(), base)])]


IDLE, DOWN = -1, -2
"""In place of a job: nobody's, and of a node that is not usable."""
ACROSS, LEAST_NAMED = 8, 3
"""GPUs side by side in a node, more go in rows; and the width of so many that a name needs."""
PAD, NAME = 0.15, 0.85
"""Round the GPUs of a node, and above them for its name."""
BAND, BAND_NAME = 6.0, 1.5
"""The side of a box that jobs fill in proportion, and above it for its name."""
LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Tiles:
    """Rectangles, t of them.

    Attributes:
        box: x, y, width, height, float (t, 4).
        job: whose it is, or `IDLE` or `DOWN`, int (t,).
        unit: index of the unit it is in, int (t,).
        gpu: which of its node's GPUs, -1 if it stands for several, int (t,).
        amount: of how many GPUs, float (t,).
    """

    box: FloatArray
    job: IntArray
    unit: IntArray
    gpu: IntArray
    amount: FloatArray


def node_size(most: int, marked: bool, named: bool) -> tuple[float, float]:
    """Return width and height of the box of a node of up to `most` GPUs, `marked` if it has room for tasks without."""
    across = max(LEAST_NAMED if named else 1, min(most, ACROSS))
    return across + marked + 2 * PAD, max(1, -(-most // ACROSS)) + 2 * PAD + NAME * named


def gpu_tiles(problem: PlacementProblem, plan: PlacementPlan, nodes: FloatArray, named: bool) -> Tiles:
    """Return each GPU as a square, parted among the jobs that share it; what is left of it is idle."""
    fleet = problem.fleet
    node = np.repeat(np.arange(fleet.n_nodes), fleet.gpus)
    first = np.cumsum(fleet.gpus) - fleet.gpus
    gpu = np.arange(len(node)) - first[node]
    corner = nodes[node, :2] + np.stack([PAD + gpu % ACROSS, PAD + NAME * named + gpu // ACROSS], axis=1)
    card = first[plan.node[plan.grant_row]] + plan.grant_gpu
    left = np.where(np.asarray(fleet.usable)[node], IDLE, DOWN)
    of, job, amount = _parts(
        card, plan.job[plan.grant_row].astype(np.int64), _share(problem, plan), left, np.ones(len(node))
    )
    before = np.cumsum(amount) - amount
    start = before - before[np.searchsorted(of, of)]  # parts come GPU by GPU
    x = corner[of, 0] + start
    box = np.stack([x, corner[of, 1], amount, np.ones(len(of))], axis=1)
    return Tiles(box, job, node[of], gpu[of], amount)


def band_tiles(problem: PlacementProblem, plan: PlacementPlan, boxes: FloatArray, unit: IntArray) -> Tiles:
    """Return each box filled from below by the jobs in it, in proportion to their GPUs.

    Args:
        problem, plan: a plan and what it answers.
        boxes: of the units.
        unit: the unit of each node.
    """
    fleet, n = problem.fleet, len(boxes)
    down = np.where(np.asarray(fleet.usable), 0, fleet.gpus)
    total, lost = np.bincount(unit, weights=fleet.gpus, minlength=n), np.bincount(unit, weights=down, minlength=n)
    of, job, amount = _parts(
        np.concatenate([unit[plan.node[plan.grant_row]], np.arange(n)]),
        np.concatenate([plan.job[plan.grant_row], np.full(n, DOWN)]),
        np.concatenate([_share(problem, plan), lost]),
        np.full(n, IDLE),
        total.astype(np.float64),
    )
    order = np.lexsort((-np.where(job < 0, job, amount), job < 0, of))
    of, job, amount = of[order], job[order], amount[order]
    tall = amount / np.maximum(total, 1)[of] * BAND
    above = np.cumsum(tall)
    below = above - (above - tall)[np.searchsorted(of, of)]
    box = np.stack([boxes[of, 0], boxes[of, 1] + boxes[of, 3] - below, boxes[of, 2], tall], axis=1)
    return Tiles(box, job, of, np.full(len(of), -1), amount)


def marks(
    problem: PlacementProblem, plan: PlacementPlan, nodes: FloatArray, named: bool
) -> tuple[FloatArray, IntArray]:
    """Return a mark for each row of a plan with tasks that hold no GPU: middle and size, float (k, 3), and its row."""
    cores_only = np.array([job.worker.gpu == 0 for job in problem.jobs])[plan.job]
    row = np.flatnonzero((plan.servers > 0) | cores_only)
    row = row[np.argsort(plan.node[row], kind="stable")]
    node = plan.node[row]
    count = np.bincount(node, minlength=len(nodes))
    rank = np.arange(len(row)) - (np.cumsum(count) - count)[node]
    side = np.ceil(np.sqrt(count))[node]
    unfilled = side - np.ceil(count[node] / side)
    x = nodes[node, 0] + nodes[node, 2] - PAD - 1 + (rank % side + 0.5) / side
    y = nodes[node, 1] + PAD + NAME * named + (rank // side + 0.5 + unfilled / 2) / side
    return np.stack([x, y, 1 / side], axis=1), row


def runs(tiles: Tiles) -> tuple[FloatArray, IntArray]:
    """Return rectangles of what one job holds side by side, and whose they are."""
    at = np.flatnonzero(tiles.job >= 0)
    box, job, unit = tiles.box[at], tiles.job[at], tiles.unit[at]
    joined = (job[1:] == job[:-1]) & (unit[1:] == unit[:-1]) & (box[1:, 1] == box[:-1, 1])
    joined &= np.abs(box[1:, 0] - box[:-1, 0] - box[:-1, 2]) < 1e-6
    start = np.flatnonzero(np.concatenate([[True], ~joined])) if len(at) else at
    joint = box[start]
    if len(start):
        joint[:, 2] = np.add.reduceat(box[:, 2], start)
    return joint, job[start]


def _share(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return what each grant is of a GPU."""
    part = np.array([min(1.0, job.worker.gpu) for job in problem.jobs])
    return part[plan.job[plan.grant_row]]


def _parts(
    of: IntArray, job: IntArray, amount: FloatArray, rest: IntArray, total: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Sum up amounts by what they are of and whose, in this order; what is left of each total is `rest`'s."""
    everyone = np.concatenate([of, np.arange(len(total))])
    whose = np.concatenate([job, rest])
    left = total - np.bincount(of, weights=amount, minlength=len(total))
    pairs, inverse = np.unique(np.stack([everyone, -whose]), axis=1, return_inverse=True)
    found = np.bincount(inverse.ravel(), weights=np.concatenate([amount, left])).astype(np.float64)
    kept = found > LEAST
    return pairs[0][kept], -pairs[1][kept], found[kept]
