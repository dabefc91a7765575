"""Placement of rigid gangs as one linear model, for CP-SAT and as a MILP; letters as in docs/placement.md.

It is what a first formulation has: workers per job and node, a binary for each pair of jobs on a node, nothing given.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.placement.rate import best_rate, model_of, ring_bytes

from ..partition.sizes import most
from ..plain import Formulation, Minimise, Rows, Search, Variable, new_rows, refine, solve_cpsat, solve_milp
from ..run import Run

FORMULATION = Formulation(
    "sum_j t[j] + value[j] out[j], the weighted slowdowns",
    (
        Variable("w", "job node", "workers of job j on node n"),
        Variable("p", "job node", "its parameter servers there"),
        Variable("busy", "job node", "1 if it has workers there"),
        Variable("here", "job node", "1 if it has tasks there"),
        Variable("out", "job", "1 if it is left out"),
        Variable("c", "job", "what its compute costs", seconds=True),
        Variable("s", "job", "what its synchronisation costs", seconds=True),
        Variable("t", "job", "what its step costs", seconds=True),
        Variable("both", "job job node", "1 if jobs i and j have workers on node n"),
        Variable("inside", "level job member", "1 if job j has tasks in member a of level l"),
        Variable("cross", "level job member", "1 if it has others outside"),
        Variable("wide", "level job", "1 if it is in several members of level l"),
        Variable("several", "job node", "1 if it has two workers or more on node n"),
        Variable("phase", "job level", "what each ring of a hierarchical collective costs", seconds=True),
        Variable("reached", "job count", "1 if some part has so many workers, or members"),
        Variable("again", "level job member job", "what goes through a link, if another job shares it"),
        Variable("step", "job count", "products of workers and servers: a step"),
        Variable("term", "job count", "products of workers and servers: what it adds"),
    ),
    (
        ("A", "sum_n w[j,n] = W[j] (1 - out[j]);  sum_n p[j,n] = P[j] (1 - out[j])", "all tasks or none"),
        ("M", "sum_j need[j] (w[j,n] + p[j,n]) <= has[n] for GPUs, cores, memory, NIC", "resources of a node"),
        ("L", "c[j] >= price[j] c[j,n] (busy[j,n] + sum_i h[j,i] both[i,j,n])", "compute on its slowest node"),
        ("K", "inside[l,j,a] >= here[j,n];  cross[l,j,a] = 1 if inside several members", "links that a gang crosses"),
        (
            "S",
            "cross[l,j,a] = 1  =>  s[j] >= price[j] moved (1 + sum_i duty[i] cross[l,i,a]) / B[l]",
            "synchronisation",
        ),
        ("Z", "t[j] >= c[j];  t[j] >= (1 - o) c[j] + s[j]", "a step"),
    ),
)
"""The model in words; symbols as in docs/placement.md."""


def rows(problem: PlacementProblem) -> int:
    """Return the number of rows of either model, but for a few; `NotImplementedError` names what a model leaves out."""
    if problem.goal != "slowdown":
        raise NotImplementedError(f"goal: {problem.goal!r} has no plain model")
    if problem.running:
        raise NotImplementedError("running: jobs that run already have no plain model")
    for i, job in enumerate(problem.jobs):
        if len(job.workers) > 1 or job.worker.gpu != int(job.worker.gpu):
            raise NotImplementedError(f"jobs[{i}]: a choice of workers, or shares of GPUs, have no plain model")
    jobs, levels = len(problem.jobs), len(problem.fleet.topology.levels)
    tasks = max((job.gang + job.servers for job in problem.jobs), default=0)
    return problem.fleet.n_nodes * jobs * (jobs // 2 + (4 + tasks) * (levels + 1))


def plain_cpsat(run: Run, prepared: object = None, minimise: Search = solve_cpsat) -> None:
    """Minimise the weighted slowdowns by CP-SAT."""

    def attempt(unit: float) -> None:
        _Gangs(run, new_rows(run, unit, search=minimise))

    refine(run, "plain_cpsat", rows(run.problem), _worst(run.problem), attempt)


def plain_milp(run: Run, prepared: object = None, minimise: Minimise = solve_milp) -> None:
    """Minimise the weighted slowdowns by a MILP through PuLP."""

    def attempt(unit: float) -> None:
        _Gangs(run, new_rows(run, unit, minimise))

    refine(run, "plain_milp", rows(run.problem), _worst(run.problem), attempt)


class _Gangs:
    """The model: a method a term of the cost.

    Variables: w[j][n] workers and p[j][n] servers of job j on node n; busy[j][n], it has workers there; here[j][n], it
    has tasks there; out[j], it is left out; c[j], s[j], t[j], what its compute, synchronisation and step cost. A second
    of a step of j costs price[j]. Binaries may be 1 for nothing, where that only costs.
    """

    def __init__(self, run: Run, model: Rows) -> None:
        self.model, self.run, problem = model, run, run.problem
        self.problem: PlacementProblem = problem
        self.jobs, fleet = problem.jobs, problem.fleet
        self.J, self.N = range(len(self.jobs)), range(fleet.n_nodes)
        self.member = [list(self.N), *(row.tolist() for row in fleet.topology.group)]
        self.bandwidth = [level.bandwidth for level in fleet.topology.levels]
        kind = model_of(problem)
        self.size, self.duty = problem.speeds.gradient[kind].tolist(), problem.speeds.duty[kind].tolist()
        self.price = _price(problem)
        self.open = [_open(problem, j) for j in self.J]
        self.w = [[model.count(job.gang, "w", j, n) for n in self.N] for j, job in enumerate(self.jobs)]
        self.p = [[model.count(job.servers, "p", j, n) for n in self.N] for j, job in enumerate(self.jobs)]
        self.busy, self.here = (
            [[model.binary(name, j, n) for n in self.N] for j in self.J] for name in ("busy", "here")
        )
        self.out = [model.binary("out", j) for j in self.J]
        self.c, self.s, self.t = ([model.amount(1, name, j) for j in self.J] for name in "cst")
        builders = self._assign, self._resources, self._compute, self._cross, self._sync
        for letter, build in zip("AMLKS", builders, strict=True):
            if run.stopped:
                return
            model.letter(letter)
            build()
        model.letter("Z")
        model.minimise(self._total(), self._plan)

    def _assign(self) -> None:
        """Place all tasks of a job or none, on nodes that it may use, apart from jobs it shares no node with."""
        row, index = self.model.row, {job.name: j for j, job in enumerate(self.jobs)}
        for j, job in enumerate(self.jobs):
            for tasks, total in ((self.w[j], job.gang), (self.p[j], job.servers)):
                row(sum(tasks), total * (1 - self.out[j]))
                row(total * (1 - self.out[j]), sum(tasks))
            row(self.out[j], 0 if job.value is None else 1)
            seconds = self.problem.compute()[j]
            for n in self.N:
                runs = self.open[j][n] and isfinite(seconds[n])
                room = int(self.problem.fleet.gpus[n] // job.worker.gpu) if job.worker.gpu else job.gang
                row(self.w[j][n], min(job.gang, job.most_per_node or job.gang, room) * self.busy[j][n] if runs else 0)
                row(self.w[j][n] + self.p[j][n], (job.gang + job.servers) * self.here[j][n] if self.open[j][n] else 0)
            others = self.J if job.whole_nodes else [index[name] for name in job.apart]
            for i in others:
                for n in self.N if i != j else ():
                    row(self.here[i][n] + self.here[j][n], 1)

    def _resources(self) -> None:
        fleet = self.problem.fleet
        for field, has in (("gpu", fleet.gpus), ("cpu", fleet.cpu), ("memory", fleet.memory), ("nic", fleet.nic)):
            for n in self.N:
                limit, used = most(float(has[n]), len(self.jobs)), []
                for j, job in enumerate(self.jobs):
                    for need, tasks in ((getattr(job.worker, field), self.w), (getattr(job.server, field), self.p)):
                        if need > limit:
                            self.model.row(tasks[j][n], 0)
                        elif need:
                            used.append(self.model.share(need / limit) * tasks[j][n])
                if used:
                    self.model.row(sum(used), self.model.share(1.0))

    def _compute(self) -> None:
        """c[j] is that on the slowest of its nodes, each job with workers beside it adding its share."""
        kind = model_of(self.problem)
        added, seconds = self.problem.speeds.host[np.ix_(kind, kind)].tolist(), self.problem.compute().tolist()
        both = {(i, j, n): self.model.binary("both", i, j, n) for i, j in combinations(self.J, 2) for n in self.N}
        for (i, j, n), y in both.items():
            self.model.row(self.busy[i][n] + self.busy[j][n], 1 + y)
        for j in self.J:
            fastest = min((x for x in seconds[j] if isfinite(x)), default=0.0)
            self.model.row(self._cost(j, fastest) * (1 - self.out[j]), self.c[j])
            for n in self.N:
                if isfinite(alone := seconds[j][n]):
                    beside = [
                        self._cost(j, alone * added[j][i]) * both[min(i, j), max(i, j), n] for i in self.J if i != j
                    ]
                    self.model.row(self._cost(j, alone) * self.busy[j][n] + sum(beside), self.c[j])

    def _cross(self) -> None:
        """inside[l][j][a]: j has tasks in member a of level l; cross[l][j][a]: and in another one."""
        self.inside = [
            [{a: self.model.binary("inside", i, j, a) for a in self._within(i, j)} for j in self.J]
            for i in self._levels
        ]
        self.cross = [
            [{a: self.model.binary("cross", i, j, a) for a in self._within(i, j)} for j in self.J] for i in self._levels
        ]
        for i in self._levels:
            for j in self.J:
                wide, inside = self.model.binary("wide", i, j), self.inside[i][j]
                self.model.row(sum(inside.values()), 1 + len(inside) * wide)
                for a, nodes in self._within(i, j).items():
                    self.model.row(inside[a] + wide, 1 + self.cross[i][j][a])
                    for n in nodes:
                        self.model.row(self.here[j][n], inside[a])

    def _sync(self) -> None:
        for j, job in enumerate(self.jobs):
            if job.collective == "ps":
                self._servers(j)
            elif job.collective == "hierarchical":
                self._phases(j)
            elif job.gang > 1:
                size = self.size[j]
                moved = ring_bytes(job.gang, size) if job.collective == "ring" else 2 * size
                for n, several in enumerate(self._several(j)):
                    self.model.row(self._cost(j, moved / self.problem.fleet.link[n]) * several, self.s[j])
                for i in self._levels:
                    for a, crosses in self.cross[i][j].items():
                        self.model.row(self._shared(j, moved, i, a), self.s[j], crosses)

    def _phases(self, j: int) -> None:
        """Hierarchical: a ring in each node, one among a rack's nodes, one among racks, each at its slowest link."""
        model, size = self.model, self.size[j]
        phases = [model.amount(1, "phase", j, i) for i in range(len(self.bandwidth) + 1)]
        model.row(sum(phases), self.s[j])
        several = self._several(j)
        for m, reached in self._reached(j, [[x] for x in self.w[j]], self.jobs[j].gang):
            for n, two in enumerate(several):
                model.row(self._cost(j, ring_bytes(m, size) / self.problem.fleet.link[n]), phases[0], reached, two)
        for i in self._levels:
            groups: dict[int, list[Any]] = {}
            for a, x in self.inside[i][j].items():
                groups.setdefault(self.member[i + 1][self.member[i].index(a)], []).append(x)
            for m, reached in self._reached(j, [*groups.values()], max(map(len, groups.values()), default=0)):
                for lower in range(i + 1):
                    for a, crosses in self.cross[lower][j].items():
                        model.row(self._shared(j, ring_bytes(m, size), lower, a), phases[i + 1], reached, crosses)

    def _servers(self, j: int) -> None:
        """Parameter servers: w (P - p) + p (W - w) gradients over P through each member, w p over P inside a node."""
        model, all_w, all_p = self.model, self.jobs[j].gang, self.jobs[j].servers
        for n in self.N:
            both = self._product(j, [self.w[j][n]], [self.p[j][n]], all_w, all_p)
            model.row(self._cost(j, self.size[j] / all_p / self.problem.fleet.link[n]) * both, self.s[j])
        for i, bandwidth in enumerate(self.bandwidth):
            each = self.size[j] / all_p / bandwidth
            for a, nodes in self._within(i, j).items():
                w, p = ([tasks[j][n] for n in nodes] for tasks in (self.w, self.p))
                through = all_p * sum(w) + all_w * sum(p) - 2 * self._product(j, w, p, all_w, all_p)
                load = self._cost(j, each) * through
                for other, crosses in self._others(i, a, j):  # once more, by its duty, for each gang on the link
                    again = model.count(all_w * all_p, "again", i, j, a, other)
                    model.row(through, again, crosses)
                    load += self._cost(j, each * self.duty[other]) * again
                model.row(load, self.s[j])

    def _total(self) -> Any:
        """Return the sum: a step takes max(c, (1 - o) c + s), a job left out costs its value."""
        overlap = self.problem.speeds.overlap[model_of(self.problem)].tolist()
        values = [self.model.units(job.value or 0.0) for job in self.jobs]
        for j in self.J:
            self.model.row(self.c[j], self.t[j])
            over, under = self.model.ratio(1 - overlap[j])
            self.model.row(over * self.c[j] + under * self.s[j], under * self.t[j])
        return sum(self.t) + sum(value * out for value, out in zip(values, self.out, strict=True))

    @property
    def _levels(self) -> range:
        return range(len(self.bandwidth))

    def _within(self, level: int, j: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for n in self.N:
            if self.open[j][n]:
                found.setdefault(self.member[level][n], []).append(n)
        return found

    def _cost(self, j: int, seconds: float) -> Any:
        return self.model.units(self.price[j] * seconds)

    def _shared(self, j: int, size: float, level: int, a: int) -> Any:
        each = size / self.bandwidth[level]
        others = (self._cost(j, each * self.duty[i]) * crosses for i, crosses in self._others(level, a, j))
        return self._cost(j, each) + sum(others)

    def _others(self, level: int, a: int, j: int) -> Iterator[tuple[int, Any]]:
        return ((i, self.cross[level][i][a]) for i in self.J if i != j and a in self.cross[level][i])

    def _several(self, j: int) -> list[Any]:
        found = [self.model.binary("several", j, n) for n in self.N]
        for w, several in zip(self.w[j], found, strict=True):
            self.model.row(w, 1 + self.jobs[j].gang * several)
        return found

    def _reached(self, j: int, counts: list[list[Any]], up: int) -> list[tuple[int, Any]]:
        """Return (m, whether some count is m or more) for m from 2 to `up`."""
        found = [(m, self.model.binary("reached", j, m)) for m in range(2, up + 1)]
        for m, reached in found:
            for xs in counts:
                self.model.row(sum(xs), m - 1 + up * reached)
        return found

    def _product(self, j: int, xs: list[Any], ys: list[Any], up_x: int, up_y: int) -> Any:
        """Return the product of two sums: that of x for each of so many steps of y."""
        steps = [self.model.binary("step", j, i) for i in range(up_y)]
        terms = [self.model.count(up_x, "term", j, i) for i in range(up_y)]
        self.model.row(sum(steps), sum(ys))
        self.model.row(sum(ys), sum(steps))
        for step, term in zip(steps, terms, strict=True):
            self.model.row(term, sum(xs))
            self.model.row(term, up_x * step)
            self.model.row(sum(xs), term + up_x * (1 - step))
        return sum(terms)

    def _plan(self, value: Any) -> PlacementPlan:
        tasks = [(j, n, *(round(value(x[j][n])) for x in (self.w, self.p))) for j in self.J for n in self.N]
        held = [row for row in tasks if row[2] or row[3]]
        used, grants = [0] * len(self.N), []
        for r, (j, n, count, _) in enumerate(held):
            for _ in range(count * int(self.jobs[j].worker.gpu)):
                grants.append((r, used[n]))
                used[n] += 1
        job, node, workers, servers = np.array(held, dtype=np.int32).reshape(-1, 4).T
        of_row, gpu = np.array(grants, dtype=np.int32).reshape(-1, 2).T
        return PlacementPlan(tuple(x.name for x in self.jobs), job, node, workers, servers, of_row, gpu)


def _open(problem: PlacementProblem, j: int) -> list[bool]:
    fleet = problem.fleet
    meets = fleet.admits(problem.jobs[j].requires, problem.jobs[j].tolerates)
    return [bool(x) for x in np.asarray(fleet.usable) & meets]


def _price(problem: PlacementProblem) -> list[float]:
    return [job.weight * float(b) / job.gang for job, b in zip(problem.jobs, best_rate(problem), strict=True)]


def _worst(problem: PlacementProblem) -> float:
    kind, fleet, levels = model_of(problem), problem.fleet, problem.fleet.topology.levels
    slowest = 1 / float(fleet.link.min()) + sum(len(problem.jobs) / level.bandwidth for level in levels)
    total, seconds = 0.0, problem.compute()
    for j, (job, price) in enumerate(zip(problem.jobs, _price(problem), strict=True)):
        compute = max((x for x in seconds[j].tolist() if isfinite(x)), default=0.0)
        compute *= 1 + float(problem.speeds.host[kind[j], kind].sum())
        sent = max(2 * (len(levels) + 1), job.gang) * float(problem.speeds.gradient[kind[j]])
        total += max(price * (compute + sent * slowest), job.value or 0.0)
    return total
