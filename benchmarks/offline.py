"""The network of `solve(method="gnn")` against classic heuristics, random scores, search as long, and CP-SAT.

A seed is a problem: four families of pipelines by turns, test seeds that no training has seen; `offline-more.csv` has
more of them (``--seeds 160 --case 'throughput, 1000' --rows benchmarks/rows/offline-more.csv``).
All run in this process by one thread; seconds are the processor's, without what all methods share, but those of CP-SAT,
which are a clock's. `random` are scores drawn around 0. `classic` is the best of all heuristics in hindsight; CP-SAT
has its plan as a hint, and local search begins with it, its own time not counted. Weights without messages, imitation
or RL are `offline-OBJECTIVE-alone`, `-free` and `-taught` in the folder `--out`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import gangplan
from gangplan.hybrid import portfolio
from gangplan.hybrid.table import import_libraries, own
from gangplan.instances import InstanceError, verify
from gangplan.learned.offline.policy import OfflinePolicy
from gangplan.learned.offline.task import SAMPLES, candidates
from gangplan.learned.policy.weights import FOLDER
from gangplan.learned.training.offline.lessons import label_of, problem_of, task_of
from gangplan.solvers.method import suite
from gangplan.solvers.placement.methods import BATCH_POLICIES
from gangplan.solvers.run import Run

from .found import Difference, Found, table
from .rows import Task, digest
from .study import Options, Study

PROBLEMS, FEW = 40, 10
"""Ten test seeds of each of the four families; those on which CP-SAT runs, and all of a hundred times the size."""
SIZES = {"throughput": 100, "placement": 16}
"""Ops or nodes of what is learned from first."""
TIMES = (1, 10, 100)
"""How much larger problems are."""
EXACT = 1.0
"""Seconds of the exact methods, which have what the network has found to beat too."""
HINTED, PLANNED = 10.0, 1.0
"""Seconds of CP-SAT; and after which a network begins no other of its 16 plans."""
CLASSIC: dict[str, tuple[str, ...]] = {
    "throughput": ("pipedream",),
    "placement": tuple(BATCH_POLICIES),
}
"""Heuristics that build a plan in one go."""
FASTEST = CLASSIC | {
    "throughput": ("pipedream",),
    "placement": ("first_fit", "best_fit", "least_interference", "topology"),
}
"""Those that end in seconds on thousands of ops or nodes."""
NETWORKS = tuple(
    f"{name}{many}" for name in ("network", "random", "no messages", "no imitation", "no RL") for many in ("", " of 16")
)
SHOWN = NETWORKS[1::2]
"""Those of which the page tells."""
BEST, RULE, HEURISTIC, HINT, SEARCH, AUTO = "best known", "rule", "classic", "CP-SAT", "classic and search", "auto"
CASES = tuple(f"{objective}, {times * size}" for times in TIMES for objective, size in SIZES.items())
RULES = {"throughput": "pipedream"}
"""What is corrected, where that is a method."""
CLOCK = time.perf_counter
TRAINED = {"no messages": "alone", "no imitation": "free", "no RL": "taught"}
"""What is left out, by the end of the name of the weights."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield each case by seed and method."""
    for case in options.chosen(CASES):
        objective, times = _of(case)
        others = (BEST, SEARCH, AUTO) if times == 1 else (HINT, SEARCH, AUTO)
        policies = options.policies or (*NETWORKS, RULE, HEURISTIC, *others)
        count = options.seeds or PROBLEMS
        for seed in range(min(FEW, count) if times == TIMES[-1] else count):
            for policy in policies:
                weights = _weights(policy, objective, options)
                fits = weights is None or weights.is_file()
                if fits and not (policy == HINT and seed >= FEW):
                    yield Task(case, policy, seed, digest(weights))


def _of(case: str) -> tuple[str, int]:
    objective, size = case.split(", ")
    return objective, int(size) // SIZES[objective]


def _weights(policy: str, objective: str, options: Options) -> Path | None:
    left_out = TRAINED.get(policy.removesuffix(" of 16"))
    if left_out:
        return options.out / f"offline-{objective}-{left_out}.safetensors"
    return options.weights / f"offline-{objective}.safetensors" if policy.startswith("network") else None


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Plan, verify the plan, and take the logarithm of its objective, which can be compared between problems."""
    found = dict(_measured(task, options))
    return found | {"log": None if found["value"] is None else log(found["value"])}


def _measured(task: Task, options: Options) -> Mapping[str, float | None]:
    time.perf_counter = time.process_time
    objective, ops = task.case.split(", ")
    problem, prepared, shared = _prepared(objective, int(ops), task.seed)
    if task.policy == BEST:
        known = label_of(problem, EXACT)
        if known.plan is None:
            raise InstanceError("problem", "has no plan that anybody finds")
        return {"seconds": EXACT, "value": known.value, "bound": known.bound}
    if task.policy == HEURISTIC:
        return dict(zip(("seconds", "value"), _classic(objective, int(ops), task.seed)[:2], strict=True))
    if task.policy in (SEARCH, AUTO, HINT):
        weights = _weights("network", objective, options)
        limit = HINTED if task.policy == HINT else _planned(objective, int(ops), task.seed, weights, SAMPLES)[0]
        return _searched(task, problem, prepared, limit, shared)
    if task.policy == RULE:
        return _ruled(objective, problem, prepared)
    samples = SAMPLES if task.policy.endswith("of 16") else 0
    seconds, value = _planned(objective, int(ops), task.seed, _weights(task.policy, objective, options), samples)
    return {"seconds": seconds, "value": value}


@lru_cache(maxsize=2)
def _prepared(objective: str, ops: int, index: int) -> tuple[Any, Any, float]:
    problem = problem_of(objective, "test", index, ops)
    _warm(objective)
    began = time.process_time()
    prepared = suite(objective).prepare(Run(problem, time_limit=3600))
    decoder = task_of(objective).decoder(prepared)
    seconds = time.process_time() - began
    if decoder is None:
        raise InstanceError("problem", "has no plan")
    return problem, prepared, seconds


@cache
def _warm(objective: str) -> None:
    """Import everything, by one problem of the training seeds; products of matrices have one thread."""
    import_libraries(objective)
    size = SIZES[objective]
    suite(objective).methods["local_search"].run(*_run(problem_of(objective, "train", 1, size), 1.0))
    own(objective)["gnn"].run(*_run(problem_of(objective, "train", 1, size), 60.0))
    threadpool_limits(1)


def _run(problem: Any, limit: float) -> tuple[Run, Any]:
    run = Run(problem, time_limit=limit)
    return run, suite(problem.objective).prepare(run)


@lru_cache(maxsize=8)
def _planned(objective: str, ops: int, index: int, weights: Path | None, samples: int) -> tuple[float, float | None]:
    """Return processor seconds, and the value of the plan of the first scores, or the best of some and the classic one.

    Without weights scores are drawn around 0.
    """
    problem, prepared, _ = _prepared(objective, ops, index)
    task = task_of(objective)
    policy = OfflinePolicy.load(task, weights or FOLDER / f"{task.name}.safetensors")
    shape = (int(task.graph(prepared).kind[1]), sum(task.scores))
    rng = np.random.default_rng(index)
    began = time.process_time()
    decoder = task.decoder(prepared)
    assert decoder is not None
    if weights is not None:
        chosen = policy.choose(prepared)
    else:
        chosen = [policy.settings.noise * rng.standard_normal(shape) for _ in range(SAMPLES)]
    late = lambda: time.process_time() - began > PLANNED  # noqa: E731, of this call
    made = list(candidates(decoder, chosen[: max(samples, 1)], late))
    if samples and not any(np.array_equal(x, 0) for x in chosen[:samples]) and (classic := decoder.decode(0)):
        made.append(classic)
    best = min(made, key=lambda x: x.value, default=None)
    seconds = time.process_time() - began
    return seconds, None if best is None else verify(problem, decoder.plan(best)).objective


def _ruled(objective: str, problem: Any, prepared: Any) -> Mapping[str, float | None]:
    """Return what the classic rule comes to which the scores of the network correct."""
    run = Run(problem, time_limit=60)
    began = time.process_time()
    if objective in RULES:
        suite(objective).methods[RULES[objective]].run(run, prepared)
        return {"seconds": time.process_time() - began, "value": run.objective}
    decoder = task_of(objective).decoder(prepared)
    plan = None if decoder is None else decoder.decode(0)
    return {"seconds": time.process_time() - began, "value": None if plan is None else plan.value}


@lru_cache(maxsize=4)
def _classic(objective: str, ops: int, index: int) -> tuple[float, float | None, Any]:
    """Return processor seconds, objective and plan of the best classic heuristic, that of the decoder included."""
    problem, prepared, _ = _prepared(objective, ops, index)
    names = (FASTEST if ops == TIMES[-1] * SIZES[objective] else CLASSIC)[objective]
    best = Run(problem, time_limit=3600)
    began, decoder = time.process_time(), task_of(objective).decoder(prepared)
    if decoder is not None and (plan := decoder.decode(0)) is not None:
        best.offer(decoder.plan(plan), RULE)
    for name in names:
        method, run = suite(objective).methods[name], Run(problem, time_limit=3600)
        if method.suits(prepared):
            method.run(run, prepared)
        if run.plan is not None and (best.objective is None or run.objective < best.objective):
            best.offer(run.plan, name)
    return time.process_time() - began, best.objective, best.plan


def _searched(task: Task, problem: Any, prepared: Any, limit: float, shared: float) -> Mapping[str, float | None]:
    """Return what the rule and annealing, or `auto`, find in so many seconds."""
    objective = task.case.split(", ")[0]
    if task.policy == AUTO:
        portfolio.can_serve = lambda: False  # type: ignore[attr-defined]
        done = gangplan.solve(problem, time_limit=limit + shared, workers=1)
        return {"seconds": done.wall_seconds - shared, "value": done.objective}
    plan, clock = _classic(objective, int(task.case.split(", ")[1]), task.seed)[2], time.perf_counter
    method = suite(objective).methods["cpsat" if task.policy == HINT else "local_search"]
    if task.policy == HINT:
        time.perf_counter = CLOCK
    run = Run(problem, time_limit=limit, workers=1)
    run.offer(plan, HEURISTIC)
    try:
        if method.suits(prepared):
            method.run(run, prepared)
    except TimeoutError:
        pass
    seconds, time.perf_counter = run.seconds(), clock
    return {"seconds": seconds, "value": run.objective}


def _more(found: Found, case: str, policy: str, other: str) -> Difference | None:
    """Return by how many percent the plans of one cost more than those of the other, in the mean of problems."""
    from gangplan.simulator.metrics import interval

    mine, others = found.of(case, policy, "value"), found.of(case, other, "value")
    more = np.array([100 * (x / others[seed] - 1) for seed, x in mine.items() if seed in others])
    return Difference(len(more), *interval(more), 100.0) if len(more) else None


def compared(found: Found) -> str:
    """Return how far each is above the best known, small, or above the network's best of 16, larger."""
    lines = []
    for policy in (*SHOWN, HEURISTIC, SEARCH, AUTO, HINT):
        cells = []
        for case in CASES:
            base = BEST if _of(case)[1] == 1 else NETWORKS[1]
            apart = _more(found, case, policy, base)
            cells.append(_text(apart) if apart is not None and policy != base else "")
        if any(cells):
            lines.append((policy.removesuffix(" of 16"), *cells))
    return table(("percent above", *CASES), lines)


def _text(x: Difference) -> str:
    return f"{x.mean:+.2f}" + ("" if x.margin is None else f" ± {x.margin:.2f}")


STUDY = Study("offline", ("seconds", "value", "bound", "log"), tasks, measure, {"learning.md": {"offline": compared}})
"""Seconds; the verified objective of the plan, its bound where there is one, and its logarithm."""
