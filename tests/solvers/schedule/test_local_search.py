"""Annealing and decoding look at the clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.jobs import moldable
from gangplan.solvers import Run
from gangplan.solvers.schedule import local_search as annealing
from gangplan.solvers.schedule.decode import decoding
from gangplan.solvers.schedule.methods import METHODS
from gangplan.solvers.schedule.prepare import prepare


def test_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 3,000 jobs annealing decodes few lists between two looks, and a list itself is decoded in parts."""
    problem = moldable(3000, load=1.0, seed=0)
    p = prepare(problem)
    parts = list(decoding(p, np.arange(p.n), np.full(p.n, -2)))
    assert len(parts) > 1 and all(x == np.inf for x in parts[:-1]) and np.isfinite(parts[-1])
    sizes: list[int] = []

    def anneal(*given: Any) -> Any:
        sizes.append(len(given[4]))
        return given[1], given[2]

    monkeypatch.setattr(annealing, "_anneal", anneal)
    run = Run(problem, time_limit=60.0, callbacks=(lambda run: None,))
    monkeypatch.setattr(Run, "stopped", property(lambda self: len(sizes) >= 3))
    METHODS["local_search"].run(run, p)
    assert len(sizes) == 3 and max(sizes) * p.n**2 <= 20_000_000
