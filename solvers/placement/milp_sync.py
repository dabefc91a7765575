"""Placement as a MILP: synchronisation, by collective."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pulp

from gangplan.instances.placement.rate import ring_bytes

from .milp_network import Network
from .milp_tasks import Programme, Tasks


class Syncs:
    """(S) Rows that hold `sync` of each job up; the formulas are in docs/placement.md.

    Args:
        programme, tasks, network: the model.
        tick: of each job, a second in the unit of `sync`; 0 where it does not matter.
        sync: of each job, a variable.
    """

    def __init__(
        self, programme: Programme, tasks: Tasks, network: Network, tick: list[float], sync: list[Any]
    ) -> None:
        self.new, self.lp, self.batch = programme, programme.lp, tasks.batch
        self.tasks, self.network, self.sync = tasks, network, sync
        for j, job in enumerate(self.batch.jobs):
            size = float(self.batch.gradient[j]) * tick[j]
            if size:
                {"ps": self._servers, "hierarchical": self._phases}.get(job.collective, self._around)(j, size)

    def _several(self, j: int) -> dict[int, Any]:
        """Return whether several workers of j are on a node, by node."""
        found = {}
        for n, w in self.tasks.w[j].items():
            if w.upBound > 1:
                found[n] = self.new.binary()
                self.lp += w <= 1 + (w.upBound - 1) * found[n]
        return found

    def _around(self, j: int, size: float) -> None:
        """Ring and tree: what is sent, over the slowest link on the way."""
        ring = self.batch.jobs[j].collective == "ring"
        moved = {k: ring_bytes(k, size) if ring else 2 * size * (k > 1) for k in self.tasks.size[j]}
        for n, several in self._several(j).items():
            self._sends(j, {k: x / self.batch.link[n] for k, x in moved.items()}, several, 1)
        for level, bandwidth in enumerate(self.batch.bandwidth):
            for a in self.network.crosses[level][j]:
                self._sends(j, {k: x / bandwidth for k, x in moved.items()}, *self.network.load(level, j, a))

    def _sends(self, j: int, each: dict[int, float], load: Any, most: int) -> None:
        """Require each[k] times `load`, at most `most`, if j runs with k workers; each[k] grows with k."""
        least = min(each.values())
        for k, x in self.tasks.size[j].items():
            if each[k]:
                self.lp += self.sync[j] >= each[k] * load - (each[k] - least) * most * (1 - x)

    def _phases(self, j: int, size: float) -> None:
        """Hierarchical: a ring within nodes, one among nodes, one among racks, ..., one after the other."""
        batch, network, several = self.batch, self.network, self._several(j)
        most = batch.jobs[j].workers[-1]
        phases = [self.new.amount() for _ in range(len(batch.bandwidth) + 1)]
        counts = {n: [w] for n, w in self.tasks.w[j].items()}
        reached = self._reached(list(counts.values()), max((w.upBound for (w,) in counts.values()), default=0))
        speeds = {batch.link[n] for n in several}
        for speed in speeds:
            shared: Any = 1
            if len(speeds) > 1:
                shared = self.new.amount(1)
                for n, x in several.items():
                    if batch.link[n] == speed:
                        self.lp += shared >= x
            self._ring(phases[0], size / speed, reached, shared, 1)
        for level, _ in enumerate(batch.bandwidth):
            above = dict(zip(batch.members[level], batch.members[level + 1], strict=True))
            groups: dict[int, list[Any]] = {}
            for a, x in network.inside[level][j].items():
                groups.setdefault(above[a], []).append(x)
            wide = max((len(xs) for xs in groups.values()), default=0)
            reached = self._reached(list(groups.values()), min(wide, most))
            for lower in range(level + 1):
                for a in network.crosses[lower][j]:
                    each = size / batch.bandwidth[lower]
                    self._ring(phases[level + 1], each, reached, *network.load(lower, j, a))
        self.lp += self.sync[j] >= pulp.lpSum(phases)

    def _reached(self, counts: list[list[Any]], most: int) -> list[Any]:
        """Return literals, for m from 2 to `most`, of some sum of counts being m or more."""
        found = [self.new.binary() for _ in range(2, most + 1)]
        for xs in counts:
            self.lp += pulp.lpSum(xs) <= 1 + pulp.lpSum(found)
        for lower, upper in pairwise(found):
            self.lp += upper <= lower
        return found

    def _ring(self, phase: Any, each: float, reached: list[Any], load: Any, most: int) -> None:
        """Require the bytes of a ring of the members that are reached, times `load`, which is at most `most`."""
        short: list[Any] = []
        before = 0.0
        for m, x in enumerate(reached, 2):
            full = ring_bytes(m, each)
            short.append((full - before) * most * (1 - x))
            before = full
            self.lp += phase >= full * load - pulp.lpSum(short)

    def _servers(self, j: int, size: float) -> None:
        """Parameter servers: gradients out and parameters in at every member that the gang crosses."""
        batch, network, job = self.batch, self.network, self.batch.jobs[j]
        most, servers = job.workers[-1], job.servers
        for n, p in self.tasks.p[j].items():
            if n in self.tasks.w[j]:
                product = self._product(self.tasks.w[j][n], self.tasks.w[j][n].upBound, p, servers)
                self.lp += self.sync[j] >= size / servers / batch.link[n] * product
        for level, bandwidth in enumerate(batch.bandwidth):
            w, p = (network.within(level, counts) for counts in (self.tasks.w[j], self.tasks.p[j]))
            for a in network.crosses[level][j]:
                workers, there = pulp.lpSum(w.get(a, [])), pulp.lpSum(p.get(a, []))
                room = min(most, sum(x.upBound for x in w.get(a, [])))
                through = self.new.amount(most * servers)
                # w (P - p) + p (W - w)
                both = self._product(workers, room, there, servers)
                self.lp += through >= servers * workers + self._times_size(j, there) - 2 * both
                each, busy = size / servers / bandwidth, [through]
                for crosses in network.beside(level, j, a).values():
                    busy.append(self.new.amount())
                    self.lp += busy[-1] >= through - most * servers * (1 - crosses)
                self.lp += self.sync[j] >= each * pulp.lpSum(busy)

    def _product(self, x: Any, most_x: int, y: Any, most_y: int) -> Any:
        """Return the product of whole numbers: the sum, over q up to y, of x."""
        terms, at_least = [], [self.new.binary() for _ in range(most_y)]
        self.lp += pulp.lpSum(at_least) == y
        for q, step in enumerate(at_least):
            if q:
                self.lp += step <= at_least[q - 1]
            terms.append(self.new.amount(most_x))
            self.lp += terms[-1] <= x
            self.lp += terms[-1] <= most_x * step
            self.lp += terms[-1] >= x - most_x * (1 - step)
        return pulp.lpSum(terms)

    def _times_size(self, j: int, servers: Any) -> Any:
        """Return at least the servers in some place times all workers of j."""
        sizes = self.tasks.size[j]
        least, most = min(sizes), self.batch.jobs[j].servers
        if len(sizes) == 1:
            return least * servers
        product = self.new.amount()
        for k, x in sizes.items():
            self.lp += product >= k * servers - (k - least) * most * (1 - x)
        return product
