"""Large problems by the portfolio and by each of its methods alone, with a clock of processor time.

All solves are in one process, which has loaded everything, by one thread, so other work on the machine changes little.
Test seeds up to 1 s, validation seeds with more. `--case` takes "problem, family, size", `--policy` methods.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

import gangplan
from gangplan.hybrid import portfolio
from gangplan.hybrid.portfolio import SHORT
from gangplan.hybrid.table import ENTRIES, import_libraries, methods
from gangplan.instances import InstanceError
from gangplan.instances.generators.families import make_large, seed_of
from gangplan.solvers.result import relative_gap

from .found import Found, table
from .rows import Task
from .study import Options, Study

DEADLINES = {0.03: 8, 0.1: 8, 1.0: 8, 3.0: 2, 10.0: 2}
"""Seconds, and how many seeds there are of each."""
TOLD = (0.1, 1.0, 10.0)
"""Those of the page."""
FIRST = 3000
"""Seed."""
LEVEL = 0.004
"""Problems where `auto` is never further behind in the mean are counted only."""
GROUPS = tuple(
    f"{problem}, {family}, {size}"
    for problem, families, sizes in (
        ("throughput", ("contiguous", "free"), (1_000, 10_000)),
        ("step", ("no contention", "contention"), (1_000, 10_000)),
        ("placement", ("racks",), (256, 1_000)),
        ("schedule", ("moldable",), (500, 2_000)),
    )
    for family, size in product(families, sizes)
)


def tasks(options: Options) -> Iterator[Task]:
    """Yield each problem by seed, then by method and deadline: one that is made is kept until the next."""
    _use_processor_time()
    for seed, group in product(range(FIRST, FIRST + max(DEADLINES.values())), options.chosen(GROUPS)):
        problem, family, _ = group.split(", ")
        for method, (deadline, seeds) in product(options.policies or _entrants(problem, family), DEADLINES.items()):
            if seed - FIRST < min(seeds, options.seeds or seeds):
                yield Task(f"{group}, {deadline:g} s", method, seed)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve; where milliseconds decide, return what the median objective of three solves has."""
    problem, family, size, deadline = task.case.removesuffix(" s").split(", ")
    seconds, found = float(deadline), []
    made = _made(problem, family, int(size), "test" if seconds <= 1 else "validation", task.seed)
    for _ in range(1 if seconds >= SHORT else 3):
        gc.collect()
        found.append(gangplan.solve(made, time_limit=seconds, method=task.policy, workers=1))
    x = sorted(found, key=lambda x: np.inf if x.objective is None else x.objective)[len(found) // 2]
    if x.status == "INFEASIBLE":
        raise InstanceError("problem", "is infeasible")
    return {"seconds": x.wall_seconds, "value": x.objective, "bound": x.bound, "zero": x.zero}


@lru_cache(maxsize=2)
def _made(problem: str, family: str, size: int, split: str, index: int) -> Any:
    import_libraries(problem)
    made: Any = make_large(problem, family, seed_of(split, index), size)
    gangplan.solve(made, time_limit=0.1, workers=1)
    return made


def _entrants(problem: str, variant: str) -> Iterator[str]:
    """Yield `auto` and the methods of its table that solve the variant and make plans."""
    solved = {name for name, variants in methods(problem).items() if variant in variants or problem != "throughput"}
    names = dict.fromkeys(entry.name for entry in ENTRIES if entry.objective == problem and entry.name in solved)
    yield from ("auto", *(name for name in names if name != "bounds"))


def _use_processor_time() -> None:
    """Let the clock of a solve be the processor time of this process, which runs all methods itself."""
    portfolio.can_serve = lambda: False
    time.perf_counter = time.process_time


def behind(found: Found, case: str, seed: int) -> float:
    """Return how much more the plan of `auto` costs than the best of the other methods, 1 without a plan."""
    mine = found.runs[case, "auto"][seed].figures
    values = (found.of(case, p, "value").get(seed) for p in found.policies(case) if p != "auto")
    rivals = [x for x in values if x is not None]
    if "value" not in mine:
        return float(bool(rivals))
    value = mine["value"]
    return (value - min(rivals, default=value)) / max(value - mine["zero"], 1e-300)


def _gap(figures: Mapping[str, float]) -> float:
    """Return the gap of a plan to its bound, 1 without a plan."""
    gap = relative_gap(figures["value"], figures.get("bound"), figures["zero"]) if "value" in figures else 1.0
    return 1.0 if gap is None else gap


def compared(found: Found) -> str:
    """Return mean and worst of what `auto` is behind, by problem and deadline, and its gaps at the last one."""
    lines, level = [], 0
    for group in GROUPS:
        problem, family, size = group.split(", ")
        cells, means = [], [0.0]
        for case in (f"{group}, {deadline:g} s" for deadline in TOLD):
            seeds = found.runs.get((case, "auto"), {})
            more = [behind(found, case, seed) for seed in seeds]
            means.append(float(np.mean(more)) if more else 0.0)
            both = f"{100 * np.mean(more):+.2f}, {100 * max(more):+.2f}" if more else ""
            cells.append("0" if both == "+0.00, +0.00" else both)
        gaps = [_gap(row.figures) for row in seeds.values()]
        cells.append(f"{np.mean(gaps):.1%}, {max(gaps):.1%}" if gaps else "")
        if max(means) < LEVEL:
            level += 1
        else:
            lines.append((f"{problem}, {family}, {int(size):,}", *cells))
    *most, last = (f"{x:g} s" for x in TOLD)
    told = table(("problem, size", *(f"{x}, %" for x in (*most, last)), f"gap to the bound, {last}"), lines)
    return f"{told}\n\nOf {level} others the mean is below {LEVEL:.1%} at each limit."


STUDY = Study(
    "large", ("seconds", "value", "bound", "zero"), tasks, measure, {"tried/measured.md": {"large": compared}}
)
"""Seconds; the verified objective of the plan, its bound, and the objective that counts as nothing."""
