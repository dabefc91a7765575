"""What a place is worth to a gang, to those that are there and to those to come: the figures that the network scores.

All figures are shares: of the mean weight of a job, of a node's GPUs, of what is free; none depends on names, and none
on how large the fleet is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p, log2

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
COMMON = [AT[x] for x in ("weight", "optional", "largest", "alike", "disliked", "dislikes", "to_come", "choice")]
"""Figures that all places of a decision share."""


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


class _Table:
    """The figures of the places of one decision, filled in place by place.

    Attributes:
        x: (C, F).
        own, harm, links: what each costs itself, those on its nodes and those on its links, (C,).
        count, width, racks: workers, nodes and racks.
        later: what jobs to come cost on the GPUs that are left there, once for each.
        used: empty nodes taken.
        most_left: idle GPUs of the node that has most left.
        lost: nodes that had most of all.
    """

    def __init__(self, scene: Scene, places: Sequence[Place]) -> None:
        c, board, ahead = len(places), scene.board, scene.ahead
        self.scene, self.places = scene, places
        self.x = np.zeros((c, len(NAMES)))
        self.own, self.harm, self.links = np.zeros(c), np.zeros(c), np.zeros(c)
        self.count, self.width, self.racks = np.zeros(c), np.ones(c), np.ones(c)
        self.later, self.used, self.most_left, self.lost = np.zeros(c), np.zeros(c), np.zeros(c), np.zeros(c)
        k, self.each = scene.gang.model, max(scene.gang.each, 1)
        self.top = float(scene.free.max())
        self.empty = (board.taken == 0) & (scene.free > 0)
        self.rack = board.group[1]
        free = np.bincount(self.rack, weights=scene.free, minlength=len(board.rack_gpus))
        self.rack_free = free / board.rack_gpus
        self.disliked = float(ahead.share * ahead.worth @ board.host[:, k])
        self.dislikes = float(ahead.share @ board.host[k])

    def singles(self, which: list[int]) -> None:
        """Fill in the places on one node without servers, all at once."""
        scene, board, x, unit, whole = self.scene, self.scene.board, self.x, self.scene.unit, self.scene.board.largest
        n = np.array([self.places[i].nodes[0] for i in which])
        w = np.array([self.places[i].workers[0] for i in which])
        own = board.single(scene.gang, n, w)
        then = scene.free[n] - w * self.each
        self.own[which], self.harm[which], self.count[which] = own, board.harm[n, scene.gang.model], w
        self.later[which] = (scene.ahead_cost[n] + self.disliked + own * self.dislikes) * then
        self.used[which], self.most_left[which], self.lost[which] = self.empty[n], then, scene.free[n] == self.top
        x[which, AT["ahead_before"]] = scene.ahead_cost[n] / unit
        x[which, AT["free_after"]], x[which, AT["filled"]] = then / whole, then <= 0
        x[which, AT["beside"]], x[which, AT["busy"]] = np.log1p(board.taken[n]), np.log1p(board.crossing[n])
        x[which, AT["rack_free"]] = self.rack_free[self.rack[n]]
        x[which, AT["stays"]] = [self.places[i].stays for i in which]

    def several(self, i: int) -> None:
        """Fill in a place on several nodes, or with servers."""
        scene, board, row, place = self.scene, self.scene.board, self.x[i], self.places[i]
        nodes, workers, r = place.nodes, place.workers, len(place.nodes)
        self.own[i], self.harm[i], self.links[i], wire = board.price(scene.gang, nodes, workers, place.servers)
        before, costs = scene.free[nodes], scene.ahead_cost[nodes]
        then = before - workers * self.each
        self.count[i], self.width[i] = workers.sum(), r
        self.later[i] = float((costs + self.disliked + self.own[i] * self.dislikes) @ then)
        self.used[i], self.most_left[i] = np.count_nonzero(self.empty[nodes]), then.max()
        self.lost[i] = np.count_nonzero(before == self.top)
        there = self.rack[nodes]
        self.racks[i] = len(set(there.tolist()))
        row[AT["ahead_before"]], row[AT["free_after"]] = costs.sum() / r / scene.unit, then.sum() / r / board.largest
        row[AT["filled"]] = np.count_nonzero(then <= 0) / r
        row[AT["crosses"]], row[AT["crosses_racks"]] = len(wire.members) > 0, len(wire.members) > 1
        row[AT["beside"]] = log1p(board.taken[nodes].sum() / r)
        row[AT["busy"]] = log1p(board.crossing[nodes].sum() / r)
        row[AT["rack_free"]] = self.rack_free[there].sum() / r
        row[AT["apart_servers"]], row[AT["stays"]] = float(workers.min() == 0), place.stays


def features(scene: Scene, places: Sequence[Place]) -> tuple[FloatArray, FloatArray]:
    """Return the figures of each place, float64 (C, F) by `NAMES`, and what it costs at once, float64 (C,)."""
    table, board, gang, ahead, unit = _Table(scene, places), scene.board, scene.gang, scene.ahead, scene.unit
    single = [i for i, p in enumerate(places) if len(p.nodes) == 1 and p.servers is None]
    if single:
        table.singles(single)
    for i, place in enumerate(places):
        if len(place.nodes) > 1 or (len(place.nodes) == 1 and place.servers is not None):
            table.several(i)
    x, count, used, whole = table.x, table.count, table.used, board.largest
    gone = count == 0
    extra = np.array([p.extra for p in places])
    empties, tops = float(np.count_nonzero(table.empty)), float(np.count_nonzero(scene.free == table.top))
    after = np.maximum(float(scene.free.sum()) - count * table.each, 1.0)
    left = np.where((tops > table.lost) | gone, table.top, table.most_left)
    price = table.own + extra + table.harm + table.links
    sizes = ahead.sizes
    largest = float(sizes[-1]) if len(sizes) else 0.0
    need = float(np.floor(sizes / whole).sum())
    columns = {
        "dearer": (price - price.min()) / unit,
        "own": (table.own + extra - gang.weight) / unit,
        "harm": table.harm / unit,
        "links": table.links / unit,
        "zero_harm": (table.harm + table.links < 1e-9) & (table.own <= gang.weight * (1 + 1e-9)) & ~gone,
        "ahead": table.later / after / unit,
        "nodes": np.log2(table.width * whole / np.maximum(count * table.each, whole)) * ~gone,
        "racks": np.log2(table.racks),
        "degree": count / scene.most,
        "size": np.log2(count * table.each / whole + 1),
        "suits": np.searchsorted(sizes, table.most_left, side="right") / max(len(sizes), 1),
        "empties_used": used / max(empties, 1.0),
        "empties_left": np.log1p((empties - used) / max(ahead.count, 1)),
        "pressure": ahead.gpus / after,
        "shrinks": (table.top - left) / whole,
        "largest_fits": min(largest, whole) <= left,
        "whole_left": np.log1p(need) - np.log1p(empties - used),
        "rank": np.argsort(np.argsort(price, kind="stable"), kind="stable") / len(places),
        "left_out": gone,
    }
    for name, value in columns.items():
        x[:, AT[name]] = value
    x[:, COMMON] = (
        gang.weight / unit, scene.optional, log2(largest / whole + 1), board.host[gang.model, gang.model],
        table.disliked / unit, gang.weight * table.dislikes / unit, ahead.count / max(ahead.all, 1),
        log1p(len(places)),
    )  # fmt: skip
    x[:, AT[gang.collective]] = 1.0
    return x, price
