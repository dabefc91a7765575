"""Of the moves drawn the one is taken that takes most delay off edges, by a sum over all edges in plain arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

from gangplan.instances import StepProblem
from gangplan.instances.generators.families import make
from gangplan.solvers.compiled.kernel import by_reference
from gangplan.solvers.compiled.routines import sow
from gangplan.solvers.partition.step import moves
from gangplan.solvers.partition.step.annealing import anneal, begin
from gangplan.solvers.partition.step.arrays import workroom
from gangplan.solvers.partition.step.methods import METHODS
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.run import Run


@njit
def choose(a: Any, s: Any, seed: int) -> Any:
    """Choose by a seed, with references to what is passed."""
    sow(seed)
    return moves.choose(by_reference(a), by_reference(s))


@njit
def draw(a: Any, s: Any, seed: int, where: Any) -> None:
    """Write the placements that `choose` draws, rows of -1 where it finds none."""
    sow(seed)
    for i in range(len(where)):
        where[i] = -1
        if moves.propose(by_reference(a), by_reference(s)):
            where[i] = s.where
        moves.take_back(by_reference(a), by_reference(s))


def delays(a: Any, edges: Any, where: Any) -> Any:
    """Return the delay of each edge."""
    u, v = edges
    device = where[a.group]
    return a.delay[a.level[device[u], device[v]], u]


@pytest.mark.parametrize("seed", range(6))
def test_the_most_promising_is_taken(seed: int) -> None:
    """What is taken is among the moves drawn, and no other takes more off; critical edges are those of the chain."""
    found: Any = make("step", ("layered", "pipeline", "fork_join")[seed % 3], seed, 60)
    assert isinstance(found, StepProblem)
    p = prepare(replace(found, contention=seed % 2 == 1))
    run = Run(p.problem, time_limit=60)
    METHODS["heft"].run(run, p)
    if run.plan is None:
        pytest.skip("HEFT finds no plan")
    where = run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    a, s = p.arrays, begin(p, workroom(p), where, run.plan.start)
    several, critical = 0, 0
    for i in range(60):
        anneal(a, s, i, 500, 1e-2, 20_000, i)
        before, left = s.where.copy(), s.left.copy()
        drawn = np.empty((moves.TRIED, p.n_groups), np.int64)
        draw(a, s, i, drawn)
        assert (s.where == before).all()
        s.left[:] = left  # but for rounding it is so already, and where a device is full that decides
        hangs = np.zeros(p.n)
        hangs[s.critical[: s.tally[2]]] = 1
        assert (hangs == s.hangs).all()
        both = hangs[p.edges[0]] * hangs[p.edges[1]]
        promise = np.full(moves.TRIED, -np.inf)
        for j in np.flatnonzero(drawn[:, 0] >= 0):
            less = delays(a, p.edges, before) - delays(a, p.edges, drawn[j])
            shares = np.array([less @ both, less.sum()]) / s.length[0]
            promise[j] = (2.5, p.contention) @ (np.sign(shares) * np.log1p(300 * abs(shares)))
            critical += shares[0] != 0
        assert choose(a, s, i) == np.isfinite(promise).any()
        if np.isfinite(promise).any():
            best = np.flatnonzero(promise >= promise.max() - 1e-9)
            assert any((s.where == drawn[j]).all() for j in best)
            several += np.ptp(promise[np.isfinite(promise)]) > 0
            assert (s.room.device == s.where[p.group_of]).all()
        while s.tally[0]:
            undo(a, s)
    assert several > 20 and critical > 20


@njit
def undo(a: Any, s: Any) -> None:
    """Take back with references to what is passed."""
    moves.take_back(by_reference(a), by_reference(s))
