"""Traces of real clusters, decided by `Scheduler` and by every classic policy that, like it, never stops a job."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.hybrid.online.kept import SHARES
from gangplan.hybrid.online.trace import Elastic, Online
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import Scheduler, simulate, simulate_named
from gangplan.simulator.metrics import summary
from gangplan.simulator.trace.menu import Menu
from gangplan.solvers.schedule.clairvoyant import mean_jct_bound

from .policies_bounds import elastic
from .policies_traces import CROSSCHECK, OPENB, PHILLY

CLASSIC = tuple(
    (order, rule) for order in ("sjf", "least_work", "smallest", "fifo", "ljf") for rule in ("easy", "overtake")
)
"""Orders and disciplines; durations are known to all of them, as they are to `Scheduler`."""
STOPPING = (("srtf", "overtake"),)
"""Told beside them: it stops jobs, for free here, which `Scheduler` never does."""
FIXED = (0.55, 0.4)
"""Shares of the longest jobs that are also run as they are, without a lookahead to choose them."""
CHOSEN = {"chosen": SHARES, "chosen-0.55": (0.55, *(share for share in SHARES if share != 0.55))}
"""Shares among which the lookahead chooses, the first to begin with."""
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
    Case("openb, pods that ended, whole GPUs", OPENB, 4, partial(_file, OPENB, "")),
    Case("Philly, virtual cluster b436b2", PHILLY, 9, partial(_file, PHILLY, "b436b2")),
    Case("Philly, virtual cluster 6c71a0", PHILLY, 6, partial(_file, PHILLY, "6c71a0")),
    Case("Philly, virtual cluster 0e4a51", PHILLY, 6, partial(_file, PHILLY, "0e4a51")),
    Case("Philly, virtual cluster 7f04ca", PHILLY, 10, partial(_file, PHILLY, "7f04ca")),
    Case("Philly, virtual cluster 6214e9", PHILLY, 6, partial(_file, PHILLY, "6214e9")),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Mean JCT, seconds; of the decisions the median and the 99th percentile, seconds; seconds of the processor."""

    mean_jct: float
    median: float
    p99: float
    seconds: float


def labels(case: Case) -> list[str]:
    """Return the policies of a case."""
    classic = [" ".join(pair) for pair in (*CLASSIC, *STOPPING)]
    if case.degrees:
        return [*classic, "optimus overtake", "Scheduler heuristic", "Scheduler learned", "Scheduler hybrid"]
    return [*classic, "Scheduler heuristic", *(f"Scheduler {s}" for s in (*FIXED, *CHOSEN)), "Scheduler hybrid"]


def bound(case: Case, work: Workload) -> float:
    """Return what no schedule beats, one that stops jobs included."""
    gpus = 8 * case.nodes
    if case.degrees:
        return elastic(work, Menu.scaling(work, case.degrees, OVERHEAD), gpus).mean_jct
    return mean_jct_bound(work, gpus)


def simulated(case: Case, work: Workload, label: str, seed: int) -> Found:
    """Run a case by a policy."""
    began, (name, rule) = time.process_time(), label.split()
    if name != "Scheduler":
        degrees = case.degrees if name == "optimus" else ()
        found = simulate_named(
            work, case.nodes, 8, name, discipline=rule, consolidate=True, degrees=degrees, overhead=OVERHEAD
        )
        return Found(summary(found).mean_jct, 0.0, 0.0, time.process_time() - began)
    options: dict[str, Any] = {"policy": rule}
    if rule[0].isdigit():
        options = {"policy": "heuristic", "shares": (float(rule),)}
    elif rule in CHOSEN:
        options = {"policy": "hybrid", "shares": CHOSEN[rule]}
    policy = (Elastic if case.degrees else Online)(seed=seed, **options)
    fleet = Fleet.regular(1, case.nodes, 8, cpu=1e15, memory=1e15)
    menu = Menu.scaling(work, case.degrees, OVERHEAD) if case.degrees else None
    outcome = simulate(work, fleet, Scheduler((policy,), "head", consolidate=True), menu=menu)
    median, p99 = np.quantile(policy.took, [0.5, 0.99]).tolist()
    return Found(summary(outcome).mean_jct, median, p99, time.process_time() - began)
