"""Measure what a new process answers: its first call, its second, and one with all libraries imported.

Each run is a process of its own, by the clock on the wall, with two workers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from . import shops
from .found import Found, table
from .rows import Task
from .study import Options, Study

CALLS = ("first", "second", "loaded")
LIMITS = (0.1, 0.5, 1.0)
FIRST = 8800
"""Seed."""
SEEDS = 5
PROBLEMS: dict[str, str] = {
    "small throughput": "generate('layered', ops=60, layers=8, training=False, devices=4, variant='free', seed={seed})",
    "small step": "generate('layered', ops=40, layers=8, devices=4, seed={seed}, objective='step')",
    "small placement": "generate('gangs', jobs=16, racks=2, nodes=4, load=.8, seed={seed})",
    "small schedule": "generate('moldable', jobs=12, load=2.0, seed={seed})",
    "large throughput": "generate('layered', ops=1000, devices=16, seed={seed})",
    "large step": "generate('layered', ops=1000, devices=16, seed={seed}, objective='step')",
    "large placement": "generate('gangs', jobs=400, racks=32, nodes=8, load=.9, seed={seed})",
    "large schedule": "generate('moldable', jobs=200, load=2.0, seed={seed})",
}
"""Name the call that makes each."""
_PROGRAM = """
import json, sys
import gangplan
from gangplan import generate, solve
from gangplan.hybrid.table import import_libraries
problem = {problem}
if {loaded}:
    import_libraries(problem.objective)
    solve(problem, {limit}, workers=2)
results = [solve(problem, {limit}, workers=2) for _ in range({calls})]
print(json.dumps([[x.wall_seconds, x.objective, x.bound, x.zero] for x in results]))
"""


def tasks(options: Options) -> Iterator[Task]:
    """Yield each problem by seed and limit, as each of the calls."""
    seeds = range(FIRST, FIRST + (options.seeds or SEEDS))
    for seed, case, limit in product(seeds, options.chosen(PROBLEMS), LIMITS):
        yield from (Task(f"{case}, {limit:g} s", call, seed) for call in options.policies or CALLS)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return what one call of a process had."""
    case, limit = task.case.removesuffix(" s").split(", ")
    results = _results(case, float(limit), task.seed, task.policy == "loaded")
    seconds, value, bound, zero = results[task.policy == "second"]
    return {"seconds": seconds, "value": value, "bound": bound, "zero": zero}


@cache
def _results(case: str, limit: float, seed: int, loaded: bool) -> Any:
    program = _PROGRAM.format(
        problem=PROBLEMS[case].format(seed=seed), loaded=loaded, limit=limit, calls=1 if loaded else 2
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def compared(found: Found) -> str:
    """Return a line a case: how much more the plans of first and second calls cost than a loaded one's: mean, worst."""
    lines = []
    for case in found.cases:
        loaded = found.of(case, "loaded", "value")
        cells = []
        for call in CALLS[:2]:
            values = found.of(case, call, "value")
            more = [values[seed] / loaded[seed] - 1 for seed in loaded if seed in values]
            cells.append(f"{np.mean(more):+.1%}, {max(more):+.1%}" if more else "")
        late = max(found.of(case, "first", "seconds").values(), default=0.0)
        lines.append((case, *cells, f"{late:.2f} s"))
    return table(("problem", "first call", "second call", "first call took at most"), lines)


STUDY = Study(
    "fresh",
    ("seconds", "value", "bound", "zero"),
    tasks,
    measure,
    more={
        "table": lambda options: print(compared(STUDY.found(options.rows))),
        "shops": lambda options: print(shops.compared(options.data, options.seeds or shops.ROUNDS)),
    },
)
"""Seconds, value, bound."""
