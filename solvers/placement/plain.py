"""Placement as one linear model, for CP-SAT and as a MILP; letters as in docs/placement.md.

It is what a first formulation has: workers per job and node, a binary for each pair of jobs on a node, nothing given.
What a placement costs is in `plain_goals`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from math import isfinite
from typing import Any

import numpy as np

from gangplan.instances.placement import PlacementPlan, PlacementProblem, Running
from gangplan.instances.placement.rate import model_of, ring_bytes

from ..partition.sizes import most
from ..plain import ABOVE_ONE, New, PlainRows, add_up, both, by_cpsat, literal, refine
from ..run import Run
from .formulation import FORMULATION  # noqa: F401  # where others look for it
from .plain_goals import Seen, most_cost, prices, slower, total


def rows(problem: PlacementProblem) -> int:
    """Return the number of rows of either model, but for a few."""
    fleet, jobs, levels = problem.fleet, len(problem.jobs), len(problem.fleet.topology.levels)
    tasks = max((job.workers[-1] + job.servers for job in problem.jobs), default=0)
    menu = max((len(job.workers) for job in problem.jobs), default=1)
    shared, cards = sum(0 < job.worker.gpu < 1 for job in problem.jobs), int(fleet.gpus.sum())
    kinds = len(problem.expected()) if problem.goal == "fragmentation" else 0
    placed = fleet.n_nodes * jobs * (jobs // 2 + (4 + tasks) * (levels + 1) * menu)
    return placed + cards * shared * (2 * shared + 3) + kinds * (3 * cards + 5 * fleet.n_nodes)


def _solve(run: Run, by: str, new: New) -> None:
    """Minimise the goal; where lines stand for losses of throughput, again with more of them."""
    seen = [] if run.plan is None else slower(run.problem, run.plan, [])
    worst = run.objective or most_cost(run.problem)
    refine(run, by, rows(run.problem), worst, lambda unit: Gangs(run, new(unit), seen), seen)


plain_cpsat, plain_milp = both(_solve)


def cpsat(run: Run, prepared: object = None) -> None:
    """Minimise the goal by CP-SAT, from the best plan and bound; of losses of throughput it sees no lines."""

    def attempt(unit: float) -> None:
        Gangs(run, PlainRows(run, unit, partial(by_cpsat, by="cpsat")), None)

    refine(run, "cpsat", 0, run.objective or most_cost(run.problem), attempt)


class Gangs:
    """The model: a method a constraint.

    Variables: size[j][k], job j runs with k workers; w[j][n] workers and p[j][n] servers of it on node n; busy[j][n],
    it has workers there; here[j][n], it has tasks there; c[j], s[j], t[j], what its compute, synchronisation and step
    cost. A second of a step of j costs price[j]. Binaries may be 1 for nothing, where that only costs.

    Args:
        seen: see `slower`; `None` if the model is to begin with what the run knows, and divides.
    """

    def __init__(self, run: Run, model: PlainRows, seen: Seen | None) -> None:
        self.model, self.run, self.unit, problem = model, run, model.unit, run.problem
        self.divides, self.seen = seen is None, [] if seen is None else seen
        self.problem: PlacementProblem = problem
        self.jobs, fleet = problem.jobs, problem.fleet
        self.J, self.N = range(len(self.jobs)), range(fleet.n_nodes)
        self.index = {job.name: j for j, job in enumerate(self.jobs)}
        self.member = [list(self.N), *(row.tolist() for row in fleet.topology.group)]
        self.bandwidth = [level.bandwidth for level in fleet.topology.levels]
        kind = model_of(problem)
        self.size, self.duty = problem.speeds.gradient[kind].tolist(), problem.speeds.duty[kind].tolist()
        self.most = [job.workers[-1] for job in self.jobs]
        self.price, self.top = prices(problem, self.unit, self.seen)
        self.open = [_open(problem, j) for j in self.J]
        self.sizes = [{k: model.binary("size", j, k) for k in job.workers} for j, job in enumerate(self.jobs)]
        self.placed = [add_up(sizes.values()) for sizes in self.sizes]
        self.out = [0 if job.value is None else model.binary("out", j) for j, job in enumerate(self.jobs)]
        self.w = [[model.count(self.most[j], "w", j, n) for n in self.N] for j in self.J]
        self.p = [[model.count(job.servers, "p", j, n) for n in self.N] for j, job in enumerate(self.jobs)]
        self.busy, self.here = (
            [[model.binary(name, j, n) for n in self.N] for j in self.J] for name in ("busy", "here")
        )
        self.card: dict[tuple[int, int], list[Any]] = {}
        self.holds: dict[tuple[int, int], list[Any]] = {}
        self.used: dict[int, list[Any]] = {}
        timed = problem.goal in ("slowdown", "throughput")
        self.c, self.s = ([model.amount(self.top[j], x, j) for j in self.J if timed] for x in "cs")
        builders = [self._assign, self._resources, self._gpus]
        builders += [self._compute, self._cross, self._sync] if timed else []
        for name, build in zip("AMULKS", builders, strict=False):
            model.letter(name)
            build()
        cost = total(self)
        model.row(cost, model.units(ABOVE_ONE * self.unit))  # the plan known, or the worst, costs one
        if self.divides:
            model.row(model.units(min(self.unit, run.bound or 0.0)), cost)
            self._begin()
        model.minimise(cost, self._plan)

    def given(self, j: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield each number of workers of a job, and the condition that it has so many if there is a choice."""
        yield from ((k, (x,) if len(self.sizes[j]) > 1 else ()) for k, x in self.sizes[j].items())

    def _begin(self) -> None:
        """Begin with the plan of the run, if there is one."""
        plan, held = self.run.plan, dict[tuple[int, int], tuple[int, int]]()
        if plan is None:
            return
        for j, n, *tasks in zip(*(x.tolist() for x in (plan.job, plan.node, plan.workers, plan.servers)), strict=True):
            held[j, n] = tasks[0], tasks[1]
        for j, n in product(self.J, self.N):
            for x, count in zip((self.w[j][n], self.p[j][n]), held.get((j, n), (0, 0)), strict=True):
                self.model.start[literal(x)] = count

    def _assign(self) -> None:
        """Place all tasks of a job or none, on nodes that it may use, apart from jobs it shares no node with."""
        row = self.model.row
        for j, job in enumerate(self.jobs):
            self.model.equal(add_up(self.w[j]), add_up(k * x for k, x in self.sizes[j].items()))
            self.model.equal(add_up(self.p[j]), job.servers * self.placed[j])
            self.model.equal(self.placed[j] + self.out[j], 1)
            seconds = self.problem.compute()[j]
            for n in self.N:
                runs = self.open[j][n] and isfinite(seconds[n])
                room = int(self.problem.fleet.gpus[n] // job.worker.gpu) if job.worker.gpu >= 1 else self.most[j]
                most_here = min(self.most[j], job.most_per_node or self.most[j], room)
                row(self.w[j][n], most_here * self.busy[j][n] if runs else 0)
                tasks = (self.most[j] + job.servers) * self.here[j][n]
                row(self.w[j][n] + self.p[j][n], tasks if self.open[j][n] else 0)
            others = self.J if job.whole_nodes else [self.index[name] for name in job.apart]
            for i in others:
                for n in self.N if i != j else ():
                    row(self.here[i][n] + self.here[j][n], 1)
        self.moved = [self._stay(run) for run in self.problem.running]

    def _stay(self, run: Running) -> Any:
        """Keep a job where it runs; return a binary that lets it go, 0 if it may not."""
        j, before = self.index[run.job], dict(zip(run.nodes, zip(run.workers, run.servers, strict=True), strict=True))
        moved = self.model.binary("moved", j) if run.movable else 0
        for n, name in enumerate(self.problem.fleet.names):
            most_of = self.most[j], self.jobs[j].servers
            for tasks, count, up in zip((self.w[j][n], self.p[j][n]), before.get(name, (0, 0)), most_of, strict=True):
                self.model.row(count, tasks + up * moved)
                self.model.row(tasks, count + up * moved)
        return moved

    def _resources(self) -> None:
        """Let no node hold a task that is too large for it, nor tasks that are so together."""
        for field, n in product(("cpu", "memory", "nic"), self.N):
            limit = self.limit(field, n)
            for job, *tasks in zip(self.jobs, self.w, self.p, strict=True):
                for demand, of in zip((job.worker, job.server), tasks, strict=True):
                    if getattr(demand, field) > limit:
                        self.model.row(of[n], 0)
            self.model.row(self.load(field, n), self.model.share(1.0))

    def limit(self, field: str, n: int) -> float:
        """Return what a node has, and no less than the verifier lets tasks need."""
        return most(float(getattr(self.problem.fleet, field)[n]), sum(self.most))

    def load(self, field: str, n: int) -> Any:
        """Return what the tasks on a node need, as a share of that."""
        limit, total = self.limit(field, n), 0
        for job, *tasks in zip(self.jobs, self.w, self.p, strict=True):
            for demand, of in zip((job.worker, job.server), tasks, strict=True):
                if 0 < (need := getattr(demand, field)) <= limit:
                    total += self.model.share(need / limit) * of[n]
        return total

    def _gpus(self) -> None:
        """Give out whole GPUs, and shares of others, of each of which no more than there is."""
        model, one = self.model, most(1.0, sum(self.most))
        share = [job.worker.gpu if job.worker.gpu < 1 else 0.0 for job in self.jobs]
        parts = [j for j in self.J if share[j]]
        for n, gpus in enumerate(self.problem.fleet.gpus.tolist()):
            self.used[n] = [model.binary("used", n, g) for g in range(gpus if parts else 0)]
            for j in parts:
                self.card[j, n] = [model.count(self.most[j], "card", j, n, g) for g in range(gpus)]
                self.holds[j, n] = [model.binary("holds", j, n, g) for g in range(gpus)]
                self.model.equal(add_up(self.card[j, n]), self.w[j][n])
                for count, holds in zip(self.card[j, n], self.holds[j, n], strict=True):
                    model.row(count, self.most[j] * holds)
                    model.row(holds, count)
            for g, used in enumerate(self.used[n]):
                load = add_up(model.share(share[j] / one) * self.card[j, n][g] for j in parts)
                model.row(load, model.share(1.0) * used)
            whole = add_up(int(job.worker.gpu) * w[n] for job, w in zip(self.jobs, self.w, strict=True))
            model.row(whole + add_up(self.used[n]), gpus)

    def _compute(self) -> None:
        """c[j] is that on the slowest of its nodes, each job with workers beside it adding its share."""
        kind, speeds = model_of(self.problem), self.problem.speeds
        host, gpu = (x[np.ix_(kind, kind)].tolist() for x in (speeds.host, speeds.gpu))
        seconds, near = self.problem.compute().tolist(), dict[tuple[int, int, int], Any]()
        both = {(i, j, n): self.model.binary("both", i, j, n) for i, j in combinations(self.J, 2) for n in self.N}
        for (i, j, n), y in both.items():
            self.model.row(self.busy[i][n] + self.busy[j][n], 1 + y)
            near[i, j, n] = self._on_one_gpu(i, j, n) if {(i, n), (j, n)} <= self.card.keys() else 0
        for j in self.J:
            fastest = min((x for x in seconds[j] if isfinite(x)), default=0.0)
            self.model.row(self._cost(j, fastest) * self.placed[j], self.c[j])
            for n in self.N:
                if isfinite(alone := seconds[j][n]):
                    load = self._cost(j, alone) * self.busy[j][n]
                    for i in (i for i in self.J if i != j):
                        at = min(i, j), max(i, j), n
                        load += self._cost(j, alone * host[j][i]) * (both[at] - near[at])
                        load += self._cost(j, alone * gpu[j][i]) * near[at]
                    self.model.row(load, self.c[j])

    def _on_one_gpu(self, i: int, j: int, n: int) -> Any:
        """Return whether two jobs have workers on one GPU of a node."""
        meet, share = [], self.model.binary("share", i, j, n)
        for g, (x, y) in enumerate(zip(self.holds[i, n], self.holds[j, n], strict=True)):
            meet.append(self.model.binary("meet", i, j, n, g))
            self.model.row(2 * meet[g], x + y)
            self.model.row(x + y, 1 + meet[g])
        self.model.row(add_up(meet), len(meet) * share)
        self.model.row(share, add_up(meet))
        return share

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
                self.model.row(add_up(inside.values()), 1 + len(inside) * wide)
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
            elif self.most[j] > 1:
                several = self._several(j)
                for k, given in self.given(j):
                    moved = ring_bytes(k, self.size[j]) if job.collective == "ring" else 2 * self.size[j] * (k > 1)
                    for n, two in enumerate(several):
                        self.model.row(self._cost(j, moved / self.problem.fleet.link[n]) * two, self.s[j], *given)
                    for i in self._levels:
                        for a, crosses in self.cross[i][j].items():
                            self.model.row(self._shared(j, moved, i, a), self.s[j], crosses, *given)

    def _phases(self, j: int) -> None:
        """Hierarchical: a ring in each node, one among a rack's nodes, one among racks, each at its slowest link."""
        model, size = self.model, self.size[j]
        phases = [model.amount(self.top[j], "phase", j, i) for i in range(len(self.bandwidth) + 1)]
        model.row(add_up(phases), self.s[j])
        several = self._several(j)
        for m, reached in self._reached(j, [[x] for x in self.w[j]], self.most[j]):
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
        model, all_w, all_p = self.model, self.most[j], self.jobs[j].servers
        for n in self.N:
            both = self._product(j, [self.w[j][n]], [self.p[j][n]], all_w, all_p)
            model.row(self._cost(j, self.size[j] / all_p / self.problem.fleet.link[n]) * both, self.s[j])
        for i, bandwidth in enumerate(self.bandwidth):
            each = self.size[j] / all_p / bandwidth
            for a, nodes in self._within(i, j).items():
                w, p = ([tasks[j][n] for n in nodes] for tasks in (self.w, self.p))
                through, both = model.count(all_w * all_p, "through", i, j, a), self._product(j, w, p, all_w, all_p)
                for k, given in self.given(j):
                    model.row(all_p * add_up(w) + k * add_up(p) - 2 * both, through, *given)
                load = self._cost(j, each) * through
                for other, crosses in self._others(i, a, j):  # once more, by its duty, for each gang on the link
                    again = model.count(all_w * all_p, "again", i, j, a, other)
                    model.row(through, again, crosses)
                    load += self._cost(j, each * self.duty[other]) * again
                model.row(load, self.s[j])

    def steps(self) -> list[Any]:
        """Return t[j] of each job: a step takes max(c, (1 - o) c + s), and costs by the number of workers."""
        self.model.letter("Z")
        overlap, found = self.problem.speeds.overlap[model_of(self.problem)].tolist(), []
        for j, top in enumerate(self.top):
            step = t = self.model.amount(top, "t", j)
            if len(self.sizes[j]) > 1:
                step = self.model.amount(top, "step", j)
            over, under = self.model.ratio(1 - overlap[j])
            self.model.row(self.c[j], step)
            self.model.row(over * self.c[j] + under * self.s[j], under * step)
            for k, given in self.given(j):
                if given:
                    self.model.row(self.most[j] * step, k * t, *given)
            found.append(t)
        return found

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
        return self.model.units(self.price[j] * seconds, self.top[j])

    def _shared(self, j: int, size: float, level: int, a: int) -> Any:
        each = size / self.bandwidth[level]
        others = (self._cost(j, each * self.duty[i]) * crosses for i, crosses in self._others(level, a, j))
        return self._cost(j, each) + add_up(others)

    def _others(self, level: int, a: int, j: int) -> Iterator[tuple[int, Any]]:
        return ((i, self.cross[level][i][a]) for i in self.J if i != j and a in self.cross[level][i])

    def _several(self, j: int) -> list[Any]:
        found = [self.model.binary("several", j, n) for n in self.N]
        for w, several in zip(self.w[j], found, strict=True):
            self.model.row(w, 1 + self.most[j] * several)
        return found

    def _reached(self, j: int, counts: list[list[Any]], up: int) -> list[tuple[int, Any]]:
        """Return (m, whether some count is m or more) for m from 2 to `up`."""
        found = [(m, self.model.binary("reached", j, m)) for m in range(2, up + 1)]
        for m, reached in found:
            for xs in counts:
                self.model.row(add_up(xs), m - 1 + up * reached)
        return found

    def _product(self, j: int, xs: list[Any], ys: list[Any], up_x: int, up_y: int) -> Any:
        """Return the product of two sums: that of x for each of so many steps of y."""
        steps = [self.model.binary("of", j, i) for i in range(up_y)]
        terms = [self.model.count(up_x, "term", j, i) for i in range(up_y)]
        self.model.row(add_up(steps), add_up(ys))
        self.model.row(add_up(ys), add_up(steps))
        for step, term in zip(steps, terms, strict=True):
            self.model.row(term, add_up(xs))
            self.model.row(term, up_x * step)
            self.model.row(add_up(xs), term + up_x * (1 - step))
        return add_up(terms)

    def _plan(self, value: Any) -> PlacementPlan:
        tasks = [(j, n, *(round(value(x[j][n])) for x in (self.w, self.p))) for j in self.J for n in self.N]
        held = [row for row in tasks if row[2] or row[3]]
        free, grants = [0] * len(self.N), []
        for r, (j, n, count, _) in enumerate(held):
            for _ in range(count * int(self.jobs[j].worker.gpu)):
                grants.append((r, free[n]))
                free[n] += 1
        shared = {n: [g for g, used in enumerate(used) if round(value(used))] for n, used in self.used.items()}
        for r, (j, n, _, _) in enumerate(held):
            for at, g in enumerate(shared[n] if (j, n) in self.card else ()):
                grants += [(r, free[n] + at)] * round(value(self.card[j, n][g]))
        job, node, workers, servers = np.array(held, dtype=np.int32).reshape(-1, 4).T
        of_row, gpu = np.array(grants, dtype=np.int32).reshape(-1, 2).T
        plan = PlacementPlan(tuple(x.name for x in self.jobs), job, node, workers, servers, of_row, gpu)
        self.seen += slower(self.problem, plan, self.seen)
        return plan


def _open(problem: PlacementProblem, j: int) -> list[bool]:
    fleet = problem.fleet
    meets = fleet.admits(problem.jobs[j].requires, problem.jobs[j].tolerates)
    return [bool(x) for x in np.asarray(fleet.usable) & meets]
