"""The network of `solve(method="gnn")` against its rule, random scores, no messages, and search as long.

A seed is a problem: four families by turns, test seeds that no training has seen, of step time every third one with
contention. All run in this process by one thread; seconds are the processor's, without what all methods share. `random`
tries the rules in any order, `fixed` in that in which they are good together. Weights without messages are
`offline-OBJECTIVE-alone` in the folder `--out`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import gangplan
from gangplan.hybrid import portfolio
from gangplan.hybrid.processes import guarded
from gangplan.hybrid.table import own
from gangplan.instances import InstanceError, verify
from gangplan.learned.offline.lessons import label_of, problem_of, task_of
from gangplan.learned.offline.recipe import OfflinePolicy
from gangplan.learned.offline.task import SAMPLES, candidates
from gangplan.learned.policy.weights import FOLDER
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

from .found import Difference, Found, table
from .rows import Task, digest
from .study import Options, Study

PROBLEMS = 40
"""Ten test seeds of each of the four families."""
SMALL, LARGE = 100, 1000
"""Ops of what is trained on, and ten times as many."""
EXACT = 1.0
"""Seconds of the exact methods, which have what the network has found to beat too."""
RULES = {"throughput": "pipedream", "step": "heft"}
NETWORKS = tuple(f"{name}{many}" for name in ("network", "random", "fixed", "no messages") for many in ("", " of 16"))
BEST, RULE, SEARCH, AUTO = "best known", "rule", "rule and search", "auto"
CASES = tuple(f"{objective}, {ops}" for objective, ops in product(RULES, (SMALL, LARGE)))


def tasks(options: Options) -> Iterator[Task]:
    """Yield each case by seed and method."""
    for case in options.chosen(CASES):
        objective, ops = case.split(", ")
        some, others = (NETWORKS, (BEST,)) if ops == str(SMALL) else (NETWORKS[:6], (SEARCH, AUTO))
        for seed in range(options.seeds or PROBLEMS):
            for policy in options.policies or (*some, RULE, *others):
                yield Task(case, policy, seed, digest(_weights(policy, objective, options)))


def _weights(policy: str, objective: str, options: Options) -> Path | None:
    if policy.startswith("no messages"):
        return options.out / f"offline-{objective}-alone.safetensors"
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
        if not known.values:
            raise InstanceError("problem", "has no plan that anybody finds")
        return {"seconds": EXACT, "value": known.values[0], "bound": known.bound}
    if task.policy in (SEARCH, AUTO):
        weights = _weights("network", objective, options)
        limit = _planned(objective, int(ops), task.seed, weights, SAMPLES)[0]
        return _searched(task, problem, prepared, limit, shared)
    if task.policy == RULE:
        run = Run(problem, time_limit=60)
        began = time.process_time()
        suite(objective).methods[RULES[objective]].run(run, prepared)
        return {"seconds": time.process_time() - began, "value": run.objective}
    samples = SAMPLES if task.policy.endswith("of 16") else 0
    weights, drawn = _weights(task.policy, objective, options), task.policy.startswith("random")
    seconds, value = _planned(objective, int(ops), task.seed, weights, samples, drawn)
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
    """Compile and import everything, by one problem of the training seeds."""
    gangplan.warm_up(objective, workers=False)
    suite(objective).methods["local_search"].run(*_run(problem_of(objective, "train", 1, SMALL), 1.0))
    own(objective)["gnn"].run(*_run(problem_of(objective, "train", 1, SMALL), 60.0))


def _run(problem: Any, limit: float) -> tuple[Run, Any]:
    run = Run(problem, time_limit=limit)
    return run, suite(problem.objective).prepare(run)


@lru_cache(maxsize=8)
def _planned(
    objective: str, ops: int, index: int, weights: Path | None, samples: int, drawn: bool = False
) -> tuple[float, float | None]:
    """Return processor seconds, and the value of the plan of the first rule, or the best of some with the classic one.

    Without weights rules come in the order in which they are good together, or as they are drawn.
    """
    problem, prepared, _ = _prepared(objective, ops, index)
    task, best, seconds = task_of(objective), None, 0.0
    policy = OfflinePolicy.load(task, weights or FOLDER / f"{task.name}.safetensors")
    rules = policy.settings.rules
    began = time.process_time()
    decoder = task.decoder(prepared)
    assert decoder is not None
    if weights is not None:
        chosen = policy.choose(task.split(prepared))
    else:
        chosen = list(np.random.default_rng(index).permutation(rules)) if drawn else list(rules[1:])
    made = list(candidates(decoder, chosen, max(samples, 1)))
    if samples and 0 not in chosen[:samples] and (classic := decoder.decode(0)) is not None:
        made.append(classic)
    best = min(made, key=lambda x: x.value, default=None)
    seconds = time.process_time() - began
    return seconds, None if best is None else verify(problem, decoder.plan(best)).objective


def _searched(task: Task, problem: Any, prepared: Any, limit: float, shared: float) -> Mapping[str, float | None]:
    """Return what the rule and annealing, or `auto`, find in so many seconds."""
    objective = task.case.split(", ")[0]
    if task.policy == AUTO:
        portfolio.can_serve = lambda: False  # type: ignore[attr-defined]
        portfolio.guarded = guarded  # type: ignore[attr-defined]
        done = gangplan.solve(problem, time_limit=limit + shared, workers=1)
        return {"seconds": done.wall_seconds - shared, "value": done.objective}
    run, methods = Run(problem, time_limit=limit), suite(objective).methods
    try:
        methods[RULES[objective]].run(run, prepared)
        methods["local_search"].run(run, prepared)
    except TimeoutError:
        pass
    return {"seconds": run.seconds(), "value": run.objective}


def _more(found: Found, case: str, policy: str, other: str) -> Difference | None:
    """Return by how many percent the plans of one cost more than those of the other, in the mean of problems."""
    from gangplan.simulator.metrics import interval

    mine, others = found.of(case, policy, "value"), found.of(case, other, "value")
    more = np.array([100 * (x / others[seed] - 1) for seed, x in mine.items() if seed in others])
    return Difference(len(more), *interval(more), 100.0) if len(more) else None


def compared(found: Found) -> str:
    """Return how far each is above the best known, small, and what rivals cost more than the network's best of 16."""
    lines = []
    for policy in (*NETWORKS, RULE, SEARCH, AUTO):
        cells = []
        for case in CASES:
            small = case.endswith(f" {SMALL}")
            apart = _more(found, case, policy, BEST if small else NETWORKS[1])
            seconds = found.mean(case, policy, "seconds")
            cells.append("" if apart is None or seconds is None else f"{_text(apart)}, {1e3 * seconds:.2g} ms")
        lines.append((policy, *cells))
    return table(
        ("percent above", *(f"{x}: {'best known' if x.endswith(f' {SMALL}') else 'network of 16'}" for x in CASES)),
        lines,
    )


def _text(x: Difference) -> str:
    return f"{x.mean:+.2f}" + ("" if x.margin is None else f" ± {x.margin:.2f}")


STUDY = Study("offline", ("seconds", "value", "bound", "log"), tasks, measure, {"learning.md": {"offline": compared}})
"""Seconds; the verified objective of the plan, its bound where there is one, and its logarithm."""
