"""What must hold on every problem of a graph, whatever its optimum and whether throughput or latency is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan import solve
from gangplan.instances import Cluster, TreeTopology
from gangplan.solvers.method import suite

from ...seeds import examples

pytestmark = pytest.mark.usefixtures("in_this_process")

SEEDS = st.integers(0, 2**32)
KINDS = st.sampled_from([*(("throughput", variant) for variant in ("contiguous", "convex", "free")), ("latency", "")])


def drawn(seed: int, kind: tuple[str, str]) -> Any:
    """Return a random tiny problem of an objective and a variant."""
    return suite(kind[0]).random_problem(seed, kind[1])


def value(problem: Any) -> float:
    """Return the optimum, infinite if there is no plan."""
    result = solve(problem, time_limit=60, workers=1)
    assert result.status in ("OPTIMAL", "INFEASIBLE")
    return float("inf") if result.objective is None else result.objective


@settings(max_examples=examples(40))
@given(SEEDS, KINDS, st.randoms(use_true_random=False))
def test_renaming_and_reordering_changes_nothing(seed: int, kind: tuple[str, str], random: Any) -> None:
    """Names and positions of ops and devices do not move the optimum."""
    problem = drawn(seed, kind)
    graph, cluster = problem.graph, problem.cluster
    order = np.array(random.sample(range(graph.n_ops), graph.n_ops))
    position = np.argsort(order)
    twin = graph.twin[order]
    moved = replace(
        graph,
        names=tuple(f"renamed{i}" for i in range(graph.n_ops)),
        time=graph.time[:, order],
        twin=np.where(twin < 0, -1, position[twin]),
        source=position[graph.source][::-1],
        target=position[graph.target][::-1],
        edge_bytes=graph.edge_bytes[::-1],
        **{f: getattr(graph, f)[order] for f in ("memory", "activation_bytes", "colocation", "backward")},
    )
    devices = random.sample(range(cluster.n_devices), cluster.n_devices)
    shuffled = replace(problem, graph=moved, cluster=replace(cluster, type_of=cluster.type_of[devices]))
    assert value(shuffled) == pytest.approx(value(problem), rel=1e-6)


@settings(max_examples=examples(40))
@given(SEEDS, KINDS)
def test_one_more_device_never_hurts(seed: int, kind: tuple[str, str]) -> None:
    """The optimum with another device of the last device's type is no worse."""
    problem = drawn(seed, kind)
    cluster = problem.cluster
    more = Cluster(
        cluster.device_types,
        np.append(cluster.type_of, cluster.type_of[-1]),
        TreeTopology(cluster.topology.levels, np.zeros((1, cluster.n_devices + 1), dtype=np.int32)),  # type: ignore[union-attr]
    )
    assert value(replace(problem, cluster=more)) <= value(problem) * (1 + 1e-6)


@settings(max_examples=examples(40))
@given(SEEDS, KINDS, st.sampled_from([1e-6, 1e-3, 1e6]))
def test_units_do_not_matter(seed: int, kind: tuple[str, str], unit: float) -> None:
    """Times in another unit give the optimum in that unit."""
    problem = drawn(seed, kind)
    graph, cluster = problem.graph, problem.cluster
    bandwidth, latency = cluster.topology.slowest_link()
    groups = zip(cluster.device_types, cluster.counts().tolist(), strict=True)
    scaled = replace(
        problem,
        graph=replace(graph, time=graph.time * unit),
        cluster=Cluster.flat(*groups, bandwidth=bandwidth / unit, latency=latency * unit),
    )
    assert value(scaled) == pytest.approx(value(problem) * unit, rel=1e-6)
