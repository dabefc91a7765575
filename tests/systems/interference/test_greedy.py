"""The search of places by predicted speeds finds what looking at every place finds."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

from gangplan.simulator.snapshots import Snapshots
from gangplan.systems.interference import greedy
from gangplan.systems.interference.baselines import ScoreRule, alone, run
from gangplan.systems.interference.cases import CENTRES, VALIDATION, poisson
from gangplan.systems.interference.environment import Environment, check
from gangplan.systems.interference.greedy import (
    MOST,
    Greedy,
    Packing,
    alternatives,
    left_over,
    places,
    rooms,
)


def busy(seed: int) -> Environment:
    """Return a cluster that is partly full."""
    env = Environment(poisson(seed, jobs=40, kind="ps", load=1.5))
    for _ in range(8):
        ScoreRule("lb", together=True).place(env)
        env.end_interval()
    return env


def rows_of(place: np.ndarray) -> dict[int, tuple[int, int]]:
    """Return server -> (workers, parameter servers) of a place."""
    return {s: (w, p) for s, (w, p) in enumerate(place.tolist()) if w or p}


@pytest.mark.parametrize("seed", range(3))
def test_every_place(seed: int) -> None:
    """The places of a job are all ways to spread its tasks that fit, each once."""
    env = busy(seed)
    small = [job for job in env.waiting if sum(env.left(job)) <= 4]
    for job in small[:3]:
        w, p = env.left(job)
        need = env.case.jobs.worker[job], env.case.jobs.server[job]
        ways = set()
        for workers in product(range(w + 1), repeat=6):
            if sum(workers) != w:
                continue
            for ps in product(range(p + 1), repeat=6):
                used = np.outer(workers, need[0]) + np.outer(ps, need[1])
                if sum(ps) == p and (used <= env.free * (1 + 1e-9)).all():
                    ways.add(tuple((s, (a, b)) for s, (a, b) in enumerate(zip(workers, ps, strict=True)) if a or b))
        found, whole = places(env, job, rooms(env, job))
        if len(ways) <= MOST:
            assert whole and len(found) == len(ways)
            assert {tuple(rows_of(place).items()) for place in found} == ways
        else:
            assert not whole and {tuple(rows_of(place).items()) for place in found} <= ways


def test_moves_reach_what_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few places to begin with, moving single tasks finds one that is hardly worse than the best of all."""
    ratios = []
    for seed in range(6):
        env = busy(seed)
        job = env.waiting[0] if env.waiting else -1
        if job < 0 or not env.fits(job):
            continue
        oracle = Greedy(env.case.truth)
        _, least = oracle._best(env, job, 6)
        monkeypatch.setattr(greedy, "places", partial(places, most=1))
        _, found = oracle._best(env, job, 6)
        monkeypatch.undo()
        assert found >= least * (1 - 1e-9)
        ratios.append(found / least)
    assert len(ratios) > 1 and np.mean(ratios) < 1.05


def test_slack_takes_the_first_of_those_that_are_as_good() -> None:
    """With slack a job goes to the first place that costs no more above the best than that share of its own time."""
    env, later = busy(0), 0
    for job in [j for j in env.waiting if env.fits(j)]:
        exact, loose = Greedy(env.case.truth), Greedy(env.case.truth, slack=0.2)
        tried, whole = places(env, job, rooms(env, job))
        cost = exact._cost(env, [*env.running, job], alternatives(env, job, tried, env.running))
        where = [rows_of(place) for place in tried]
        enough = [rows for rows, x in zip(where, cost, strict=True) if x <= cost.min() + 0.2 * exact.least(env, job)]
        found, least = loose._best(env, job, 6)
        assert not whole or (found == enough[0] and least == cost[where.index(found)])
        later += whole and found != exact._best(env, job, 6)[0]
    assert later > 0


def test_alternatives_are_snapshots() -> None:
    """The snapshot of each place is that of the environment with the job there."""
    env = busy(0)
    job = next(j for j in env.waiting if env.fits(j))
    tried, _ = places(env, job, rooms(env, job))
    speed = env.case.truth.speeds(alternatives(env, job, tried, env.running)).reshape(len(tried), -1)
    for at in (0, len(tried) - 1):
        jobs, rows = [*env.running, job], [*map(env.rows, env.running), rows_of(tried[at])]
        assert np.allclose(speed[at], env.case.truth.speeds(Snapshots.of_rows(env.case.jobs.kind[jobs], rows)))


def test_the_oracle_is_ahead() -> None:
    """With the true speeds jobs end earlier than by a rule that knows none; with patience earlier still."""
    cases = [poisson(VALIDATION + seed, jobs=60) for seed in range(3)]
    jct = []
    for policy in (lambda case: ScoreRule("lb", together=True), lambda case: Greedy(case.truth, 1.0)):
        outcomes = [run(case, policy(case)).outcome() for case in cases]
        assert [check(outcome) for outcome in outcomes] == [[]] * 3
        jct.append(np.mean([outcome.jct.mean() for outcome in outcomes]))
    assert jct[1] < 0.9 * jct[0]


def begun() -> tuple[Environment, int]:
    """Return an empty rack's environment and a job of one worker alone."""
    case = CENTRES["flat"](VALIDATION, jobs=60).at(slice(0, 16))
    job = int(np.flatnonzero((case.jobs.workers == 1) & (case.jobs.servers == 0))[0])
    return Environment(case), job


def test_left_over() -> None:
    """A GPU of a group of two leaves one there; the group beside it counts a tenth, and the server as much again."""
    env, job = begun()
    tried = np.zeros((2, 16, 2), dtype=np.int64)
    tried[0, 3, 0] = tried[1, 5, 0] = 1
    env.free[2, 0] = 0.0
    inside = [np.flatnonzero(g == g[3]) for g in env.case.fleet.topology.group[:2]]
    expected = 1 + sum(0.1 ** (i + 1) * (env.free[x, 0].sum() - 1) for i, x in enumerate(inside))
    assert left_over(env, job, tried)[0] == pytest.approx(expected)
    assert left_over(env, job, tried)[0] < left_over(env, job, tried)[1]


def test_tightest() -> None:
    """Alone everywhere as fast, a job of one worker goes where one GPU is left; `Greedy` takes the first."""
    env, job = begun()
    env.free[9, 0] = 1.0
    truth = alone(env.case.truth)
    assert Greedy(truth).offer(env, job)[0].keys() == {0}
    assert Packing(truth).offer(env, job)[0].keys() == {9}
