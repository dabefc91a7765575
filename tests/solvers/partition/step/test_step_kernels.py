"""Compiled kernels say to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import StepProblem
from gangplan.instances.generators.families import make
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.settings import HEFT, TOGETHER, clustered, draw, prices_of

from .conftest import COMPILED, SOURCE

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `problems`."""
FAMILIES = ("layered", "fork_join", "series_parallel", "pipeline")
STEPS = 400


def problems(tiny: int = 24, larger: int = 8) -> Iterator[tuple[str, StepProblem]]:
    """Yield problems by name: tiny ones of all kinds; larger ones, with ample memory and little, and ops of no time."""
    for seed in range(tiny):
        yield f"tiny {seed}", suite("step").random_problem(seed, "")
    for seed in range(larger):
        made: Any = make("step", FAMILIES[seed % 4], seed, 40 + 20 * (seed % 4))
        yield f"{FAMILIES[seed % 4]} {seed}", (made := replace(made, contention=seed % 3 == 1))
        graph, cluster, rng = made.graph, made.cluster, np.random.default_rng(seed)
        memory, some = rng.integers(1, 9, graph.n_ops).astype(float), rng.random(graph.n_ops) < 0.3
        graph = replace(graph, memory=memory, time=np.where(some, 0.0, graph.time))
        most = prepare(replace(made, graph=graph)).group_memory.max()
        room = memory.sum() / cluster.n_devices + most * (1 + seed % 3) / 3
        kinds = tuple(replace(kind, memory=room) for kind in cluster.device_types)
        yield f"tight {seed}", replace(made, graph=graph, cluster=replace(cluster, device_types=kinds))


def said(p: Prepared, kernels: Any = COMPILED, steps: int = STEPS) -> list[str]:
    """Return digests of three random schedules, each polished, of lists of two kinds, and of two annealings."""
    rng = np.random.default_rng(p.n)
    p.__dict__["arrays"] = kernels.StepArrays(p)
    found = []
    for _ in range(3):
        room = kernels.Workroom(p)
        where = np.array([rng.choice(np.flatnonzero(x)) for x in p.allowed], np.int64)
        plan = kernels.placed(p, room, where, shuffled(p, rng))
        start, finish = np.array(room.start), np.array(room.finish)
        told = [start, finish, plan.sent, plan.receiver, plan.sent_at]
        found.append(digest(*told, kernels.polish(room, where[p.group_of], start, finish, 4), start, finish))
    room, tried, fitting = kernels.Workroom(p), [HEFT, *TOGETHER, *draw(rng, 8)], None
    for careful in (False, True):
        told = []
        for settings in tried:
            a, label, bond = clustered(p, settings)
            state = kernels.ListState(room, a, prices_of(p.basis, settings), bond)
            fits = kernels.build(state, careful)
            told += [fits, [] if label is None else label, room.order]
            if fits:
                told += [state.where, room.start, room.finish]
                where = np.asarray(state.where) if label is None else np.asarray(state.where)[label]
                fitting = fitting or (where, np.array(room.start))
        found.append(digest(*told))
    if fitting and p.n_devices > 1:
        search, i = kernels.Annealing(room, *fitting), 0
        told = [search.length, search.best]
        for turn in range(4):
            i = kernels.anneal(search, i, steps, (1e-2, 1e-1)[turn // 2], 2 * steps * p.n, turn)
            told += [i, search.length, search.best, search.best_where, search.best_order, room.order, room.start]
            i = 0 if turn == 1 else i
        found.append(digest(*told))
    return found


def shuffled(p: Prepared, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return the ops in a random topological order."""
    last = np.zeros(p.n)
    for v in p.order:
        before = p.predecessors[1][p.predecessors[0][v] : p.predecessors[0][v + 1]]
        last[v] = max(last[before], default=0.0) + rng.random()
    return np.argsort(last)


def traced(problem: StepProblem) -> str:
    """Return a digest of what the methods find one after the other, until each ends by itself."""
    run, p = Run(problem, time_limit=600.0, seed=3), prepare(problem)
    for name in ("list_schedule", "local_search"):
        suite("step").methods[name].function(run, p)
    plan = () if run.plan is None else (run.plan.device, run.plan.start, run.plan.sent_at)
    return digest([x.objective for x in run.trace], *plan)


def digest(*parts: Any) -> str:
    """Return a digest of numbers to the bit, but for the sign of a zero."""
    rows = (np.ascontiguousarray(np.asarray(x, np.float64) + 0.0).tobytes() for x in parts)
    return hashlib.sha256(b"".join(rows)).hexdigest()[:16]


@pytest.mark.parametrize(("name", "problem"), [x for x in problems() if prepare(x[1]).allowed.any(axis=1).all()])
def test_outcomes_are_those_recorded(name: str, problem: StepProblem) -> None:
    """Schedules, lists, annealings and what methods make of them are to the bit what numba's kernels gave."""
    assert [*said(prepare(problem)), traced(problem)] == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize("name", ["tiny 2", "tiny 18", "tiny 20", "fork_join 1", "tight 1", "tight 6"])
def test_the_source_does_what_is_compiled(name: str) -> None:
    """Run from the source as plain Python all kernels say the same."""
    problem = dict(problems())[name]
    assert said(prepare(problem), SOURCE, 20) == said(prepare(problem), COMPILED, 20)


def test_what_does_not_fit_is_refused() -> None:
    """Plans, prices, bonds and edges of another shape are not read or written beyond their ends."""
    p, other = (prepare(x) for x in (dict(problems())["layered 0"], dict(problems())["tiny 2"]))
    room, theirs, prices = COMPILED.Workroom(p), COMPILED.Workroom(other), prices_of(p.basis, HEFT)
    n, groups = p.n, p.n_groups
    device, where, order = np.zeros(n, np.int64), np.zeros(groups, np.int64), np.arange(n)
    start, finish, ends, load = np.zeros(n), np.zeros(n), np.arange(3), np.ones(3)
    for call in (
        lambda: COMPILED.placed(other, room, where, order),
        lambda: COMPILED.placed(p, room, where + p.n_devices, order),
        lambda: COMPILED.placed(p, room, where - 1, order),
        lambda: COMPILED.placed(p, room, where, order[1:]),
        lambda: COMPILED.placed(p, room, where, order + 1),
        lambda: COMPILED.polish(room, device[1:], start, finish, 1),
        lambda: COMPILED.polish(room, device + p.n_devices, start, finish, 1),
        lambda: COMPILED.polish(room, device, start[1:], finish, 1),
        lambda: COMPILED.polish(room, device, start, finish[1:], 1),
        lambda: COMPILED.Annealing(room, where[1:], start),
        lambda: COMPILED.Annealing(room, where + p.n_devices, start),
        lambda: COMPILED.Annealing(room, where, start[1:]),
        lambda: COMPILED.ListState(theirs, p.arrays, prices),
        lambda: COMPILED.ListState(room, p.arrays, (start[1:], *prices[1:])),
        lambda: COMPILED.ListState(room, p.arrays, (start, start, *prices[2:])),
        lambda: COMPILED.ListState(room, p.arrays, (*prices[:3], prices[3][1:])),
        lambda: COMPILED.ListState(room, p.arrays, prices, where[1:]),
        lambda: COMPILED.ListState(room, p.arrays, prices, where + groups),
        lambda: COMPILED.union(ends, ends + 1, ends, load, load.copy(), 9.0, 9.0),
        lambda: COMPILED.union(ends, ends[1:], ends, load, load.copy(), 9.0, 9.0),
        lambda: COMPILED.union(ends, ends, ends - 1, load, load.copy(), 9.0, 9.0),
        lambda: COMPILED.union(ends, ends, ends, load, load[1:].copy(), 9.0, 9.0),
    ):
        with pytest.raises(ValueError, match=r"ops|groups|edges|below|times|starts"):
            call()
