"""Busy stretches, and better times for a placement."""

import numpy as np
import pytest

from gangplan.learned.labels import make
from gangplan.learned.step.arrays import arrays_of
from gangplan.learned.step.decode import build, zeros
from gangplan.learned.step.polish import polish
from gangplan.learned.step.timetable import first_gap, occupy
from gangplan.solvers.partition.step.model import prepare


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


@pytest.mark.parametrize("seed", range(8))
def test_polishing_never_makes_a_plan_longer(seed):
    """Makespans fall or stay, and every op is after what it reads."""
    p = prepare(make("step", ("layered", "pipeline")[seed % 2], seed, 60))
    a = arrays_of(p)
    state, _, fits = build(a, zeros(p.n, len(p.edges[0])), p.memory_binds)
    if not fits:
        return
    before = state.finish.max()
    length = polish(a, state.where, state.start, state.finish, 4)
    assert length <= before * (1 + 1e-12)
    assert length == state.finish.max()
    u, v = p.edges
    device = state.where[p.group_of]
    arrival = state.finish[u] + a.delay[p.level[device[u], device[v]], u]
    assert (state.start[v] >= arrival - 1e-12 * length).all()
