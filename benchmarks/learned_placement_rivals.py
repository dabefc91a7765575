"""What the learned placement policy is compared with, each timed from the problem to the plan, on the processor."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.placement import PlacementProblem
from gangplan.learned.placement.build import Decision
from gangplan.learned.placement.decode import Decoder
from gangplan.learned.placement.method import warm
from gangplan.learned.placement.policy import PlacementPolicy
from gangplan.solvers import Run
from gangplan.solvers.placement.methods import METHODS, SUITE
from gangplan.solvers.placement.prepare import Batch

Timed = tuple[float | None, float]
"""The objective, `None` without a plan, and milliseconds."""
_LIMIT, _FIRST = 60.0, 0.8
"""Seconds of what has no limit of its own, and of local search before the exact methods."""


class _Processor(Run):
    """A run whose clock is the processor's: other processes take nothing from it."""

    def __init__(self, problem: PlacementProblem, limit: float) -> None:
        self.until = time.process_time() + limit
        super().__init__(problem, time_limit=limit)

    def remaining(self) -> float:
        """Return the seconds left, at least 0."""
        return max(0.0, self.until - time.process_time())


def _since(started: float) -> float:
    return 1e3 * (time.process_time() - started)


def exact(problem: PlacementProblem, limit: float) -> tuple[float | None, float | None, bool, float]:
    """Return objective, reference, whether that is the optimum, and milliseconds, of the exact methods in turn.

    They are run as ``auto`` did before it had a learned policy: a little of the time for local search, the rest for
    patterns where they say all there is, else for CP-SAT. The limit is by the wall clock, as CP-SAT knows no other.
    """
    started = time.process_time()
    run = Run(problem, time_limit=limit)
    batch = SUITE.prepare(run)
    for name, share in (("local_search", min(0.1, _FIRST / limit)), ("patterns", 0.9), ("cpsat", 1.0)):
        method = METHODS[name]
        if not run.stopped and method.suits(batch):
            with run.share(share):
                method.run(run, batch)
    took, proved = _since(started), run.stop_reason == "proved" and run.objective is not None
    return run.objective, run.objective if proved else run.bound, proved, took


def bound(problem: PlacementProblem) -> tuple[float, float, bool, float]:
    """Return the bound that methods start from, in the same form."""
    started = time.process_time()
    run = Run(problem, time_limit=_LIMIT)
    SUITE.prepare(run)
    least = run.bound or 0.0
    return least, least, False, _since(started)


def heuristic(problem: PlacementProblem, name: str) -> Timed:
    """Place the batch by one of the heuristics."""
    started = time.process_time()
    run = Run(problem, time_limit=_LIMIT)
    METHODS[name].run(run, Batch(problem))
    return run.objective, _since(started)


def local_search(problem: PlacementProblem, limit: float) -> Timed:
    """Place the batch by local search in so many seconds; without a plan by then, what its first heuristic gives."""
    started = time.process_time()
    run = _Processor(problem, limit)
    batch = Batch(problem)
    METHODS["local_search"].run(run, batch)
    took = _since(started)
    if run.objective is None:
        again = Run(problem, time_limit=_LIMIT)
        METHODS["least_interference"].run(again, batch)
        return again.objective, _since(started)
    return run.objective, took


def decoded(problem: PlacementProblem, weights: Path, name: str, rounds: int, seed: int) -> Timed:
    """Place the batch by scores, greedily, and mend it.

    Args:
        problem: the batch.
        weights: of a network.
        name: ``greedy`` (least cost at once), ``random`` and ``trees`` do without a network.
        rounds: of mending for each job; 0 to leave it.
        seed: of what is drawn.
    """
    policy = None if name in ("greedy", "random", "trees") else _policy(weights)
    _warm()
    if policy is not None:
        policy.context(problem)  # warm
    trees = _trees() if name == "trees" else None
    started = time.process_time()
    decoder = Decoder(policy, Batch(problem))
    rng = np.random.default_rng(seed)
    if name == "random":
        decoder.scores = lambda decision: rng.random(len(decision.rows))  # type: ignore[method-assign]
    if trees is not None:
        decoder.scores = lambda decision: _by_trees(trees, decision, decoder)  # type: ignore[method-assign]
    cost = decoder.place()
    if rounds and cost is not None:
        cost = decoder.mend(rounds, seed)
    return cost, _since(started)


@lru_cache(maxsize=1)
def _warm() -> None:
    warm()


@lru_cache(maxsize=8)
def _policy(weights: Path) -> PlacementPolicy:
    return PlacementPolicy.load(weights)


def _by_trees(trees: Any, decision: Decision, decoder: Decoder) -> Any:
    # 12 for a mean weight: as steep as the network begins
    return -12.0 * (decision.price / decoder.builder.unit + trees.predict(decision.x))


@lru_cache(maxsize=1)
def _trees() -> Any:
    """Return gradient-boosted trees that correct what a place costs at once by what it costs in the end."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from gangplan.learned.placement.features import AT
    from gangplan.learned.placement.imitation import labelled
    from gangplan.learned.placement.settings import Settings

    known = labelled(Settings(instances=100, decisions=4, completions=3), None, 0, 0)
    examples = [e for one in known for e in one.decisions]
    x = np.concatenate([e.x for e in examples])
    y = np.concatenate([e.regret - e.x[:, AT["dearer"]] for e in examples])
    return HistGradientBoostingRegressor(max_iter=60, learning_rate=0.1, random_state=0).fit(x, np.clip(y, -2, 2))
