"""Who leaves so that a gang has room: the set of running gangs that costs least, and a bound that no set is below.

min sum_j c_j x_j  subject to  sum_{n in D} y_n >= w,  y_n <= most_n,  need_r y_n <= free_rn + sum_j used_rjn x_j

for one domain D of the network, x_j = 1 if gang j leaves and y_n the workers on node n. A knapsack cover problem, so
NP-hard. Most of it is pruned by a bound that looks at all nodes at once (`Covers`). What is left is solved by dynamic
programmes where gangs are on one node each, else by branching on gangs that leave in part; domain by domain, the one
with the least bound first, until no other can cost less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from ..nodes import Long, held, most_workers
from ..run import OPTIMAL_GAP
from .covers import Covers, combine, fill, grouped, steps

ROUNDING = 1e-9
"""Of a cost: sets whose costs differ by less count as equal."""
FEWER = 0.9
"""Share of the nodes below which those that are left are looked at anew."""
SHARP = 512
"""Nodes up to which all subsets of the parts of each are looked at, where several resources are asked for."""
DEEP = 200
"""Gangs that are branched on one below the other: Python's stack is as deep."""
FEW = 2048
"""Parts up to which they leave whole in the first bound, too."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Nodes, what is free on them, and the parts of gangs that hold the rest.

    Attributes:
        free: of each resource and node, int64 (r, m).
        most: workers that a node may have at most if nobody is there, int64 (m,).
        domain: number of the part of the network that a node is in, int64 (m,).
        job, node: of each part, which gang's it is and where, int64 (p,); a gang has one part on a node.
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
        most = self.most.copy()
        most[self.node[self.blocks & ~goes]] = 0
        return most_workers(self.free + held(self.node[goes], self.used[:, goes], len(most)), need, most)


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


def cheapest_eviction(occupancy: Occupancy, need: Long, workers: int, *, time_limit: float) -> Eviction | None:
    """Return the gangs that leave so that so many workers fit into one domain, `None` if they never do.

    Args:
        occupancy: who is where.
        need: of a worker, of each resource, int64 (r,).
        workers: of the gang, at least 1.
        time_limit: seconds, set-up included: a set and a bound are there by then.
    """
    until = time.perf_counter() + time_limit
    nodes = _UsefulNodes.of(occupancy, need, workers)
    if not len(nodes.most):
        return None
    covers = nodes.covers(whole=len(nodes.node) <= FEW)
    slope = steps(covers.least)
    bounds = _bounds(slope, nodes.domain, workers)
    best: tuple[Long, float] | None = None
    least = np.inf  # no set of the domains so far costs less
    for domain in np.argsort(bounds, kind="stable").tolist():
        bound = float(bounds[domain])
        if best is not None and (_near(bound, best[1]) or time.perf_counter() >= until):
            least = min(least, bound)
            break
        here = np.flatnonzero(nodes.domain == domain) if len(bounds) > 1 else np.arange(len(nodes.most))
        nobody = np.zeros(len(nodes.cost), bool)
        one = nodes if len(bounds) == 1 else nodes.only(here, nobody, nobody)
        search = _Domain(one, workers, best, bound, until)
        search.begin(*((covers, slope) if one is nodes else (one.covers(), None)))
        search.run()
        best, least = search.best, min(least, search.bound)
    assert best is not None, "a gang fits where all leave who may"
    return Eviction(tuple(best[0].tolist()), best[1], min(least, best[1]))


def _near(bound: float, cost: float) -> bool:
    """Return whether there is nothing between a bound and a cost but rounding."""
    return bound >= cost * (1 - ROUNDING) - 1e-300


def _bounds(slope: FloatArray, domain: Long, workers: int) -> FloatArray:
    """Return what no set of each domain is below: the sum of the least slopes, float64 (domains,)."""
    if not domain[-1]:
        return np.array([np.partition(slope.ravel(), workers - 1)[:workers].sum()])
    where = np.repeat(domain, slope.shape[1])
    order = np.lexsort((slope.ravel(), where))
    total = np.append(0.0, np.cumsum(np.where(np.isfinite(slope.ravel()[order]), slope.ravel()[order], 0.0)))
    first = np.searchsorted(where[order], np.arange(domain[-1] + 1))
    return np.asarray(np.maximum(total[first + workers] - total[first], 0.0))


@dataclass(frozen=True, slots=True)
class _UsefulNodes(Occupancy):
    """The nodes that are of use to a gang, by domain, and the parts of gangs that may leave them, by node.

    Of resources it has only those that are asked for. `need`: of a worker, above 0, int64 (r,).
    """

    need: Long

    @classmethod
    def of(cls, of: Occupancy, need: Long, workers: int) -> _UsefulNodes:
        """Leave out nodes without room even if all leave who may, domains without enough, and parts in nobody's way."""
        asked = need > 0
        free, used, need = of.free[asked], of.used[asked], need[asked]
        goes, m = np.isfinite(of.cost)[of.job], len(of.most)
        most = np.minimum(of.most, workers)
        most[of.node[of.blocks & ~goes]] = 0
        cleared = most_workers(free + held(of.node[goes], used[:, goes], m), need, most)
        now = most_workers(free, need, most)
        now[of.node[of.blocks]] = 0
        _, domain = np.unique(of.domain, return_inverse=True)
        total = np.bincount(domain, cleared)
        keep = np.flatnonzero((cleared > 0) & (total >= workers)[domain])
        keep = keep[grouped(domain[keep], len(total))]
        _, domain = np.unique(domain[keep], return_inverse=True)
        at = np.full(m, -1)
        at[keep] = np.arange(len(keep))
        part = np.flatnonzero(goes & (at[of.node] >= 0) & (cleared > now)[of.node])
        part = part[grouped(at[of.node[part]], m)]
        return cls(
            free[:, keep], cleared[keep], domain, of.job[part], at[of.node[part]], used[:, part], of.blocks[part],
            of.cost, need,
        )  # fmt: skip

    def only(self, rows: Long, stays: BoolArray, gone: BoolArray) -> _UsefulNodes:
        """Return some of the nodes, ascending, once some gangs have left and others are known to stay."""
        left, part = gone[self.job], np.flatnonzero(~(gone | stays)[self.job])
        most, m = self.most.copy(), len(self.most)
        most[self.node[self.blocks & stays[self.job]]] = 0
        free = self.free + held(self.node[left], self.used[:, left], m) if left.any() else self.free
        if len(part) < len(self.job):
            most = most_workers(free + held(self.node[part], self.used[:, part], m), self.need, most)
        at = np.full(m, -1)
        at[rows] = np.arange(len(rows))
        part = part[at[self.node[part]] >= 0]
        return _UsefulNodes(
            free[:, rows], most[rows], self.domain[rows], self.job[part], at[self.node[part]],
            self.used[:, part], self.blocks[part], self.cost, self.need,
        )  # fmt: skip

    def coupled(self) -> BoolArray:
        """Return which parts are of gangs with others in the domain."""
        return np.asarray(np.bincount(self.job, minlength=1)[self.job] > 1)

    def covers(self, whole: bool = True) -> Covers:
        """Return the least cost of workers on each node, gangs paying in a domain by what they hold there."""
        share, some = self.cost[self.job], np.flatnonzero(self.coupled())
        if len(some):
            key = self.job[some] * (int(self.domain[-1]) + 1) + self.domain[self.node[some]]
            _, whose = np.unique(key, return_inverse=True)
            held = np.maximum((self.used[:, some] / self.need[:, None]).max(axis=0, initial=0.0), 1e-9)
            share[some] *= held / np.bincount(whose, held)[whose]
        return Covers(self.free, self.need, self.most, self.node, self.used, self.blocks, share, whole)

    def rooms(self, out: BoolArray) -> tuple[Long, Long]:
        """Return what is free on each node, and how many workers it may have, once some parts have left."""
        free = self.free + held(self.node[out], self.used[:, out], len(self.most))
        most = self.most.copy()
        most[self.node[self.blocks & ~out]] = 0
        return free, most_workers(free, self.need, most)


class _Domain:
    """The search in one part of the network: prune, solve what is left, and branch on a gang that leaves in part.

    Args:
        nodes: all of its nodes.
        workers: of the gang.
        best: the cheapest set known and its cost.
        bound: no set of this domain costs less.
        until: of the machine's clock.
        depth: gangs that were branched on.

    Attributes:
        best: the cheapest set known and its cost, of this domain or one before.
        bound: no set of this domain costs less, or than the best.
    """

    def __init__(
        self, nodes: _UsefulNodes, workers: int, best: tuple[Long, float] | None, bound: float, until: float,
        depth: int = 0,
    ) -> None:  # fmt: skip
        self._nodes, self._workers, self._until, self._depth = nodes, workers, until, depth
        self._gone, self._paid = np.zeros(len(nodes.cost), bool), 0.0  # who leaves in this branch
        self._core = nodes
        self.best, self.bound = best, bound

    def begin(self, covers: Covers, slope: FloatArray | None) -> None:
        """Take the covers of all nodes, and their steps, if they are known."""
        self._covers, self._slope, self._allowed = covers, slope, np.isfinite(covers.least)

    def run(self) -> None:
        """Search until no set of the domain can cost less than the best, or time is up."""
        if not self._narrow() or self._over():
            return
        assert self.best is not None
        least = self._least()
        counts = combine(least, self._workers, self._over)
        if counts is None:
            return
        cost = float(least[np.arange(len(counts)), counts].sum()) + self._paid if len(counts) else np.inf
        self.bound = max(self.bound, min(cost, self.best[1]))
        if len(counts):
            self._offer(counts)
        if not self._proved():
            self._branch(counts)

    def _branch(self, counts: Long) -> None:
        """Let a gang leave, and let it stay, of which only some parts were to leave, or one of a node not exact."""
        core, rows = self._core, np.flatnonzero(counts)
        parts, n = self._covers.parts(rows, counts[rows]), len(core.cost)
        some = np.bincount(core.job[parts], minlength=n)
        split = (some > 0) & (some < np.bincount(core.job, minlength=n))
        if not split.any():
            split[core.job[parts[~self._covers.exact[core.node[parts]]]]] = True
        if not split.any():
            return
        one = np.zeros(n, bool)
        one[np.where(split, core.cost, -1.0).argmax()] = True
        bounds = []
        for leaves in (True, False):
            if self._over() or self._depth >= DEEP:
                return
            child = _Domain(self._nodes, self._workers, self.best, self.bound, self._until, self._depth + 1)
            child._gone = self._gone | one if leaves else self._gone
            child._paid = float(core.cost[child._gone].sum())
            child._core = core.only(np.arange(len(core.most)), one & (not leaves), one & leaves)
            child.begin(child._core.covers(), None)
            if not child._covers.exact.all():
                child._covers.sharpen(np.arange(len(core.most)))
            child._allowed &= self._allowed[:, : child._allowed.shape[1]]
            child.run()
            self.best = child.best
            bounds.append(child.bound)
        assert self.best is not None
        self.bound = max(self.bound, min(*bounds, self.best[1]))

    def _over(self) -> bool:
        return time.perf_counter() >= self._until

    def _proved(self) -> bool:
        return self.best is not None and _near(self.bound, self.best[1])

    def _least(self) -> FloatArray:
        return np.where(self._allowed, self._covers.least, np.inf)

    def _narrow(self) -> bool:
        """Fix what all cheaper sets agree on, workers on nodes and gangs that stay; return whether more is open."""
        first = True
        while True:
            least = self._least()
            finite = np.isfinite(least)
            most = least.shape[1] - 1 - finite[:, ::-1].argmax(axis=1)
            if self.best is not None and (most.sum() < self._workers or not finite.any(axis=1).all()):
                self.bound = self.best[1]
                return False
            bound, price, counts = fill(least, self._workers, self._slope if first else None)
            bound += self._paid
            self.bound = max(self.bound, bound if self.best is None else min(bound, self.best[1]))
            self._offer(counts)
            if self._proved() or self._over():
                return not self._proved()
            assert self.best is not None
            below = self.best[1] * (1 - ROUNDING)
            reduced = least - price * np.arange(least.shape[1])
            reduced -= reduced.min(axis=1)[:, None]
            self._allowed &= bound + reduced < below
            rows = np.flatnonzero(self._allowed[:, 1:].any(axis=1))
            stays = np.zeros(len(self._core.cost), bool)
            stays[self._core.job] = self._paid + self._core.cost[self._core.job] >= below
            anew = len(rows) < FEWER * len(least) or (first and not self._covers.exact.all()) or bool(stays.any())
            if anew:
                self._core = self._core.only(rows, stays, np.zeros_like(stays))
                self._covers = self._core.covers()
                self._allowed = self._allowed[rows][:, : self._covers.least.shape[1]]
            if not self._covers.exact.all() and len(self._core.most) <= SHARP:
                self._covers.sharpen(np.arange(len(self._core.most)))
            self._allowed &= np.isfinite(self._covers.least)
            first = False
            if not anew:
                return True

    def _offer(self, counts: Long) -> None:
        """Note the set by which nodes have so many workers, if it is the best."""
        rows = np.flatnonzero(counts)
        leaves = self._gone.copy()
        leaves[self._core.job[self._covers.parts(rows, counts[rows])]] = True
        self._take(leaves)

    def _take(self, leaves: BoolArray) -> None:
        """Note a set, less those that can be spared, if it makes room and is the best."""
        nodes = self._nodes
        free, now = nodes.rooms(leaves[nodes.job])
        spare = int(now.sum()) - self._workers
        out = np.flatnonzero(leaves[nodes.job])
        job, node, used = nodes.job[out], nodes.node[out], nodes.used[:, out]
        while spare >= 0 and len(out):
            without = np.where(nodes.blocks[out], 0, most_workers(free[:, node] - used, nodes.need, now[node]))
            names, at = np.unique(job, return_inverse=True)
            loses = np.bincount(at, now[node] - without)
            can = np.where(loses <= spare, nodes.cost[names], -1.0)
            one = int(can.argmax())
            if can[one] < 0:
                break
            goes = at == one
            free[:, node[goes]] -= used[:, goes]
            now[node[goes]] = without[goes]
            spare -= int(loses[one])
            out, job, node, used = out[~goes], job[~goes], node[~goes], used[:, ~goes]
        jobs = np.unique(job)
        cost = float(nodes.cost[jobs].sum())
        if spare >= 0 and (self.best is None or cost < self.best[1]):
            self.best = jobs, cost
