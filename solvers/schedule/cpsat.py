"""CP-SAT: a start and an interval an option; GPUs are a cumulative resource, of nodes one each, of RAMP servers one
each.

Every variable that can be is there for one reason only: which option of a job runs, and where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import SchedulePlan

from ..cpsat_solver import cpsat_solver, minimise
from ..run import OPTIMAL_GAP, Run, never, watched
from .grain import Scale
from .kernels import Room, settle
from .prepare import NODES, POOL, RAMP, Ints, PreparedJobs


def cpsat(run: Run, p: PreparedJobs) -> None:
    """Minimise the goal; with a plan known, start from it."""
    with run.phase("cpsat model"):
        model = OptionModel(p, np.inf if run.objective is None else run.objective, lambda: run.stopped)
        model.hint(run)
    if run.stopped:
        return
    scale = model.scale
    minimise(run, cpsat_solver(run), model.cp, 1.0 / scale.unit, model.plan, scale.constant)
    if run.stop_reason is None and run.objective is not None and scale.error > OPTIMAL_GAP * abs(run.objective):
        run.note(f"cpsat: whole numbers of 64 bits may cost its bound {scale.error:.2g}")


class OptionModel:
    """x[o]: option o runs; s[o]: when, in ticks; out[j]: job j is left out, `None` if it must run; see `Scale`."""

    def __init__(self, p: PreparedJobs, most: float = np.inf, stopped: Callable[[], bool] = never) -> None:
        """Build the model for schedules of at most `most`; raise `TimeoutError` if `stopped` says so."""
        self.p, self._stopped = p, stopped
        self.scale = Scale(p, most)
        self.cp = cp_model.CpModel()
        down, self.horizon = self.scale.down, self.scale.horizon
        self.x = [self.cp.new_bool_var(f"x{o}") for o in range(len(p.gpus))]
        self.s: list[Any] = []
        self.runs = [down(q) for q in p.seconds.tolist()]
        for o, q in enumerate(self.runs):
            j = int(p.owner[o])
            due = self.horizon if not np.isfinite(p.due[o]) else min(self.horizon, down(float(p.due[o])))
            begin = down(float(p.release[j]))
            self.s.append(self.cp.new_int_var(begin, max(begin, due - q), f"s{o}"))
        self.where: list[list[tuple[Any, list[tuple[int, int]]]]] = [[] for _ in self.x]
        self.goal()
        if p.kind == RAMP:
            self.blocks()
        elif p.kind == NODES:
            self.nodes()
        self.pool()

    def goal(self) -> None:
        """Let each job run with one option or be left out, and add up prices and slopes times seconds since release."""
        p, cp, scale = self.p, self.cp, self.scale
        terms: list[Any] = []
        last = cp.new_int_var(0, self.horizon, "last") if p.makespan else None
        self.out: list[Any] = []
        for j in watched(range(p.n), self._stopped, 1):
            mine = list(p.options(j))
            literals = [self.x[o] for o in mine]
            out = None
            if np.isfinite(p.price[j]):
                out = cp.new_bool_var(f"out{j}")
                terms.append(scale.price[j] * out)
            self.out.append(out)
            cp.add_exactly_one([*literals, *([] if out is None else [out])])
            slope = 0 if p.makespan else scale.slope[j]
            if not mine or (not slope and last is None):
                continue
            since = 0 if p.makespan else scale.up(float(p.release[j]))
            end = cp.new_int_var(0, self.horizon, f"end{j}")
            for o in mine:
                done = self.s[o] + self.runs[o] - since
                # rounded, a run of a moment may seem to end before its release
                cp.add(end >= done if not scale.whole else end == done).only_enforce_if(self.x[o])
            if out is not None:
                cp.add(end == 0).only_enforce_if(out)
            if last is not None:
                cp.add(last >= end)
            terms.append(slope * end)
        if last is not None:
            terms.append(scale.slope[0] * last)
        self.total = sum(terms)
        cp.minimize(self.total)

    def pool(self) -> None:
        """All that runs holds at most all GPUs: on nodes and blocks too, where it is redundant."""
        intervals = [
            self.cp.new_optional_fixed_size_interval_var(self.s[o], q, self.x[o], f"run{o}")
            for o, q in enumerate(self.runs)
        ]
        held = [g if q else 0 for g, q in zip(self.p.gpus.tolist(), self.runs, strict=True)]
        self.cp.add_cumulative(intervals, held, self.p.total)

    def nodes(self) -> None:
        """Have a job be on one node, or fill as many as it can and have the rest on one more."""
        p, cp, per = self.p, self.cp, self.p.per
        on: list[list[Any]] = [[] for _ in range(p.nodes)]
        demand: list[list[int]] = [[] for _ in range(p.nodes)]
        for o, q in watched(enumerate(self.runs), self._stopped, 1):
            full, rest = divmod(int(p.gpus[o]), per)
            before: list[Any] = []
            for count, amount in ((full, per), (int(rest > 0), rest)):
                if not count:
                    continue
                here = [cp.new_bool_var(f"at{o}_{v}_{amount}") for v in range(p.nodes)]
                cp.add(sum(here) == count * self.x[o])
                for one, other in zip(before, here, strict=False):
                    cp.add_at_most_one([one, other])  # capacity does not keep jobs of 0 s apart
                before = here
                self.where[o] += [(literal, [(v, amount)]) for v, literal in enumerate(here)]
                for v, literal in enumerate(here):
                    on[v].append(cp.new_optional_fixed_size_interval_var(self.s[o], q, literal, f"run{o}_{v}_{amount}"))
                    demand[v].append(amount if q else 0)
        for intervals, amounts in zip(on, demand, strict=True):
            cp.add_cumulative(intervals, amounts, per)

    def blocks(self) -> None:
        """Have a job hold the servers of one block, each for itself."""
        p, cp = self.p, self.cp
        on: list[list[Any]] = [[] for _ in range(p.nodes)]
        for o, q in watched(enumerate(self.runs), self._stopped, 1):
            fits = np.flatnonzero(p.size == p.gpus[o])
            here = [cp.new_bool_var(f"at{o}_{b}") for b in fits]
            cp.add(sum(here) == self.x[o])
            by_server: list[list[Any]] = [[] for _ in range(p.nodes)]
            for b, literal in zip(fits.tolist(), here, strict=True):
                servers = p.server[p.block_first[b] : p.block_first[b + 1]].tolist()
                self.where[o].append((literal, [(server, 1) for server in servers]))
                for server in servers:
                    by_server[server].append(literal)
            for server, literals in enumerate(by_server):
                if literals and q:
                    # blocks exclude each other, so their sum is 0 or 1
                    used = cp.new_bool_var(f"on{o}_{server}")
                    cp.add(sum(literals) == used)
                    on[server].append(cp.new_optional_fixed_size_interval_var(self.s[o], q, used, f"run{o}_{server}"))
        for intervals in on:
            cp.add_no_overlap(intervals)

    def hint(self, run: Run) -> None:
        """Start from the best plan known."""
        if run.plan is None:
            return
        p = self.p
        for j in range(p.n):
            for o in p.options(j):
                chosen = int(p.menu[o]) == int(run.plan.degree[j])
                self.cp.add_hint(self.x[o], chosen)
                if chosen:
                    self.cp.add_hint(self.s[o], self.scale.down(float(run.plan.start[j])))
            if self.out[j] is not None:
                self.cp.add_hint(self.out[j], int(run.plan.degree[j]) < 0)

    def plan(self, value: Any) -> SchedulePlan | None:
        """Return the plan of a solution: jobs in the order of their starts where they are, times as they are."""
        p = self.p
        chosen = np.full(p.n, -1)
        start = np.zeros(p.n)
        places: list[list[tuple[int, int]]] = [[] for _ in range(p.n)]
        for o, x in enumerate(self.x):
            if value(x):
                j = int(p.owner[o])
                chosen[j], start[j] = o, value(self.s[o])
                places[j] = [part for literal, parts in self.where[o] if value(literal) for part in parts]
        return seated(p, chosen, start, places)


def seated(
    p: PreparedJobs, option: Ints, start: FloatArray, places: list[list[tuple[int, int]]]
) -> SchedulePlan | None:
    """Start the jobs in the order of `start`, in any unit, on their places, each as early as it can.

    `option` is -1 for a job left out. Return the plan, `None` if a job is late in times as they are.
    """
    room = Room(p)
    begin = np.zeros(p.n)
    rows: list[tuple[int, int, int]] = []
    for j in np.lexsort((np.arange(p.n), start)).tolist():
        o = int(option[j])
        if o < 0:
            continue
        parts = places[j] if p.kind != POOL else [(0, int(p.gpus[o]))]
        given = np.array(parts, dtype=np.int64).reshape(-1, 2)
        begin[j] = settle(room, given, p.release[j], p.seconds[o], p.due[o])
        if begin[j] == np.inf:
            return None
        if p.kind != POOL:
            rows += [(j, v, amount) for v, amount in parts]
    return p.plan(np.asarray(option), begin, np.array(rows, dtype=np.int64).reshape(-1, 3).T)
