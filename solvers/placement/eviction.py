"""Who leaves so that a gang has room: the set of running gangs that costs least, and a bound that no set is below.

min sum_j c_j x_j  subject to  sum_{n in D} y_n >= w,  y_n <= most_n,  need_r y_n <= free_rn + sum_j used_rjn x_j

for one domain D of the network, x_j = 1 if gang j leaves and y_n the workers on node n. A knapsack cover problem, so
NP-hard; by dynamic programmes where gangs are on one node each, else by CP-SAT; domain by domain, the one with the
least bound first, until no other can cost less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from ..run import OPTIMAL_GAP
from .online.state import Long

SUM = 1e15
"""What costs of a domain sum up to in CP-SAT's whole numbers."""
LARGE = 4000
"""Parts of gangs up to which CP-SAT is asked: it takes half a second to build a model of so many."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Nodes, what is free on them, and the parts of gangs that hold the rest.

    Attributes:
        free: of each resource and node, int64 (r, m).
        most: workers that a node may have at most if nobody is there, int64 (m,).
        domain: number of the part of the network that a node is in, int64 (m,).
        job, node: of each part, which gang's it is and where, int64 (p,).
        used: what each part holds there, int64 (r, p).
        blocks: whether no worker may be on a node beside this part, bool (p,).
        cost: of each gang if it leaves, infinite if it may not, float64 (n,).
    """

    free: Long
    most: Long
    domain: Long
    job: Long
    node: Long
    used: Long
    blocks: BoolArray
    cost: FloatArray

    def workers(self, need: Long, leaves: Long) -> Long:
        """Return how many workers each node may have once some gangs have left, int64 (m,).

        Args:
            need: of a worker, int64 (r,), each at least 0.
            leaves: numbers of gangs.
        """
        goes = np.isin(self.job, leaves)
        free = np.stack([
            row + np.bincount(self.node[goes], used[goes], len(self.most)).astype(np.int64)
            for row, used in zip(self.free, self.used, strict=True)
        ])  # fmt: skip
        asked = need > 0
        most = self.most.copy()
        most[self.node[self.blocks & ~goes]] = 0
        room = (free[asked] // need[asked, None]).min(axis=0, initial=int(self.most.max()))
        return np.asarray(np.minimum(most, room))


@dataclass(frozen=True, slots=True)
class Eviction:
    """The cheapest set found.

    Attributes:
        jobs: numbers of the gangs that leave, ascending.
        cost: of all of them.
        bound: no set costs less.
    """

    jobs: tuple[int, ...]
    cost: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no set costs less, but for rounding."""
        return self.cost - self.bound <= OPTIMAL_GAP * self.cost


def cheapest_eviction(
    occupancy: Occupancy, need: Long, workers: int, *, time_limit: float, seed: int = 0
) -> Eviction | None:
    """Return the gangs that leave so that so many workers fit into one domain, `None` if they never do.

    Args:
        occupancy: who is where.
        need: of a worker, of each resource, int64 (r,).
        workers: of the gang, at least 1.
        time_limit: seconds for CP-SAT; a set is there before.
    """
    began = time.perf_counter()
    nodes = _groups(occupancy.domain)
    parts = _groups(occupancy.domain[occupancy.node]) if len(occupancy.node) else {}
    none = np.zeros(0, np.int64)
    every = (_Domain(occupancy, need, workers, here, parts.get(d, none)) for d, here in nodes.items())
    able = sorted((part for part in every if part.able), key=lambda part: part.bound)
    best: Eviction | None = None
    for part in able:
        if best is not None and part.bound >= best.cost:
            break
        for propose in (lambda part=part: part.first, part.greedy):
            jobs = propose()
            cost = float(occupancy.cost[jobs].sum())
            if part.makes_room(jobs) and (best is None or cost < best.cost):
                best = Eviction(tuple(sorted(jobs)), cost, 0.0)
            if best is not None and part.bound >= best.cost * (1 - OPTIMAL_GAP):
                break
    if best is None:
        return None
    least = best.cost  # of the domains so far, no set of which costs less
    for i, part in enumerate(able):
        left = began + time_limit - time.perf_counter()
        if part.bound >= best.cost * (1 - OPTIMAL_GAP):
            break
        if left <= 0 or part.parts > LARGE:
            least = min(least, *(x.bound for x in able[i:]))
            break
        jobs, bound = part.exact(best.cost, left, seed)
        least = min(least, bound)
        cost = float(occupancy.cost[jobs].sum())
        if jobs and cost < best.cost:
            best = Eviction(tuple(sorted(jobs)), cost, 0.0)
    return Eviction(best.jobs, best.cost, min(least, best.cost))


def _groups(label: Long) -> dict[int, Long]:
    """Return the places of each label."""
    order = np.argsort(label, kind="stable")
    names, first = np.unique(label[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, first[1:]), strict=True))


class _Domain:
    """One part of the network.

    Attributes:
        able: whether the gang fits there at all.
        bound: no set costs less there.
        parts: how many there are of gangs that may leave.
        first: a set whose cost is the bound, if it makes room; see `_by_node`.
    """

    def __init__(self, of: Occupancy, need: Long, workers: int, here: Long, mine: Long) -> None:
        self._jobs, job = np.unique(of.job[mine], return_inverse=True)
        cost = of.cost[self._jobs]
        # who may not leave is as good as not there: what it holds is not free
        stays = np.isinf(cost)
        goes, node, blocks, most = ~stays[job], np.searchsorted(here, of.node[mine]), of.blocks[mine], of.most[here]
        most[node[blocks & ~goes]] = 0
        self._of = Occupancy(
            of.free[:, here], most, np.zeros(len(most), np.int64), job[goes], node[goes],
            of.used[:, mine][:, goes], blocks[goes], np.where(stays, 0.0, cost),
        )  # fmt: skip
        self._need, self._workers, self._movable = need, workers, np.flatnonzero(~stays)
        self._on: list[list[int]] = [[] for _ in most]  # the parts on each node
        for i, at in enumerate(self._of.node.tolist()):
            self._on[at].append(i)
        self.able = bool(self._of.workers(need, self._movable).sum() >= workers)
        self.bound, self.first = self._by_node() if self.able else (np.inf, [])
        self.parts = len(self._of.node)

    def _by_node(self) -> tuple[float, list[int]]:
        """Return a cost that no set is below, and the set that it is of, if that makes room.

        Gangs pay for each part what it has of their GPUs, parts may leave alone, and only GPUs count. That costs no
        more than any set does, and is the optimum where gangs are on one node each and GPUs are what is scarce. Two
        dynamic programmes: on each node, the least cost of so many GPUs; over nodes, of so many workers.
        """
        of, need = self._of, int(self._need[0])
        if need <= 0:
            return 0.0, []
        held = np.bincount(of.job, of.used[0], len(of.cost))
        share = of.cost[of.job] * of.used[0] / np.maximum(held[of.job], 1)
        least = np.full(self._workers + 1, np.inf)  # of so many workers on the nodes so far
        least[0] = 0.0
        chosen, of_node = [], []
        for node, most in enumerate(np.minimum(of.most, self._workers).tolist()):
            cost, sets = self._on_node(self._on[node], share, int(of.free[0, node]), most)
            options = np.full((len(cost), len(least)), np.inf)
            for y, price in enumerate(cost):
                options[y, y:] = least[: len(least) - y] + price
            chosen.append(options.argmin(axis=0))
            least = options.min(axis=0)
            of_node.append(sets)
        left, leaves = self._workers, set[int]()
        for at, sets in zip(reversed(chosen), reversed(of_node), strict=True):
            leaves.update(int(of.job[i]) for i in sets[at[left]])
            left -= int(at[left])
        out = np.array(sorted(leaves), np.int64)
        return float(least[-1]), [int(j) for j in self._jobs[out]] if self._fit(out) else []

    def _on_node(
        self, parts: list[int], share: FloatArray, free: int, most: int
    ) -> tuple[list[float], list[list[int]]]:
        """Return the least cost of 0, 1, ... workers on a node, and the parts that leave for it."""
        used, need = self._of.used[0], int(self._need[0])
        best: list[tuple[float, list[int]]] = [(0.0, [])]  # of so many GPUs or more
        for i in parts:
            gpus = int(used[i])
            more = [(cost + share[i], [*some, i]) for cost, some in best]
            size = len(best)
            best += [(np.inf, [])] * gpus
            for at in range(size + gpus - 1, -1, -1):
                with_it = more[max(at - gpus, 0)]
                if with_it[0] < best[at][0]:
                    best[at] = with_it
        lacks = [max(y * need - free, 0) for y in range(most + 1)]
        options = [best[gpus] for gpus in lacks if gpus < len(best)]
        return [cost for cost, _ in options], [some for _, some in options]

    def greedy(self) -> list[int]:
        """Return a set: the cheapest for what they hold until the gang fits, less those that can be spared."""
        of, need = self._of, self._need
        held = np.zeros(len(of.cost))
        for used, asked in zip(of.used, need.tolist(), strict=True):
            if asked > 0:
                held = np.maximum(held, np.bincount(of.job, used / asked, len(of.cost)))
        order = self._movable[np.argsort(of.cost[self._movable] / np.maximum(held[self._movable], 1e-9), kind="stable")]
        low, high = 0, len(order)  # so many of the first are too few, and enough
        if self._fit(order[:0]):
            return []
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fit(order[:middle]) else (middle, high)
        chosen = order[:high]
        for one in sorted(chosen.tolist(), key=lambda j: -of.cost[j]):
            if self._fit(less := chosen[chosen != one]):
                chosen = less
        return [int(j) for j in self._jobs[chosen]]

    def makes_room(self, jobs: list[int]) -> bool:
        """Return whether the gang fits once these have left."""
        return self._fit(np.searchsorted(self._jobs, np.array(jobs, np.int64)))

    def _fit(self, leaves: Long) -> bool:
        return bool(self._of.workers(self._need, leaves).sum() >= self._workers)

    def exact(self, below: float, seconds: float, seed: int) -> tuple[list[int], float]:
        """Return a set that costs less than `below`, none if none is found, and a cost that no set is below."""
        from ortools.sat.python import cp_model

        from ..cpsat_solver import solver_for

        of, model = self._of, cp_model.CpModel()
        leave = {int(j): model.new_bool_var("") for j in self._movable}
        scale = SUM / max(float(of.cost[self._movable].sum()), 1e-300)
        job, rows = of.job.tolist(), np.flatnonzero(self._need > 0).tolist()
        seats = []
        for node, most in enumerate(of.most.tolist()):
            if most <= 0:
                continue
            seats.append(y := model.new_int_var(0, most, ""))
            for j in {job[i] for i in self._on[node] if of.blocks[i]}:
                model.add(y <= most * leave[j])
            for r in rows:
                freed = sum(int(of.used[r, i]) * leave[job[i]] for i in self._on[node])
                model.add(int(self._need[r]) * y <= int(of.free[r, node]) + freed)
        model.add(sum(seats) >= self._workers)
        price = {j: int(of.cost[j] * scale) for j in leave}  # rounded down, so that the bound holds
        model.minimize(sum(price[j] * x for j, x in leave.items()))
        model.add(sum(price[j] * x for j, x in leave.items()) <= int(below * scale))
        solver = solver_for(seconds, 1, seed)
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:
            return [], below
        bound = max(self.bound, min(below, solver.best_objective_bound / scale))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return [], bound
        return [int(self._jobs[j]) for j, x in leave.items() if solver.value(x)], bound
