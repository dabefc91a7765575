"""Conservative backfilling: every waiting job has a reservation, and nobody that comes later may break it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray, offsets, ranges

from ..fit import Nodes
from .jobs import Long, Rows
from .kernels import FreeProfile
from .state import ClusterState


class Reservations:
    """When and where each waiting job is to start (Feitelson and Weil, IPPS 1998).

    Reservations are made in the order of the queue, at the earliest time at which the job fits, and stand: until the
    job starts, one that goes before it arrives, nodes fail or come up, or rates change. When a job ends before it
    was expected to, all are made anew.
    """

    def __init__(self, state: ClusterState) -> None:
        self.s = state
        self._jobs: Long = np.zeros(0, dtype=np.int64)
        self._start: FloatArray = np.zeros(0)
        self._count, self._node, self._gpus = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self._seen = -1
        # whether it matters which nodes a job gets; otherwise any GPUs are as good as on one node
        self._named = state.consolidate or len(state.ok) > 1

    @property
    def due(self) -> float:
        """When the next job is to start that is not late already, infinite if none is."""
        return float(self._start[self._start > self.s.now].min(initial=np.inf))

    def decide(self, start: Callable[[], None]) -> None:
        """Make reservations for those that have none, and start the jobs that are due.

        Args:
            start: starts the first of the queue as long as they fit.
        """
        s = self.s
        if s.rates is not None or s.changes != self._seen:
            self._keep(np.zeros(len(self._jobs), dtype=bool))
            self._seen = s.changes
        jobs = s.queue.jobs
        if not self._named and s.unit[jobs, 1:].any():
            self._name()
        n = min(len(jobs), len(self._jobs))
        same = jobs[:n] == self._jobs[:n]
        first = n if same.all() else int(np.argmin(same))
        self._keep(np.arange(len(self._jobs)) < first)
        if not first:
            start()
            s.settle()  # so that their ends are known
        if first < s.queue.size:
            self._reserve(s.queue.jobs[first:].copy())
        self._start_due()

    def _name(self) -> None:
        """Reserve nodes from now on, as a job has come that names cores or memory; nobody who waits starts later."""
        self._named = True
        jobs = self._jobs
        order = np.argsort(self._start, kind="stable")
        self._keep(np.zeros(len(jobs), dtype=bool))
        self._reserve(jobs[order])
        rank = np.argsort(order)
        first = offsets(self._count)
        at = ranges(first[rank], first[rank + 1])
        self._jobs, self._start, self._count = jobs, self._start[rank], self._count[rank]
        self._node, self._gpus = self._node[at], self._gpus[at]

    def _start_due(self) -> None:
        s = self.s
        started = np.zeros(len(self._jobs), dtype=bool)
        last = np.cumsum(self._count)
        for at in np.flatnonzero(self._start <= s.now).tolist():
            job = int(self._jobs[at])
            degree, part = int(s.degree[job]), slice(last[at] - self._count[at], last[at])
            mine = Rows(self._node[part], self._gpus[part], np.full(self._count[at], -1))
            rows = mine if self._named else s.find(job, degree)
            if rows is None or not s.has_room(job, rows):
                break  # a job of no time is still there; whoever is due after this one must not take its place
            s.start(job, degree, rows)
            started[at] = True
        for at in np.flatnonzero(started)[::-1].tolist():
            s.queue.remove(at)
        self._keep(~started)

    def _keep(self, which: BoolArray) -> None:
        if not which.all():
            rows = np.repeat(which, self._count)
            self._jobs, self._start, self._count = self._jobs[which], self._start[which], self._count[which]
            self._node, self._gpus = self._node[rows], self._gpus[rows]

    def _reserve(self, jobs: Long) -> None:
        s, running = self.s, self.s.running.jobs
        begin = np.concatenate([np.full(len(running), -np.inf), self._start])
        end = np.concatenate([s.expected[running], self._start + s.span[self._jobs]])
        count, node, gpus, cluster = self._nodes(running) if self._named else self._one_node(running)
        holder = np.concatenate([running, self._jobs])
        calendar = FreeProfile(cluster, s.now, len(jobs), holder, begin, end, offsets(count), node, gpus)
        start, row, nodes, counts = calendar.reserve(jobs)
        self._jobs, self._start = np.concatenate([self._jobs, jobs]), np.concatenate([self._start, start])
        self._count = np.concatenate([self._count, np.diff(row)])
        self._node, self._gpus = np.concatenate([self._node, nodes]), np.concatenate([self._gpus, counts])

    def _nodes(self, running: Long) -> tuple[Long, Long, Long, Nodes]:
        """Return the rows of what runs and of what is promised, how many each has, and the cluster."""
        s, first, count = self.s, self.s.log.first[running], self.s.log.count[running]
        at = ranges(first, first + count)
        return (
            np.concatenate([count, self._count]),
            np.concatenate([s.log.node[at], self._node]),
            np.concatenate([s.log.gpus[at], self._gpus]),
            s.nodes,
        )

    def _one_node(self, running: Long) -> tuple[Long, Long, Long, Nodes]:
        s = self.s
        count = np.concatenate([np.ones(len(running), dtype=np.int64), self._count])
        free, whole = (x[s.up].sum(axis=0, keepdims=True) for x in (s.free, s.whole))
        cluster = Nodes(s.degree, s.unit, s.kind, s.span, free, whole, np.ones((1, 1), dtype=bool), False)
        gpus = np.concatenate([s.degree[running], self._gpus])
        return count, np.zeros(len(gpus), dtype=np.int64), gpus, cluster
