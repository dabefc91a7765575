"""Busy stretches, orders, and better times for a placement."""

import numpy as np
import pytest
from numba import njit

from gangplan.instances.generators.families import make
from gangplan.solvers.partition.step import timing
from gangplan.solvers.partition.step.arrays import workroom
from gangplan.solvers.partition.step.methods import METHODS
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.partition.step.timing import polish, slide, sort
from gangplan.solvers.run import Run


@njit
def first_gap(low, high, count, ready, took):
    """Call the compiled function of the name."""
    return timing.first_gap(low, high, count, ready, took)


@njit
def occupy(low, high, count, start, end):
    """Call the compiled function of the name."""
    return timing.occupy(low, high, count, start, end)


@njit
def sorted_twice(key, place, order, expected):
    """Slide an order to where it belongs, and write it anew."""
    slide(key, place, order)
    sort(key, place, np.empty(len(key), np.int64), expected)


def test_gaps_against_a_plain_recount():
    """Whole numbers drawn at random take the first free slots, as marking them in an array says."""
    rng = np.random.default_rng(0)
    low, high, count, taken = np.zeros(200), np.zeros(200), 0, np.zeros(4000, dtype=bool)
    for _ in range(150):
        ready, took = int(rng.integers(0, 300)), int(rng.integers(1, 9))
        expected = next(t for t in range(ready, 4000) if not taken[t : t + took].any())
        at = first_gap(low, high, count, float(ready), float(took))
        assert at == expected
        taken[expected : expected + took] = True
        count = occupy(low, high, count, at, at + took)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], taken.astype(int), [0]])))
        assert np.array_equal(low[:count], edges[::2])
        assert np.array_equal(high[:count], edges[1::2])


def heft(p):
    """Return the arrays of a problem, and HEFT's devices of groups, starts and ends, if it finds a plan."""
    run = Run(p.problem, time_limit=60)
    METHODS["heft"].run(run, p)
    if run.plan is None:
        return None
    a, where = p.arrays, run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    start = run.plan.start.copy()
    return a, where, start, start + a.seconds[where[a.group], np.arange(p.n)]


@pytest.mark.parametrize("seed", range(8))
def test_polishing_never_makes_a_plan_longer(seed):
    """Makespans fall or stay, and every op is after what it reads."""
    p = prepare(make("step", ("layered", "pipeline")[seed % 2], seed, 60))
    made = heft(p)
    if made is None:
        return
    a, where, start, finish = made
    before = finish.max()
    length = polish(a, workroom(p), where, start, finish, 4)
    assert length <= before * (1 + 1e-12)
    assert length == finish.max()
    u, v = p.edges
    device = where[p.group_of]
    arrival = finish[u] + a.delay[p.level[device[u], device[v]], u]
    assert (start[v] >= arrival - 1e-12 * length).all()


def test_sliding_is_sorting():
    """Ops in any order slide to where sorting puts them, ties by their places."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        key, place = rng.integers(0, 9, 30).astype(float), rng.permutation(30)
        order, expected = rng.permutation(30), np.empty(30, dtype=np.int64)
        sorted_twice(key, place, order, expected)
        assert np.array_equal(order, expected)
