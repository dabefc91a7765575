"""Placement as a MILP as a first formulation has it: the model of `placement_cpsat`, big-M where that enforces."""

from __future__ import annotations

from itertools import combinations
from math import isfinite
from typing import Any

import pulp

from gangplan.instances.placement import PlacementPlan
from gangplan.instances.placement.rate import ring_bytes
from gangplan.solvers import Run

from .engines import Solve
from .gangs import Gangs


class Model:
    """The programme; letters as in `placement_cpsat`, costs in units of the number of jobs."""

    def __init__(self, gangs: Gangs) -> None:
        self.gangs, self.lp, self.count = gangs, pulp.LpProblem("placement", pulp.LpMinimize), 0
        jobs, nodes = gangs.jobs, gangs.nodes
        self.unit = float(len(jobs))
        self.price = [price / self.unit for price in gangs.price]
        self.w = [[self.variable(gangs.most[j][n], "Integer") for n in nodes] for j in jobs]
        self.p = [[self.variable(gangs.servers[j] * gangs.open[j][n], "Integer") for n in nodes] for j in jobs]
        self.busy, self.here = ([[self.variable(1, "Binary") for _ in nodes] for _ in jobs] for _ in range(2))
        self.compute, self.sync, self.cost = ([self.variable() for _ in jobs] for _ in range(3))
        self.lp += pulp.lpSum(self.cost)
        self.assign()
        self.meet()
        self.cross()
        for j in jobs:
            {"ps": self.servers, "hierarchical": self.phases}.get(gangs.collective[j], self.around)(j)
            self.lp += self.cost[j] >= self.price[j] * self.compute[j]
            self.lp += self.cost[j] >= self.price[j] * ((1 - gangs.overlap[j]) * self.compute[j] + self.sync[j])

    def variable(self, most: float | None = None, category: str = "Continuous") -> Any:
        """Return a new variable."""
        self.count += 1
        return pulp.LpVariable(f"x{self.count}", 0, most, category)

    def assign(self) -> None:
        """Place all tasks, within what each node has."""
        gangs = self.gangs
        for j in gangs.jobs:
            self.lp += pulp.lpSum(self.w[j]) == gangs.workers[j]
            self.lp += pulp.lpSum(self.p[j]) == gangs.servers[j]
            for n in gangs.nodes:
                self.lp += self.w[j][n] <= gangs.workers[j] * self.busy[j][n]
                self.lp += self.w[j][n] + self.p[j][n] <= (gangs.workers[j] + gangs.servers[j]) * self.here[j][n]
        for has, worker, server in gangs.needs:
            for n in gangs.nodes:
                unit = max(has[n], *worker, *server)
                if any(worker) or any(server):
                    used = [worker[j] / unit * self.w[j][n] + server[j] / unit * self.p[j][n] for j in gangs.jobs]
                    self.lp += pulp.lpSum(used) <= has[n] / unit
        for i, j in gangs.apart:
            for n in gangs.nodes:
                self.lp += self.here[i][n] + self.here[j][n] <= 1

    def meet(self) -> None:
        """y[i, j, n]: both are on n; the slowest node of a job counts."""
        gangs = self.gangs
        y = {}
        for i, j in combinations(gangs.jobs, 2):
            for n in gangs.nodes:
                y[i, j, n] = y[j, i, n] = self.variable(1)
                self.lp += y[i, j, n] >= self.busy[i][n] + self.busy[j][n] - 1
        for j in gangs.jobs:
            for n in gangs.nodes:
                alone = gangs.seconds[j][n]
                if isfinite(alone):
                    more = [alone * gangs.added[j][i] * y[i, j, n] for i in gangs.jobs if i != j]
                    self.lp += self.compute[j] >= alone * self.busy[j][n] + pulp.lpSum(more)

    def cross(self) -> None:
        """Count the gangs that have tasks in a member of a level and in another one of it."""
        gangs = self.gangs
        self.inside: list[list[dict[int, Any]]] = []
        self.crosses: list[list[dict[int, Any]]] = []
        self.load: list[dict[int, Any]] = []
        for level in range(len(gangs.bandwidth)):
            inside: list[dict[int, Any]] = [{} for _ in gangs.jobs]
            crosses: list[dict[int, Any]] = [{} for _ in gangs.jobs]
            for j in gangs.jobs:
                wide, members = self.variable(1, "Binary"), gangs.within(level, j)
                for a, there in members.items():
                    inside[j][a], crosses[j][a] = self.variable(1), self.variable(1)
                    for n in there:
                        self.lp += inside[j][a] >= self.here[j][n]
                    self.lp += crosses[j][a] >= inside[j][a] + wide - 1
                self.lp += pulp.lpSum(inside[j].values()) <= 1 + len(members) * wide
            self.inside.append(inside)
            self.crosses.append(crosses)
            self.load.append({a: pulp.lpSum(c[a] for c in crosses if a in c) for a in set(gangs.member[level])})

    def several(self, j: int) -> list[Any]:
        """Return whether j has two workers or more, by node."""
        found = [self.variable(1, "Binary") for _ in self.gangs.nodes]
        for w, literal in zip(self.w[j], found, strict=True):
            self.lp += w <= 1 + self.gangs.workers[j] * literal
        return found

    def around(self, j: int) -> None:
        """Ring and tree: what is sent, over the slowest link."""
        gangs, count = self.gangs, len(self.gangs.jobs)
        size = gangs.size[j]
        moved = ring_bytes(gangs.workers[j], size) if gangs.collective[j] == "ring" else 2 * size
        for n, several in enumerate(self.several(j)):
            self.lp += self.sync[j] >= moved * (gangs.workers[j] > 1) / gangs.link[n] * several
        for level, bandwidth in enumerate(gangs.bandwidth):
            for a, crosses in self.crosses[level][j].items():
                each = moved / bandwidth
                self.lp += self.sync[j] >= each * self.load[level][a] - each * count * (1 - crosses)

    def phases(self, j: int) -> None:
        """Hierarchical: rings within nodes, among nodes, among racks; r[m]: some count reaches m."""
        gangs, count = self.gangs, len(self.gangs.jobs)
        phases = [self.variable() for _ in range(len(gangs.bandwidth) + 1)]
        self.lp += self.sync[j] >= pulp.lpSum(phases)
        several = self.several(j)
        for m, reached in self.reached([[x] for x in self.w[j]], gangs.workers[j]):
            for n, literal in enumerate(several):
                self.lp += phases[0] >= ring_bytes(m, gangs.size[j]) / gangs.link[n] * (reached + literal - 1)
        for level in range(len(gangs.bandwidth)):
            above = dict(zip(gangs.member[level], gangs.member[level + 1], strict=True))
            groups: dict[int, list[Any]] = {}
            for a, x in self.inside[level][j].items():
                groups.setdefault(above[a], []).append(x)
            for m, reached in self.reached(list(groups.values()), max(map(len, groups.values()), default=0)):
                for lower in range(level + 1):
                    each = ring_bytes(m, gangs.size[j]) / gangs.bandwidth[lower]
                    for a, crosses in self.crosses[lower][j].items():
                        load = self.load[lower][a] - count * (2 - crosses - reached)
                        self.lp += phases[level + 1] >= each * load

    def reached(self, counts: list[list[Any]], most: int) -> list[tuple[int, Any]]:
        """Return (m, a literal that some count is m or more) for m from 2 to `most`."""
        found = [(m, self.variable(1, "Binary")) for m in range(2, most + 1)]
        for m, literal in found:
            for xs in counts:
                self.lp += pulp.lpSum(xs) <= m - 1 + most * literal
        return found

    def servers(self, j: int) -> None:
        """Parameter servers: w (P - p) + p (W - w) gradients, over P, through the link of each member crossed."""
        gangs, count = self.gangs, len(self.gangs.jobs)
        workers, servers, size = gangs.workers[j], gangs.servers[j], gangs.size[j]
        for n in gangs.nodes:
            inside = self.product([self.w[j][n]], [self.p[j][n]], workers, servers)
            self.lp += self.sync[j] >= size / servers / gangs.link[n] * inside
        for level, bandwidth in enumerate(gangs.bandwidth):
            for a, there in gangs.within(level, j).items():
                w, p = ([counts[j][n] for n in there] for counts in (self.w, self.p))
                both = self.product(w, p, workers, servers)
                through = servers * pulp.lpSum(w) + workers * pulp.lpSum(p) - 2 * both
                gangs_there = [(m, self.variable(1, "Binary")) for m in range(1, count + 1)]
                for m, literal in gangs_there:
                    self.lp += self.load[level][a] <= m - 1 + count * literal
                    each = size / servers / bandwidth * m
                    self.lp += self.sync[j] >= each * (through - workers * servers * (1 - literal))

    def product(self, xs: list[Any], ys: list[Any], most_x: int, most_y: int) -> Any:
        """Return the product of two sums: of x for each of so many steps of y."""
        steps, terms = [self.variable(1, "Binary") for _ in range(most_y)], []
        x = pulp.lpSum(xs)
        self.lp += pulp.lpSum(steps) == pulp.lpSum(ys)
        for step in steps:
            terms.append(self.variable(most_x))
            self.lp += terms[-1] <= x
            self.lp += terms[-1] <= most_x * step
            self.lp += terms[-1] >= x - most_x * (1 - step)
        return pulp.lpSum(terms)


def placement_milp(run: Run, solve: Solve) -> None:
    """Minimise the weighted slowdowns by mixed-integer linear programming."""
    gangs = Gangs.of(run.problem)
    model = Model(gangs)

    def plan() -> PlacementPlan:
        return gangs.plan(*([[round(x.value() or 0) for x in row] for row in counts] for counts in (model.w, model.p)))

    solve(run, model.lp, model.unit, plan)
