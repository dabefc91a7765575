"""How long jobs wait until they are due: `patience` and `max_wait` chosen on train windows, shown on test windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, simulate, simulate_named

from .found import Found, table
from .policies_traces import OPENB, PHILLY
from .rows import Task
from .study import Options, Study

LOADS = (0.7, 0.9, 1.1)
CHOSEN = 0.9
"""Load at which the default was chosen."""
PRICE = 300
"""Seconds of a stop, where jobs may be stopped."""
PATIENCES = (2, 5, 10, 20, 50)
HOURS = (None, 6, 12, 24, 48)
"""Values of `max_wait`, hours."""
LEAST = 10
"""Times its seconds before which `max_wait` has no say: with less patience than that it makes no difference."""
BEFORE, NOW, FIRST = "50, none", "50, 24 h", "first come, EASY"
LENGTHS, DAY = 10.0, 86400.0
"""Multiple of its seconds, and seconds, beyond both of which a job waits too long."""


@dataclass(frozen=True, slots=True)
class Window:
    """Jobs on equal nodes of eight GPUs: of seed 0 to choose on, of those from 1 on to show."""

    nodes: int
    make: Callable[[int, Path], Workload]
    shown: int = 1


def _trace(file: str, every: int, half: int, data: Path) -> Workload:
    """Return every so many a job of one half of a trace: whole GPUs and durations only."""
    if not (data / file).exists():
        raise InstanceError("data", f"there is no {file}")
    work = read_trace(data / file).workload
    order = np.argsort(work.submit, kind="stable")
    order = np.array_split(order[work.duration[order] > 0], 2)[half][::every]
    return Workload(tuple(map(str, order)), work.submit[order], work.gpus[order], work.duration[order])


def _trainings(jobs: int, seed: int, data: Path) -> Workload:
    """Draw jobs of half an hour in the median, and trainings of two hours that need all 24 GPUs, one in 300."""
    rng = np.random.default_rng(seed)
    large = rng.random(jobs) < 1 / 300
    seconds = np.where(large, 7200.0, rng.lognormal(np.log(1800.0), 1.0, jobs))
    gpus = np.where(large, 24, rng.choice([1, 2, 4, 8], jobs))
    return Workload(tuple(map(str, range(jobs))), rng.exponential(1.0, jobs).cumsum(), gpus, seconds)


WINDOWS = {
    "Philly": Window(16, partial(_trace, PHILLY, 45)),
    "openb": Window(8, partial(_trace, OPENB, 4)),
    "whole-cluster trainings": Window(3, partial(_trainings, 2000), 2),
}
HALVES = ("train", "test")


def rules(half: str, price: int) -> list[str]:
    """Return the settings that are run: all those that differ where the default is chosen, with stops fewer of them."""
    if half == "test":
        return [_named(BEFORE, price), _named(NOW, price), *([] if price else [FIRST])]
    if price:
        return [_named(rule, price) for rule in (BEFORE, NOW, "10, none")]
    every = [(p, h) for p in PATIENCES for h in HOURS if h is None or p > LEAST]
    return [*(f"{p}, {'none' if h is None else f'{h} h'}" for p, h in every), FIRST]


def _named(rule: str, price: int) -> str:
    return f"{rule}, price {price}" if price else rule


def tasks(options: Options) -> Iterator[Task]:
    """Yield all runs."""
    for price, half, (name, window), load in product((0, PRICE), HALVES, WINDOWS.items(), LOADS):
        case = f"{name}, {half}, load {load}"
        seeds = range(1, 1 + window.shown) if half == "test" else range(1)
        if options.chosen((case,)) and (half == "test" or load == CHOSEN):
            yield from (Task(case, rule, seed) for rule in rules(half, price) for seed in seeds)


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Return mean JCT, the wait over the length, who waits too long, and by how much at most."""
    began = time.process_time()
    name, _, load = task.case.split(", ")
    window = WINDOWS[name]
    work = window.make(task.seed, options.data)
    gpus = np.minimum(work.gpus, 8 * window.nodes)
    submit = work.submit - work.submit.min()
    pace = float(gpus @ work.duration) / (8 * window.nodes * submit.max()) / float(load.split()[1])
    work = Workload(work.names, submit * pace, gpus, work.duration)
    if task.policy == FIRST:
        outcome = simulate_named(work, window.nodes, 8, "fifo", discipline="easy", consolidate=True)
    else:
        patience, hours, *stops = task.policy.split(", ")
        most = None if hours == "none" else 3600.0 * float(hours.removesuffix(" h"))
        price = PRICE if stops else None
        policy = SchedulerPolicy(price=price, patience=float(patience), max_wait=most)
        fleet = Fleet.regular(1, window.nodes, 8, cpu=1e15, memory=1e15)
        scheduler = EngineScheduler((policy,), "head", True, True)
        outcome = simulate(work, fleet, scheduler, preempt_cost=price or 0.0)
    jct = outcome.finish - work.submit
    wait = np.maximum(jct - work.duration, 0.0)
    over = wait - np.maximum(LENGTHS * work.duration, DAY)
    ratio = wait / work.duration
    return {
        "jobs": work.n_jobs,
        "mean_jct": float(jct.mean()),
        "p99": float(np.quantile(ratio, 0.99)),
        "largest": float(ratio.max()),
        "late": float((over > 0).mean()),
        "excess": max(0.0, float(over.max())),
        "seconds": time.process_time() - began,
    }


def shown(found: Found) -> str:
    """Return a line for each test window and price on which `max_wait` changes anything: before, now, first come."""
    lines = []
    for case in (case for case in found.cases if ", test, " in case):
        for price in (0, PRICE):
            cells = [_cell(found, case, rule) for rule in (_named(BEFORE, price), _named(NOW, price))]
            cells.append("" if price else _cell(found, case, FIRST))
            if cells[0] == cells[1]:
                continue
            lines.append((case.replace(", test, load", ""), str(price) if price else "none", *cells))
    return table(("window, load", "price", "`max_wait=None`", "default", FIRST), lines)


def _cell(found: Found, case: str, rule: str) -> str:
    """Return mean JCT in hours; p99 and largest wait over length; who waits too long, and how many hours at most."""
    if (case, rule) not in found.runs:
        return ""
    each = {name: list(found.of(case, rule, name).values()) for name in FIGURES}
    late, excess = float(np.mean(each["late"])), max(each["excess"]) / 3600
    words = f"; {late:.2%} by {excess:,.1f} h" if late else ""
    return f"{np.mean(each['mean_jct']) / 3600:,.2f}; {np.mean(each['p99']):,.1f}, {max(each['largest']):,.0f}{words}"


FIGURES = ("jobs", "mean_jct", "p99", "largest", "late", "excess", "seconds")
STUDY = Study("patience", FIGURES, tasks, measure, {"operators-results.md": {"patience": shown}})
