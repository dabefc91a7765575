"""Annealing costs what its lists cost, and looks at the clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.jobs import moldable
from gangplan.solvers import Run
from gangplan.solvers.schedule import local_search as annealing
from gangplan.solvers.schedule.decode import Decoder
from gangplan.solvers.schedule.methods import METHODS
from gangplan.solvers.schedule.prepare import prepare


@pytest.mark.parametrize("goal", ["weighted_completion", "makespan", "blocked"])
@pytest.mark.parametrize("capacity", ["pool", "nodes", "ramp"])
def test_costs_are_those_of_the_lists(goal: str, capacity: str) -> None:
    """A list that was decoded from its changes on costs what it costs when decoded as a whole."""
    problem = moldable(30, 2, 4, 2.0, seed=3, goal=goal, capacity=capacity, optional=0.3, fraction=2.0)
    run, p = Run(problem, time_limit=60.0), prepare(problem)
    METHODS["lists"].run(run, p)
    search, rng = annealing._ListSearch(run, p), np.random.default_rng(0)
    best = search.restart()
    assert run.objective is not None
    for heat in (1.0, 0.01):
        found = search.step(best, np.full(400, heat * run.objective), rng.random((400, 5)))
        walk, decoder = search._walk, Decoder(p)
        now = walk.cost[-1] + (walk.last[-1] if p.makespan else 0.0)
        assert found <= best and decoder.decode(walk.order, walk.wish) == pytest.approx(now + p.constant)
        assert decoder.decode(walk.best_order, walk.best_wish) == pytest.approx(found + p.constant)
        best = found


def test_a_list_is_decoded_in_parts() -> None:
    """On 3,000 jobs the clock is looked at while a list is decoded."""
    p, looks = prepare(moldable(3000, load=1.0, seed=0)), []
    assert np.isfinite(Decoder(p).decode(np.arange(p.n), stopped=lambda: bool(looks.append(1))))
    assert len(looks) > 1
    assert Decoder(p).decode(np.arange(p.n), stopped=lambda: True) == np.inf


def test_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks annealing makes as many changes as the last ones say that there is time for."""
    problem, sizes = moldable(300, load=1.0, seed=0), list[int]()

    def anneal(*given: Any) -> float:
        sizes.append(len(given[-1]))
        return 1.0

    monkeypatch.setattr(annealing, "anneal", anneal)
    monkeypatch.setattr(annealing, "_LOOK", 1e-9)
    run = Run(problem, time_limit=60.0)
    p = prepare(problem)
    METHODS["lists"].run(run, p)
    monkeypatch.setattr(Run, "stopped", property(lambda self: len(sizes) >= 4))
    METHODS["local_search"].run(run, p)
    assert sizes[:4] == [1, 1, 1, 1]
