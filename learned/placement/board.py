"""Gangs on nodes as a decision sees them: what each model would suffer and do to others on every node, kept up to date.

The figures are those of the cost model (`gangplan.solvers.placement.costs`) for gangs of whole GPUs; workers that share
a GPU count as neighbours on the host. A gang that comes or goes changes the figures of its own nodes and of the gangs
that it meets there or on its links, nothing else, so that a fleet of 10,000 nodes costs no more than a small one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, SpeedModel

from .wires import Members, Wire, seconds, wire


@dataclass(frozen=True, slots=True)
class Gang:
    """What of a job decides what it costs.

    Attributes:
        model: index of its model type.
        weight: of its slowdown.
        best: its best rate, alone on an empty fleet: worker steps a second.
        collective: how its workers synchronise.
        each: GPUs of a worker.
    """

    model: int
    weight: float
    best: float
    collective: str
    each: int


@dataclass(slots=True)
class Placed:
    """A gang where it is; changed in place as others come and go."""

    gang: Gang
    nodes: Members
    workers: Members
    total: int
    at: FloatArray
    """Seconds of compute on each of its nodes."""
    wire: Wire
    compute: float = 0.0
    sync: float = 0.0
    cost: float = 0.0


class Board:
    """Who is where, and what each model would suffer, and do to those there, on each node.

    Attributes:
        suffer: what those on a node add to the compute of a model, as a share of it, float64 (m, K).
        harm: by how much the cost of those on a node grows if a gang of a model comes, float64 (m, K).
        load: of each level, the duties of gangs that cross the link of each member.
        crossing: gangs that use the NIC of each node, float64 (m,).
        taken: gangs on each node, int64 (m,).
        placed: the gangs by key.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel, goal: str = "slowdown") -> None:
        self.fleet, self.speeds, self.goal = fleet, speeds, goal
        m, k = fleet.n_nodes, len(speeds.models)
        self.host = np.asarray(speeds.host)
        rows = np.array([speeds.gpu_types.index(kind) for kind in fleet.gpu_types], dtype=np.int64)
        kind = rows[np.where(fleet.gpus > 0, fleet.gpu_type, 0)]
        self.alone = np.where((fleet.gpus > 0)[:, None], speeds.compute[kind], np.inf)
        self.group = np.concatenate([np.arange(m, dtype=np.int64)[None], fleet.topology.group.astype(np.int64)])
        self.bandwidth = [level.bandwidth for level in fleet.topology.levels]
        self.link = np.asarray(fleet.link)
        self.largest = max(float(fleet.gpus.max(initial=0)), 1.0)
        self.rack_gpus = np.maximum(np.bincount(self.group[1], weights=fleet.gpus), 1.0)
        self.suffer, self.harm = np.zeros((m, k)), np.zeros((m, k))
        self.load = [np.zeros(int(self.group[level].max()) + 1) for level in range(len(self.bandwidth))]
        self.crossing = np.zeros(m)
        self.taken = np.zeros(m, dtype=np.int64)
        self.placed: dict[Hashable, Placed] = {}
        self.here: defaultdict[int, dict[Hashable, int]] = defaultdict(dict)
        self.crossers: list[defaultdict[int, set[Hashable]]] = [defaultdict(set) for _ in self.bandwidth]

    def cost(
        self, gang: Gang, workers: Members | int, compute: FloatArray | float, sync: FloatArray | float
    ) -> FloatArray:
        """Return what a gang adds to the goal with these seconds of compute and of synchronisation."""
        overlap = float(self.speeds.overlap[gang.model])
        step = np.maximum(compute, (1 - overlap) * np.asarray(compute) + sync)
        slowdown = gang.best * step / workers
        if self.goal == "throughput":
            return np.asarray(gang.weight * np.maximum(0.0, 1 - 1 / slowdown))
        return np.asarray(gang.weight * slowdown)

    def single(self, gang: Gang, nodes: Members, workers: Members | int) -> FloatArray:
        """Return what a gang without parameter servers would cost on each of these nodes alone, (k,)."""
        k = gang.model
        compute = self.alone[nodes, k] * (1 + self.suffer[nodes, k])
        size = float(self.speeds.gradient[k])
        if gang.collective == "tree":
            moved = 2 * size * (np.asarray(workers) > 1)
        elif gang.collective == "ps":
            moved = size * np.asarray(workers)  # all servers beside them
        else:
            moved = 2 * (1 - 1 / np.asarray(workers)) * size
        return self.cost(gang, workers, compute, moved / self.link[nodes])

    def price(
        self, gang: Gang, nodes: Members, workers: Members, servers: Members | None
    ) -> tuple[float, float, float, Wire]:
        """Return what a gang would cost on these rows, what that adds on its nodes and on its links; its wire."""
        k, busy = gang.model, workers > 0
        there = nodes[busy]
        compute = float((self.alone[there, k] * (1 + self.suffer[there, k])).max())
        found = wire(gang.collective, float(self.speeds.gradient[k]), nodes, workers, servers, self.group, self.link)
        sync = seconds(found, self.load, self.bandwidth, 0.0)
        own = float(self.cost(gang, int(workers.sum()), compute, sync))
        return own, float(self.harm[there, k].sum()), self._links(found, float(self.speeds.duty[k])), found

    def add(self, key: Hashable, gang: Gang, nodes: Members, workers: Members, servers: Members | None = None) -> None:
        """Place a gang that is not placed."""
        k = gang.model
        found = wire(gang.collective, float(self.speeds.gradient[k]), nodes, workers, servers, self.group, self.link)
        busy = workers > 0
        there = nodes[busy]
        at = self.alone[there, k] * (1 + self.suffer[there, k])
        mine = Placed(gang, there, workers[busy], int(workers.sum()), at, found)
        self.placed[key] = mine
        self._meet(there, k, 1)
        for i, node in enumerate(there.tolist()):
            self.here[node][key] = i
        self.taken[nodes] += 1
        self._cross(key, mine, 1)
        self._renew(key, there.tolist())

    def remove(self, key: Hashable, nodes: Members | None = None) -> None:
        """Take a gang off; `nodes`: those of its servers among them, by default the nodes of its workers."""
        mine = self.placed[key]
        for node in mine.nodes.tolist():
            del self.here[node][key]
        self.taken[mine.nodes if nodes is None else nodes] -= 1
        self._meet(mine.nodes, mine.gang.model, -1)
        self._cross(key, mine, -1)
        del self.placed[key]
        self._renew(None, mine.nodes.tolist())

    def _meet(self, nodes: Members, k: int, sign: int) -> None:
        """Let the gangs on `nodes` know that one of model k comes, or goes."""
        for node in nodes.tolist():
            for other in self.here[node]:
                one = self.placed[other]
                i = self.here[node][other]
                one.at[i] += sign * self.alone[node, one.gang.model] * self.host[one.gang.model, k]
        self.suffer[nodes] += sign * self.host[:, k]

    def _cross(self, key: Hashable, mine: Placed, sign: int) -> None:
        duty = float(self.speeds.duty[mine.gang.model])
        later: set[Hashable] = set()
        for level, members in enumerate(mine.wire.members):
            self.load[level][members] += sign * duty
            if level == 0:
                self.crossing[members] += sign
            for member in members.tolist():
                crossers = self.crossers[level][member]
                later |= crossers
                if sign > 0:
                    crossers.add(key)
                else:
                    crossers.discard(key)
        later.discard(key)
        if sign > 0:
            later.add(key)
        for other in later:
            one = self.placed[other]
            own = float(self.speeds.duty[one.gang.model])
            one.sync = seconds(one.wire, self.load, self.bandwidth, own)
            if other != key:
                one.cost = float(self.cost(one.gang, one.total, one.compute, one.sync))

    def _renew(self, key: Hashable | None, nodes: list[int]) -> None:
        """Bring up to date the costs of those on `nodes`, and the harm that may be done to them wherever they are."""
        changed = {other for node in nodes for other in self.here[node]}
        if key is not None:
            changed.add(key)
        dirty = set(nodes)
        for other in changed:
            one = self.placed[other]
            worst = float(one.at.max())
            if worst != one.compute or other == key:
                one.compute = worst
                one.cost = float(self.cost(one.gang, one.total, worst, one.sync))
                dirty.update(one.nodes.tolist())
        self._harm(dirty)

    def _harm(self, nodes: Iterable[int]) -> None:
        pairs = [(node, self.placed[x], i) for node in nodes for x, i in self.here[node].items()]
        where = np.fromiter(nodes, np.int64)
        self.harm[where] = 0.0
        if not pairs:
            return
        node = np.array([n for n, _, _ in pairs])
        model = np.array([x.gang.model for _, x, _ in pairs])
        at = np.array([x.at[i] for _, x, i in pairs])
        compute = np.array([x.compute for _, x, _ in pairs])[:, None]
        sync = np.array([x.sync for _, x, _ in pairs])[:, None]
        cost = np.array([x.cost for _, x, _ in pairs])[:, None]
        rate = np.array([x.gang.best / x.total for _, x, _ in pairs])[:, None]
        weight = np.array([x.gang.weight for _, x, _ in pairs], dtype=float)[:, None]
        more = np.maximum(compute, at[:, None] + self.alone[node, model][:, None] * self.host[model])
        step = np.maximum(more, (1 - self.speeds.overlap[model])[:, None] * more + sync)
        slowdown = rate * step
        then = weight * (slowdown if self.goal != "throughput" else np.maximum(0.0, 1 - 1 / slowdown))
        np.add.at(self.harm, node, then - cost)

    def _links(self, found: Wire, duty: float) -> float:
        """Return by how much the gangs on the links of a wire would cost more."""
        others: set[Hashable] = set()
        for level, members in enumerate(found.members):
            for member in members.tolist():
                others |= self.crossers[level].get(member, set())
        if not others:
            return 0.0
        for level, members in enumerate(found.members):
            self.load[level][members] += duty
        total = 0.0
        for other in others:
            one = self.placed[other]
            sync = seconds(one.wire, self.load, self.bandwidth, float(self.speeds.duty[one.gang.model]))
            if sync > one.sync:
                total += float(self.cost(one.gang, one.total, one.compute, sync)) - one.cost
        for level, members in enumerate(found.members):
            self.load[level][members] -= duty
        return total
