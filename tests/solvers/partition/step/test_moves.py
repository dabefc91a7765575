"""Of the moves drawn the one is taken that takes most delay off edges, by a sum over all edges in plain arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import StepProblem
from gangplan.instances.generators.families import make
from gangplan.solvers import native
from tests.seeds import some

from .conftest import SOURCE, found_by_heft


def draw(a: Any, s: Any, seed: int) -> Any:
    """Return the placements that `choose` draws, rows of -1 where it finds none."""
    s.random, where = native.Random(seed), np.full((SOURCE.TRIED, len(s.where)), -1)
    for row in where:
        if SOURCE.propose(a, s):
            row[:] = s.where
        SOURCE.take_back(a, s)
    return where


def delays(a: Any, edges: Any, where: Any) -> Any:
    """Return the delay of each edge."""
    u, v = edges
    device = where[a.group]
    return a.delay[a.level[device[u], device[v]], u]


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_the_most_promising_is_taken(seed: int) -> None:
    """What is taken is among the moves drawn, and no other takes more off; critical edges are those of the chain."""
    made: Any = make("step", ("layered", "pipeline", "fork_join")[seed % 3], seed, 60)
    assert isinstance(made, StepProblem)
    found = found_by_heft(replace(made, contention=seed % 2 == 1))
    if found is None:
        pytest.skip("HEFT finds no plan")
    p, where, start = found
    a, s, tried = p.arrays, SOURCE.Annealing(SOURCE.Workroom(p), where, start), SOURCE.TRIED
    several, critical = 0, 0
    for i in range(60):
        SOURCE.anneal(s, i, 500, 1e-2, 1_000, i)
        before, left = s.where.copy(), s.left.copy()
        drawn = draw(a, s, i)
        assert (s.where == before).all()
        s.left[:] = left  # but for rounding it is so already, and where a device is full that decides
        hangs = np.zeros(p.n)
        hangs[s.critical[: s.hanging]] = 1
        assert (hangs == s.hangs).all()
        both = hangs[p.edges[0]] * hangs[p.edges[1]]
        promise = np.full(tried, -np.inf)
        for j in np.flatnonzero(drawn[:, 0] >= 0):
            less = delays(a, p.edges, before) - delays(a, p.edges, drawn[j])
            shares = np.array([less @ both, less.sum()]) / s.length
            promise[j] = (2.5, p.contention) @ (np.sign(shares) * np.log1p(300 * abs(shares)))
            critical += shares[0] != 0
        s.random = native.Random(i)
        assert SOURCE.choose(a, s) == np.isfinite(promise).any()
        if np.isfinite(promise).any():
            best = np.flatnonzero(promise >= promise.max() - 1e-9)
            assert any((s.where == drawn[j]).all() for j in best)
            several += np.ptp(promise[np.isfinite(promise)]) > 0
            assert (s.room.device == s.where[p.group_of]).all()
        SOURCE.take_back(a, s)
    assert several > 20 and critical > 20
