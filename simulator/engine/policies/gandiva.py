"""Packing jobs on the same GPUs, as Gandiva."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray, require_number

from ..rows import Long, Rows
from ..view import View

_SLACK = 1e-9


class Gandiva:
    """Give jobs GPUs of their own while there are some, then pack two on the same GPUs, and part those that do badly.

    After Xiao et al., "Gandiva: introspective cluster scheduling for deep learning" (OSDI 2018). A pair has the
    same number of GPUs; it is made if their rates beside each other are expected to add up to at least `gain`, and
    parted for good when the rates they have add up to less, or when nobody waits and there are free GPUs for one of
    them. Without a cost model a pair takes turns, at half its rate each.

    Args:
        gain: of the rates of a pair, 1 is what they do one after the other.
        interval: seconds between looks at the pairs.
    """

    preemptive = True
    shared = True
    steady = True

    def __init__(self, gain: float = 1.0, interval: float = 600.0) -> None:
        require_number(gain, "gain", positive=True)
        require_number(interval, "interval", positive=True)
        self.gain, self.interval = gain, interval
        self._view: View | None = None
        self._parted: set[frozenset[int]] = set()

    def select(self, view: View, jobs: Long) -> FloatArray:
        """Order by submit time."""
        return view.workload.submit[jobs]

    def place(self, job: int, degree: int, view: View) -> Rows | None:
        """Take free GPUs, else those of the best partner."""
        rows = view.find(job, degree)
        if rows is not None:
            return rows
        mates = view.running[view.degree[view.running] == degree]
        total = self._expected(view, job, mates)
        for i in np.lexsort((view.rank[mates], -total)).tolist():
            if total[i] < self.gain:
                return None
            mate = int(mates[i])
            rows = view.rows(mate)
            if self._alone(view, rows) and view.suits(job, rows) and frozenset((job, mate)) not in self._parted:
                return rows
        return None

    def preempt(self, view: View) -> Long:
        """Stop the later submitted of each pair that is to part."""
        if view is not self._view:
            self._view, self._parted = view, set()
        stop: list[int] = []
        free, waits = int(view.free.sum()), len(view.waiting) > 0
        for pair in sorted(view.together, key=lambda jobs: min(view.rank[list(jobs)])):
            job = max(pair, key=lambda j: int(view.rank[j]))
            if sum(float(view.rate[j]) for j in pair) < self.gain * (1 - _SLACK):
                self._parted.add(frozenset(pair))
                stop.append(job)
            elif not waits and int(view.degree[job]) <= free:
                stop.append(job)
                free -= int(view.degree[job])
        return np.array(stop, dtype=np.int64)

    def wake(self, view: View) -> float:
        """Look at the pairs every so often, while there are any."""
        return view.now + self.interval if view.together else np.inf

    def _expected(self, view: View, job: int, mates: Long) -> FloatArray:
        """Return what the rates of the job and of each mate would add up to."""
        if view.speeds is None:
            return np.ones(len(mates))
        index = {name: k for k, name in enumerate(view.speeds.models)}
        mine = index[view.workload.model[job]]
        other = np.array([index[view.workload.model[j]] for j in mates.tolist()], dtype=np.int64)
        gpu = view.speeds.gpu
        return np.asarray(1 / (1 + gpu[mine, other]) + 1 / (1 + gpu[other, mine]))

    def _alone(self, view: View, rows: Rows) -> bool:
        pairs = zip(rows.node.tolist(), rows.gpu.tolist(), strict=True)
        return all(len(view.holders(node, gpu)) == 1 for node, gpu in pairs)
