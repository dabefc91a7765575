"""Of places that cost the same the tightest is taken; where little is free, of those that nearly do."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.systems.interference.cases import CENTRES, VALIDATION
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.evaluate import alone
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.packing import Packing, left_over


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
