"""The compiled search says to the bit what numba's said before it, and what it says as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers import native
from gangplan.solvers.method import suite
from gangplan.solvers.placement.build import order_of, start
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.ruin_recreate import arrays, costs, engine, gpus, moves, places, search

from ...uncompiled import uncompiled
from .test_engine import KINDS

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit 2c4fd7fc made of `problems`."""
ROUNDS = 300


def problems() -> Iterator[tuple[str, PlacementProblem]]:
    """Yield problems by name: tiny ones, all that jobs may ask for and all goals, and fleets larger than a view."""
    for seed in range(12):
        yield f"tiny {seed}", suite("placement").random_problem(seed, "")
    for i, options in enumerate(KINDS):
        for jobs, nodes in ((10, 3), (40, 12)):
            size = {"jobs": jobs, "racks": 2, "nodes": nodes, "load": 0.8, "seed": i}
            yield f"kind {i} of {jobs}", gangs(**{**size, **options})
    yield "large", gangs(jobs=150, racks=20, nodes=8, load=0.6, seed=2, running=0.2, optional=0.2)
    yield "full", gangs(jobs=60, racks=4, nodes=4, load=1.0, seed=3, apart=0.5, down=0.1, shares=0.3)


def searched(problem: PlacementProblem, rounds: int = ROUNDS) -> list[str]:
    """Return what insertion, and two walks from where it leads, come to: costs to the bit, and digests of the rows."""
    batch = PreparedBatch(problem)
    ruin, running = engine.RuinRecreate(batch), start(batch).rows
    rows, cost = ruin.insert(running, [j for j in order_of(batch) if not running[j]], 7)
    found = [told(cost, ruin.failed, rows)]
    if cost < np.inf:
        for few, seed in ((None, 1), (5, 2)):
            for walk in ruin.walk(rows, rounds, seed, few):
                last = walk
            costs = ([float(last.now.found)], np.asarray(last.now.cost).tolist())
            found.append(told(last.cost, last.gone(), last.here(), *costs, last.best.tolist(), last.held.tolist()))
    return found


def told(cost: float, *parts: object) -> str:
    """Return a cost to the bit and a digest."""
    return f"{float(cost).hex()} {hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


@pytest.mark.parametrize(("name", "problem"), [*problems()])
def test_outcomes_are_those_recorded(name: str, problem: PlacementProblem) -> None:
    """Insertion and walks give the costs, to the bit, and the placements that numba's kernels gave."""
    assert searched(problem) == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize(
    "name", ["tiny 4", "kind 1 of 10", "kind 3 of 10", "kind 4 of 10", "kind 7 of 10", "kind 9 of 10"]
)
def test_the_source_does_what_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the source as plain Python the search comes to the same."""
    problem = dict(problems())[name]
    compiled, source = searched(problem, 20), uncompiled(native, arrays, costs, gpus, moves, places, search)
    for part in ("BatchArrays", "Placement", "search"):
        monkeypatch.setattr(engine, part, getattr(source, part))
    assert searched(problem, 20) == compiled


def test_arrays_of_another_shape_are_refused() -> None:
    """What does not fit the batch is not read or written beyond its end."""
    (_, first), *_, (_, other) = problems()
    given, none = arrays.BatchArrays(PreparedBatch(first)), np.zeros(0, np.int64)
    now, theirs = arrays.Placement(given, 1), arrays.Placement(arrays.BatchArrays(PreparedBatch(other)), 1)
    best, count = np.zeros((given.jobs, given.most, 3), np.int64), np.zeros(given.jobs, np.int64)
    for call in (
        lambda: search.search(given, theirs, best, count, none, 0, 1, 1, 0),
        lambda: search.search(given, now, best[:, :0].copy(), count, none, 0, 1, 1, 0),
        lambda: search.search(given, now, best, none, none, 0, 1, 1, 0),
        lambda: search.search(given, now, best, count, count, 0, given.jobs + 1, 1, 0),
        lambda: search.search(given, now, best, count, count + given.jobs, 0, 1, 1, 0),
        lambda: search.search(given, now, best, count + given.most + 1, none, 0, 1, 1, 0),
        lambda: search.search(given, now, best + 10**6, count + 1, none, 0, 1, 1, 0),
        lambda: given.suppose(count[1:], np.zeros((1, 1)), np.zeros((1, 1))),
        lambda: given.suppose(count + 1, np.zeros((1, 1)), np.zeros((1, 1))),
    ):
        with pytest.raises(ValueError, match=r"jobs|models"):
            call()
