"""Compiled kernels say to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import LatencyProblem
from gangplan.instances.generators import generate
from gangplan.solvers import Run, native
from gangplan.solvers.method import suite
from gangplan.solvers.partition.latency import kernels

from ...uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit 2c4fd7fc made of `problems`."""
MOVES = 5_000


def problems() -> Iterator[tuple[str, LatencyProblem]]:
    """Yield problems by name: tiny ones with hosts, types and memory that binds, and larger ones."""
    tools = suite("latency")
    for seed in range(24):
        yield f"tiny {seed}", tools.random_problem(seed, "")
    for ops in (30, 200, 1000):
        yield f"layered {ops}", generate("layered", ops=ops, layers=ops // 6, devices=4, seed=3, objective="latency")


def annealed(problem: LatencyProblem, module: Any = kernels, moves: int = MOVES) -> list[str]:
    """Return what two annealings make of the greedy plan, one after the other; nothing if there is none."""
    tools, run = suite("latency"), Run(problem, time_limit=600.0)
    r = tools.prepare(run)
    tools.methods["greedy"].run(run, r)
    slots = None if run.plan is None else r.slots_of(run.plan)
    if slots is None:
        return []
    data, best, least, found = module.LatencyArrays(r), np.array(slots, np.int64), run.objective, []
    plan = module.LatencyState(data, slots)
    for i, heat in enumerate((0.1, 0.01)):
        least = module.anneal(data, plan, best, least, heat, heat / 10, moves, i)
        digest = hashlib.sha256(json.dumps([best.tolist(), np.asarray(plan.load).tolist()]).encode()).hexdigest()
        found.append(f"{least.hex()} {digest[:16]}")
    return found


@pytest.mark.parametrize(("name", "problem"), [*problems()])
def test_outcomes_are_those_recorded(name: str, problem: LatencyProblem) -> None:
    """Annealing gives the latencies, plans and loads that numba's kernel gave."""
    assert annealed(problem) == json.loads(GOLDEN.read_text())[name]


@pytest.mark.parametrize("seed", [2, 6, 17])
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Annealing run from the source as plain Python says the same of tiny problems."""
    problem = suite("latency").random_problem(seed, "")
    assert annealed(problem, uncompiled(native, kernels), 300) == annealed(problem, moves=300) != []
