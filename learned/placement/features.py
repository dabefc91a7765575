"""What a place is worth to a gang, to those that are there and to those to come: the figures that the network scores.

All figures are shares: of the mean weight of a job, of a node's GPUs, of what is free; none depends on names, and none
on how large the fleet is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.job import COLLECTIVES

from .board import Board, Gang
from .wires import Members

NAMES = (
    "dearer", "own", "harm", "links", "ahead", "ahead_before", "free_after", "filled", "empties_used", "empties_left",
    "nodes", "racks", "crosses", "crosses_racks", "degree", "size", "weight", "pressure", "largest", "shrinks",
    "largest_fits", "suits", "whole_left", "rack_free", "beside", "apart_servers", "stays", "left_out", "optional",
    "alike", "disliked", "dislikes", "to_come", "choice", "busy", "zero_harm", "rank", *COLLECTIVES,
)  # fmt: skip


AT = {name: i for i, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True)
class Place:
    """One candidate for a gang.

    Attributes:
        nodes, workers: of its rows, int64 (r,); none if the job is left out.
        servers: parameter servers of its rows, None without any.
        extra: what is to be paid for it besides: moving, or the value of a job that is left out.
        stays: whether the job runs there already.
    """

    nodes: Members
    workers: Members
    servers: Members | None = None
    extra: float = 0.0
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Ahead:
    """The jobs to come, in sum.

    Attributes:
        count: how many; 0 if nothing is known of them.
        share: of them, by model, float64 (K,).
        worth: mean weight of those of each model, float64 (K,).
        gpus: they ask for in all.
        sizes: GPUs of each, ascending.
        all: jobs of the batch.
    """

    count: int
    share: FloatArray
    worth: FloatArray
    gpus: float
    sizes: FloatArray
    all: int

    def cost(self, board: Board) -> FloatArray:
        """Return what one of them, drawn by chance, would pay and cost others on each node, float64 (m,)."""
        return np.asarray(board.suffer @ (self.share * self.worth) + board.harm @ self.share)


@dataclass(frozen=True, slots=True)
class Scene:
    """What all candidates of a decision have in common.

    Attributes:
        board: who is where.
        gang: whose turn it is.
        optional: whether it may be left out.
        most: workers that it may have at most.
        free: idle GPUs of each node, float64 (m,).
        ahead: the jobs to come.
        ahead_cost: of them on each node, see `Ahead.cost`.
        unit: mean weight of the batch's jobs.
    """

    board: Board
    gang: Gang
    optional: bool
    most: int
    free: FloatArray
    ahead: Ahead
    ahead_cost: FloatArray
    unit: float


def features(scene: Scene, places: Sequence[Place]) -> tuple[FloatArray, FloatArray]:
    """Return the figures of each place, float64 (C, F) by `NAMES`, and what it costs at once, float64 (C,)."""
    board, gang, ahead, unit, free = scene.board, scene.gang, scene.ahead, scene.unit, scene.free
    c, k, each, host = len(places), gang.model, max(gang.each, 1), board.host
    whole = board.largest
    x = np.zeros((c, len(NAMES)))
    idle, top = float(free.sum()), float(free.max())
    empty = (board.taken == 0) & (free > 0)
    empties, tops = float(np.count_nonzero(empty)), float(np.count_nonzero(free == top))
    disliked, dislikes = float(ahead.share * ahead.worth @ host[:, k]), float(ahead.share @ host[k])
    count, width, racks = np.zeros(c), np.ones(c), np.ones(c)
    own, harm, links, extra = np.full(c, 0.0), np.zeros(c), np.zeros(c), np.array([p.extra for p in places])
    later, used, left, most_left, lost = np.zeros(c), np.zeros(c), np.full(c, top), np.zeros(c), np.zeros(c)
    rack = board.group[1]
    rack_free = np.bincount(rack, weights=free, minlength=len(board.rack_gpus)) / board.rack_gpus

    one = [i for i, p in enumerate(places) if len(p.nodes) == 1 and p.servers is None]
    if one:
        n = np.array([places[i].nodes[0] for i in one])
        w = np.array([places[i].workers[0] for i in one])
        own[one], harm[one] = board.single(gang, n, w), board.harm[n, k]
        then = free[n] - w * each
        count[one] = w
        later[one] = (scene.ahead_cost[n] + disliked + own[one] * dislikes) * then
        x[one, AT["ahead_before"]] = scene.ahead_cost[n] / unit
        x[one, AT["free_after"]], x[one, AT["filled"]] = then / whole, then <= 0
        used[one], most_left[one], lost[one] = empty[n], then, free[n] == top
        x[one, AT["beside"]], x[one, AT["busy"]] = np.log1p(board.taken[n]), np.log1p(board.crossing[n])
        x[one, AT["rack_free"]] = rack_free[rack[n]]
        x[one, AT["stays"]] = [places[i].stays for i in one]
    for i, place in enumerate(places):
        nodes, workers = place.nodes, place.workers
        if not len(nodes):
            own[i], x[i, AT["left_out"]] = 0.0, 1.0
        if not len(nodes) or (len(nodes) == 1 and place.servers is None):
            continue
        own[i], harm[i], links[i], wire = board.price(gang, nodes, workers, place.servers)
        before, costs, row = free[nodes], scene.ahead_cost[nodes], x[i]
        then = before - workers * each
        r = len(nodes)
        count[i], width[i] = workers.sum(), r
        later[i] = float((costs + disliked + own[i] * dislikes) @ then)
        row[AT["ahead_before"]], row[AT["free_after"]] = costs.sum() / r / unit, then.sum() / r / whole
        row[AT["filled"]] = np.count_nonzero(then <= 0) / r
        used[i], most_left[i], lost[i] = np.count_nonzero(empty[nodes]), then.max(), np.count_nonzero(before == top)
        there = rack[nodes]
        racks[i] = len(set(there.tolist()))
        row[AT["crosses"]], row[AT["crosses_racks"]] = len(wire.members) > 0, len(wire.members) > 1
        row[AT["beside"]] = np.log1p(board.taken[nodes].sum() / r)
        row[AT["busy"]] = np.log1p(board.crossing[nodes].sum() / r)
        row[AT["rack_free"]] = rack_free[there].sum() / r
        row[AT["apart_servers"]], row[AT["stays"]] = float(workers.min() == 0), place.stays
    gone = x[:, AT["left_out"]] > 0
    after = np.maximum(idle - count * each, 1.0)
    left = np.where((tops > lost) | gone, top, most_left)
    price = own + extra + harm + links
    sizes = ahead.sizes
    largest = float(sizes[-1]) if len(sizes) else 0.0
    need = float(np.floor(sizes / whole).sum())
    columns = {
        "dearer": (price - price.min()) / unit,
        "own": (own + extra - gang.weight) / unit,
        "harm": harm / unit,
        "links": links / unit,
        "zero_harm": (harm + links < 1e-9) & (own <= gang.weight * (1 + 1e-9)) & ~gone,
        "ahead": later / after / unit,
        "nodes": np.log2(width * whole / np.maximum(count * each, whole)) * ~gone,
        "racks": np.log2(racks),
        "degree": count / scene.most,
        "size": np.log2(count * each / whole + 1),
        "suits": np.searchsorted(sizes, most_left, side="right") / max(len(sizes), 1),
        "empties_used": used / max(empties, 1.0),
        "empties_left": np.log1p((empties - used) / max(ahead.count, 1)),
        "pressure": ahead.gpus / after,
        "shrinks": (top - left) / whole,
        "largest_fits": min(largest, whole) <= left,
        "whole_left": np.log1p(need) - np.log1p(empties - used),
        "rank": np.argsort(np.argsort(price, kind="stable"), kind="stable") / c,
        "weight": gang.weight / unit,
        "optional": scene.optional,
        "largest": np.log2(largest / whole + 1),
        "alike": host[k, k],
        "disliked": disliked / unit,
        "dislikes": gang.weight * dislikes / unit,
        "to_come": ahead.count / max(ahead.all, 1),
        "choice": np.log1p(c),
        gang.collective: 1.0,
    }
    for name, value in columns.items():
        x[:, AT[name]] = value
    return x, price
