"""Exact methods where sums just fit and magnitudes lie far apart, against brute force written from the pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Cluster, DeviceType, LatencyProblem, OpGraph, PartitionProblem, StepProblem
from gangplan.solvers.method import suite
from gangplan.solvers.partition.sizes import whole

from ..referee.graphs import on_edge
from ..referee.problems import PROBLEMS

GAP = 1e-6
# those on which a method was once wrong; tests/referee has others
SEEDS = {"throughput": (0, 1, 80, 115, 128, 188, 265, 430, 487), "latency": (0, 1), "step": (0, 1, 364)}
CASES = [
    (objective, variant, seed)
    for objective, seeds in SEEDS.items()
    for variant in suite(objective).variants
    for seed in seeds
]


def exact(objective: str, variant: str) -> list[str]:
    """Return the names of the exact methods."""
    tools = suite(objective)
    return [name for name, m in tools.methods.items() if m.exact and variant in tools.variants_of(m)]


@pytest.mark.parametrize(("objective", "variant", "seed"), CASES)
def test_exact_methods_are_right(objective: str, variant: str, seed: int) -> None:
    """No bound is above the optimum, no plan below, and OPTIMAL and INFEASIBLE are proved and true."""
    problem = on_edge(seed, objective, variant)
    best = PROBLEMS[objective].optimum(problem)
    for name in exact(objective, variant):
        result = solve(problem, time_limit=60, method=name, workers=1)
        said = f"{name}: {result.status} {result.objective} {result.bound}, the optimum is {best}"
        if best is None:
            assert result.status == "INFEASIBLE", said
        else:
            assert result.status == "OPTIMAL", said
            assert result.objective == pytest.approx(best, rel=2 * GAP), said
            assert result.bound is not None and result.bound <= best * (1 + GAP), said


def _problem(kind: type, memory: list[float], limits: list[float], time: float = 1.0) -> Any:
    """Return ops without edges and a device of each limit, all of a type of their own."""
    n, types = len(memory), tuple(f"t{i}" for i in range(len(limits)))
    none = np.full(n, -1)
    graph = OpGraph(
        types and tuple(f"op{i}" for i in range(n)),
        types,
        np.full((len(types), n), time),
        np.array(memory),
        *(np.zeros(n) for _ in range(2)),
        *(np.zeros(0, dtype=np.int32) for _ in range(2)),
        np.zeros(0),
        none,
        none,
        np.zeros(n, dtype=bool),
    )
    kinds = [(DeviceType(name, memory=limit), 1) for name, limit in zip(types, limits, strict=True)]
    return kind(graph, Cluster.flat(*kinds, bandwidth=1.0))


@pytest.mark.parametrize(
    ("memory", "limits", "feasible"),
    [
        ([0.1, 0.2], [0.3], True),
        ([0.1, 0.2, 0.3], [0.3, 0.3], True),
        ([0.1, 0.2, 0.01], [0.3], False),
        # a unit from the largest op would see neither the small ops nor the small device
        ([1e18, 0.1, 0.2], [0.3, 1e18], True),
        ([1e18, 1e-9, 2e-9, 1e-9], [3e-9, 1e18 * (1 - 1e-9)], True),
        ([1e9, 3.0, 2.0, 2.0], [4.0, 1e9 * (1 - 1e-9)], False),
    ],
)
@pytest.mark.parametrize("kind", [PartitionProblem, LatencyProblem, StepProblem])
def test_what_fits_fits(kind: type, memory: list[float], limits: list[float], feasible: bool) -> None:
    """Sums that the verifier accepts are accepted beside ops of any size, and no others."""
    problem = _problem(kind, memory, limits)
    for name in exact(problem.objective, problem.variant):
        result = solve(problem, time_limit=60, method=name, workers=1)
        assert result.status == ("OPTIMAL" if feasible else "INFEASIBLE"), f"{name}: {result.status}"


def test_sizes_are_a_relaxation() -> None:
    """Whole sizes let in every set of floats within the verifier's tolerance, and bar what is too large alone."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        memory = 10.0 ** rng.uniform(-9, 9, 12)
        chosen = rng.random(12) < 0.4
        limit = float(memory[chosen].sum()) / (1 + rng.choice([0.0, 5e-10, 1e-9]))
        if limit <= 0:
            continue
        sizes = whole(memory, limit, 12)
        assert not sizes.barred[chosen].any()
        assert int(sizes.size[chosen].sum()) <= sizes.room or not sizes.binds
        assert sizes.barred[memory > limit * (1 + 1e-8)].all()
