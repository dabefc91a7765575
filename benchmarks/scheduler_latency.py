"""How long `Scheduler` takes to decide, from 100 to 100,000 GPUs, while jobs come and go."""

from __future__ import annotations

import heapq
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler

JOBS, DEADLINE = 5000, 0.05
NODES = {104: (1, 13), 1_000: (5, 25), 10_000: (25, 50), 100_000: (250, 50)}
"""Racks and nodes of a rack, of eight GPUs each, by GPUs."""
LOAD = 0.95
_SIZES, _SHARE = (1, 2, 4, 8, 16, 32, 64), (0.45, 0.15, 0.12, 0.16, 0.06, 0.04, 0.02)


@dataclass(frozen=True, slots=True)
class Latency:
    """What was measured of the decisions.

    Attributes:
        p99: 99th percentile by the clock, seconds.
        median, thread: median and 99th percentile of the time of their thread, seconds: a busy machine adds to the
            clock's, and not to these.
        memory: bytes resident at most.
        seconds: of the processor, in all.
    """

    p99: float
    median: float
    thread: float
    memory: int
    seconds: float


def measure(
    gpus: int,
    seed: int,
    price: float | None = None,
    jobs: int = JOBS,
    make: Callable[[int], Scheduler] | None = None,
    terms: Callable[[np.random.Generator], dict[str, Any]] = lambda _: {},
    waiting: int = 0,
) -> Latency:
    """Fill a cluster, then let jobs arrive at the rate at which it is nearly full; a decision after each event.

    Every job may be stopped if there is a price. Sizes are like Philly's, durations log-normal with a long tail.

    Args:
        gpus, seed: of the cluster and the jobs.
        price: of a stop.
        jobs: that arrive while decisions are timed.
        make: the scheduler, by the GPUs.
        terms: what is said of a job besides.
        waiting: jobs that wait from the begin.
    """
    rng = np.random.default_rng(seed)
    scheduler = Scheduler(Fleet.regular(*NODES[gpus], 8), price=price) if make is None else make(gpus)
    total, now, count = NODES[gpus][0] * NODES[gpus][1] * 8, 0.0, 0
    ends: list[tuple[float, str]] = []
    took: list[tuple[float, float]] = []
    lasts: dict[str, float] = {}
    runs: dict[str, float] = {}

    def submit() -> None:
        nonlocal count
        size = int(rng.choice([s for s in _SIZES if s <= total // 2], p=_part(total)))
        seconds = float(rng.lognormal(8.0, 1.6))
        name, count = f"j{count}", count + 1
        lasts[name] = seconds
        scheduler.submit(GangJob(name, "any", (size,)), seconds, now=now, **terms(rng))

    def decide(deadline: float) -> None:
        while True:
            before, own = time.perf_counter(), time.thread_time()
            decision = scheduler.decide(deadline, now=now)
            took.append((time.perf_counter() - before, time.thread_time() - own))
            for stop in decision.stops:
                del runs[stop.job]
            for start in decision.starts:
                runs[start.job] = now + start.seconds
                heapq.heappush(ends, (runs[start.job], start.job))
            if not decision.more or not (decision.starts or decision.stops):  # on a busy machine it may never be done
                return

    held = 0
    while held < LOAD * total and (not waiting or len(scheduler.waiting) <= waiting):  # filled before the clock runs
        for _ in range(max(1, total // 1000)):
            submit()
        decide(60.0)
        held = total - scheduler.idle
    for _ in range(waiting):
        submit()
    decide(60.0)
    gap = float(np.mean(list(lasts.values()))) / max(1, len(scheduler.running))
    took.clear()
    began, last = time.process_time(), count + jobs
    arrives = now
    while count < last:
        arrives += float(rng.exponential(gap))
        while ends and ends[0][0] <= arrives:
            now, name = heapq.heappop(ends)
            if runs.get(name) != now:  # it was stopped
                continue
            del runs[name]
            scheduler.finish(name, now=now)
            decide(DEADLINE)
        now = arrives
        submit()
        decide(DEADLINE)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    clock, thread = np.array(took).T
    p99, median, slow = (float(np.quantile(x, q)) for x, q in ((clock, 0.99), (thread, 0.5), (thread, 0.99)))
    return Latency(p99, median, slow, memory, time.process_time() - began)


def _part(total: int) -> np.ndarray:
    share = np.array([p for s, p in zip(_SIZES, _SHARE, strict=True) if s <= total // 2])
    return np.asarray(share / share.sum())
