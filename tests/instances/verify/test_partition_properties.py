"""The verifier on random problems: against a naive second opinion, and under renaming."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionPlan, PartitionProblem, verify

Case = tuple[PartitionProblem, PartitionPlan]


@st.composite
def cases(draw: Any, variant: str | None = None) -> Case:
    """Draw a problem of up to 9 ops on up to 4 devices of two types, and any plan for it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, gpus, cpus = draw(st.integers(1, 9)), draw(st.integers(1, 3)), draw(st.integers(0, 1))
    kind = draw(st.sampled_from(["contiguous", "convex", "free"])) if variant is None else variant
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < draw(st.sampled_from([0.1, 0.3, 0.6]))
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=("gpu", "cpu"),
        time=rng.integers(0, 9, (2, n)).astype(float),
        memory=rng.integers(0, 4, n).astype(float),
        parameter_bytes=np.zeros(n),
        activation_bytes=np.zeros(n),
        source=u[kept],
        target=v[kept],
        edge_bytes=rng.integers(0, 5, kept.sum()).astype(float),
    )
    types = (DeviceType("gpu", memory=float(2 * n)), gpus), (DeviceType("cpu", host=True), cpus)
    cluster = Cluster.flat(*types, bandwidth=2.0, latency=0.25)
    device = rng.integers(0, cluster.n_devices, n)
    stage = rng.permutation(cluster.n_devices)[device]
    return PartitionProblem(graph, cluster, kind), PartitionPlan(graph.names, device, stage)


def naive_load(problem: PartitionProblem, plan: PartitionPlan) -> list[float]:
    """Return the loads by the definition: for each device look at every op and its consumers."""
    graph, where = problem.graph, plan.device.tolist()
    consumers: list[list[int]] = [[] for _ in where]
    output = [0.0] * graph.n_ops
    for u, v, size in zip(graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist(), strict=True):
        consumers[u].append(where[v])
        output[u] = max(output[u], size)
    loads = []
    for d, kind in enumerate(problem.cluster.type_of.tolist()):
        load = 0.0
        for u in range(graph.n_ops):
            load += graph.time[kind, u] if where[u] == d else 0.0
            crosses = any(x != d for x in consumers[u]) if where[u] == d else d in consumers[u]
            if crosses and output[u] and not problem.cluster.device_types[kind].host:
                load += 0.25 + output[u] / 2.0
        loads.append(load)
    return loads


@given(cases())
def test_load_agrees_with_the_definition(case: Case) -> None:
    """Every device's load is what the definition says, recomputed op by op, violations or not."""
    verdict = verify(*case)
    np.testing.assert_allclose(verdict.load, naive_load(*case), rtol=1e-12)
    assert verdict.objective == (verdict.load.max() if verdict.ok else None)


@given(cases("convex"))
def test_convexity_agrees_with_the_definition(case: Case) -> None:
    """A plan breaks convexity exactly if some op lies between two of a device that it is not on."""
    problem, plan = case
    where = plan.device.tolist()
    graph = nx.DiGraph(list(zip(problem.graph.source.tolist(), problem.graph.target.tolist(), strict=True)))
    graph.add_nodes_from(range(len(where)))
    below = {u: nx.descendants(graph, u) for u in graph}
    broken = any(where[u] == where[v] != where[w] for u in graph for w in below[u] for v in below[w])
    assert any(text.startswith("convex") for text in verify(problem, plan).violations) is broken


@given(cases("contiguous"))
def test_contiguity_agrees_with_the_definition(case: Case) -> None:
    """A plan breaks contiguity exactly if an edge goes back in the chain of stages."""
    problem, plan = case
    edges = zip(problem.graph.source.tolist(), problem.graph.target.tolist(), strict=True)
    broken = any(plan.stage[u] > plan.stage[v] for u, v in edges)
    assert any(text.startswith("contiguous") for text in verify(problem, plan).violations) is broken


@given(cases(), st.randoms(use_true_random=False))
def test_renaming_and_reordering_ops_changes_nothing(case: Case, random: Any) -> None:
    """Names and positions of the ops do not matter to loads and feasibility."""
    problem, plan = case
    graph = problem.graph
    order = np.array(random.sample(range(graph.n_ops), graph.n_ops))
    position = np.argsort(order)
    names = tuple(f"renamed{i}" for i in range(graph.n_ops))
    moved = replace(
        graph,
        names=names,
        time=graph.time[:, order],
        memory=graph.memory[order],
        source=position[graph.source],
        target=position[graph.target],
    )
    before = verify(problem, plan)
    after = verify(replace(problem, graph=moved), PartitionPlan(names, plan.device[order], plan.stage[order]))
    np.testing.assert_allclose(after.load, before.load, rtol=1e-12)
    assert (after.ok, len(after.violations)) == (before.ok, len(before.violations))


@given(cases(), st.randoms(use_true_random=False))
def test_reordering_devices_changes_nothing(case: Case, random: Any) -> None:
    """Numbers of the devices do not matter: loads move along with them."""
    problem, plan = case
    cluster = problem.cluster
    order = np.array(random.sample(range(cluster.n_devices), cluster.n_devices))
    position = np.argsort(order)
    before = verify(problem, plan)
    shuffled = replace(problem, cluster=replace(cluster, type_of=cluster.type_of[order]))
    after = verify(shuffled, replace(plan, device=position[plan.device]))
    np.testing.assert_allclose(after.load, before.load[order], rtol=1e-12)
    assert (after.ok, len(after.violations)) == (before.ok, len(before.violations))


@given(cases())
def test_variants_nest(case: Case) -> None:
    """What is contiguous is convex, and what is convex is free."""
    problem, plan = case
    verdicts = [verify(replace(problem, variant=v), plan).ok for v in ("contiguous", "convex", "free")]
    assert verdicts == sorted(verdicts)
