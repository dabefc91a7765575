"""The jobs that run, in the order in which they are expected to end, and their parts on nodes as arrays."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from math import inf, log
from sys import float_info
from typing import NamedTuple

import numpy as np

from ..durations import index, passed
from ..queueing.request import Request

Nodes = Mapping[int, tuple[int, ...]]
"""The GPUs of a job by node; a worker without GPUs has a number below 0, its own on that node."""

EXACT = 1 << 40


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs.

    Attributes:
        request: the job.
        degree: how many workers it has.
        since: seconds of the user's clock.
        end: when it is expected to be done.
        nodes: its GPUs by node.
        slower: how many times its seconds it takes there.
        least: seconds that it runs before it may be stopped.
        index: the seconds for which it counts in an order, if it may be stopped and its work is a distribution.
        stops: when it stops at the latest, if it was told to; no later is its end.
    """

    request: Request
    degree: int
    since: float
    end: float
    nodes: Nodes
    slower: float = 1.0
    least: float = 0.0
    index: float | None = None
    stops: float = inf

    @property
    def name(self) -> str:
        """The job's name."""
        return self.request.job.name

    @property
    def price(self) -> float | None:
        """The price of a stop, `None` if it may not be stopped or was told to already."""
        return self.request.price if self.stops == inf else None

    def told(self, until: float) -> RunningJob:
        """Return it told to stop."""
        return replace(self, stops=until, end=min(self.end, until))

    @property
    def gpus(self) -> int:
        """How many GPUs it holds."""
        return sum(len(gpus) for gpus in self.nodes.values()) if self.request.job.worker.gpu else 0

    @property
    def rows(self) -> dict[int, tuple[int, int]]:
        """Its workers on each node, and that it has no servers."""
        need = max(1, self.request.job.worker.grants)
        return {node: (len(gpus) // need, 0) for node, gpus in self.nodes.items()}

    @property
    def log(self) -> int:
        """The logarithm of the seconds that it takes at no slowdown, times `EXACT`."""
        return round(EXACT * log(min(max(self.request.lasts(self.degree), 1e-9), float_info.max)))

    def ran(self, now: float) -> float:
        """Return the seconds of its work that it got on with; what its start cost is none of them."""
        return max(0.0, now - self.since - self.request.pays) / self.slower

    @property
    def settled(self) -> float:
        """From when on others of its class and queue may stop it.

        A job that was due when it started never is, nor one without GPUs; if its work is a distribution, not for as
        long as was expected.
        """
        request = self.request
        if request.due > self.since and request.lends:
            return self.ready
        if self.price is None or not request.lends or not request.work:
            return inf
        return max(self.ready, self.since + request.lasts(self.degree, self.slower))

    @property
    def ready(self) -> float:
        """From when on it may be stopped: once it got on for its price, and ran as long as all do."""
        if self.price is None:
            return inf
        return self.since + max(self.request.pays + self.price, self.least)

    def left(self, now: float) -> float:
        """Return the seconds that it is expected to run still: as long as it did, if it is expected to have ended."""
        return self.end - now if self.end >= now else now - self.since

    def counts(self, now: float) -> float:
        """Return the seconds for which it counts where jobs are put into an order."""
        return self.left(now) if self.index is None else self.index

    def aged(self, now: float) -> tuple[RunningJob, float]:
        """Return it as its age says, if its work is a distribution, and when that says something else."""
        request, pace = self.request, self.slower / self.request.units(self.degree)
        begun = self.since + request.pays
        age = request.done + max(0.0, now - begun) / pace
        rest = passed(request.work, age)[1]
        after = begun + (float(rest[0]) - request.done) * pace
        while after <= now:  # rounding
            age = float(rest[0])
            rest = passed(request.work, age)[1]
            after = begun + (float(rest[0]) - request.done) * pace
        end = begun + (float(rest.mean()) - request.done) * pace
        rank = None if request.price is None else index(request.work, age) * pace
        return replace(self, end=min(end, self.stops, float_info.max), index=rank), after


class RunningTable(NamedTuple):
    """The n parts of running jobs on nodes, or the n jobs by their first parts; arrays are not to be changed.

    Attributes:
        end, since, settled, ready: see `RunningJob`, float64 (n,).
        price: infinite for jobs by whose stop nobody gains, float64 (n,).
        rank: `RunningJob.index`, NaN if there is none, float64 (n,).
        lasts: seconds that the job takes at no slowdown, float64 (n,).
        node: int64 (n,).
        wide: GPUs of the whole job, int64 (n,).
        head: whether it is the job's first part, int64 (n,).
        serial: the job's serial number, int64 (n,).
        used: in the units of `Kind.need`, int64 (4, n).
        payer, level: the account that pays, and the class, int64 (n,).
    """

    end: np.ndarray
    since: np.ndarray
    price: np.ndarray
    settled: np.ndarray
    rank: np.ndarray
    ready: np.ndarray
    lasts: np.ndarray
    node: np.ndarray
    wide: np.ndarray
    head: np.ndarray
    serial: np.ndarray
    used: np.ndarray
    payer: np.ndarray
    level: np.ndarray

    def left(self, now: float) -> np.ndarray:
        """Return `RunningJob.left`."""
        return np.where(self.end >= now, self.end - now, now - self.since)

    def counts(self, now: float) -> np.ndarray:
        """Return `RunningJob.counts`."""
        return np.where(np.isnan(self.rank), self.left(now), self.rank)

    def movable(self, now: float) -> np.ndarray:
        """Return whether the job may be stopped now, and has more left than that costs, bool (n,)."""
        return np.asarray((self.settled <= now) & (self.since < now) & (self.counts(now) > self.price))

    def stoppable(self, now: float) -> np.ndarray:
        """Return whether a higher class, or who is owed more, may stop the job now, bool (n,)."""
        return np.asarray((self.ready <= now) & (self.since < now))


class RunningJobs(dict[str, RunningJob]):
    """The running jobs by name, in the order in which they are expected to end, and their parts on nodes as arrays.

    Attributes:
        by_end: (end, serial, name), ascending.
        parts: (name, node) of each row of the arrays, which have no gaps.
        stoppable: parts of jobs that may be stopped.
        logs: sum of the logarithms of the seconds that jobs take at no slowdown, in whole numbers of 1 / `EXACT`, so
            that it does not depend on who came and went.
        ages: (time, serial, name) when the age of jobs says something else, ascending.
        now: the time.
    """

    def __init__(self) -> None:
        self.by_end: list[tuple[float, int, str]] = []
        self.parts: list[tuple[str, int]] = []
        self.stoppable = self.logs = 0
        self._at: dict[tuple[str, int], int] = {}
        self.ages: list[tuple[float, int, str]] = []
        self._next: dict[str, float] = {}  # the same by name
        self.now = 0.0
        self._times, self._counts = np.zeros((7, 256)), np.zeros((10, 256), dtype=np.int64)

    def add(self, job: RunningJob, used: np.ndarray, leaf: int = 0) -> None:
        """Note a job that starts.

        Args:
            job: with its nodes.
            used: what it uses of them in the units of `Kind.need`, int64 (4, nodes).
            leaf: number of the account that pays for it.
        """
        job = self._looked(job, max(job.since, self.now))  # one that is put back has run already
        self[job.name] = job
        self._note(job, 1)
        wide, times = job.gpus, self._of(job)
        for i, node in enumerate(job.nodes):
            at = len(self.parts)
            if at == self._times.shape[1]:
                self._times = np.concatenate([self._times, self._times], axis=1)
                self._counts = np.concatenate([self._counts, self._counts], axis=1)
            self._times[:, at] = times
            self._counts[:, at] = node, wide, not i, job.request.serial, *used[:, i], leaf, job.request.terms.priority
            self._at[job.name, node] = at
            self.parts.append((job.name, node))

    @staticmethod
    def _of(job: RunningJob) -> tuple[float, ...]:
        price, index = job.price, np.nan if job.index is None else job.index
        ready, settled = job.ready, job.settled
        cost = np.inf if price is None or not job.request.lends else price
        return job.end, job.since, cost, settled, index, ready, job.request.lasts(job.degree)

    def _note(self, job: RunningJob, sign: int) -> None:
        """Count a job in, or out if the sign is -1."""
        key = job.end, job.request.serial, job.name
        if sign > 0:
            insort(self.by_end, key)
        else:
            del self.by_end[bisect_left(self.by_end, key)]
        self.logs += sign * job.log
        self.stoppable += sign * len(job.nodes) * (job.price is not None)

    def _looked(self, job: RunningJob, now: float) -> RunningJob:
        """Return a job as its age says, and note when that says something else, if its work is a distribution."""
        self._forget_age(job)
        if job.request.work:
            job, after = job.aged(now)
            self._next[job.name] = after
            insort(self.ages, (after, job.request.serial, job.name))
        return job

    def _forget_age(self, job: RunningJob) -> None:
        if (after := self._next.pop(job.name, None)) is not None:
            del self.ages[bisect_left(self.ages, (after, job.request.serial, job.name))]

    def _exchange(self, job: RunningJob) -> None:
        """Have a running job be another one on the same nodes."""
        self._note(self[job.name], -1)
        self._note(job, 1)
        self[job.name], times = job, self._of(job)
        for at in self.rows(job.name):
            self._times[:, at] = times

    def change(self, job: RunningJob, leaf: int, now: float) -> None:
        """Note that a running job has another end, price or class, or another account pays, and no other nodes."""
        self._exchange(self._looked(job, now))
        for at in self.rows(job.name):
            self._counts[8:, at] = leaf, job.request.terms.priority

    def age(self) -> None:
        """Look at jobs again that have run so long that it says something of when they end."""
        while self.ages and self.ages[0][0] <= self.now:
            self._exchange(self._looked(self[self.ages[0][2]], self.now))

    def ends(self, now: float) -> Iterator[tuple[float, str]]:
        """Yield when jobs are expected to end, see `RunningJob.left`, and their names, ascending."""
        late = bisect_left(self.by_end, (now, -1, ""))
        again = sorted((now + self[name].left(now), serial, name) for _, serial, name in self.by_end[:late])
        for end, _, name in merge(again, islice(self.by_end, late, None)):
            yield end, name

    def remove(self, name: str) -> RunningJob:
        """Forget a job that stops and return it: the last part takes the place of each of its own."""
        job = self.pop(name)
        self._forget_age(job)
        self._note(job, -1)
        for node in job.nodes:
            at = self._at.pop((name, node))
            last, n = self.parts.pop(), len(self.parts)
            if at < n:
                self.parts[at], self._at[last] = last, at
                self._times[:, at], self._counts[:, at] = self._times[:, n], self._counts[:, n]
        return job

    def rows(self, name: str) -> Iterator[int]:
        """Yield the rows of a job."""
        return (self._at[name, node] for node in self[name].nodes)

    def table(self) -> RunningTable:
        """Return views on all parts.

        The order of the rows depends on what was removed before: who goes through them breaks ties by serial number.
        """
        counts = self._counts[:, : len(self.parts)]
        return RunningTable._make([*self._times[:, : len(self.parts)], *counts[:4], counts[4:8], *counts[8:]])

    def jobs(self) -> tuple[RunningTable, np.ndarray]:
        """Return all jobs by submission, `used` of what queues share, and the row of the first part of each."""
        table = self.table()
        row = np.flatnonzero(table.head)
        row = row[np.argsort(table.serial[row])]
        job = np.searchsorted(table.serial[row], table.serial)
        used = np.stack([np.bincount(job, x, len(row)).astype(np.int64) for x in table.used[:3]])
        return RunningTable._make(used if x is table.used else x[row] for x in table), row
