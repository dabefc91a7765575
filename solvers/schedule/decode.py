"""Schedules of lists: each job in the order of a list as early as it fits, at the option that is wished for or best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run, never
from . import prepare
from .prepare import CHEAPEST, LEFT_OUT, PreparedJobs
from .profile import Data, Room, Schedule, new, serial

_STEPS = 1_000_000
"""Jobs times jobs times nodes between two looks at the clock."""


def data_of(p: PreparedJobs) -> Data:
    """Return what compiled code reads: the fields of the same names."""
    return Data(*(getattr(p, name) for name in Data._fields))


def room_of(p: PreparedJobs) -> Room:
    """Return what schedules are built in."""
    return new(p.nodes, p.per, p.n, p.total + 1)


def rows_of(p: PreparedJobs) -> prepare.Ints:
    """Return room for the rows of any schedule, int64 (3, r)."""
    return np.zeros((3, int(-p.least(-p.gpus // p.per).sum()) if p.kind else 0), dtype=np.int64)


class Decoder:
    """Builds schedules of lists of one problem, one after the other in the same arrays: the next overwrites `made`."""

    def __init__(self, p: PreparedJobs) -> None:
        self.p, self._data, self._room = p, data_of(p), room_of(p)
        self.made = Schedule(np.zeros(p.n), np.zeros(p.n, dtype=np.int64), np.zeros(len(p.gpus)), rows_of(p))
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
        given = np.asarray(order, np.int64), self._cheapest if wish is None else np.asarray(wish, np.int64)
        costs = self._none if penalty is None else penalty
        for begin in range(0, p.n, few):
            self.placed = min(begin + few, p.n)
            so_far = serial(*given, costs, self._data, self._room, self.made, begin, self.placed, so_far)
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
