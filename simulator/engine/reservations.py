"""Conservative backfilling: every waiting job has a reservation, and nobody that comes later may break it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from .profile import reserve_in_turn
from .rows import Long, Rows
from .state import State


class Reservations:
    """When and where each waiting job is to start (Feitelson and Weil, IPPS 1998).

    Reservations are made in the order of the queue, at the earliest time at which the job fits, and stand: until the
    job starts, one that goes before it arrives, nodes fail or come up, or rates change.

    Attributes:
        due: when the next job is to start, infinite if none is.
    """

    def __init__(self, state: State) -> None:
        self.s = state
        self._jobs: Long = np.zeros(0, dtype=np.int64)
        self._start: FloatArray = np.zeros(0)
        self._rows: list[Rows] = []
        self._seen = -1

    @property
    def due(self) -> float:
        """When the next job is to start that is not late already."""
        late = self._start <= self.s.now
        return float(self._start[~late].min()) if not late.all() else np.inf

    def decide(self) -> None:
        """Make reservations for those that have none, and start the jobs that are due."""
        s = self.s
        if s.rates is not None or s.changes != self._seen:
            self._keep(np.zeros(len(self._jobs), dtype=bool))
            self._seen = s.changes
        jobs = s.queue.jobs
        n = min(len(jobs), len(self._jobs))
        same = jobs[:n] == self._jobs[:n]
        first = n if same.all() else int(np.argmin(same))
        self._keep(np.arange(len(self._jobs)) < first)
        if first < len(jobs):
            self._reserve(jobs[first:].copy())
        started = np.zeros(len(self._jobs), dtype=bool)
        for at in np.flatnonzero(self._start <= s.now).tolist():
            job = int(self._jobs[at])
            degree = int(s.degree[job])
            rows = self._rows[at] if self._named else s.find(job, degree)
            if rows is None or not s.has_room(job, rows):
                break  # a job of no time is still there; whoever is due after this one must not take its place
            s.start(job, degree, rows)
            started[at] = True
        for at in np.flatnonzero(started)[::-1].tolist():
            s.queue.remove(at)
        self._keep(~started)

    @property
    def _named(self) -> bool:
        """Whether it matters which nodes a job gets; otherwise any GPUs are as good as on one node."""
        return self.s.consolidate or self.s.free.shape[1] > 1 or len(self.s.ok) > 1

    def _keep(self, which: Any) -> None:
        if not which.all():
            self._jobs, self._start = self._jobs[which], self._start[which]
            self._rows = [rows for rows, kept in zip(self._rows, which.tolist(), strict=True) if kept]

    def _reserve(self, jobs: Long) -> None:
        s = self.s
        running = s.running.jobs
        holder = np.concatenate([running, self._jobs])
        begin = np.concatenate([np.full(len(running), -np.inf), self._start])
        end = np.concatenate([s.end[running], self._start + s.span[self._jobs]])
        if self._named:
            held = [*(s.log.rows(j) for j in running.tolist()), *self._rows]
            ground = (s.free, s.whole, s.ok, s.consolidate)
        else:
            held = [Rows.whole([(0, int(s.degree[j]))]) for j in holder.tolist()]
            free, whole = (x[s.up].sum(axis=0, keepdims=True) for x in (s.free, s.whole))
            ground = (free, whole, np.ones((1, 1), dtype=bool), False)
        first = np.cumsum([0, *(len(rows.node) for rows in held)])
        empty = Rows.whole([])
        node, gpus = (np.concatenate([empty[i], *(rows[i] for rows in held)]) for i in (0, 1))
        common = (s.span, s.degree, s.unit, s.kind, *ground)
        start, row, nodes, counts = reserve_in_turn(jobs, s.now, *common, holder, begin, end, first, node, gpus)
        self._jobs, self._start = np.concatenate([self._jobs, jobs]), np.concatenate([self._start, start])
        for i in range(len(jobs)):
            part = slice(row[i], row[i + 1])
            self._rows.append(Rows(nodes[part].copy(), counts[part].copy(), np.full(row[i + 1] - row[i], -1)))
