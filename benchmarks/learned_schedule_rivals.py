"""What the learned schedule policy is compared with: priority lists, local search, trees, scores at random."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.learned.schedule.builder import Builder, no_net
from gangplan.learned.schedule.decode import Decoder, base_of
from gangplan.learned.schedule.examples import builder_of, by_rollouts, solve
from gangplan.learned.schedule.policy import SchedulePolicy, network_of
from gangplan.learned.schedule.settings import Settings
from gangplan.solvers.schedule.decode import decode, start_lists
from gangplan.solvers.schedule.prepare import prepare

Timed = tuple[Any, float]
"""A plan, None if there is none, and milliseconds of processor time: wall-clock times tell of who else is there."""
ONE = "smith, earliest finish"
"""The list that is best on average on the first 60 validation instances of up to 20 jobs."""


def reference(problem: Any, limit: float, large: bool) -> tuple[float | None, float, float]:
    """Return (goal of the best plan known, bound, milliseconds)."""
    started = time.process_time()
    run = solve(problem, limit, ("lp",) if large else ("starts", "cpsat"))
    return run.objective, run.bound or 0.0, 1e3 * (time.process_time() - started)


def lists(problem: Any) -> Timed:
    """Return the best of all priority lists of the suite: six orders, three ways to choose degrees."""
    started = time.process_time()
    p = prepare(problem)
    value, order, wish, _ = start_lists(p)[0]
    return _list(p, value, order, wish, started)


def one_list(problem: Any) -> Timed:
    """Return the plan of the one list that is best on average, timed as part of all of them."""
    started = time.process_time()
    p = prepare(problem)
    value, order, wish, _ = next(x for x in start_lists(p) if x[3] == ONE)
    return _list(p, value, order, wish, started)


def _list(p: Any, value: float, order: Any, wish: Any, started: float) -> Timed:
    if not np.isfinite(value):
        return None, 1e3 * (time.process_time() - started)
    _, option, start, rows = decode(p, order, wish)
    plan = p.plan(option, start, rows)
    return plan, 1e3 * (time.process_time() - started)


def base(problem: Any) -> Timed:
    """Return the schedule that the policy starts from."""
    started = time.process_time()
    decoder = Decoder(prepare(problem))
    found = base_of(decoder)
    plan = decoder.plan() if np.isfinite(found.cost) else None
    return plan, 1e3 * (time.process_time() - started)


def local_search(problem: Any, seconds: float) -> Timed:
    """Return what simulated annealing from the best list finds in so many seconds."""
    started = time.process_time()
    run = solve(problem, max(seconds, 1e-3), ("lists", "local_search"))
    took = 1e3 * (time.process_time() - started)
    return (run.plan if run.plan is not None else lists(problem)[0]), took


def wall(do: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `do` returns, and the seconds on the clock that it took."""
    started = time.perf_counter()
    return do(), time.perf_counter() - started


def learned(problem: Any, policy: SchedulePolicy, samples: int) -> Timed:
    """Return the best of some schedules of a policy."""
    started = time.process_time()
    _, plan = policy.schedule(prepare(problem), samples)
    return plan, 1e3 * (time.process_time() - started)


@cache
def policy(path: Path) -> SchedulePolicy:
    """Return the policy of a file of weights, with all that is compiled compiled."""
    found = SchedulePolicy.load(path)
    for i in range(6):
        found.schedule(builder_of("validation", i, 20).p, 16)
    return found


@cache
def random_policy(seed: int) -> SchedulePolicy:
    """Return a network as it is before training, with scores as far apart as those of the trained one."""
    import torch

    torch.manual_seed(seed)
    network = network_of(Settings())
    torch.nn.init.normal_(network.last.weight, std=0.5)
    return SchedulePolicy(network)


def trees(problem: Any) -> Timed:
    """Return the schedule that takes the candidate of the least regret as gradient-boosted trees foretell it.

    They see the candidate's features, not the graph. Timed with the repeated plays of its prototype: not its best.
    """
    model = _trees()
    started = time.process_time()
    builder, taken = Builder(prepare(problem)), np.empty((0, 2), dtype=np.int64)
    for t in range(builder.p.n):
        _, steps = builder.record(no_net(), follow=taken)
        if len(steps.count) <= t:
            return None, 1e3 * (time.process_time() - started)
        count = int(steps.count[t])
        c = int(np.argmin(model(steps.x[t, :count])))
        taken = np.concatenate([taken, [[steps.jobs()[t, c], steps.cands[t, c, 1]]]])
    cost = builder.build(no_net(), follow=taken)
    plan = builder.plan() if np.isfinite(cost) else None
    return plan, 1e3 * (time.process_time() - started)


@cache
def _trees() -> Callable[[Any], Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng, examples = np.random.default_rng(0), []
    for i in range(600):
        builder = builder_of("train", i, int(rng.integers(8, 31)))
        one = by_rollouts(builder, builder.graph(), no_net(), no_net(), rng, states=6)
        examples += [one] if one is not None else []
    x = np.concatenate([e.x for e in examples])
    regret = np.concatenate([np.minimum(e.regret, 4.0) for e in examples])
    found: Any = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.1, random_state=0).fit(x, regret).predict
    return found


HEURISTICS: dict[str, Callable[[Any], Timed]] = {"lists": lists, "one list": one_list, "base": base, "trees": trees}
