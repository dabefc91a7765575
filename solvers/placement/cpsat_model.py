"""Placement in CP-SAT: where the tasks are. What that costs is in `cpsat_cost`."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from ..partition.sizes import in_units, most
from .prepare import PreparedBatch, Rows

FINE = 1 << 20
"""Units of a GPU, where shares of one are added up."""


def at_least(model: cp_model.CpModel, count: Any, least: int) -> cp_model.IntVar:
    """Return a literal that says whether a count, 0 or more, is `least` or more."""
    reached = model.new_bool_var("")
    model.add(count >= least).only_enforce_if(reached)
    model.add(count == 0 if least == 1 else count < least).only_enforce_if(~reached)
    return reached


def both(model: cp_model.CpModel, one: Any, other: Any) -> cp_model.IntVar:
    """Return a literal that says whether two literals hold."""
    found = model.new_bool_var("")
    model.add_bool_or(found, ~one, ~other)
    model.add_implication(found, one)
    model.add_implication(found, other)
    return found


class AssignmentModel:
    """Variables and constraints of a plan; job j, node n, number of workers k, GPU g.

    Attributes:
        w, p: w[j][n], p[j][n]: workers and servers of j on n, for the nodes that may have any.
        busy: busy[j][n]: j has workers on n. here[j][n]: j has tasks on n.
        size: size[j][k]: j runs with k workers; none of them if it is left out.
        card: card[j][n][g]: tasks of j, which need a share of a GPU, on GPU g of n.
        moved: of jobs that run and may move.
        whole: whole[n]: GPUs of n that are taken as a whole. used: used[n][g]: GPU g of n has tasks that need a share.
    """

    def __init__(self, batch: PreparedBatch) -> None:
        self.batch, self.model = batch, cp_model.CpModel()
        jobs = range(len(batch.jobs))
        self.size = [{k: self.model.new_bool_var("") for k in job.workers} for job in batch.jobs]
        of_jobs: list[list[dict[int, Any]]] = [[{} for _ in jobs] for _ in range(5)]
        self.w, self.p, self.busy, self.here, self.card = of_jobs
        self.moved: dict[int, Any] = {}
        self.whole: dict[int, Any] = {}
        self.used: dict[int, list[Any]] = {}
        for j in jobs:
            self._tasks(j)
            self._gang(j)
        self._standing()
        self._gpus()
        self._amounts()
        self._company()

    def _tasks(self, j: int) -> None:
        batch, model, job = self.batch, self.model, self.batch.jobs[j]
        for n in range(batch.n_nodes):
            room, allowed = int(batch.room[j, batch.kind[n]]), bool(batch.allowed[j, batch.kind[n]])
            if room:
                self.w[j][n] = model.new_int_var(0, room, "")
                self.busy[j][n] = at_least(model, self.w[j][n], 1)
            if job.servers and allowed:
                self.p[j][n] = model.new_int_var(0, job.servers, "")
                self.here[j][n] = at_least(model, self.w[j].get(n, 0) + self.p[j][n], 1)
            elif room:
                self.here[j][n] = self.busy[j][n]

    def _gang(self, j: int) -> None:
        """(G) All tasks of a number of workers that it may have, or, if the job may be left out, none."""
        job, model = self.batch.jobs[j], self.model
        sizes = self.size[j]
        model.add(sum(self.w[j].values()) == sum(k * x for k, x in sizes.items()))
        if job.value is None:
            model.add_exactly_one(sizes.values())
        else:
            model.add_at_most_one(sizes.values())
        if job.servers:
            model.add(sum(self.p[j].values()) == job.servers * sum(sizes.values()))

    def _standing(self) -> None:
        for j, rows in self.batch.pinned.items():
            self._stays(j, rows, [])
        for j, (rows, _) in self.batch.standing.items():
            self.moved[j] = self.model.new_bool_var("")
            self._stays(j, rows, [~self.moved[j]])

    def _stays(self, j: int, rows: Rows, unless: list[Any]) -> None:
        for task, counts in enumerate((self.w[j], self.p[j])):
            for n, x in counts.items():
                self.model.add(x == rows.get(n, (0, 0))[task]).only_enforce_if(*unless)
            if any(row[task] and n not in counts for n, row in rows.items()):
                self.model.add_bool_or([~x for x in unless] or [False])  # it may not even be there

    def _gpus(self) -> None:
        """(U) Whole GPUs of a node are exclusive; shares of one add up to at most 1."""
        batch, model = self.batch, self.model
        gpus = batch.problem.fleet.gpus.tolist()
        for n in range(batch.n_nodes):
            whole: Any = 0
            cards: list[list[tuple[float, Any]]] = [[] for _ in range(gpus[n])]
            for j in range(len(batch.jobs)):
                if n not in self.w[j] or not batch.each[j]:
                    continue
                if batch.share[j] == 1:
                    whole += int(batch.each[j]) * self.w[j][n]
                    continue
                most = int((1 + 1e-9) / batch.share[j])
                self.card[j][n] = [model.new_int_var(0, most, "") for _ in range(gpus[n])]
                model.add(sum(self.card[j][n]) == self.w[j][n])
                for g, x in enumerate(self.card[j][n]):
                    cards[g].append((float(batch.share[j]), x))
            self.whole[n], self.used[n] = whole, []
            if not any(cards):
                model.add(whole <= gpus[n])
                continue
            used = self.used[n] = [model.new_bool_var("") for _ in cards]
            for share, (g, held) in zip(used, enumerate(cards), strict=True):
                load = sum(int(s * FINE) * x for s, x in held)
                model.add(load <= FINE).only_enforce_if(share)
                model.add(sum(x for _, x in held) == 0).only_enforce_if(~share)
                if g:
                    model.add_implication(share, used[g - 1])
            model.add(whole + sum(used) <= gpus[n])

    def _amounts(self) -> None:
        """(C) Cores, bytes and NIC of each node."""
        for n in range(self.batch.n_nodes):
            for has, terms in self.loads(n):
                if terms:
                    sizes, room = self.units(has, [need for need, _ in terms])
                    self.model.add(sum(size * x for size, (_, x) in zip(sizes, terms, strict=True)) <= room)

    def units(self, has: float, needs: list[float]) -> tuple[list[int], int]:
        """Return needs and what there is in whole units, so that all that the verifier accepts is accepted."""
        size, room = in_units(np.array(needs), most(has, sum(map(max, self.size))))
        return size.tolist(), room

    def loads(self, n: int) -> list[tuple[float, list[tuple[float, Any]]]]:
        """Return of the cores, the memory and the NIC of node n: how much there is, and (need, tasks) for each job."""
        batch, found = self.batch, []
        for has, worker, server in zip(batch.amounts, batch.worker, batch.server, strict=True):
            terms = [(float(worker[j]), x[n]) for j, x in enumerate(self.w) if n in x and worker[j]]
            terms += [(float(server[j]), x[n]) for j, x in enumerate(self.p) if n in x and server[j]]
            found.append((float(has[n]), terms))
        return found

    def _company(self) -> None:
        """Add (A): jobs that keep apart, and jobs that want their nodes to themselves."""
        batch, model = self.batch, self.model
        for j, job in enumerate(batch.jobs):
            others = set(range(len(batch.jobs))) - {j} if job.whole_nodes else batch.apart[j]
            for n, x in self.here[j].items():
                for i in others:
                    if n in self.here[i] and (i > j or job.whole_nodes):
                        model.add_bool_or(~x, ~self.here[i][n])

    def rows(self, value: Any) -> list[Rows]:
        """Return the rows of each job, given the value of every variable."""
        found: list[Rows] = []
        for w, p in zip(self.w, self.p, strict=True):
            nodes = {*w, *p}
            tasks = {n: (value(w[n]) if n in w else 0, value(p[n]) if n in p else 0) for n in sorted(nodes)}
            found.append({n: row for n, row in tasks.items() if any(row)})
        return found

    def packing(self, value: Any, n: int) -> list[dict[int, int]]:
        """Return what each GPU of node n that is shared holds, job -> tasks."""
        held: list[dict[int, int]] = [{} for _ in range(int(self.batch.problem.fleet.gpus[n]))]
        for j, nodes in enumerate(self.card):
            for g, x in enumerate(nodes.get(n, [])):
                if value(x):
                    held[g][j] = value(x)
        return held
