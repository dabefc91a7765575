"""Count of what `auto` calls optimal how much is proved: docs/proofs-results.md.

Fresh toy and small problems of GapBench's families, drawn by seeds that no suite has, and placements of every goal.
Each has `MORE` times the limit, one worker; it counts if the claim came within the limit. On a machine that others use
limits are longer, by what a busy loop takes on the clock over what it takes of a processor just before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import gangplan
from gangplan.hybrid import witness
from gangplan.hybrid.bench.rows import ONLINE
from gangplan.hybrid.bench.suite import SIZES, Instance, make, specified
from gangplan.hybrid.server import fork_only
from gangplan.hybrid.table import import_libraries
from gangplan.instances.placement.problem import GOALS
from gangplan.solvers.method import OBJECTIVES
from gangplan.solvers.processes import forked

from .found import Found, table
from .rows import Task
from .study import Options, Study

LIMIT = 5.0
"""Seconds within which a claim counts."""
MORE = 1.2
"""Limits within which it is to be proved."""
SAMPLE = 36
"""Problems of an objective, at even steps through its families."""
FRESH = 70_000
"""Added to seeds: no suite has those."""
GANGS = "gangs of all kinds"
"""Family of placements that differ in goal, running jobs and shares of GPUs."""
_LATE = 60.0
"""Seconds that a solve may take after its time is up."""
_BUSY = 0.2
"""Processor seconds of the loop that says how busy the machine is."""


@cache
def problems() -> dict[str, tuple[Instance, ...]]:
    """Return the fresh instances of each objective."""
    small = [replace(x, hash="", arguments={**x.arguments, "seed": FRESH + x.arguments.get("seed", 0)})
             for x in specified() if x.objective != ONLINE and x.size in SIZES[:2]]  # fmt: skip
    groups = {name: [x for x in small if x.objective == name] for name in OBJECTIVES if name != "layout"}
    return {name: tuple(own[i * len(own) // SAMPLE] for i in range(SAMPLE)) for name, own in groups.items()}


def gangs() -> Iterator[Any]:
    """Yield placements of four to six jobs on as many nodes: every goal, with and without running jobs and shares."""
    for seed, (goal, running, shares) in enumerate(product(GOALS, (0.0, 0.4), (0.0, 0.5))):
        for jobs in (4, 6):
            yield gangplan.generate("gangs", jobs=jobs, racks=2, nodes=jobs // 2, gpus=4, load=0.8, goal=goal,
                                    running=running, shares=shares, seed=FRESH + seed)  # fmt: skip


def tasks(options: Options) -> Iterator[Task]:
    """Yield each problem by its number."""
    for name in options.chosen((*problems(), f"placement, {GANGS}")):
        for number in range(len(problems()[name]) if name in problems() else len(list(gangs()))):
            yield Task(name, f"auto, {LIMIT:g} s", number)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve by one thread in a process of its own."""
    own = [*gangs()] if task.case.endswith(GANGS) else None
    problem = make(problems()[task.case][task.seed]) if own is None else own[task.seed]
    _ready(problem.objective)
    load, stretch = os.getloadavg()[0], _stretch()
    until = time.perf_counter() + stretch * MORE * LIMIT + _LATE
    found = forked(lambda: _solved(problem, stretch), lambda: time.perf_counter() > until)
    return {**(found or {"seconds": MORE * LIMIT}), "load": load, "stretch": stretch}


def _stretch() -> float:
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < _BUSY:
        pass
    return max(1.0, (time.perf_counter() - wall) / _BUSY)


@cache
def _ready(objective: str) -> None:
    """Have this process load what its forks will need."""
    from gangplan.solvers.method import suite

    import_libraries(objective)
    own = suite(objective)
    gangplan.solve(own.random_problem(0, own.variants[0]), time_limit=1.0, workers=1, certify=True)


def _solved(problem: Any, stretch: float) -> Mapping[str, float | None]:
    fork_only()
    witness.LEAST *= stretch
    x = gangplan.solve(problem, time_limit=stretch * MORE * LIMIT, workers=1)
    print(f"    {x.standing}")
    claimed = (x.wall_seconds - x.phases.get("prove", 0.0) - x.phases.get("conflict", 0.0)) / stretch
    return {
        "seconds": x.wall_seconds / stretch, "claimed": claimed if x.status == "OPTIMAL" else None,
        "infeasible": claimed if x.status == "INFEASIBLE" else None,
        "proved": float(x.stop_reason == "proved"), "certified": float(x.standing.endswith("(certified)")),
        "processor": sum(os.times()[:4]),
    }  # fmt: skip


def shares(found: Found) -> str:
    """Return by objective how many are optimal within the limit, and how many of these are proved."""
    lines = []
    for (case, _), rows in found.runs.items():
        every = [row.figures for row in rows.values()]
        within = [x for x in every if x.get("claimed", LIMIT + 1) <= LIMIT]
        done = sum(x["proved"] for x in within)
        share = f"{done / len(within):.0%}" if within else ""
        certified = sum(x["certified"] for x in within)
        lines.append((case, str(len(every)), str(len(within)), f"{done:.0f}", share, f"{certified:.0f}"))
    head = "", "problems", f"optimal in {LIMIT:g} s", f"proved in {MORE * LIMIT:g} s", "share", "certified"
    return table(head, lines)


STUDY = Study(
    "proved",
    ("seconds", "claimed", "infeasible", "proved", "certified", "processor", "load", "stretch"),
    tasks,
    measure,
    {"proofs-results.md": {"proved": shares}},
)
"""Seconds of the solve, and until the claim that a plan is optimal, or that there is none, over the stretch; 1 if that
was proved, if by a certificate; processor seconds; load of the machine; how much longer than limits were."""
