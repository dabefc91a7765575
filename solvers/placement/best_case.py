"""What each job costs at least, wherever it goes and whatever goes beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement.rate import pair_seconds, pairs, ring_bytes

from .build import stays
from .prepare import Indices, PreparedBatch
from .state import PlacementState


@dataclass(frozen=True, slots=True)
class Reach:
    """How far gangs of a kind must stretch at least, by what empty nodes and their groups hold.

    Attributes:
        room: workers of each node, most first.
        holds: workers of the roomiest group of each level, the nodes' own being the first.
        groups: at each level, the running sum of what the groups hold, most first.
    """

    room: Indices
    holds: list[int]
    groups: list[Indices]

    def crossed(self, degree: int) -> int:
        """Return how many levels a gang that spans nodes must cross at least: 1 if a rack can hold it."""
        return next((level for level in range(1, len(self.holds)) if self.holds[level] >= degree), len(self.holds) - 1)

    def fewest(self, level: int, degree: int) -> int:
        """Return over how many groups of `level` the gang stretches at least."""
        return int(np.searchsorted(self.groups[level], degree)) + 1


class BestCase:
    """Floors of steps and costs, kept by kind of gang: a thousand jobs are of few kinds."""

    def __init__(self, batch: PreparedBatch) -> None:
        self.batch = batch
        self._reach: dict[bytes, Reach] = {}
        self._costs: dict[object, float] = {}
        self._floors: dict[tuple[object, ...], tuple[float, float]] = {}

    def floor(self, j: int) -> float:
        """Return what job j adds to the goal at least if moving it is free, leaving it out included."""
        job = self.batch.jobs[j]
        value = np.inf if job.value is None else job.value
        kind = (
            *(job.model, job.worker, job.workers, job.server, job.servers),
            *(job.where, job.most_per_node, job.collective, job.weight),
        )
        if kind not in self._costs:
            self._costs[kind] = min([self.least(j, degree) for degree in job.workers])
        return float(min(value, self._costs[kind]))

    def cost(self, j: int) -> float:
        """Return what job j adds to the goal at least, moving it and leaving it out included."""
        batch = self.batch
        if j not in batch.standing:
            return self.floor(j)
        rows, migration = batch.standing[j]
        elsewhere = self.floor(j) + migration
        if not stays(self._empty, j, rows):
            return float(elsewhere)
        if batch.problem.goal == "fragmentation":
            return 0.0  # the others may fill its nodes
        self._empty.add(j, rows)
        self._empty.settle()
        there = self._empty.cost[j]
        self._empty.remove(j)
        self._empty.settle()
        return float(min(elsewhere, there))

    @cached_property
    def _empty(self) -> PlacementState:
        """The fleet with nobody on it, between two looks."""
        return PlacementState(self.batch)

    def least(self, j: int, degree: int) -> float:
        """Return what job j adds to the goal at least with `degree` workers; inf if they cannot be placed."""
        goal = self.batch.problem.goal
        if goal in ("slowdown", "throughput"):
            return self.as_cost(j, degree, self.step(j, degree))
        reach = self.reach(j)
        if not len(reach.room) or int(reach.groups[0][-1]) < degree:
            return np.inf
        return float(self.batch.weight[j]) * self.communication(j, degree) if goal == "communication" else 0.0

    def communication(self, j: int, degree: int) -> float:
        """Return no more than the communication cost of job j with `degree` workers, alone on the fleet.

        Pairs that are not in one member of level l meet at l or above, and pay at least v_l, the least from there up.
        They are fewest if the roomiest members are full, for that makes the most pairs inside them.
        """
        batch, each = self.batch, int(self.batch.each[j])
        inside, across = pair_seconds(batch.problem.fleet)
        able = batch.room[j][batch.kind] > 0
        least = np.minimum.accumulate(np.array([float(inside[able].min()), *across])[::-1])[::-1]
        total = float(pairs(np.array(degree * each)))
        cost = float(least[0]) * total
        for level, groups in enumerate(self.reach(j).groups[:-1]):
            filled = np.diff(np.minimum(groups, degree), prepend=0) * each
            cost += float(least[level + 1] - least[level]) * (total - float(pairs(filled).sum()))
        return cost

    def as_cost(self, j: int, degree: int, step: float) -> float:
        """Return what job j adds to the goal with `degree` workers and steps of `step` seconds."""
        if not np.isfinite(step):
            return np.inf
        slowdown = self.batch.best[j] * step / degree
        if self.batch.problem.goal == "slowdown":
            return float(self.batch.weight[j] * slowdown)
        return float(self.batch.weight[j] * max(0.0, 1 - 1 / slowdown)) if slowdown > 0 else 0.0

    def step(self, j: int, degree: int) -> float:
        """Return the least seconds of a step of job j with `degree` workers; inf if they cannot be placed."""
        compute, sync = self.floors(j, degree)
        return max(compute, (1 - float(self.batch.overlap[j])) * compute + sync)

    def floors(self, j: int, degree: int) -> tuple[float, float]:
        """Return the least compute and the least synchronisation of job j with `degree` workers, seconds."""
        batch, job = self.batch, self.batch.jobs[j]
        key = (
            batch.room[j].tobytes(),
            batch.alone[j].tobytes(),
            job.collective,
            job.servers,
            batch.gradient[j],
            degree,
        )
        if key not in self._floors:
            reach = self.reach(j)
            able = int(reach.groups[0][-1]) >= degree if len(reach.room) else False
            self._floors[key] = (self._compute(j, degree), self._sync(j, degree, reach)) if able else (np.inf, np.inf)
        return self._floors[key]

    def reach(self, j: int) -> Reach:
        """Return how far gangs with the room of job j stretch."""
        batch = self.batch
        key = batch.room[j].tobytes()
        if key not in self._reach:
            room = batch.room[j][batch.kind].astype(np.int64)
            sums = [np.sort(np.bincount(group, weights=room).astype(np.int64))[::-1] for group in batch.group]
            self._reach[key] = Reach(sums[0][sums[0] > 0], [int(x[0]) for x in sums], [np.cumsum(x) for x in sums])
        return self._reach[key]

    def _compute(self, j: int, degree: int) -> float:
        batch = self.batch
        count = np.bincount(batch.kind, minlength=len(batch.sample))
        order = np.argsort(batch.alone[j], kind="stable")
        held = np.cumsum((batch.room[j] * count.astype(np.int64))[order])
        return float(batch.alone[j][order[np.searchsorted(held, degree)]])

    def _sync(self, j: int, degree: int, reach: Reach) -> float:
        batch, job = self.batch, self.batch.jobs[j]
        size = float(batch.gradient[j])
        link = float(batch.problem.fleet.link.max())
        one = reach.holds[0] >= degree  # one node holds all workers
        crossed = reach.crossed(degree)
        slowest = np.minimum.accumulate(np.array(batch.bandwidth))
        if job.collective == "ps":
            inside = size * degree / link if one else np.inf
            return float(min(inside, self._through(j, degree, reach, size)))
        if job.collective == "hierarchical":
            inside = ring_bytes(degree, size) / link if one else np.inf
            return float(min(inside, self._phases(degree, reach, size, link, crossed, slowest)))
        moved = ring_bytes(degree, size) if job.collective == "ring" else 2 * size * (degree > 1)
        local = link if degree > len(reach.room) else np.inf
        across = moved / min(float(slowest[crossed - 1]), local) if degree + job.servers > 1 else np.inf
        return float(min(moved / link if one else np.inf, across))

    @staticmethod
    def _phases(degree: int, reach: Reach, size: float, link: float, crossed: int, slowest: FloatArray) -> float:
        """Return the least sum of phases on n nodes in g racks, with ceil(degree / n) and ceil(n / g) members each."""
        best = np.inf
        low = max(2, reach.fewest(0, degree))
        nodes = np.arange(low, max(low, min(degree, len(reach.room))) + 1)
        if degree < 2 or low > degree:
            return best
        inside = _ring(-(-degree // nodes), size) / link
        if crossed == 1:
            best = float((inside + _ring(nodes, size) / slowest[0]).min())
        for top in range(max(2, crossed), len(slowest) + 1):
            # `top` levels are crossed: racks meet at the second; what is above adds a phase of two at least
            racks = np.arange(max(2, reach.fewest(1, degree)), max(2, min(len(reach.groups[1]), int(nodes[-1]))) + 1)
            within = _ring(-(-nodes[:, None] // racks), size) / slowest[0]
            across = _ring(racks, size) / slowest[1] if top == 2 else _ring(np.array([2]), size) / slowest[top - 1]
            best = min(best, float((inside[:, None] + within + across).min()))
        return best

    def _through(self, j: int, degree: int, reach: Reach, size: float) -> float:
        """Return the least traffic of parameter servers that are not all beside all workers.

        With shares a of the W workers and b of the P servers in a member, W P (a (1 - b) + b (1 - a)) / P gradients
        pass its link. In the member with most servers b >= 1/P, and a is at most what it has room for: that is at
        least W min(1/P, 1 - a), and 1 - a >= 1/W where not all workers are inside.
        """
        servers = self.batch.jobs[j].servers
        least = 0.0
        for level, bandwidth in enumerate(self.batch.bandwidth[: reach.crossed(degree)]):
            outside = max(1 - reach.holds[level] / degree, 1 / degree)
            least = max(least, size * degree * min(1 / servers, outside) / bandwidth)
        return least


def _ring(n: Indices, size: float) -> FloatArray:
    return np.asarray(2 * (n - 1) / n * size)
