"""Where the boxes of a cluster lie: nodes in rows in their racks, these in their groups, GPUs in their nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem

from .scene import FloatArray, IntArray

HEAD, GAP = 1.25, 0.5
"""Of a group: above its members, for its name; between and around them."""
ASPECT = 1.8
"""Width over height that groups are given."""
MOST_TRIED = 40


def arrange(parents: list[IntArray], unit: tuple[float, float]) -> list[FloatArray]:
    """Lay out a tree, the members of each group in rows.

    Args:
        parents: per level the group of each member of the level below, the units' first; the last level has one.
        unit: width and height of each.

    Returns:
        Per level the boxes x, y (down), width, height, float (., 4): of units, of groups, of all there is.
    """
    sizes, inside = [np.tile(np.array(unit, dtype=float), (len(parents[0]), 1))], list[FloatArray]()
    for parent in parents:
        place, size = np.zeros((len(parent), 2)), np.zeros((parent.max() + 1, 2))
        for g in range(len(size)):
            mine = np.flatnonzero(parent == g)
            place[mine], size[g] = _rows(sizes[-1][mine])
        inside.append(place)
        sizes.append(size)
    corner = [np.zeros((1, 2))]
    for parent, place in zip(reversed(parents), reversed(inside), strict=True):
        corner.insert(0, corner[0][parent] + place)
    return [np.concatenate(pair, axis=1) for pair in zip(corner, sizes, strict=True)]


def _rows(size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put boxes in rows, so many that the whole is nearest to `ASPECT`; return their corners, and the size of all."""
    n, best = len(size), (np.inf, size, size)
    wide = size[:, 0] + GAP
    for rows in np.unique(np.geomspace(1, n, MOST_TRIED).round().astype(int)).tolist():
        each = -(-n // rows)
        row, first = np.arange(n) // each, np.arange(0, n, each)
        tall = np.maximum.reduceat(size[:, 1], first) + GAP
        left, above = np.cumsum(wide) - wide, HEAD + np.cumsum(tall) - tall
        whole = np.array([np.add.reduceat(wide, first).max() + GAP, HEAD + tall.sum()])
        off = abs(float(np.log(whole[0] / whole[1] / ASPECT)))
        if off < best[0]:
            best = off, np.stack([GAP + left - left[first][row], above[row]], axis=1), whole
    return best[1:]


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
    job = plan.job[plan.grant_row].astype(np.int64)
    of, job, amount = _parts(card, job, shares(problem, plan), left, np.ones(len(node)))
    before = np.cumsum(amount) - amount
    start = before - before[np.searchsorted(of, of)]  # parts come GPU by GPU
    x = corner[of, 0] + start
    return Tiles(np.stack([x, corner[of, 1], amount, np.ones(len(of))], axis=1), job, node[of], gpu[of], amount)


def band_tiles(problem: PlacementProblem, plan: PlacementPlan, boxes: FloatArray, unit: IntArray) -> Tiles:
    """Return each box filled from below by the jobs in it, in proportion to their GPUs."""
    fleet, n = problem.fleet, len(boxes)
    down = np.where(np.asarray(fleet.usable), 0, fleet.gpus)
    total, lost = np.bincount(unit, weights=fleet.gpus, minlength=n), np.bincount(unit, weights=down, minlength=n)
    of, job, amount = _parts(
        np.concatenate([unit[plan.node[plan.grant_row]], np.arange(n)]),
        np.concatenate([plan.job[plan.grant_row], np.full(n, DOWN)]),
        np.concatenate([shares(problem, plan), lost]),
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


def shares(problem: PlacementProblem, plan: PlacementPlan) -> FloatArray:
    """Return how much of its GPU each grant of a plan has, float (g,)."""
    return np.array([min(1.0, job.worker.gpu) for job in problem.jobs])[plan.job[plan.grant_row]]


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
