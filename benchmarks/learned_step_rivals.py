"""What the learned step-time policy is compared with: heuristics, exact solves, the book without a network, trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gangplan.instances import StepProblem, verify
from gangplan.learned.step.features import Case
from gangplan.learned.step.play import plan_of, search
from gangplan.learned.step.policy import StepPolicy
from gangplan.learned.step.recipe import load
from gangplan.learned.step.settings import Settings
from gangplan.learned.step.table import names, tabulate
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.result import OPTIMAL_GAP

Timed = tuple[float | None, float]
"""Seconds of the plan, none if there is no plan, and milliseconds of one core: other work on it is left out."""
HEURISTICS = ("heft", "list_schedule", "contiguous", "critical_path")
LONG = "local search (20 s)"
"""How good a plan can be found at all, which is how far off the bound is."""
EXACT = ("cpsat", "lns", "cpsat_below")
_SHARE, _TREES = 0.5, 300


def heuristic(problem: StepProblem, name: str, limit: float) -> Timed:
    """Return the plan of a method of the suite."""
    started = time.process_time()
    run = Run(problem, time_limit=limit)
    p = prepare(problem)
    if name == "local_search":
        # from the plan of HEFT, as the suite does it
        suite("step").methods["heft"].run(run, p)
    suite("step").methods[name].run(run, p)
    return run.objective, 1e3 * (time.process_time() - started)


def exact(problem: StepProblem, limit: float) -> tuple[Timed, float, bool]:
    """Return what the exact methods find on one thread after the heuristics, their bound, and whether that is proved.

    They run in this process, so that its processor time is theirs.
    """
    started = time.process_time()
    run, tools = Run(problem, time_limit=limit), suite("step")
    p = tools.prepare(run)
    for name in (*HEURISTICS, "bounds", *EXACT):
        if not run.stopped and tools.methods[name].suits(p):
            with run.share(1.0 if name == EXACT[-1] else _SHARE):
                tools.methods[name].run(run, p)
    took = 1e3 * (time.process_time() - started)
    proved = run.gap is not None and run.gap <= OPTIMAL_GAP
    return (run.objective, took), run.bound or 0.0, proved


def bound(problem: StepProblem, limit: float) -> float:
    """Return what can be proved without a solver."""
    run = Run(problem, time_limit=limit)
    tools = suite("step")
    tools.methods["bounds"].run(run, tools.prepare(run))
    return run.bound or 0.0


def chosen(problem: StepProblem, base: StepPolicy, settings: Callable[[Case], Any], samples: int) -> Timed:
    """Return the best plan of a policy's base and the first settings, timed from the problem to the plan."""
    started = time.process_time()
    case = base.case(prepare(problem))
    best = None
    for found in search(case, settings(case)[:samples]):
        best = found
    plan = None if best is None else plan_of(case, best[1], best[2])
    took = 1e3 * (time.process_time() - started)
    return None if plan is None else verify(problem, plan).objective, took


@cache
def policy(path: Any) -> StepPolicy:
    """Return the policy of a file of weights, with all that is compiled compiled."""
    from gangplan.instances.generators.families import make

    found: StepPolicy = load(path)
    for family in ("fork_join", "pipeline"):
        found.plan(make("step", family, 0, 20))  # type: ignore[arg-type]  # mypy: of any kind
    return found


@cache
def trees(path: Any) -> Callable[[Case], Any]:
    """Return gradient-boosted trees that rate the settings of a policy's book by the problem's features and the dials.

    They learn from the first of imitation's instances; their features are those of the problem's node.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    settings, book = Settings(), policy(path).network.book.numpy()
    examples = tabulate(names(settings.families, _TREES, settings.size, "train"), book, messages=False)
    rows = np.concatenate([_rows(x.encoding, book) for x in examples])
    regret = np.concatenate([np.minimum(x.regret, 1.0) for x in examples])
    made = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.1, random_state=0).fit(rows, regret)

    def order(case: Case) -> Any:
        return book[np.argsort(made.predict(_rows(case.encoding, book)), kind="stable")]

    return order


def _rows(encoding: Any, book: Any) -> Any:
    about = encoding.nodes["problem"][0]
    return np.concatenate([np.broadcast_to(about, (len(book), len(about))), book], axis=1)


def shuffled(book: Any, seed: int) -> Any:
    """Return the book in a random order."""
    return book[np.random.default_rng(seed).permutation(len(book))]
