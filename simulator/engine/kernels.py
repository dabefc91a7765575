"""Compiled: where shares of GPUs fit, and when jobs that wait for one another can start (conservative backfilling)."""

from __future__ import annotations

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Sorting

from ..fit import Nodes

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Ints

Long = NDArray[np.int64]
SLACK = declare(Float, 1e-9)
NEVER = declare(Float, float("inf"))


@final
@cclass
class FreeShares:
    """What is left of each GPU, float64 (m, most GPUs of a node), which the caller changes; minus infinity beyond."""

    def __init__(self, left: FloatArray) -> None:
        m, self.most = left.shape
        self.left, self.size, self.order = left, (left > -np.inf).sum(axis=1), Sorting(self.most)
        self.room, self.holds = np.zeros((2, m), np.int64)

    def find(self, job: Int, need: Int, share: Float, nodes: Nodes) -> Long | None:
        """Return nodes and GPUs, int64 (2, need), where shares, each of a GPU of its own, fit; `None` if they do not.

        Consolidated: on the node with least left that fits, there on the GPUs with least left; a job larger than any
        node, for its cores and memory too, on nodes that hold as much of it as if they were empty. Otherwise on
        whatever has it, lowest index first.
        """
        if not 0 <= job < nodes.n or len(self.size) != nodes.m or need < 0:
            raise ValueError(f"{need} shares of job {job} of {nodes.n} are not for {nodes.m} of {len(self.size)} nodes")
        rows = np.empty((2, need), np.int64)
        node: Ints = rows[0]
        gpu: Ints = rows[1]
        with nogil:
            fits = self._find(job, need, share, nodes, node, gpu)
        return rows if fits else None

    def _find(  # noqa: PLR0912, read from top to bottom
        self, job: Int, need: Int, share: Float, nodes: Nodes, node: Ints, gpu: Ints
    ) -> bint:
        biggest: Int = 0
        k: Int = 0
        share -= SLACK
        for n in range(nodes.m):
            self.room[n], self.holds[n] = 0, 0
            if not nodes.ok[nodes.kind[job], n]:
                continue
            for g in range(self.most):
                self.room[n] += self.left[n, g] >= share
            self.holds[n] = self.size[n]
            if nodes.resources > 1:
                self.room[n] = min(self.room[n], nodes.able(job, n, self.most, False))
                self.holds[n] = min(self.holds[n], nodes.able(job, n, self.most, True))
            biggest = max(biggest, self.holds[n])
        if nodes.consolidate and need <= biggest:
            best: Int = -1
            least: Float = NEVER
            for n in range(nodes.m):
                if self.room[n] >= need:
                    total: Float = 0.0
                    for g in range(self.size[n]):
                        total += max(self.left[n, g], 0.0)
                    if total < least - SLACK:
                        best, least = n, total
            if best < 0:
                return False
            for g in range(self.size[best]):
                self.order.keys[g] = self.left[best, g]
            self.order.sort(self.size[best], True)
            for i in range(self.size[best]):
                g = self.order.order[i]
                if k < need and self.left[best, g] >= share:
                    node[k], gpu[k] = best, g
                    k += 1
            return True
        for n in range(nodes.m):
            here = min(need - k, self.room[n])
            if nodes.consolidate and self.room[n] < self.holds[n]:
                continue
            for g in range(self.size[n]):
                if here > 0 and self.left[n, g] >= share:
                    node[k], gpu[k] = n, g
                    k += 1
                    here -= 1
        return k == need


@final
@cclass
class FreeProfile:
    """What is free from each of some times on, given what jobs hold or have reserved.

    Args:
        now: seconds, the first time.
        more: how many jobs may be put in.
        holder: the job of each promise, int64 (h,).
        begin, end: seconds, float64 (h,); what a job holds begins at minus infinity.
        first: the rows of promise i are first[i] up to first[i + 1], int64 (h + 1,).
        node, gpus: of the rows, int64.
    """

    def __init__(
        self, nodes: Nodes, now: Float, more: Int, holder: Ints, begin: FloatArray, end: FloatArray, first: Ints,
        node: Ints, gpus: Ints,
    ) -> None:  # fmt: skip
        h: Int = len(holder)
        if not h == len(begin) == len(end) == len(first) - 1 or not first[h] == len(node) == len(gpus):
            raise ValueError(f"{len(begin)} promises do not have {len(node)} and {len(gpus)} rows")
        marks = np.unique(np.concatenate([[now], begin[begin > now], end[end > now]]))
        marks = marks[np.isfinite(marks)]
        moments = np.maximum(begin[(end <= begin) | (end <= now)], now)  # of jobs of no time: a step of their own
        time = np.repeat(marks, 1 + np.isin(marks, moments))
        self.steps, self.low = len(time), nodes.copy()
        self.time = np.append(time, np.zeros(more))
        self.least = np.asarray(self.low.free).reshape(-1)
        self.room = np.tile(self.least, (len(time) + more, 1))
        held = begin == -np.inf  # they hold their GPUs now, which are free from their end on
        since: Ints = np.searchsorted(time, np.where(held, end, np.maximum(begin, now)))
        until: Ints = np.where(held, len(time), np.maximum(np.searchsorted(time, end), np.asarray(since) + 1))
        sign: Ints = np.where(held, 1, -1)
        with nogil:
            for i in range(h):
                for step in range(since[i], min(until[i], self.steps)):
                    for row in range(first[i], first[i + 1]):
                        self.change(step, holder[i], node[row], sign[i] * gpus[row])

    def reserve(self, jobs: Ints) -> tuple[FloatArray, Long, Long, Long]:
        """Return when each job starts, float64, and its rows: where they begin, and their nodes and GPUs.

        Each gets the earliest time at which it fits to its end, those before it having theirs.
        """
        if self.steps + len(jobs) > len(self.time):
            raise ValueError(f"{len(jobs)} jobs are more than there is room for")
        start = np.full(len(jobs), np.inf)
        row = np.zeros(len(jobs) + 1, np.int64)
        node, gpus = [], []
        for i in range(len(jobs)):
            job = jobs[i]
            with nogil:
                rows = self._look(job)
                if rows:
                    self._keep(job, rows)
            row[i + 1] = row[i] + rows
            if rows:  # not while nodes are down
                start[i] = self.time[self.at]
                node.append(np.array(self.low.node[:rows]))
                gpus.append(np.array(self.low.gpus[:rows]))
        none = np.zeros(0, np.int64)
        return start, row, np.concatenate([none, *node]), np.concatenate([none, *gpus])

    def change(self, step: Int, job: Int, node: Int, gpus: Int) -> None:
        """Give back GPUs of a job from one time to the next, or take them if there are fewer than 0."""
        for r in range(self.low.resources):
            self.room[step, node * self.low.resources + r] += gpus * self.low.unit[job, r]

    def _look(self, job: Int) -> Int:
        """Find where a job fits from the time `at` to that before `past`; return how many nodes it takes, 0 if none."""
        rows: Int = 0
        self.at = 0
        while self.at < self.steps:
            end = self.time[self.at] + self.low.span[job]
            self.past = self.at + 1
            self.least[:] = self.room[self.at]
            while self.past < self.steps and self.time[self.past] < end:
                for x in range(len(self.least)):
                    self.least[x] = min(self.least[x], self.room[self.past, x])
                self.past += 1
            rows = self.low.find(job, self.low.degree[job])
            if rows:
                break
            self.at += 1
        return rows

    def _keep(self, job: Int, rows: Int) -> None:
        """Put a job in where it was found to fit."""
        end = self.time[self.at] + self.low.span[job]
        # a job of no time takes a step of no time: who comes next may have the one after it, but not run across it
        if self.past == self.steps or self.time[self.past] > end:
            for step in range(self.steps, self.past - 1, -1):
                self.time[step] = self.time[step - 1] if step > self.past else end
                self.room[step, :] = self.room[step - 1]
            self.steps += 1
        for step in range(self.at, self.past):
            for k in range(rows):
                self.change(step, job, self.low.node[k], -self.low.gpus[k])
