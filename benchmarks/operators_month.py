"""A month of eight queues: how long a queue waits for what it is owed, and whether anybody is overtaken too often."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.settings import Quota, Sharing

DAYS, NODES, GPUS = 30.0, 8, 8
SHARES = (0.25, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05, 0.05)
SIZES, PARTS = (1, 2, 4, 8), (0.55, 0.2, 0.15, 0.1)
LEAST, PRICE, HOUR = 600.0, 60.0, 3600.0
MEDIAN = 2 * HOUR
LOAD = 1.1
"""Of the cluster, in the mean over the month; each queue is busy on some days and idle on others."""


@dataclass(slots=True)
class Month:
    """What a month was like.

    Attributes:
        longest: seconds for which a queue waited at most for what it was owed.
        owed: times that a queue waited for something that it was owed.
        borrowed: GPU hours used beyond guarantees, of all.
        used: GPU hours of all.
        events, decisions, stops: how many.
        seconds: of the processor that decisions took.
    """

    longest: float = 0.0
    owed: int = 0
    borrowed: float = 0.0
    used: float = 0.0
    events: int = 0
    decisions: int = 0
    stops: int = 0
    seconds: float = 0.0


class _Loop:
    """Plays a month."""

    def __init__(self, seed: int, days: float, sizes: tuple[int, ...]) -> None:
        self.quotas = {f"q{i}": Quota(share) for i, share in enumerate(SHARES)}
        fleet = Fleet.regular(racks=2, nodes=NODES // 2, gpus=GPUS)
        sharing = Sharing(self.quotas, least_run=LEAST)
        self.scheduler = Scheduler(fleet, "heuristic", price=PRICE, sharing=sharing)
        self.out, self.total, self.now, self.wake = Month(), NODES * GPUS, 0.0, np.inf
        self.arrivals = _arrivals(np.random.default_rng(seed), days, self.total, sizes)[::-1]  # the next one last
        self.job = {name: (q, gpus) for _, name, q, gpus, _ in self.arrivals}
        self.left = {name: seconds for _, name, _, _, seconds in self.arrivals}
        self.held = dict.fromkeys(self.quotas, 0)
        self.waiting: dict[str, dict[str, None]] = {q: {} for q in self.quotas}
        self.since: dict[str, float] = {}  # of queues that wait for what they are owed
        self.begun: dict[str, tuple[float, float]] = {}
        self.paid: set[str] = set()
        self.ends: list[tuple[float, str]] = []

    def run(self) -> Month:
        """Play until all jobs are done."""
        while self.arrivals or self.begun:
            times = [self.wake, *(end for end, _ in self.ends[:1]), *(row[0] for row in self.arrivals[-1:])]
            self._pass(float(min(times)))
            self._events()
            self._decide()
            self._owed()
        return self.out

    def _pass(self, now: float) -> None:
        """Count what is used until then."""
        for q, quota in self.quotas.items():
            self.out.borrowed += max(0.0, self.held[q] - quota.share * self.total) * (now - self.now) / HOUR
            self.out.used += self.held[q] * (now - self.now) / HOUR
        self.now = now

    def _events(self) -> None:
        while self.arrivals and self.arrivals[-1][0] <= self.now:
            _, name, q, gpus, seconds = self.arrivals.pop()
            self.scheduler.submit(GangJob(name, "any", (gpus,)), seconds, now=self.now, queue=q)
            self.waiting[q][name] = None
            self.out.events += 1
        while self.ends and self.ends[0][0] <= self.now:
            end, name = heapq.heappop(self.ends)
            if name in self.begun and self.begun[name][1] == end:
                self.scheduler.finish(name, now=self.now)
                self._gone(name)
                self.out.events += 1

    def _gone(self, name: str) -> float:
        """Note that a job runs no more; return when it started."""
        queue, gpus = self.job[name]
        self.held[queue] -= gpus
        return self.begun.pop(name)[0]

    def _decide(self) -> None:
        before = time.process_time()
        decision = self.scheduler.decide(60.0, now=self.now)
        self.out.seconds += time.process_time() - before
        self.out.decisions, self.out.stops = self.out.decisions + 1, self.out.stops + len(decision.stops)
        for stop in decision.stops:
            ran = self.now - self._gone(stop.job) - (PRICE if stop.job in self.paid else 0.0)
            self.left[stop.job] -= max(0.0, ran)
            self.paid.add(stop.job)
            self.waiting[self.job[stop.job][0]][stop.job] = None
        for start in decision.starts:
            queue, gpus = self.job[start.job]
            del self.waiting[queue][start.job]
            end = self.now + self.left[start.job] + (PRICE if start.job in self.paid else 0.0)
            self.begun[start.job] = self.now, end
            heapq.heappush(self.ends, (end, start.job))
            self.held[queue] += gpus

    def _owed(self) -> None:
        """Note which queues wait for what they are owed, and look again once a job may be stopped."""
        self.wake = np.inf
        for q, quota in self.quotas.items():
            room = quota.share * self.total - self.held[q]
            if any(self.job[name][1] <= room + 1e-9 for name in self.waiting[q]):
                self.out.owed += q not in self.since
                self.since.setdefault(q, self.now)
                self.wake = self.scheduler.wake or np.inf
            elif q in self.since:
                self.out.longest = max(self.out.longest, self.now - self.since.pop(q))


def month(seed: int, days: float = DAYS, sizes: tuple[int, ...] = SIZES) -> Month:
    """Play a month; a queue is owed a job if with it the queue holds no more than its share."""
    return _Loop(seed, days, sizes).run()


def _arrivals(
    rng: np.random.Generator, days: float, total: int, sizes: tuple[int, ...]
) -> list[tuple[float, str, str, int, float]]:
    """Return jobs by time: each queue has busy days and quiet ones; seconds are log-normal, two hours in the median."""
    parts = np.array(PARTS[: len(sizes)]) / sum(PARTS[: len(sizes)])
    rows = []
    for i, share in enumerate(SHARES):
        for day in range(int(np.ceil(days))):
            busy = rng.choice((0.1, 0.5, 1.0, 2.5))
            mean = float(np.dot(sizes, parts)) * MEDIAN * float(np.exp(0.5))
            count = rng.poisson(share * total * 24 * HOUR * LOAD * busy / mean)
            for _ in range(count):
                seconds = float(rng.lognormal(np.log(MEDIAN), 1.0))
                submit = float((day + rng.random()) * 24 * HOUR)
                rows.append((submit, f"q{i}", int(rng.choice(sizes, p=parts)), seconds))
    rows.sort()
    return [(submit, f"j{n}", q, gpus, seconds) for n, (submit, q, gpus, seconds) in enumerate(rows)]


def measure(seed: int) -> Mapping[str, float]:
    """Return the figures of a month."""
    m = month(seed)
    return {
        "longest": m.longest, "owed": m.owed, "borrowed": m.borrowed / m.used, "events": m.events,
        "decisions": m.decisions, "stops": m.stops, "seconds": m.seconds,
    }  # fmt: skip
