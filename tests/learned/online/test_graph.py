"""The graph of a decision has what it says, stays small on large clusters, and hangs on no name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.graph.compiled import score
from gangplan.learned.online.candidates import APART, RUNS_SEEN, WAIT
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.graph import (
    CANDIDATE_IN,
    HOLDS,
    IN_RACK,
    JOB_IN,
    NODE_TAKEN,
    NODES,
    RACK_IN,
    RACK_TAKEN,
    RACKS,
    RUN_IN,
    RUNS,
    STARTED_BY,
    TAKES,
)
from gangplan.learned.online.schema import SCHEMA
from gangplan.simulator.gangs.arrays import RUNNING
from gangplan.simulator.gangs.step import start

LARGE = {"70": Fleet.regular(7, 10, 4), "500": Fleet.regular(20, 25, 8), "520": Fleet.regular(130, 4, 8)}
"""More nodes than are told apart, and in the last more racks; there, fewer candidates are looked at."""


def arriving(world: Any, relation: int, places: int) -> np.ndarray:
    """Return the sum of the weights of a relation's edges at each of so many nodes of the kind that they go to."""
    graph = world.graph
    part = slice(graph.relation[relation], graph.relation[relation + 1])
    target = graph.target[part] - graph.kind[SCHEMA.ends[relation, 1]]
    return np.bincount(target, graph.weight[part], places)


@pytest.mark.parametrize("size", ["small", "racks", "unequal", *LARGE])
@pytest.mark.parametrize("seed", range(2))
def test_the_graph_is_whole(make_world: Callable[..., Any], unequal: Fleet, size: str, seed: int) -> None:
    """Kinds have as many nodes as there are, edges go from kind to kind, shares sum up to 1, and there was room."""
    fleet = {"small": None, "racks": Fleet.regular(4, 8, 8), "unequal": unequal}.get(size, LARGE.get(size))
    world = make_world(seed, fleet=fleet, jobs=80)
    k, s, graph = world.observe(), world.s, world.graph
    count = np.diff(graph.kind)
    runs = min(RUNS_SEEN, int(world.state.count[RUNNING]))
    assert count[:3].tolist() == [k, s.fit + s.not_fit, runs] and count[-1] == 1
    assert graph.kind[-1] <= len(graph.x) and graph.relation[-1] < len(graph.source)
    for i, (a, b) in enumerate(SCHEMA.ends):
        part = slice(graph.relation[i], graph.relation[i + 1])
        for ends, kind in ((graph.source, a), (graph.target, b)):
            assert ((ends[part] >= graph.kind[kind]) & (ends[part] < graph.kind[kind + 1])).all()
    starts = (s.place[:k] != WAIT).astype(float)
    for relation in (NODE_TAKEN, RACK_TAKEN, STARTED_BY):
        np.testing.assert_allclose(arriving(world, relation, k), starts, atol=1e-6)
    for relation in (RACK_IN, RUN_IN, JOB_IN, CANDIDATE_IN):
        np.testing.assert_allclose(arriving(world, relation, 1), 1, atol=1e-5)
    np.testing.assert_allclose(arriving(world, IN_RACK, count[RACKS]), 1, atol=1e-5)
    assert np.isfinite(world.x()).all()
    assert (arriving(world, TAKES, count[NODES]) <= 1).all()


@pytest.mark.parametrize("size", ["small", "unequal", "70"])
def test_what_nodes_say(make_world: Callable[..., Any], unequal: Fleet, size: str) -> None:
    """Idle GPUs are all idle GPUs, merged or not, and what runs holds the rest."""
    world = make_world(0, fleet={"small": None, "unequal": unequal}.get(size, LARGE.get(size)))
    world.observe()
    graph, sizes = world.graph, np.diff(world.cluster.first)
    x = graph.x[graph.kind[NODES] : graph.kind[NODES + 1]]
    many, largest = np.expm1(3 * x[:, 2]), sizes.max()
    assert many.sum() == pytest.approx(len(sizes), rel=1e-5)
    assert (many * x[:, 1] * largest).sum() == pytest.approx(sizes.sum(), rel=1e-5)
    assert (many * x[:, 0] * x[:, 1] * largest).sum() == pytest.approx(world.state.free.sum(), rel=1e-4)
    held = arriving(world, HOLDS, len(x))
    assert world.state.count[RUNNING] <= RUNS_SEEN
    np.testing.assert_allclose(held + x[:, 0], 1, atol=1e-4)
    racks = graph.x[graph.kind[RACKS] : graph.kind[RACKS + 1]]
    assert np.expm1(3 * racks[:, 3]).sum() == pytest.approx(len(world.cluster.begin) - 1, rel=1e-5)


@pytest.mark.parametrize("size", LARGE)
@pytest.mark.parametrize("seed", range(2))
def test_large_clusters_have_small_graphs(
    make_world: Callable[..., Any], make_policy: Any, size: str, seed: int
) -> None:
    """Nodes alike are one, so that there are no more than they differ; scores are finite."""
    fleet = LARGE[size]
    world = make_world(seed, fleet=fleet, jobs=200, arrived=100)
    k, graph, free = world.observe(), world.graph, world.state.free
    assert k > 1
    count, of_rack = np.diff(graph.kind), world.cluster.rack
    if len(np.unique(of_rack)) <= APART:
        assert count[RACKS] == len(np.unique(of_rack))
        assert count[NODES] == len({*zip(of_rack.tolist(), free.tolist(), strict=True)})
    else:
        assert count[RACKS] < 32 and count[NODES] < 9 * 32
    assert count[NODES] < min(fleet.n_nodes, 260)
    net = make_policy(seed).net
    assert np.isfinite(score(graph, net)).all() and np.ptp(score(graph, net)) > 0
    world.play(make_policy(seed))
    assert np.isfinite(world.state.finish).all()


def test_an_idle_cluster_is_as_small_as_it_is_alike(make_world: Callable[..., Any]) -> None:
    """Of 130 racks and of 1,300 that are idle the graph has one, with one node."""
    for racks in (130, 1300):
        world = make_world(0, arrived=0, fleet=Fleet.regular(racks, 4, 8))
        world.state.count[:2] = 1
        assert world.observe() > 0
        assert np.diff(world.graph.kind)[[NODES, RACKS]].tolist() == [1, 1]


def renamed(world: Any, order: np.ndarray) -> Any:
    """Return the same with the nodes of racks in another order, each with the jobs that it had."""
    cluster, state = world.cluster, world.state
    sizes = np.diff(cluster.first)[order]
    first = np.append(0, np.cumsum(sizes))
    gpu = np.concatenate([np.arange(cluster.first[n], cluster.first[n + 1]) for n in order])  # which stood where
    back = np.argsort(gpu)
    other = cluster.replace(first=first, node=np.repeat(np.arange(len(order)), sizes), rack=cluster.rack[order])
    held = state.held.copy()
    for job in state.running[: state.count[RUNNING]]:
        rows = slice(world.jobs.first[job], world.jobs.first[job + 1])
        held[rows] = np.sort(back[held[rows]])
    then = state.replace(free=state.free[order], holder=state.holder[gpu], held=held)
    return world.again()._replace(cluster=other, state=then)


@pytest.mark.parametrize("size", ["small", "racks", "70"])
def test_names_of_nodes_make_no_difference(make_world: Callable[..., Any], make_policy: Any, size: str) -> None:
    """Nodes of a rack in another order have the same scores, wherever the closest GPUs are the same, renamed."""
    fleet = {"small": None, "racks": Fleet.regular(4, 8, 8)}.get(size, LARGE.get(size))
    same, rng = 0, np.random.default_rng(0)
    for seed in range(8):
        world, net = make_world(seed, fleet=fleet), make_policy(seed).net
        order = np.lexsort((rng.random(len(world.cluster.rack)), world.cluster.rack))
        other = renamed(world, order)
        for x in (world, other):
            x.s.asked = 1  # other allocators go by the order of nodes
        k = world.observe()
        assert other.observe() == k > 1 and np.array_equal(world.s.place[:k], other.s.place[:k])
        if not np.array_equal(world.s.take[:k][:, order], other.s.take[:k]):
            continue  # of nodes with as many idle GPUs the first is taken: those are another node's
        scores = [score(x.graph, net)[:, 0] + x.graph.x[:k, BY_RULE] for x in (world, other)]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-4 * np.abs(scores[0]).max())
        same += not np.array_equal(order, np.arange(len(order)))
    assert same >= 4


def test_runs_that_are_seen_are_the_next_to_end(make_world: Callable[..., Any], make_policy: Any) -> None:
    """Of more than there is room for, those that end first."""
    world = make_world(0, arrived=0, fleet=Fleet.regular(4, 8, 8), jobs=150, gpus=2)
    world = world.again(world.jobs.replace(submit=0.0 * world.jobs.submit, intensity=0.0 * world.jobs.intensity))
    world.play(make_policy(0, 0.0), until=150)
    state, jobs = world.state, world.jobs
    while state.count[RUNNING] < 100:
        world.observe()
        best = int(np.argmax(world.graph.x[: world.graph.kind[1], BY_RULE]))
        start(jobs, world.cluster, state, int(world.s.place[best]), world.s.take[best].copy())
    world.observe()
    left = np.sort(jobs.expected[state.running[: state.count[RUNNING]]])[:RUNS_SEEN]
    graph = world.graph
    seen = graph.x[graph.kind[RUNS] : graph.kind[RUNS + 1], 0]
    unit = jobs.expected.mean()
    np.testing.assert_allclose(np.sort(seen), np.log1p(np.minimum(left / unit, 20)), rtol=1e-5)
