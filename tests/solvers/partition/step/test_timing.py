"""Busy stretches, orders, and better times for a placement."""

import numpy as np
import pytest

from gangplan.instances.generators.families import make

from .conftest import SOURCE, found_by_heft


def test_gaps_against_a_plain_recount():
    """Whole numbers drawn at random take the first free slots, as marking them in an array says."""
    rng = np.random.default_rng(0)
    busy, taken = SOURCE.Stretches(2, 200), np.zeros(4000, dtype=bool)
    for _ in range(150):
        ready, took = int(rng.integers(0, 300)), int(rng.integers(1, 9))
        expected = next(t for t in range(ready, 4000) if not taken[t : t + took].any())
        at = busy.first(1, float(ready), float(took))
        assert at == expected
        taken[expected : expected + took] = True
        busy.take(1, at, at + took)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], taken.astype(int), [0]])))
        assert [*busy.count] == [0, len(edges) // 2]
        assert np.array_equal(busy.low[1, : len(edges) // 2], edges[::2])
        assert np.array_equal(busy.high[1, : len(edges) // 2], edges[1::2])


@pytest.mark.parametrize("seed", range(8))
def test_polishing_never_makes_a_plan_longer(seed):
    """Makespans fall or stay, and every op is after what it reads."""
    made = found_by_heft(make("step", ("layered", "pipeline")[seed % 2], seed, 60))
    if made is None:
        return
    p, where, start = made
    device, start = where[p.group_of], start.copy()
    finish = start + p.arrays.seconds[device, np.arange(p.n)]
    before = finish.max()
    length = SOURCE.polish(SOURCE.Workroom(p), device, start, finish, 4)
    assert length <= before * (1 + 1e-12)
    assert length == finish.max()
    u, v = p.edges
    arrival = finish[u] + p.arrays.delay[p.level[device[u], device[v]], u]
    assert (start[v] >= arrival - 1e-12 * length).all()


def test_sliding_is_sorting():
    """Ops in any order slide to where sorting puts them, ties by their places."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        key, place, order = rng.integers(0, 9, 30).astype(float), rng.permutation(30), rng.permutation(30)
        SOURCE.slide(key, place, order)
        assert np.array_equal(order, np.lexsort((place, -key)))
