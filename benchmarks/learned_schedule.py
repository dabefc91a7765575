"""The learned schedule policy judged: against scores at random, no scores, no messages, and search without learning.

All have the same seconds of one processor, set-up included, with everything compiled and loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.generators.jobs import moldable
from gangplan.learned.schedule.builder import Builder, no_net, plans
from gangplan.learned.schedule.policy import SchedulePolicy, network_of
from gangplan.learned.schedule.settings import Settings
from gangplan.solvers import Run
from gangplan.solvers.schedule.methods import METHODS, SUITE

from .cells import interval, table
from .ledger import ROOT
from .records import append_records, read_records
from .report import renew

WEIGHTS = ROOT / "learned" / "weights"
CSV = ROOT / "benchmarks" / "learned_schedule.csv"
SIZES = ((20, 20), (50, 20), (200, 16), (500, 10), (1000, 6), (2000, 6))
"""Jobs, and how many instances."""
SECONDS = (0.1, 1.0)
_SEED, _LOAD = 1 << 30, 2.0
RIVALS = ("random", "zero", "no messages", "search")


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """One plan.

    Attributes:
        jobs, seed: of the instance, drawn by `gangplan.instances.generators.jobs.moldable` with a load of 2.
        seconds: of the processor that the method had.
        method: ``learned``, or one of `RIVALS`.
        objective: of its plan.
    """

    jobs: int
    seed: int
    seconds: float
    method: str
    objective: float


def run(weights: Path = WEIGHTS, only: str = "", say: Callable[[str], None] = print) -> None:
    """Judge what is missing; a row is written as soon as it is there, so that Ctrl-C loses little.

    Args:
        weights: folder of the weights; without messages are those called schedule-mlp.
        only: only methods with this in 'jobs seed seconds method'.
        say: takes a line an instance.
    """
    done = {(row.jobs, row.seed, row.seconds, row.method) for row in read_records(CSV, LearnedRow)}
    for solve in methods(weights, 0).values():  # loads whatever there is to load
        _judge(solve, 12, 0, 0.5)
    clock, time.perf_counter = time.perf_counter, time.process_time  # whoever else is there, all have as much
    try:
        for jobs, count in SIZES:
            for seed in range(_SEED, _SEED + count):
                for seconds in SECONDS:
                    found = []
                    for name, solve in methods(weights, seed).items():
                        at = jobs, seed, seconds, name
                        if at not in done and only in " ".join(map(str, at)):
                            found.append(LearnedRow(*at, _judge(solve, jobs, seed, seconds)))
                    if found:
                        append_records(found, CSV)
                        say(
                            f"{jobs} {seed} {seconds:g} s: " + ", ".join(f"{x.method} {x.objective:.6g}" for x in found)
                        )
    finally:
        time.perf_counter = clock


def methods(weights: Path, seed: int) -> dict[str, Callable[[Run, Any], None]]:
    """Return what is judged; all begin with what preparing offers."""
    found: dict[str, Callable[[Run, Any], None]] = {"learned": partial(_scored, _policy(weights / "schedule"))}
    found |= {"random": partial(_scored, _random(seed % 8)), "zero": partial(_scored, None)}
    if (weights / "schedule-mlp.safetensors").exists():
        found["no messages"] = partial(_scored, _policy(weights / "schedule-mlp"))
    return found | {"search": _search}


def _judge(solve: Callable[[Run, Any], None], jobs: int, seed: int, seconds: float) -> float:
    """Return the goal of the best plan within the time."""
    run = Run(moldable(jobs, load=_LOAD, seed=seed), time_limit=seconds)
    solve(run, SUITE.prepare(run))
    return float(run.objective or np.inf)


def _scored(policy: SchedulePolicy | None, run: Run, p: Any) -> None:
    builder = Builder(p, stopped=lambda: run.stopped)
    best = np.inf
    if run.stopped:
        METHODS["lists"].run(run, p)
        return
    for cost in plans(builder, no_net() if policy is None else policy.nets([builder])[0]):
        if cost < best:
            best = cost
            run.offer(builder.plan(), "scored")
        if run.stopped:
            return


def _search(run: Run, p: Any) -> None:
    for name, share in (("lists", 0.5), ("lp", 0.5), ("local_search", 1.0)):
        with run.share(share):
            METHODS[name].run(run, p)


@cache
def _policy(path: Path) -> SchedulePolicy:
    return SchedulePolicy.load(path)


@cache
def _random(seed: int) -> SchedulePolicy:
    """Return a network as it is before training, with scores as far apart as those of the trained one."""
    import torch

    torch.manual_seed(seed)
    network = network_of(Settings())
    torch.nn.init.normal_(network.last.weight, std=0.5)
    return SchedulePolicy(network)


def against(rows: Sequence[LearnedRow], seconds: float) -> str:
    """Return a line a size: by how much the learned plans are above each rival's, with 95% intervals of the pairs."""
    found = {(x.jobs, x.seed, x.method): x.objective for x in rows if x.seconds == seconds}
    lines = []
    rivals = [rival for rival in RIVALS if any(x.method == rival for x in rows)]
    for jobs, _ in SIZES:
        mine = {seed: value for (n, seed, method), value in found.items() if (n, method) == (jobs, "learned")}
        cells = []
        for rival in rivals:
            pairs = [mine[s] / found[jobs, s, rival] - 1 for s in mine if (jobs, s, rival) in found]
            low, high = interval(pairs) if pairs else (0.0, 0.0)
            cells.append(f"{100 * np.mean(pairs):+.2f} ({100 * low:+.2f} to {100 * high:+.2f})" if pairs else "")
        lines.append((f"{jobs:,}", str(len(mine)), *cells))
    return table(("jobs", "instances", *rivals), lines)


def write_page(check: bool = False) -> int:
    """Renew docs/learned-schedule.md from the rows, see `renew`."""
    rows = read_records(CSV, LearnedRow)
    tables = {name: partial(against, rows, seconds) for name, seconds in (("tenth", 0.1), ("second", 1.0))}
    return renew(ROOT / "docs" / "learned-schedule.md", tables, "learned schedule --page", check=check)
