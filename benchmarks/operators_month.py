"""A month of eight queues: how long a queue waits for what it is owed, and whether anybody is overtaken too often."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gangplan import Scheduler
from gangplan.hybrid.online.sharing import Quota, Sharing
from gangplan.instances.placement import Fleet, GangJob

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


def month(seed: int, days: float = DAYS, sizes: tuple[int, ...] = SIZES) -> Month:
    """Play a month; a queue is owed a job if with it the queue holds no more than its share."""
    rng = np.random.default_rng(seed)
    queues = {f"q{i}": Quota(share) for i, share in enumerate(SHARES)}
    fleet = Fleet.regular(racks=2, nodes=NODES // 2, gpus=GPUS)
    scheduler = Scheduler(fleet, "heuristic", price=PRICE, sharing=Sharing(queues, least_run=LEAST))
    total, out = NODES * GPUS, Month()
    arrivals = _arrivals(rng, days, total, sizes)
    size = {name: gpus for _, name, _, gpus, _ in arrivals}
    left = {name: seconds for _, name, _, _, seconds in arrivals}
    queue = {name: q for _, name, q, _, _ in arrivals}
    held = dict.fromkeys(queues, 0)
    waiting: dict[str, dict[str, None]] = {q: {} for q in queues}
    since: dict[str, float] = {}  # of queues that wait for what they are owed
    begun: dict[str, tuple[float, float]] = {}
    paid: set[str] = set()
    ends: list[tuple[float, str]] = []
    at, now, wake = 0, 0.0, np.inf
    while at < len(arrivals) or begun:
        then = min(arrivals[at][0] if at < len(arrivals) else np.inf, ends[0][0] if ends else np.inf, wake)
        for q in queues:  # what was used since the last event
            out.borrowed += max(0.0, held[q] - queues[q].share * total) * (then - now) / HOUR
            out.used += held[q] * (then - now) / HOUR
        now, wake = float(then), np.inf
        while at < len(arrivals) and arrivals[at][0] <= now:
            _, name, q, gpus, seconds = arrivals[at]
            scheduler.submit(GangJob(name, "any", (gpus,)), seconds, now=now, queue=q)
            waiting[q][name] = None
            at, out.events = at + 1, out.events + 1
        while ends and ends[0][0] <= now:
            end, name = heapq.heappop(ends)
            if name in begun and begun[name][1] == end:
                scheduler.finish(name, now=now)
                held[queue[name]] -= size[name]
                del begun[name]
                out.events += 1
        before = time.process_time()
        decision = scheduler.decide(60.0, now=now)
        out.seconds += time.process_time() - before
        out.decisions, out.stops = out.decisions + 1, out.stops + len(decision.stops)
        for stop in decision.stops:
            start, _ = begun.pop(stop.job)
            left[stop.job] -= max(0.0, now - start - (PRICE if stop.job in paid else 0.0))
            paid.add(stop.job)
            held[queue[stop.job]] -= size[stop.job]
            waiting[queue[stop.job]][stop.job] = None
        for start in decision.starts:
            del waiting[queue[start.job]][start.job]
            end = now + left[start.job] + (PRICE if start.job in paid else 0.0)
            begun[start.job] = now, end
            heapq.heappush(ends, (end, start.job))
            held[queue[start.job]] += size[start.job]
        for q, quota in queues.items():
            room = quota.share * total - held[q]
            if any(size[name] <= room + 1e-9 for name in waiting[q]):
                out.owed += q not in since
                since.setdefault(q, now)
                wake = min([wake, *(start + LEAST for start, _ in begun.values() if start + LEAST > now)])
            elif q in since:
                out.longest = max(out.longest, now - since.pop(q))
    return out


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
