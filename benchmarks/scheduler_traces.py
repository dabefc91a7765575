"""Traces of real clusters, decided by `EngineScheduler` and by classic policies, which stop jobs or do not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import POLICIES, EngineScheduler, EngineView, simulate, simulate_named
from gangplan.simulator.engine.jobs import Long
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

from .policies_bounds import elastic
from .policies_traces import CROSSCHECK, OPENB, PHILLY

CLASSIC = tuple(
    (order, rule) for order in ("sjf", "least_work", "smallest", "fifo", "ljf") for rule in ("easy", "overtake")
)
"""Orders and disciplines that stop nobody; durations are known to all of them, as they are to `EngineScheduler`."""
STOPPING = ("srtf", "srsf", "sjf", "least_work", "smallest", "tiresias")
"""Orders by which jobs are stopped, by the simulator's rule: for a waiting job those that come after it."""
PRICES = (300, 1800)
"""Seconds that its GPUs are held whenever a job runs again after a stop: five minutes, half an hour."""
RULES = ("most", "fits")
"""Numbers of GPUs, where jobs have a choice: the most there are to choose from, or the most that fit now."""
DEGREES, OVERHEAD = (1, 2, 4, 8), 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """A trace on equal nodes of eight GPUs, consolidated.

    Attributes:
        name: of the row.
        needs: the file of the data folder.
        nodes: how many.
        make: the jobs by data folder.
        degrees: on offer to every job besides its own.
    """

    name: str
    needs: str
    nodes: int
    make: Callable[[Path], Workload]
    degrees: tuple[int, ...] = ()


def _file(name: str, queue: str, data: Path) -> Workload:
    """Return whole GPUs and durations only: shares count as whole GPUs."""
    work = read_trace(data / name).workload
    work = work.only(queue) if queue else work
    return Workload(work.names, work.submit, work.gpus, work.duration)


CASES = (
    Case("Philly, 1,000 jobs of ee9e8c", CROSSCHECK, 20, partial(_file, CROSSCHECK, "")),
    Case("Philly, 1,000 jobs of ee9e8c, moldable", CROSSCHECK, 20, partial(_file, CROSSCHECK, ""), DEGREES),
    Case("Philly, virtual cluster 7f04ca, moldable", PHILLY, 10, partial(_file, PHILLY, "7f04ca"), DEGREES),
    Case("openb, pods that ended, whole GPUs", OPENB, 4, partial(_file, OPENB, "")),
    Case("Philly, virtual cluster b436b2", PHILLY, 9, partial(_file, PHILLY, "b436b2")),
    Case("Philly, virtual cluster 6c71a0", PHILLY, 6, partial(_file, PHILLY, "6c71a0")),
    Case("Philly, virtual cluster 0e4a51", PHILLY, 6, partial(_file, PHILLY, "0e4a51")),
    Case("Philly, virtual cluster 7f04ca", PHILLY, 10, partial(_file, PHILLY, "7f04ca")),
    Case("Philly, virtual cluster 2869ce", PHILLY, 6, partial(_file, PHILLY, "2869ce")),
    Case("Philly, virtual cluster 103959", PHILLY, 4, partial(_file, PHILLY, "103959")),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Mean JCT, seconds; of the decisions the median and the 99th percentile, seconds; seconds of the processor."""

    mean_jct: float
    median: float | None
    p99: float | None
    seconds: float


class LeastWorkLeft:
    """Run whoever has least GPU seconds left, and stop others for it: SRSF with Gu et al. (NSDI 2019)."""

    preemptive = True
    steady = True

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Order by the work left."""
        return view.left(jobs) * view.workload.gpus[jobs]


class Widest:
    """Start jobs on as many GPUs as they may have, or as fit now, in the order of seconds or work as asked for.

    Args:
        order: a name of the simulator's policies.
        fitting: whether fewer are taken where the most do not fit.
    """

    steady = True

    def __init__(self, order: str, fitting: bool) -> None:
        self.select = POLICIES[order]().select
        self._fitting = fitting

    def degree(self, job: int, view: EngineView) -> int:
        """Choose the number of GPUs."""
        degrees = view.options.degrees(job)[::-1].tolist()
        fits = (d for d in degrees if not self._fitting or view.find(job, d) is not None)
        return int(next(fits, degrees[-1]))


def labels(case: Case) -> list[str]:
    """Return the policies of a case: a name, a rule, and the price of a stop or the rule for GPUs if there is one."""
    classic = [" ".join(pair) for pair in CLASSIC]
    if case.degrees:
        wide = [f"{name} overtake {rule}" for name in ("sjf", "least_work") for rule in RULES]
        return [*classic, *wide, "optimus overtake", "Scheduler hybrid", "Scheduler hybrid 300"]
    stopping = [f"{name} overtake {price}" for price in PRICES for name in STOPPING]
    return [*classic, "srtf overtake 0", *stopping, "Scheduler hybrid", *(f"Scheduler hybrid {p}" for p in PRICES)]


def bound(case: Case, work: Workload) -> float:
    """Return what no schedule beats, one that stops jobs included."""
    gpus = 8 * case.nodes
    if case.degrees:
        return elastic(work, DegreeOptions.scaling(work, case.degrees, OVERHEAD), gpus).mean_jct
    return mean_jct_bound(work, gpus)


def simulated(case: Case, work: Workload, label: str) -> Found:
    """Run a case by a policy."""
    began, (name, rule, *more) = time.process_time(), label.split()
    price = float(more[0]) if more and more[0].isdigit() else None
    if name != "EngineScheduler" and price is None and not more:
        degrees = case.degrees if name == "optimus" else ()
        found = simulate_named(
            work, case.nodes, 8, name, discipline=rule, consolidate=True, degrees=degrees, overhead=OVERHEAD
        )
        return Found(summary(found).mean_jct, None, None, time.process_time() - began)
    mine, policy = None, None
    if name == "EngineScheduler":
        policy = mine = SchedulerPolicy(policy=rule, price=price)
    elif price is None:
        policy = Widest(name, more[0] == "fits")
    else:
        policy = LeastWorkLeft() if name == "srsf" else POLICIES[name]()
    scheduler = EngineScheduler(
        (policy,), "overtake" if mine is None else "head", True, price is not None or mine is not None
    )
    fleet = Fleet.regular(1, case.nodes, 8, cpu=1e15, memory=1e15)
    options = DegreeOptions.scaling(work, case.degrees, OVERHEAD) if case.degrees else None
    outcome = simulate(work, fleet, scheduler, options=options, preempt_cost=price or 0.0)
    median, p99 = np.quantile(mine.took, [0.5, 0.99]).tolist() if mine is not None else (None, None)
    return Found(summary(outcome).mean_jct, median, p99, time.process_time() - began)
