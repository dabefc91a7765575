"""Kueue's own performance set-ups, replayed in simulated time: five cohorts of six queues, 15,000 workloads.

A queue has 20 units, may borrow 100 of its cohort, gets them back from any of it, and higher priorities preempt lower
ones of their queue. Theirs has an API server and runs in real time; here arrivals and run times are simulated, and
what is measured is the time that decisions take. With topology there are 640 nodes of 96 cores in ten racks, a third of
the workloads each with the rack required, preferred or any; tasks without GPUs are not stopped.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping

import numpy as np

from gangplan import Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler.settings import Quota, Sharing

COHORTS, QUEUES, UNITS, BORROWS = 5, 6, 20, 100
SIZES = {"small": (350, 0.1, 0.2, 50, 1), "medium": (100, 0.5, 0.5, 100, 5), "large": (50, 1.2, 1.0, 200, 20)}
"""Workloads of a queue, seconds between them, seconds that each runs, priority, units."""
PODS = {"small": (2, 0.5), "medium": (4, 1.25), "large": (8, 2.5)}
"""With topology: pods, and cores of each."""
PLACES: tuple[dict[str, str], ...] = ({"within": "rack"}, {"within": "rack", "topology": "preferred"}, {})


def kueue(topology: bool, share: float = 1.0) -> Mapping[str, float]:
    """Return workloads decided a second of the processor, usage, and mean seconds to admission by size.

    Args:
        topology: whether there are nodes, else units.
        share: of the workloads.
    """
    racks, nodes = (10, 64) if topology else (1, 75)
    total = racks * nodes * 96 if topology else COHORTS * QUEUES * UNITS
    fleet = Fleet.regular(racks, nodes, 0 if topology else 8, cpu=96.0)
    cohort = COHORTS * QUEUES * UNITS / COHORTS / total
    queues = {f"c{i}": Quota(cohort, cohort) for i in range(COHORTS)}
    most = min(cohort, (UNITS + BORROWS) / total)
    queues |= {f"c{i}.q{j}": Quota(UNITS / total, most) for i in range(COHORTS) for j in range(QUEUES)}
    price = None if topology else 0.0
    scheduler = Scheduler(fleet, "heuristic", price=price, together=False, sharing=Sharing(queues))
    arrivals = sorted(
        (n * gap, f"{queue}-{size}-{n}", queue, size)
        for queue in queues
        if "." in queue
        for size, (count, gap, *_) in SIZES.items()
        for n in range(round(count * share))
    )
    ends: list[tuple[float, str]] = []
    begun: dict[str, float] = {}
    came, first = {name: now for now, name, *_ in arrivals}, dict[str, float]()
    at, now, spent, used, last, stops, decisions = 0, 0.0, 0.0, 0.0, 0.0, 0, 0
    while at < len(arrivals) or begun:
        then = min([*(end for end, _ in ends[:1]), *(row[0] for row in arrivals[at : at + 1])])
        used += sum(SIZES[name.split("-")[1]][4] for name in begun) * (then - last)
        now = last = then
        before = time.process_time()
        while at < len(arrivals) and arrivals[at][0] <= now:
            _, name, queue, size = arrivals[at]
            _, _, runs, priority, units = SIZES[size]
            if topology:
                pods, cores = PODS[size]
                gang = GangJob(name, "any", (pods,), Demand(0.0, cores))
                scheduler.submit(gang, runs, now=now, queue=queue, priority=priority, **PLACES[at % 3])  # type: ignore[arg-type]
            else:
                scheduler.submit(GangJob(name, "any", (units,)), runs, now=now, queue=queue, priority=priority)
            at += 1
        while ends and ends[0][0] <= now:
            end, name = heapq.heappop(ends)
            if begun.get(name) == end:
                scheduler.finish(name, now=now)
                del begun[name]
        decision = scheduler.decide(60.0, now=now)
        spent += time.process_time() - before
        decisions, stops = decisions + 1, stops + len(decision.stops)
        for stop in decision.stops:
            del begun[stop.job]
        for start in decision.starts:
            first.setdefault(start.job, now)
            begun[start.job] = now + start.seconds
            heapq.heappush(ends, (begun[start.job], start.job))
    waits = {size: float(np.mean([first[x] - came[x] for x in came if f"-{size}-" in x])) for size in SIZES}
    figures = {"workloads": len(came), "rate": len(came) / spent, "decisions": decisions, "stops": stops}
    return figures | {"usage": used / now / (COHORTS * QUEUES * UNITS), "span": now} | waits
