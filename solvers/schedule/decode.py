"""Schedules of lists: each job in the order of a list as early as it fits, at the option that is wished for or best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run, never
from . import prepare
from .kernels import Data, Room, Schedule, serial
from .prepare import CHEAPEST, LEFT_OUT, PreparedJobs

_STEPS = 1_000_000
"""Jobs times jobs times nodes between two looks at the clock."""


class Made(NamedTuple):
    """A schedule as compiled code writes it, see `gangplan.solvers.schedule.kernels.Schedule`."""

    start: FloatArray
    option: prepare.Ints
    finish: FloatArray
    rows: prepare.Ints


def made_of(p: PreparedJobs) -> Made:
    """Return room for any schedule."""
    rows = np.zeros((3, int(-p.least(-p.gpus // p.per).sum()) if p.kind else 0), dtype=np.int64)
    return Made(np.zeros(p.n), np.zeros(p.n, dtype=np.int64), np.zeros(len(p.gpus)), rows)


class Decoder:
    """Builds schedules of lists of one problem, one after the other in the same arrays: the next overwrites `made`."""

    def __init__(self, p: PreparedJobs) -> None:
        self.p, self.made, data = p, made_of(p), Data(p)
        self._given = data, Room(p), Schedule(data, *self.made)
        self._cheapest, self._none = np.full(p.n, CHEAPEST), np.zeros(len(p.gpus))
        self.used = self.placed = 0

    def decode(self, order: Any, wish: Any = None, penalty: Any = None, stopped: Callable[[], bool] = never) -> float:
        """Return the goal of a list, see `serial`; inf if a job that must run has no time, or once `stopped` says so.

        Args:
            order: jobs, (n,).
            wish: of each job, (n,); by default whatever costs least.
            penalty: of each option, (o,); by default none.
        """
        cost = np.inf
        for cost in self.parts(order, wish, penalty, max(1, _STEPS // (self.p.n * self.p.nodes))):
            if cost == np.inf or (self.placed < self.p.n and stopped()):
                return np.inf
        return cost

    def parts(self, order: Any, wish: Any = None, penalty: Any = None, few: int = 1) -> Iterator[float]:
        """Place the jobs of a list, `few` at a time; yield the goal of those `placed`, see `decode`."""
        p, so_far = self.p, (0.0, 0.0, 0)
        wishes = self._cheapest if wish is None else np.asarray(wish, np.int64)
        lists = np.asarray(order, np.int64), wishes, self._none if penalty is None else penalty
        for begin in range(0, p.n, few):
            self.placed = min(begin + few, p.n)
            so_far = serial(*self._given, *lists, begin, self.placed, *so_far)
            cost, last, self.used = so_far
            yield p.constant + float(cost + last if p.makespan else cost)

    def plan(self) -> Any:
        """Return the plan of the schedule built last."""
        return self.p.plan(self.made.option, self.made.start, self.made.rows[:, : self.used])

    def offer(self, run: Run, by: str, order: Any, wish: Any = None, penalty: Any = None) -> float:
        """Offer the schedule of a list if it is the best and the run has not stopped, and return its goal."""
        goal = np.inf if run.stopped else self.decode(order, wish, penalty, lambda: run.stopped)
        if goal < (np.inf if run.objective is None else run.objective) and not run.stopped:
            run.offer(self.plan(), by)
        return goal


def list_of(p: PreparedJobs, degree: prepare.Ints, start: FloatArray) -> tuple[prepare.Ints, prepare.Ints]:
    """Return the list of a plan: (order by start, those left out at the end; wishes)."""
    wish = np.full(p.n, LEFT_OUT)
    for j in np.flatnonzero(degree >= 0).tolist():
        wish[j] = next((o for o in p.options(j) if p.menu[o] == degree[j]), CHEAPEST)
    return np.lexsort((np.arange(p.n), start, degree < 0)), wish
