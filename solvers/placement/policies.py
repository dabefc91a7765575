"""Where one gang goes: rules for a batch and, the first four, for gangs that come one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from .prepare import GroupTree, Indices
from .state import PlacementState

_PARTS = 4
"""Of the parts of the network that hold a gang, the tightest so many are looked into."""


class Vacancy(Protocol):
    """What the nodes have for the workers of one gang."""

    @property
    def room(self) -> Indices:
        """How many workers each node can take, int (m,)."""
        ...

    @property
    def free(self) -> Indices | FloatArray:
        """Idle GPUs of each node, (m,)."""
        ...

    @property
    def tree(self) -> GroupTree:
        """The network."""
        ...

    @property
    def sums(self) -> Sequence[Indices]:
        """Room of the groups of each level above the nodes."""
        ...


class Offer:
    """The `Vacancy` of a placement under construction. `room`: of its workers, int (m,), to be left as it is."""

    def __init__(self, state: PlacementState, job: int, room: IntArray) -> None:
        self.state, self.job, self.room = state, job, room
        self.free, self.tree = state.free_gpu, state.batch.tree

    @property
    def sums(self) -> Sequence[Indices]:
        """Room of the groups of each level above the nodes."""
        return [np.bincount(group, weights=self.room).astype(np.int64) for group in self.tree.group[1:]]


Policy = Callable[[Offer, int], dict[int, int]]
"""Called with the room for a gang and the number of its workers, no more than fit; returns node -> workers."""
GangPolicy = Callable[[Vacancy, int], dict[int, int]]
"""The same for gangs that come one at a time."""


def take(order: Indices, room: Indices, degree: int) -> dict[int, int]:
    """Return node -> workers: each node in turn takes what it can until all `degree` are placed."""
    order = order[room[order] > 0]
    reached = np.cumsum(room[order], dtype=np.int64)
    last = int(np.searchsorted(reached, degree))
    chosen = {int(node): int(room[node]) for node in order[:last]}
    if last < len(order):
        chosen[int(order[last])] = degree - sum(chosen.values())
    return chosen


def compact(nodes: Indices, room: Indices, degree: int) -> dict[int, int]:
    """Return node -> workers on few nodes: the roomiest whole, and the rest where it fills a node best.

    Ties go to the first node. `room` is of all nodes; `nodes` together have enough of it.
    """
    order = nodes[np.argsort(-room[nodes], kind="stable")]
    chosen = take(order, room, degree)
    _, left = chosen.popitem()
    rest = order[len(chosen) :]
    fitting = rest[room[rest] >= left]
    chosen[int(fitting[np.lexsort([fitting, room[fitting]])[0]])] = left
    return chosen


def around(offer: Vacancy, seed: int, degree: int) -> dict[int, int]:
    """Return node -> workers: the nearest room to a node, ties to the first."""
    group, room = offer.tree.group, offer.room
    chosen: dict[int, int] = {}
    if room[seed]:
        chosen[seed] = min(degree, int(room[seed]))
    left = degree - sum(chosen.values())
    for level in range(1, len(group)):
        if not left:
            return chosen
        here = group[level][seed]
        near = offer.tree.inside[here] if level == 1 else np.flatnonzero(group[level] == here)
        near = near[group[level - 1][near] != group[level - 1][seed]]
        most = min(left, int(room[near].sum()))
        if most:
            chosen |= take(near, room, most)
            left -= most
    if left:  # beyond the top level there is the rest of the fleet
        chosen |= take(np.flatnonzero(group[-1] != group[-1][seed]), room, left)
    return chosen


def serve(
    workers: Mapping[int, int], servers: int, room: Mapping[int, int] | IntArray, elsewhere: Callable[[], Vacancy]
) -> dict[int, int] | None:
    """Return node -> parameter servers: beside the workers, evenly as room allows, then near; `None` if too few fit.

    Args:
        workers: of the gang, on each of its nodes.
        room: how many servers each of these takes.
        elsewhere: returns the room for servers on other nodes.
    """
    count = dict.fromkeys(workers, 0)
    able = [(1 / w, node) for node, w in workers.items() if room[node]]
    heapify(able)
    while able and servers:
        _, node = heappop(able)
        count[node] += 1
        servers -= 1
        if count[node] < room[node]:
            heappush(able, ((count[node] + 1) / workers[node], node))
    if servers:
        other = elsewhere()
        if int(other.room.sum(dtype=np.int64)) < servers:
            return None
        fullest = max(workers, key=lambda node: (workers[node], -node))
        count |= around(other, fullest, servers)
    return count


def first_fit(offer: Vacancy, degree: int) -> dict[int, int]:
    """Fill the nodes in their order."""
    return take(np.flatnonzero(offer.room), offer.room, degree)


def best_fit(offer: Vacancy, degree: int) -> dict[int, int]:
    """Take the node with the fewest idle GPUs that holds the gang; of a larger gang fill nodes, the rest likewise."""
    able = np.flatnonzero(offer.room >= degree)
    if len(able):
        return {int(able[np.argmin(offer.free[able])]): degree}
    return compact(np.flatnonzero(offer.room), offer.room, degree)


def nearest(offer: Vacancy, degree: int) -> dict[int, int]:
    """Take the idle GPUs nearest to the first node that has one (TopDRL: Ayadi et al., JPDC 204, 2025)."""
    return around(offer, int(np.argmax(offer.room > 0)), degree)


def topology(offer: Vacancy, degree: int) -> dict[int, int]:
    """Go down the network to the tightest part that holds the gang; where no child does, split it over few children.

    In the manner of the dual recursive bipartitioning of Amaral et al. ("Topology-aware GPU scheduling for learning
    workloads in cloud environments", SC 2017), with the tree's own parts instead of halves: all workers of a gang
    talk alike, so how many go to a part is all there is to choose. Of several parts that hold it, that where it takes
    the fewest nodes, then the fullest.
    """
    sums = offer.sums
    return _among(offer, sums, len(sums), np.arange(len(sums[-1])), degree)


def _inside(offer: Vacancy, sums: Sequence[Indices], level: int, part: int, degree: int) -> dict[int, int]:
    if level > 1:
        return _among(offer, sums, level - 1, offer.tree.children[level - 2][part], degree)
    nodes = offer.tree.inside[part]
    return compact(nodes[offer.room[nodes] > 0], offer.room, degree)


def _among(offer: Vacancy, sums: Sequence[Indices], level: int, parts: Indices, degree: int) -> dict[int, int]:
    has = sums[level - 1][parts]
    chosen: dict[int, int] = {}
    while True:
        able = np.flatnonzero(has >= degree)
        if len(able):
            tightest = able[np.argsort(has[able], kind="stable")[:_PARTS]]
            options = [_inside(offer, sums, level, int(parts[i]), degree) for i in tightest]
            return chosen | min(options, key=len)
        roomiest = int(np.argmax(has))
        chosen |= _inside(offer, sums, level, int(parts[roomiest]), int(has[roomiest]))
        degree -= int(has[roomiest])
        has[roomiest] = 0


def least_interference(offer: Offer, degree: int) -> dict[int, int]:
    """Fill nodes in the order of the interference that a job adds to and gets from those there, then the roomiest.

    It is the sum, over the jobs on a node, of what each of the two adds to the compute of the other: the policy LIF
    that Harmony (Bao, Peng and Wu, INFOCOM 2019) is compared with.
    """
    batch, room = offer.state.batch, offer.room
    host, model = batch.problem.speeds.host, batch.model[offer.job]
    mutual = offer.state.present @ (host[model] + host[:, model])
    nodes = np.flatnonzero(room)
    return take(nodes[np.lexsort([nodes, -room[nodes], mutual[nodes]])], room, degree)


GANG_POLICIES: Mapping[str, GangPolicy] = {
    "first_fit": first_fit,
    "best_fit": best_fit,
    "topology": topology,
    "nearest": nearest,
}
"""Policies of `online.Placer` by name."""
