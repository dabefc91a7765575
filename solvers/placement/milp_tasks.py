"""Placement as a MILP: where the tasks are. Letters and constraints are those of `cpsat_model`."""

from __future__ import annotations

from typing import Any

import pulp

from gangplan.instances.verify import TOLERANCE

from .prepare import Batch, Rows

_SLACK = 1 + TOLERANCE / 2


class Programme:
    """A MILP under construction; it names the variables, which PuLP wants unique.

    Attributes:
        lp: the programme.
    """

    def __init__(self) -> None:
        self.lp = pulp.LpProblem("placement", pulp.LpMinimize)
        self._count = 0

    def binary(self) -> Any:
        """Return a new variable of 0 or 1."""
        return self.whole(1)

    def whole(self, most: int) -> Any:
        """Return a new variable from 0 to `most`, whole numbers only."""
        return self._variable(most, pulp.LpInteger)

    def amount(self, most: float | None = None) -> Any:
        """Return a new variable from 0 to `most`."""
        return self._variable(most, pulp.LpContinuous)

    def _variable(self, most: float | None, category: str) -> Any:
        self._count += 1
        return pulp.LpVariable(f"x{self._count}", 0, most, category)

    def both(self, x: Any, y: Any) -> Any:
        """Return an amount that is at least 1 where the literals x and y are."""
        found = self.amount(1)
        self.lp += found >= x + y - 1
        return found


class Tasks:
    """Variables and constraints of a plan; job j, node n, number of workers k, GPU g.

    Attributes:
        w, p: w[j][n], p[j][n]: workers and servers of j on n, for the nodes that may have any.
        busy: busy[j][n]: 1 where j has workers on n. here[j][n]: 1 where j has tasks on n.
        size: size[j][k]: j runs with k workers; none of them if it is left out.
        card: card[j][n][g]: tasks of j, which need a share of a GPU, on GPU g of n.
        moved: of jobs that run and may move.
    """

    def __init__(self, batch: Batch, programme: Programme) -> None:
        self.batch, self.new, self.lp = batch, programme, programme.lp
        jobs = range(len(batch.jobs))
        self.size = [{k: programme.binary() for k in job.workers} for job in batch.jobs]
        self.w: list[dict[int, Any]] = [{} for _ in jobs]
        self.p: list[dict[int, Any]] = [{} for _ in jobs]
        self.busy: list[dict[int, Any]] = [{} for _ in jobs]
        self.here: list[dict[int, Any]] = [{} for _ in jobs]
        self.card: list[dict[int, list[Any]]] = [{} for _ in jobs]
        self.moved: dict[int, Any] = {}
        for j in jobs:
            self._tasks(j)
            self._gang(j)
        for j, rows in batch.pinned.items():
            self._stays(j, rows, 0)
        for j, (rows, _) in batch.standing.items():
            self.moved[j] = programme.binary()
            self._stays(j, rows, self.moved[j])
        self._gpus()
        self._amounts()
        self._company()

    def _tasks(self, j: int) -> None:
        batch, new, job = self.batch, self.new, self.batch.jobs[j]
        for n in range(batch.n_nodes):
            room, allowed = int(batch.room[j, batch.kind[n]]), bool(batch.allowed[j, batch.kind[n]])
            if room:
                self.w[j][n], self.busy[j][n] = new.whole(room), new.binary()
                self.lp += self.w[j][n] <= room * self.busy[j][n]
            if job.servers and allowed:
                self.p[j][n], self.here[j][n] = new.whole(job.servers), new.binary()
                self.lp += self.p[j][n] <= job.servers * self.here[j][n]
                if room:
                    self.lp += self.busy[j][n] <= self.here[j][n]
            elif room:
                self.here[j][n] = self.busy[j][n]

    def _gang(self, j: int) -> None:
        """(G) All tasks of a number of workers on the menu, or, if the job may be left out, none."""
        job, sizes = self.batch.jobs[j], self.size[j]
        placed = pulp.lpSum(sizes.values())
        self.lp += placed <= 1 if job.value is not None else placed == 1
        self.lp += pulp.lpSum(self.w[j].values()) == pulp.lpSum(k * x for k, x in sizes.items())
        if job.servers:
            self.lp += pulp.lpSum(self.p[j].values()) == job.servers * placed

    def _stays(self, j: int, rows: Rows, moved: Any) -> None:
        """(R) A running job stays, unless it is moved."""
        for task, counts in enumerate((self.w[j], self.p[j])):
            for n, x in counts.items():
                there = rows.get(n, (0, 0))[task]
                self.lp += x >= there * (1 - moved)
                self.lp += x <= there + (x.upBound - there) * moved
            if any(row[task] and n not in counts for n, row in rows.items()):
                self.lp += pulp.LpAffineExpression(moved) >= 1  # it may not even be there

    def _gpus(self) -> None:
        """(U) Whole GPUs of a node are exclusive; shares of one add up to at most 1."""
        batch, new = self.batch, self.new
        gpus = batch.problem.fleet.gpus.tolist()
        for n in range(batch.n_nodes):
            users = [j for j, w in enumerate(self.w) if n in w and batch.each[j]]
            taken = [int(batch.each[j]) * self.w[j][n] for j in users if batch.share[j] == 1]
            sharers = [j for j in users if batch.share[j] < 1]
            used = [new.binary() for _ in range(gpus[n])] if sharers else []
            for j in sharers:
                self.card[j][n] = [new.whole(int(_SLACK / batch.share[j])) for _ in used]
                self.lp += pulp.lpSum(self.card[j][n]) == self.w[j][n]
            for g, share in enumerate(used):
                held = pulp.lpSum(float(batch.share[j]) * self.card[j][n][g] for j in sharers)
                self.lp += held <= _SLACK * share
                if g:
                    self.lp += share <= used[g - 1]
            if users:
                self.lp += pulp.lpSum(taken + used) <= gpus[n]

    def _amounts(self) -> None:
        """(C) Cores, bytes and NIC of each node."""
        batch, fleet = self.batch, self.batch.problem.fleet
        rows = (
            (fleet.cpu, batch.worker_cpu, batch.server_cpu),
            (fleet.memory, batch.worker_memory, batch.server_memory),
            (batch.nic, batch.worker_nic, batch.server_nic),
        )
        for has, worker, server in rows:
            for n in range(batch.n_nodes):
                terms = [(float(worker[j]), x[n]) for j, x in enumerate(self.w) if n in x and worker[j]]
                terms += [(float(server[j]), x[n]) for j, x in enumerate(self.p) if n in x and server[j]]
                if terms:
                    unit = max(float(has[n]), *(need for need, _ in terms))
                    used = pulp.lpSum(need / unit * x for need, x in terms)
                    self.lp += used <= float(has[n]) / unit * _SLACK

    def _company(self) -> None:
        """(A) Jobs that keep apart, and jobs that want their nodes to themselves."""
        batch = self.batch
        for j, job in enumerate(batch.jobs):
            others = set(range(len(batch.jobs))) - {j} if job.whole_nodes else batch.apart[j]
            for n, x in self.here[j].items():
                for i in others:
                    if n in self.here[i] and (i > j or job.whole_nodes):
                        self.lp += x + self.here[i][n] <= 1

    def rows(self) -> list[Rows]:
        """Return the rows of each job in the solution."""
        found: list[Rows] = []
        for w, p in zip(self.w, self.p, strict=True):
            tasks = {n: tuple(_rounded(counts.get(n)) for counts in (w, p)) for n in sorted({*w, *p})}
            found.append({n: (row[0], row[1]) for n, row in tasks.items() if any(row)})
        return found

    def packing(self, n: int) -> list[dict[int, int]]:
        """Return what each GPU of node n that is shared holds, job -> tasks."""
        held: list[dict[int, int]] = [{} for _ in range(int(self.batch.problem.fleet.gpus[n]))]
        for j, nodes in enumerate(self.card):
            for g, x in enumerate(nodes.get(n, [])):
                if _rounded(x):
                    held[g][j] = _rounded(x)
        return held


def _rounded(x: Any) -> int:
    return 0 if x is None else round(pulp.value(x))
