"""The cluster and the jobs as they are now: who holds what, how fast each gets on, and when it will be done."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload

from ..fit import EasyShadow, Nodes
from ..options import DegreeOptions
from .jobs import Long, Queue, Rows, RunLog, RunningSet
from .rates import ApartRates, RelativeRates
from .sharing import GpuSharing

_KEPT = ("degree", "since", "ready", "stint", "safe", "left", "attained", "rate", "end")
"""What a job that is stopped has back if it starts at the same instant where it was."""


class ClusterState:
    """n jobs on m nodes. A decision stops and starts jobs by `stop` and `start`; `settle` then makes it so.

    Attributes:
        changes: how often nodes have failed or come up, or jobs ended before they were expected to.
        free, whole: what nodes have free and have at all, float64 (m, R): GPUs, and cores and bytes if jobs name them.
        unit: what a job needs of them for each GPU, float64 (n, R).
        kind: the class of each job, int64 (n,); jobs of a class may run on the same nodes.
        up, ok: nodes that are up, bool (m,), and suit the jobs of a class, bool (classes, m).
        first: the first GPU of each node, int64 (m,).
        idle: GPUs that no job holds which was placed on GPUs told apart, bool (GPUs,).
        degree: GPUs of each job, int64 (n,).
        left: work left at `since`, in seconds of `workload.duration`, float64 (n,).
        rate, end: work a second from `ready` on, and when running jobs will be done, float64 (n,).
        key: by which jobs are ordered, float64 (n,).
        span: seconds that waiting jobs will run, alone, float64 (n,).
        fresh: jobs started since the last `settle`.
        nodes: the same for compiled code, and `reservation` of the first that waits.
        told: seconds that policies are told each job takes, float64 (n,), and `excess` what that is more; or `None`.
        expected: when running jobs will be done by what is told, float64 (n,); `end` if that is the truth.
    """

    def __init__(
        self,
        workload: Workload,
        fleet: Fleet,
        options: DegreeOptions,
        speeds: SpeedModel | Proximity | None,
        *,
        shared: bool,
        consolidate: bool,
        cost: float,
        interval: float,
        told: FloatArray | None = None,
    ) -> None:
        n = workload.n_jobs
        self.told, self.excess = told, None if told is None else told - workload.duration
        self.workload, self.fleet, self.options, self.speeds = workload, fleet, options, speeds
        self.shared, self.consolidate, self.cost, self.interval = shared, consolidate, cost, interval
        self.now, self.changes = 0.0, 0
        self.order = np.lexsort((np.arange(n), workload.submit))
        self.rank = np.empty(n, dtype=np.int64)
        self.rank[self.order] = np.arange(n)
        self.unit, self.whole = _needs(workload, fleet)
        self.free = self.whole.copy()
        self.up = np.asarray(fleet.usable).copy()
        self.rates: RelativeRates | ApartRates | None = None
        if isinstance(speeds, Proximity):
            self.rates = ApartRates(workload, fleet, speeds)
        elif speeds is not None:
            self.rates = RelativeRates(workload, fleet, options, speeds)
        self.kind: Long = np.zeros(n, dtype=np.int64)
        self._suits: BoolArray = np.ones((1, fleet.n_nodes), dtype=bool)
        if self.rates is not None:
            self.kind, self._suits = self.rates.classes()
        self.ok = self._suits & self.up
        self.sharing = GpuSharing(workload, fleet) if shared else None
        self.first = np.cumsum(fleet.gpus, dtype=np.int64) - fleet.gpus
        self.idle: BoolArray = np.ones(fleet.n_gpus, dtype=bool)
        self.degree = workload.gpus.astype(np.int64)
        self.left, self.rate = workload.duration.copy(), np.zeros(n)
        self.since, self.ready, self.stint, self.end = np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, np.inf)
        self.expected = self.end if told is None else self.end.copy()
        self.safe, self.attained = workload.duration.copy(), np.zeros(n)
        self.started, self.finish = np.full(n, np.inf), np.full(n, np.inf)
        self.broken = np.zeros(n, dtype=np.int64)
        self.key, self.span = np.zeros(n), workload.duration.copy() if told is None else told.copy()
        self.queue, self.running, self.log = Queue(self.key, self.rank), RunningSet(n), RunLog(n)
        self._ends: list[tuple[float, int]] = []
        self._stopped: dict[int, tuple[Any, ...]] = {}
        self.fresh: list[int] = []
        jobs = (self.degree, self.unit, self.kind, self.span)
        self.nodes = Nodes(*jobs, self.free, self.whole, self.ok, consolidate)
        self.reservation = EasyShadow(self.nodes, self.running.place)
        self._node, self._gpus = np.asarray(self.nodes.node), np.asarray(self.nodes.gpus)

    def find(self, job: int, degree: int) -> Rows | None:
        """Return where a waiting job of that degree fits by default."""
        if self.sharing is not None:
            return self.sharing.find(job, degree, self.nodes)
        k = self.nodes.place(job, degree)
        return Rows(self._node[:k].copy(), self._gpus[:k].copy(), np.full(k, -1)) if k else None

    def has_room(self, job: int, rows: Rows) -> bool:
        """Return whether a job fits on these GPUs beside what is there."""
        if self.sharing is not None:
            left = self.sharing.left[rows.node, rows.gpu] >= self.sharing.share[job] - 1e-9
            return bool(left.all()) and self.has_beside(job, rows)
        if rows.gpu[0] >= 0 and not self.idle[self.first[rows.node] + rows.gpu].all():
            return False
        return self._has(job, rows, 0)

    def has_beside(self, job: int, rows: Rows) -> bool:
        """Return whether nodes have the cores and memory for a job on these GPUs, whoever shares them."""
        return self._has(job, rows, 1)

    def _has(self, job: int, rows: Rows, first: int) -> bool:
        asked = np.zeros_like(self.free)
        np.add.at(asked, rows.node, rows.gpus[:, None] * self.unit[job])
        # of what a job does not ask for there may be less than nothing, by rounding
        return bool(((asked <= self.free * (1 + 1e-9) + 1e-9) | (asked == 0))[:, first:].all())

    def spare(self) -> FloatArray:
        """Return what nobody holds of GPUs, cores and memory, (m, 3)."""
        beside = np.stack([self.fleet.cpu, self.fleet.memory], axis=1)
        return np.where(self.up[:, None], np.column_stack([self.free, beside])[:, :3], 0.0)

    def start(self, job: int, degree: int, rows: Rows) -> None:
        """Have a job that is in no queue run from now on."""
        self.log.write(job, rows, 1.0 if self.sharing is None else float(self.sharing.share[job]))
        self._occupy(job, -1)
        self.running.add(job)
        self.degree[job] = degree
        self.fresh.append(job)
        self.since[job] = self.stint[job] = now = self.now
        self.ready[job] = now if self.started[job] >= now else now + self.cost
        self.safe[job] = self.left[job]

    def stop(self, job: int) -> None:
        """Have a job stop now; it keeps its progress, and nothing happens if it starts at this instant where it was."""
        if job in self._stopped:  # it has started since, at this very instant
            if job in self.fresh:
                self.fresh.remove(job)
            self._vacate(job)
            return
        kept = {name: getattr(self, name)[job] for name in _KEPT}
        self._stopped[job] = self.log.first[job], self.log.count[job], kept, self._close(job)
        self._vacate(job)

    def settle(self) -> None:
        """Have the jobs that were started run, and bring rates up to date."""
        new = []
        for job in self.fresh:
            if job in self._stopped and self._unmoved(job):
                continue
            new.append(job)
            if self.rates is None:
                self._go(job, self._speed(job))
        self.fresh.clear()
        if self.sharing is not None:
            self._squeeze(new)
        if self.rates is not None:
            found = self.rates.settle()
            for job in new:
                self._go(job, self._speed(job) * found.pop(job, self.rates.rate[job]))
            for job, rate in found.items():
                if self.running.place[job] >= 0 and self._speed(job) * rate != self.rate[job]:
                    self._cut(job)
                    self._go(job, self._speed(job) * rate)
        for job in new:
            if self.started[job] == np.inf:
                self.started[job] = self.now

    def _squeeze(self, new: list[int]) -> None:
        """Give the jobs whose shares changed what they now have; without a cost model they get on in proportion."""
        assert self.sharing is not None
        for job, share in self.sharing.changes(self.log, self.running).items():
            if job not in new:
                self._cut(job)
            self.log.write(job, self.log.rows(job), share)
            if self.rates is None:
                self._go(job, self._speed(job) * float(share.min() / self.sharing.share[job]))

    def advance(self, now: float) -> None:
        """Let time pass; what was stopped and did not start again stays so."""
        if now == self.now:
            return
        for job, (*_, times) in self._stopped.items():
            self.log.times += times
            if not times and self.started[job] == self.now and self.running.place[job] < 0:
                self.started[job] = np.inf  # it ran for no time at all
        self._stopped.clear()
        self.now = now

    def next_end(self) -> float:
        """Return when the next job is done, infinite if none runs."""
        ends = self._ends
        while ends and (self.running.place[ends[0][1]] < 0 or self.end[ends[0][1]] != ends[0][0]):
            heapq.heappop(ends)
        return ends[0][0] if ends else np.inf

    def complete(self) -> bool:
        """End a job that is done by now; return whether there was one."""
        if self.next_end() > self.now:
            return False
        end, job = heapq.heappop(self._ends)
        times = self._close(job, end)
        if not times or times[-1][5] == 0:  # all of its time, which is none
            times.append((job, int(self.log.first[job]), int(self.log.count[job]), end, end, float(self.rate[job])))
        self.log.times += times
        self._vacate(job)
        self.left[job], self.finish[job] = 0.0, end
        self.changes += self.excess is not None and self.excess[job] > 0
        return True

    def fail(self, node: int) -> list[int]:
        """Take a node down and return the jobs that were on it; they are back at their last checkpoints."""
        self.changes += 1
        self.up[node] = False
        self.ok[:, node] = False
        lost = [j for j in self.running.jobs.tolist() if node in self.log.rows(j).node]
        for job in lost:
            self.log.times += self._close(job)
            self._vacate(job)
            self.left[job] = self.safe[job]
            self.broken[job] += 1
        return lost

    def repair(self, node: int) -> None:
        """Bring a node up again."""
        self.changes += 1
        self.up[node] = True
        self.ok[:, node] = self._suits[:, node]

    def _speed(self, job: int) -> float:
        at, degree = int(self.options.first[job]), int(self.degree[job])
        if self.options.gpus[at] != degree:
            at = self.options.entry(job, degree)
        seconds = float(self.options.duration[at])
        return float(self.workload.duration[job]) / seconds if seconds else 1.0

    def _go(self, job: int, rate: float) -> None:
        self.rate[job] = rate
        self.end[job] = end = max(self.now, float(self.ready[job])) + float(self.left[job]) / rate
        if self.excess is not None:
            self.expected[job] = end + self.excess[job]
        heapq.heappush(self._ends, (end, job))

    def _cut(self, job: int) -> None:
        self.log.times += self._close(job)
        self.since[job] = self.now

    def _close(self, job: int, now: float | None = None) -> list[tuple[int, int, int, float, float, float]]:
        """Bring work and service of a running job up to date and return its times since it was last done."""
        now = self.now if now is None else now
        since, ready, rate, left = (float(x[job]) for x in (self.since, self.ready, self.rate, self.left))
        begun = max(since, ready)
        if self.interval < np.inf:
            stint = float(self.stint[job])
            checkpoint = now if not self.interval else stint + np.floor((now - stint) / self.interval) * self.interval
            if checkpoint >= since:
                self.safe[job] = left - rate * max(0.0, checkpoint - begun)
        self.left[job] = max(0.0, left - rate * max(0.0, now - begun))
        self.attained[job] += self.degree[job] * (now - since)
        first, count = int(self.log.first[job]), int(self.log.count[job])
        times = []
        if ready > since and now > since:
            times.append((job, first, count, since, min(ready, now), 0.0))
        if now > begun:
            times.append((job, first, count, begun, now, rate))
        return times

    def _occupy(self, job: int, sign: int) -> None:
        rows = self.log.rows(job)
        if self.sharing is None:
            self.nodes.change(self.log.held, job, sign)
            if rows.gpu[0] >= 0:
                self.idle[self.first[rows.node] + rows.gpu] = sign > 0
        else:
            self.sharing.change(job, rows, self.free, self.unit[job], sign)
        if self.rates is not None:
            if sign < 0:
                self.rates.add(job, int(rows.gpus.sum()), rows)
            else:
                self.rates.remove(job)

    def _vacate(self, job: int) -> None:
        self._occupy(job, 1)
        self.running.remove(job)

    def _unmoved(self, job: int) -> bool:
        first, count, kept, _ = self._stopped[job]
        old = slice(first, first + count)
        before = Rows(self.log.node[old], self.log.gpus[old], self.log.gpu[old])
        if kept["degree"] != self.degree[job] or not before.same(self.log.rows(job)):
            return False
        del self._stopped[job]
        self.log.first[job], self.log.count[job] = first, count
        for name, value in kept.items():
            getattr(self, name)[job] = value
        if self.excess is not None:
            self.expected[job] = self.end[job] + self.excess[job]
        heapq.heappush(self._ends, (float(self.end[job]), job))  # its entry may be gone
        return True


def _needs(workload: Workload, fleet: Fleet) -> tuple[FloatArray, FloatArray]:
    cpu, memory = np.asarray(workload.cpu), np.asarray(workload.memory)
    unit, whole = [np.ones(workload.n_jobs)], [fleet.gpus.astype(float)]
    if cpu.any() or memory.any():
        unit += [cpu / workload.gpus, memory / workload.gpus]
        whole += [fleet.cpu, fleet.memory]
    return np.stack(unit, axis=1), np.stack(whole, axis=1)
