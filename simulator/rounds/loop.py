"""Rounds between two allocations, compiled: who runs, on which GPUs, and how far each gets."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cast, cclass, final, nogil

from gangplan.solvers.native import Sorting

from .jobs import RoundJobs, RoundsCluster

if not cython.compiled:
    from gangplan.solvers.native import Float, Int, Ints2

    ALLOCATE, DONE, MORE, STUCK = range(4)
    """Why `advance` returns, in the order of `REASONS`."""

REASONS = ("allocate", "done", "more", "stuck")


@final
@cclass
class Rounds:
    """What the mechanism keeps from round to round, and `simulate_rounds` writes to.

    Jobs n in order of arrival, types k, GPUs g; a type's ranking holds the active jobs, who is served first first.
    Times count from the first arrival, so that a trace in Unix time is run as finely as one from 0.

    Attributes:
        submit, gpus, speed: as in `RoundJobs`.
        room: GPUs of each type, int64 (k,).
        left: steps still to do, int64 (n,).
        share: of time on each type, as the policy last said, float64 (n, k).
        known: whether the policy has seen the job, uint8 (n,).
        received: half a round, and seconds on each type since the last allocation, each round from the end of the one
            before it, float64 (n, k).
        deficit: seconds owed on each type from before the last allocation, float64 (n, k).
        priority: share over seconds received, float64 (n, k).
        ranking: jobs, int64 (k, n); the first `active` of each row are in use and sorted.
        chosen, place, many: who runs this round on each type and its place in the ranking, int64 (k, n), and how many.
        mark, stamp: number of the last round in which a job ran, int64 (n,), and of this one.
        running, runs: jobs whose lease is open after a round, int64 (g,), and how many.
        kind: type of the open lease of each job, -1 if none, int64 (n,).
        own, own_at: GPUs of the open leases, int64, and where each job's begin.
        busy, order: GPUs of a type that are taken, and room to sort jobs.
        lease, span: of the leases written, job, type, steps, int64 (r, 3); start, end, seconds at work, float64 (r, 3).
        open_steps, open_span: steps so far, and the same of each job's open lease, int64 (n,) and float64 (n, 3).
        held: GPUs of the leases written, one lease after the other, int64.
        begins: when each round began, float64.
        rounds, leases, taken: rounds that began, leases and GPUs of leases written.
        active, arrived: active jobs, and all that have come.
        stale: whether shares are.
        tried: orders of types used up.
        strict: whether a job without a share never runs.
        now, ended: seconds, and the end of the last round.
        reset: the last allocation; 0 lets the next one come at once.
        length, gap, overhead: a round, the least time between allocations, and a fresh start.
    """

    def __init__(
        self, jobs: RoundJobs, cluster: RoundsCluster, length: Float, gap: Float, overhead: Float, strict: bint,
        chunk: Int,
    ) -> None:  # fmt: skip
        n, k = jobs.speed.shape
        if k != len(cluster.count) or ((jobs.speed > 0) & (jobs.gpus[:, None] > np.array(cluster.count))).any():
            raise ValueError(f"jobs for {k} types do not fit where they would run, of {len(cluster.count)}")
        rows = (chunk + 2) * cluster.gpus  # each round ends at most as many leases as there are GPUs
        gpus = jobs.gpus.astype(np.int64)
        self.n, self.types, self.strict = n, k, strict
        self.length, self.gap, self.overhead = length, gap, overhead
        self.now = self.reset = self.ended = 0.0
        self.rounds = self.leases = self.taken = self.active = self.arrived = self.tried = self.runs = self.stamp = 0
        self.stale = False
        self.submit, self.gpus, self.speed = jobs.submit - jobs.submit[0], gpus, np.array(jobs.speed)
        self.room, self.left = np.array(cluster.count, np.int64), jobs.steps.copy()
        self.share, self.deficit, self.priority = np.zeros((3, n, k))
        self.received = np.full((n, k), length / 2.0)
        self.ranking, self.chosen, self.place = np.zeros((3, k, n), np.int64)
        self.known, self.busy = np.zeros(n, np.uint8), np.zeros(max(cluster.count), np.uint8)
        self.many, self.running = np.zeros(k, np.int64), np.zeros(cluster.gpus, np.int64)
        self.mark, self.open_steps = np.zeros((2, n), np.int64)
        self.kind, self.order = np.full(n, -1), Sorting(n)
        self.own, self.own_at = np.zeros(int(gpus.sum()), np.int64), np.cumsum(gpus) - gpus
        self.lease, self.span, self.held = np.zeros((rows, 3), np.int64), np.zeros((rows, 3)), np.zeros(rows, np.int64)
        self.open_span, self.begins = np.zeros((n, 3)), np.zeros(chunk)

    def advance(self, orders: Ints2) -> str:
        """Run rounds until something else is due; `orders` are the types in the order each try fills them, (r, k).

        What is due: to ``allocate`` shares; all jobs are ``done``; the orders are used up, ``more``; or nobody can ever
        run, ``stuck``.
        """
        if len(orders) > len(self.begins) or orders.shape[1] != self.types:
            raise ValueError(f"{len(orders)} orders of {orders.shape[1]} types are not for rounds of {self.types}")
        with nogil:
            why = self._advance(orders)
        return REASONS[why]

    def written(self) -> tuple[Any, ...]:
        """Return when rounds began, and leases, their spans and their GPUs, since this was last asked."""
        begins, lease = np.array(self.begins[: self.rounds]), np.array(self.lease[: self.leases])
        span, held = np.array(self.span[: self.leases]), np.array(self.held[: self.taken])
        self.rounds = self.leases = self.taken = self.tried = 0
        return begins, lease, span, held

    def _advance(self, orders: Ints2) -> Int:
        while True:
            self._admit()
            if self.active == 0 and self.arrived == self.n:
                return DONE
            if self.stale and (self.reset == 0.0 or self.now - self.reset >= self.gap):
                return ALLOCATE
            if self.tried == len(orders):
                return MORE
            self.tried += 1
            if self._choose(orders, self.tried - 1):
                self.begins[self.rounds] = self.now
                self.rounds += 1
                self._place()
                self._work()
                continue
            for i in range(self.runs):
                self._close(self.running[i])
            self.runs = 0
            if self.arrived < self.n:
                self.now = self.submit[self.arrived]
            elif self.stale:
                self.reset = 0.0
            else:
                return STUCK

    def _admit(self) -> None:
        while self.arrived < self.n and self.submit[self.arrived] <= self.now:
            for j in range(self.types):
                self.ranking[j, self.active] = self.arrived
                self._rise(j, self.active)
            self.active += 1
            self.arrived += 1
            self.stale = True

    def _rise(self, j: Int, at: Int) -> None:
        job = self.ranking[j, at]
        while at and self._before(job, self.ranking[j, at - 1], j):
            self.ranking[j, at] = self.ranking[j, at - 1]
            at -= 1
        self.ranking[j, at] = job

    def _fall(self, j: Int, at: Int) -> None:
        job = self.ranking[j, at]
        while at + 1 < self.active and self._before(self.ranking[j, at + 1], job, j):
            self.ranking[j, at] = self.ranking[j, at + 1]
            at += 1
        self.ranking[j, at] = job

    def _before(self, one: Int, other: Int, j: Int) -> bint:
        if self.priority[one, j] != self.priority[other, j]:
            return self.priority[one, j] > self.priority[other, j]
        if self.deficit[one, j] != self.deficit[other, j]:
            return self.deficit[one, j] > self.deficit[other, j]
        if self.share[one, j] != self.share[other, j]:
            return self.share[one, j] > self.share[other, j]
        return one < other

    def _choose(self, orders: Ints2, row: Int) -> bint:
        """Fill one type after the other by priority, jobs that do not fit passed over; return whether anybody runs."""
        self.stamp += 1
        runs: bint = False
        for k in range(self.types):
            j = orders[row, k]
            free: Int = self.room[j]
            self.many[j] = 0
            for i in range(self.active):
                job = self.ranking[j, i]
                if free == 0 or (self.strict and self.priority[job, j] <= 0.0):
                    break
                if self.mark[job] == self.stamp or self.speed[job, j] == 0.0 or self.gpus[job] > free:
                    continue
                free -= self.gpus[job]
                self.mark[job] = self.stamp
                if self.known[job]:  # Gavel keeps GPUs for a job the policy has not seen, and starts it after it has
                    self.chosen[j, self.many[j]] = job
                    self.place[j, self.many[j]] = i
                    self.many[j] += 1
                    runs = True
        return runs

    def _work(self) -> None:
        """Let the chosen make their steps; the round ends when the last of them is done with its own."""
        end: Float = self.now
        finished: bint = False
        self.runs = 0
        for j in range(self.types):
            for i in range(self.many[j]):
                job = self.chosen[j, i]
                lost: Float = self.overhead if self.open_span[job, 0] == self.now else 0.0
                steps: Float = self.speed[job, j] * (self.length - lost)
                made: Int = self.left[job]
                if steps < made:
                    made = min(made, cast(Int, steps))
                took = lost + made / self.speed[job, j]
                self.left[job] -= made
                self.received[job, j] += self.now + took - self.ended
                self.priority[job, j] = self.share[job, j] / self.received[job, j]
                self.open_span[job, 2] += took
                self.open_steps[job] += made
                self.open_span[job, 1] = self.now + took
                end = max(end, self.now + took)
                if self.left[job] == 0:
                    self._close(job)
                    finished = True
                else:
                    self.running[self.runs] = job
                    self.runs += 1
        self.now = self.ended = end
        for j in range(self.types):
            for i in range(self.many[j] - 1, -1, -1):  # from the back, so that places in front stay as they are
                self._fall(j, self.place[j, i])
        if finished:
            self.stale = True
            self._drop_finished()

    def _drop_finished(self) -> None:
        kept: Int = 0
        for j in range(self.types):
            kept = 0
            for i in range(self.active):
                job = self.ranking[j, i]
                if self.left[job] > 0:
                    self.ranking[j, kept] = job
                    kept += 1
        self.active = kept

    def _place(self) -> None:
        """Give the chosen of each type their GPUs, extending leases; end the leases of all others."""
        for i in range(self.runs):
            if self.mark[self.running[i]] != self.stamp:
                self._close(self.running[i])
        first: Int = 0
        for j in range(self.types):
            for at in range(self.many[j]):
                self.order.keys[at] = -self.gpus[self.chosen[j, at]]
            self.order.sort(self.many[j], True)
            for at in range(self.room[j]):
                self.busy[at] = False
            free: Int = 0
            begin: Int = 0
            while begin < self.many[j]:
                size = self.gpus[self.chosen[j, self.order.order[begin]]]
                upto: Int = begin
                while upto < self.many[j]:
                    job = self.chosen[j, self.order.order[upto]]
                    if self.gpus[job] != size:
                        break
                    if self.kind[job] >= 0 and (self.kind[job] != j or not self._extend(job, first)):
                        self._close(job)
                    upto += 1
                for at in range(begin, upto):
                    job = self.chosen[j, self.order.order[at]]
                    if self.kind[job] < 0:
                        free = self._start(job, j, free, first)
                begin = upto
            first += self.room[j]

    def _extend(self, job: Int, first: Int) -> bint:
        """Keep a job's GPUs unless a larger one has got one of them."""
        at = self.own_at[job]
        for i in range(at, at + self.gpus[job]):
            if self.busy[self.own[i] - first]:
                return False
        for i in range(at, at + self.gpus[job]):
            self.busy[self.own[i] - first] = True
        return True

    def _start(self, job: Int, kind: Int, free: Int, first: Int) -> Int:
        """Open a lease on the lowest free GPUs of a type; return where to look for more."""
        for i in range(self.own_at[job], self.own_at[job] + self.gpus[job]):
            while self.busy[free]:
                free += 1
            self.busy[free] = True
            self.own[i] = first + free
        self.kind[job], self.open_steps[job] = kind, 0
        self.open_span[job, 0], self.open_span[job, 2] = self.now, 0.0
        return free

    def _close(self, job: Int) -> None:
        """Write the open lease of a job, if it has one."""
        if self.kind[job] < 0:
            return
        row = self.leases
        self.lease[row, 0], self.lease[row, 1], self.lease[row, 2] = job, self.kind[job], self.open_steps[job]
        for i in range(3):
            self.span[row, i] = self.open_span[job, i]
        for i in range(self.gpus[job]):
            self.held[self.taken + i] = self.own[self.own_at[job] + i]
        self.leases += 1
        self.taken += self.gpus[job]
        self.kind[job] = -1
