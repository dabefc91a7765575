"""What `auto` loses without each of its methods: docs/tried/measured.md.

Fresh instances of GapBench's families, of all sizes by turns, and published graphs (``--data``). A block is an
instance at a limit: a solve that says which methods have a turn, then in a random order `auto` and it without each of
them, every solve with a copy of its own. A method that had no turn is not left out: the solve would be the same.
One worker; a claim is not proved again, since that is no method's. ``--policy before --policy after``: see `SETS`.
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

from .rows import Task
from .study import Options, Study

LIMITS = {0.1: 1, 1.0: 1, 10.0: 5}
"""Seconds, and of how many turns one has the limit."""
FEW = 2
"""Instances of each family."""
FRESH = 57_000
"""Added to seeds: no suite has those."""
ORDER = ("medium", "large", "small", "huge", "toy")
"""Sizes by turns."""
PROBE, WHOLE = "first", "auto"
MORE = {"throughput": ("convex", "convex networks", "free", "published"), "latency": ("published",),
        "placement": ("goals",), "schedule": ("goals",), "step": ("published", "no contention"),
        "stages": ("published",)}  # fmt: skip
"""Families besides GapBench's."""
NAMES = ("pipedream", "bounds", "convex", "pipeline", "random_keys", "local_search", "spectral", "cpsat", "greedy",
         "series", "chain", "ideals", "list_schedule", "lns", "cpsat_below", "dual", "lists", "lp", "starts",
         "patterns", "published", "beam")  # fmt: skip
"""Methods that `auto` had when the study began; rows have their numbers, -1 of a draft."""
_DEVICES = 8
"""A100s of PipeDream's profiles, which name no cluster."""


@cache
def families() -> dict[str, list[list[Instance]]]:
    """Return the specified instances of each family by size, in the order of `ORDER`."""
    found: dict[str, dict[str, list[Instance]]] = {}
    for x in specified():
        if x.objective in OBJECTIVES:
            found.setdefault(f"{x.objective}, {x.family}", {}).setdefault(x.size, []).append(x)
    sized = {name: [own[size] for size in ORDER if size in own] for name, own in found.items()}
    own = {f"{objective}, {name}": [] for objective, names in MORE.items() for name in names}
    return {name: (sized | own)[name] for name in sorted(sized | own)}


def problem_of(family: str, number: int, data: Path) -> Any:
    """Make the instance of a number, the sizes by turns."""
    objective, name = family.split(", ")
    if name == "published":
        return _published(objective, number, data)
    if name == "goals":
        return (_gangs if objective == "placement" else _queue)(number)
    kind = "architecture" if name == "convex networks" else "random"
    sizes = families()[family] or families()[f"{objective}, {kind}"]
    own = sizes[number % len(sizes)]
    made: Any = make(held_out(own[number // len(sizes) % len(own)], FRESH + number))
    if name == "no contention":
        return replace(made, contention=False)
    return replace(made, variant=name.split()[0]) if name.startswith(("convex", "free")) else made


def _gangs(number: int) -> Any:
    goal, running, shares = [*product(GOALS, (0.0, 0.4), (0.0, 0.5))][5 * number % (4 * len(GOALS))]
    jobs = (40, 200, 8, 4)[(number + number // 4) % 4]
    return gangplan.generate("gangs", jobs=jobs, racks=2, nodes=max(1, jobs // 4), gpus=4, load=0.8, goal=goal,
                             running=running, shares=shares, seed=FRESH + number)  # fmt: skip


def _queue(number: int) -> Any:
    goal, rigid = ("makespan", "throughput", "blocked")[number % 3], (0.0, 0.5)[number // 3 % 2]
    return gangplan.generate("moldable", jobs=(60, 500, 12, 6)[number % 4], nodes=4, gpus=4, load=1.2, goal=goal,
                             optional=0.3, rigid=rigid, seed=FRESH + number)  # fmt: skip


def _published(objective: str, number: int, data: Path) -> Any:
    files = sorted((data / "msr-placement" / objective).glob("*.json"))
    if objective != "latency":  # these profiles have backward passes
        files += sorted(x for x in (data / "pipedream").glob("*.txt") if x.stem != "LICENSE")
    if number >= len(files):
        raise InstanceError("data", f"{len(files)} files of {objective} are there")
    file = files[number * 7 % len(files)]
    made: Any = gangplan.read(file, devices=_DEVICES) if file.suffix == ".txt" else gangplan.read(file)
    return gangplan.with_objective(made, objective)


def tasks(options: Options) -> Iterator[Task]:
    """Yield block by block, the first instance of each family first."""
    for turn, (limit, every), family in product(range(options.seeds or FEW), LIMITS.items(), families()):
        case, number = f"{family}, {limit:g} s", turn // every
        if turn % every == every - 1 and options.chosen((case, family)):
            names = dict.fromkeys(x.name for x in portfolio.ENTRIES if x.objective == family.split(", ")[0])
            rest = [*(options.policies or (WHOLE, *(f"without {name}" for name in names)))]
            random.Random(f"{case} {number}").shuffle(rest)
            yield from (Task(case, policy, number) for policy in (PROBE, *rest))


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Solve, without a method if it had a turn in the first solve of the block."""
    name = task.policy.removeprefix("without ")
    block = task.case, task.seed, options.data
    if task.policy == PROBE:
        return _first(*block)
    if name != task.policy and name not in turns(_first(*block)):
        return {"idle": 1.0}
    return _solved(*block, tuple(x for x in portfolio.ENTRIES if x.name != name or x.objective != _of(task.case)[0]))


def _of(case: str) -> tuple[str, str, float, int]:
    """Return objective, family, limit in seconds and workers of a case."""
    objective, family, limit, *workers = case.split(", ")
    return objective, family, float(limit.removesuffix(" s")), int(workers[0].split()[0]) if workers else 1


def turns(figures: Mapping[str, float | None]) -> set[str]:
    """Return the methods that had a turn."""
    return {name for name in NAMES if figures.get(f"ran {name}") is not None}


@lru_cache(maxsize=1)
def _first(case: str, number: int, data: Path) -> Mapping[str, float | None]:
    return _solved(case, number, data, portfolio.ENTRIES)


@lru_cache(maxsize=1)
def _packed(objective: str, family: str, number: int, data: Path) -> bytes:
    return pickle.dumps(problem_of(f"{objective}, {family}", number, data))


@cache
def _ready(objective: str) -> None:
    """Load everything, here and in the server of workers; what proves a claim again has no time."""
    import_module("gangplan.hybrid.solve")._proved = lambda run: (None, ())
    portfolio.import_libraries(objective)
    of = suite(objective)
    for seed, variant in enumerate((*of.variants, *of.variants)):
        gangplan.solve(of.random_problem(seed, variant), time_limit=3.0, workers=1)


def _solved(case: str, number: int, data: Path, entries: Sequence[portfolio.Entry]) -> Mapping[str, float | None]:
    objective, family, limit, workers = _of(case)
    _ready(objective)
    before, problem = portfolio.ENTRIES, pickle.loads(_packed(objective, family, number, data))
    portfolio.ENTRIES = tuple(entries)
    try:
        x = gangplan.solve(problem, time_limit=limit, workers=workers, seed=number)
    finally:
        portfolio.ENTRIES = before
    ran = dict[str, float]()
    for turn in x.turns:
        ran[turn.method] = ran.get(turn.method, 0.0) + turn.ran
    timely = [y.objective for y in x.trace if y.seconds <= limit]
    return {
        "seconds": x.wall_seconds, "value": x.objective, "timely": timely[-1] if timely else None, "bound": x.bound,
        "zero": x.zero, "claimed": x.wall_seconds if x.status in ("OPTIMAL", "INFEASIBLE") else None,
        "by": _number(x.trace[-1].by) if x.trace else None, "bound_by": _number(x.bound_by) if x.bound_by else None,
        "parts": portfolio.parts(problem), **{f"ran {name}": ran.get(name) for name in NAMES},
    }  # fmt: skip


def _number(name: str) -> float:
    return float(NAMES.index(name)) if name in NAMES else -1.0


SETS: dict[str, Any] = {}
"""Other portfolios by the name of a policy: entries."""

STUDY = Study(
    "ablation",
    ("seconds", "value", "timely", "bound", "zero", "claimed", "by", "bound_by", "parts", "idle",
     *(f"ran {name}" for name in NAMES)),
    tasks,
    measure,
)  # fmt: skip
