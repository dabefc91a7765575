"""What `auto` loses without each of its methods: docs/tried/measured.md.

Fresh instances of GapBench's families, of all sizes by turns, and published graphs (``--data``). A block is an
instance at a limit: a first solve says which methods have a turn, then come in a random order `auto` and it without
each of them, every one with a copy of the problem. Without a method that had no turn the solve would be the same.
Rows ``before`` and ``after`` are of the table of 225dc8f23 and of it without what left. One worker but where the case
says two; a claim is not proved again, since that is no method's.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import gangplan
from gangplan.hybrid import table as portfolio
from gangplan.hybrid.bench.suite import Instance, held_out, make, specified
from gangplan.instances import InstanceError
from gangplan.instances.placement.problem import GOALS
from gangplan.solvers.method import OBJECTIVES, suite

from . import ablation_tables
from .ablation_tables import PROBE, WHOLE, of_case
from .rows import Task
from .study import Options, Study

LIMITS = {0.1: 1, 1.0: 1, 10.0: 5}
"""Seconds, and of how many turns one has the limit."""
FEW = 2
"""Instances of each family."""
FRESH = 57_000
"""Added to seeds: no suite has those."""
ORDER = ("medium", "large", "small", "huge", "toy")
MORE = {"throughput": ("convex", "convex networks", "free", "published"), "latency": ("published",),
        "placement": ("goals",), "schedule": ("goals",), "step": ("published", "no contention"),
        "stages": ("published",)}  # fmt: skip
"""Families besides GapBench's."""
NAMES = ("pipedream", "bounds", "convex", "pipeline", "random_keys", "local_search", "spectral", "cpsat", "greedy",
         "series", "chain", "ideals", "list_schedule", "lns", "cpsat_below", "dual", "lists", "lp", "starts",
         "patterns", "published", "beam")  # fmt: skip
"""Methods of `auto` when the study began; rows have their numbers, -1 of a draft."""


@cache
def families() -> dict[str, list[list[Instance]]]:
    """Return the specified instances of each family by size; of those of `MORE` the ones that are changed."""
    found: dict[str, list[list[Instance]]] = {}
    every = [x for x in specified() if x.objective in OBJECTIVES]
    for name, size in product(dict.fromkeys(f"{x.objective}, {x.family}" for x in every), ORDER):
        if own := [x for x in every if f"{x.objective}, {x.family}" == name and x.size == size]:
            found.setdefault(name, []).append(own)
    for objective, name in ((objective, name) for objective, names in MORE.items() for name in names):
        of = "architecture" if name == "convex networks" else "random"
        found[f"{objective}, {name}"] = found.get(f"{objective}, {of}", [])
    return dict(sorted(found.items()))


def problem_of(family: str, number: int, data: Path) -> Any:
    """Make the instance of a number, the sizes by turns."""
    objective, name = family.split(", ")
    if name == "published":
        return _published(objective, number, data)
    if name == "goals" and objective == "placement":
        goal, running, shares = [*product(GOALS, (0.0, 0.4), (0.0, 0.5))][5 * number % (4 * len(GOALS))]
        jobs = (40, 200, 8, 4)[(number + number // 4) % 4]
        return gangplan.generate("gangs", jobs=jobs, racks=2, nodes=max(1, jobs // 4), gpus=4, load=0.8, goal=goal,
                                 running=running, shares=shares, seed=FRESH + number)  # fmt: skip
    if name == "goals":
        goal, rigid = ("makespan", "throughput", "blocked")[number % 3], (0.0, 0.5)[number // 3 % 2]
        return gangplan.generate("moldable", jobs=(60, 500, 12, 6)[number % 4], nodes=4, gpus=4, load=1.2, goal=goal,
                                 optional=0.3, rigid=rigid, seed=FRESH + number)  # fmt: skip
    sizes = families()[family]
    own = sizes[number % len(sizes)]
    made: Any = make(held_out(own[number // len(sizes) % len(own)], FRESH + number))
    if name == "no contention":
        return replace(made, contention=False)
    return replace(made, variant=name.split()[0]) if name.startswith(("convex", "free")) else made


def _published(objective: str, number: int, data: Path) -> Any:
    """Read a graph; PipeDream's profiles have backward passes and name no cluster."""
    files = sorted((data / "msr-placement" / objective).glob("*.json"))
    if objective != "latency":
        files += sorted(x for x in (data / "pipedream").glob("*.txt") if x.stem != "LICENSE")
    if number >= len(files):
        raise InstanceError("data", f"{len(files)} files of {objective} are there")
    file = files[number * 7 % len(files)]
    made: Any = gangplan.read(file, devices=8) if file.suffix == ".txt" else gangplan.read(file)
    return gangplan.with_objective(made, objective)


def tasks(options: Options) -> Iterator[Task]:
    """Yield block by block, the first instance of each family first."""
    for turn, (limit, every), family in product(range(options.seeds or FEW), LIMITS.items(), families()):
        case, number = f"{family}, {limit:g} s", turn // every
        if turn % every == every - 1 and options.chosen((case, family)):
            names = dict.fromkeys(x.name for x in portfolio.ENTRIES if x.objective == of_case(case)[0])
            rest = [*(options.policies or (WHOLE, *(f"without {name}" for name in names)))]
            random.Random(f"{case} {number}").shuffle(rest)
            yield from (Task(case, policy, number) for policy in (PROBE, *rest))


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve, without a method if it had a turn in the first solve of the block."""
    name, block = task.policy.removeprefix("without "), (task.case, task.seed, options.data)
    if task.policy == PROBE:
        return _first(*block)
    if name != task.policy and _first(*block).get(f"ran {name}") is None:
        return {"idle": 1.0}
    return _solved(
        *block, tuple(x for x in portfolio.ENTRIES if (x.objective, x.name) != (of_case(task.case)[0], name))
    )


@lru_cache(maxsize=1)
def _first(case: str, number: int, data: Path) -> Mapping[str, float | None]:
    return _solved(case, number, data, portfolio.ENTRIES)


@lru_cache(maxsize=1)
def _packed(family: str, number: int, data: Path) -> bytes:
    return pickle.dumps(problem_of(family, number, data))


@cache
def _ready(objective: str) -> None:
    """Load everything, here and in the server of processes."""
    portfolio.import_libraries(objective)
    of = suite(objective)
    for seed, variant in enumerate((*of.variants, *of.variants)):
        gangplan.solve(of.random_problem(seed, variant), time_limit=3.0, workers=1)


def _solved(case: str, number: int, data: Path, entries: Sequence[portfolio.Entry]) -> Mapping[str, float | None]:
    objective, family, limit, workers = of_case(case)
    _ready(objective)
    before, problem = portfolio.ENTRIES, pickle.loads(_packed(f"{objective}, {family}", number, data))
    front: Any = import_module("gangplan.hybrid.solve")
    proved, front.prove = front.prove, lambda run: (None, ())  # a claim is taken for an answer
    portfolio.ENTRIES = tuple(entries)
    try:
        x = gangplan.solve(problem, time_limit=limit, workers=workers, seed=number)
    finally:
        portfolio.ENTRIES, front.prove = before, proved
    ran = {name: sum(turn.ran for turn in x.turns if turn.method == name) for name in {y.method for y in x.turns}}
    timely = [y.objective for y in x.trace if y.seconds <= limit]
    return {
        "seconds": x.wall_seconds, "value": x.objective, "timely": timely[-1] if timely else None, "bound": x.bound,
        "zero": x.zero, "claimed": x.wall_seconds if x.status in ("OPTIMAL", "INFEASIBLE") else None,
        "by": _number(x.trace[-1].by) if x.trace else None, "bound_by": _number(x.bound_by) if x.bound_by else None,
        "parts": portfolio.parts(problem), **{f"ran {name}": ran.get(name) for name in NAMES},
    }  # fmt: skip


def _number(name: str) -> float:
    return float(NAMES.index(name)) if name in NAMES else -1.0


STUDY = Study(
    "ablation",
    ("seconds", "value", "timely", "bound", "zero", "claimed", "by", "bound_by", "parts", "idle",
     *(f"ran {name}" for name in NAMES)),
    tasks,
    measure,
    {"tried/measured.md": {"ablation": ablation_tables.left}},
)  # fmt: skip
"""Seconds; value, that within the limit, bound, and what counts as nothing; seconds to the claim; who made the last
plan and bound; parts; 1 if the method had no turn; seconds that each method ran."""
