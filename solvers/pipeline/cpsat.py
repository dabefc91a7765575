"""CP-SAT: a start a pass; micro-batches come in the order of their numbers, and memory is a cumulative resource."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import verify
from gangplan.instances.certificates.windows import memory_arcs
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.verify import TOLERANCE

from ..cpsat_solver import cpsat_solver, minimise
from ..plain import PARTS
from ..run import Run
from .plain import ticks_of

_ROUND = 1e-9
"""What of a tick is a rounding error of floats."""


def cpsat(run: Run, prepared: object = None) -> None:
    """Minimise the seconds of a step, from the best plan known."""
    with run.phase("cpsat model"):
        every = run.problem.passes()
        model = _PassModel(run.problem, run.objective or float(every.seconds.sum() + every.lag.sum()))
        if run.plan is not None:
            model.hint(run.problem, run.plan)
    if not run.stopped:
        minimise(run, cpsat_solver(run), model.cp, model.ticks / (1 - _ROUND), model.plan)


class _PassModel:
    """The model; a variable is the start of a pass, in ticks."""

    def __init__(self, problem: PipelineProblem, worst: float) -> None:
        """Build it for steps of at most `worst` seconds."""
        self.problem, self.cp, found = problem, cp_model.CpModel(), problem.passes()
        self.ticks = ticks_of(np.concatenate([found.seconds, found.lag]), worst)
        down = self._down
        self.takes, self.lag = ([down(x) for x in column.tolist()] for column in (found.seconds, found.lag))
        # Without a barrier all devices start while the first one is at work. With one half of that would do, and the
        # search would take ten times as long: 7 s instead of 0.6 s of 8 devices, 32 micro-batches, memory for 5.
        self.horizon = 2 * (down(worst) + 1)
        self.start = [self.cp.new_int_var(0, self.horizon, f"s{x}") for x in range(problem.n_passes)]
        self.step = self.cp.new_int_var(0, self.horizon, "step")
        self.before = found.before.tolist()
        self.own = [np.flatnonzero(found.device == d).tolist() for d in range(problem.devices)]
        self.order()
        self.devices()
        self.memory()
        self.goal()

    def _down(self, seconds: float) -> int:
        return floor(seconds * self.ticks + _ROUND)

    def _after(self, x: int, u: int, lag: int = 0) -> None:
        self.cp.add(self.start[x] >= self.start[u] + self.takes[u] + lag)

    def order(self) -> None:
        """Wait for what comes before; of alike micro-batches the earlier one goes first in each stage and kind."""
        for x, u in enumerate(self.before):
            if u >= 0:
                self._after(x, u, self.lag[x])
            if x % self.problem.micro_batches:
                self._after(x, x - 1)

    def devices(self) -> None:
        """Run one pass at a time on each device."""
        for own in self.own:
            self.cp.add_no_overlap(
                self.cp.new_fixed_size_interval_var(self.start[x], self.takes[x], f"i{x}") for x in own
            )

    def memory(self) -> None:
        """Hold activations from F to B, and what is kept of them to W; where stages are alone, that is an order."""
        problem = self.problem
        for u, x in memory_arcs(problem):
            self._after(x, u)
        for d, room in enumerate((problem.capacity * (1 + TOLERANCE)).tolist()):
            mine = np.flatnonzero(problem.device == d).tolist()
            spans = [(1, problem.activation - problem.kept * problem.split), (2, problem.kept * problem.split)]
            if len(mine) == 1 and not all(held[mine[0]] > 0 for _, held in spans):
                continue  # of one amount the order says it all
            intervals, demands = [], []
            for kind, held in spans:
                for s in mine:
                    for j in range(problem.micro_batches if held[s] > 0 else 0):
                        x, u = problem.number(0, s, j), problem.number(kind, s, j)
                        size = self.cp.new_int_var(0, self.horizon, f"l{u}")
                        end = self.start[u] + self.takes[u]
                        intervals.append(self.cp.new_interval_var(self.start[x], size, end, f"h{u}"))
                        demands.append(floor(held[s] / room * PARTS) if room else 2 * PARTS)
            if intervals:
                self.cp.add_cumulative(intervals, demands, PARTS)

    def goal(self) -> None:
        """Step from the first start of all, or of each device, to the last end."""
        m = self.problem.micro_batches
        for own in self.own:
            for x in own:
                if x % m == m - 1:
                    first = 0 if self.problem.barrier else self.start[min(own)]
                    self.cp.add(self.step >= self.start[x] + self.takes[x] - first)
            for x in own[1:] if not self.problem.barrier else ():
                if x % m == 0:
                    self._after(x, min(own))
        self.cp.add(self.start[0] == 0)
        self.cp.minimize(self.step)

    def hint(self, problem: PipelineProblem, plan: PipelinePlan) -> None:
        """Start from a plan, with its micro-batches in the order of their numbers."""
        verdict = verify(problem, plan)
        m = problem.micro_batches
        start = np.sort(verdict.start.reshape(-1, m), axis=1).ravel().tolist()
        for x, at in zip(self.start, start, strict=True):
            self.cp.add_hint(x, self._down(at))
        self.cp.add_hint(self.step, self._down(verdict.objective or 0.0))

    def plan(self, value: Callable[[Any], int]) -> PipelinePlan | None:
        """Return the orders of a solution; nothing if its memory fits only within the rounding of the model."""
        start = [value(x) for x in self.start]
        ends = [(a, a + takes, x) for x, (a, takes) in enumerate(zip(start, self.takes, strict=True))]
        plan = self.problem.plan([sorted(own, key=ends.__getitem__) for own in self.own])
        return plan if verify(self.problem, plan).ok else None
