"""The argument `together`: levels of a tree, copies that take turns, parts of a series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gangplan
from benchmarks.shops import FT06
from gangplan.instances import Cluster, InstanceError, Level, OpGraph, StepProblem, TreeTopology
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.steps import StepSearch, series_of
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.solvers.method import suite

EVERY = 10**5
"""Steps that are enough for tiny problems."""


def step(time: list[float], edges: list[tuple[int, int]], topology: TreeTopology, **changes: Any) -> StepProblem:
    """Return ops of a byte with outputs of a byte, on GPUs of two bytes."""
    n, none = len(time), np.full(len(time), -1)
    source, target = np.array(edges).T
    parts: dict[str, Any] = {"memory": np.ones(n), "colocation": none} | changes
    graph = OpGraph(
        tuple(f"v{i}" for i in range(n)), ("gpu",), [time], parts["memory"], np.zeros(n), np.zeros(n), source, target,
        np.ones(len(edges)), parts["colocation"], none, np.zeros(n, dtype=bool),
    )  # fmt: skip
    kinds = (gangplan.DeviceType("gpu", memory=2.0),)
    return StepProblem(graph, Cluster(kinds, np.zeros(topology.n_devices, dtype=np.int32), topology))


def proves(problem: StepProblem, threshold: Fraction | float, **more: Any) -> bool:
    """Return whether `together` shows that no plan is below a threshold."""
    data = {"argument": "together", "threshold": str(Fraction(threshold)), "steps": EVERY}
    try:
        return verify_bound(problem, data | more) > threshold * (1 - 1e-6)
    except InstanceError:
        return False


def test_what_has_no_room_on_a_node_takes_the_slow_link() -> None:
    """A chain of five bytes on two nodes of two GPUs of two bytes pays for the slow link, 5 + 1 + 10 s, and no more."""
    levels = Level("node", 1.0, 0.0), Level("cluster", 0.1, 0.0)
    tree = TreeTopology.regular(levels, (2, 2))
    chain = step([1.0] * 5, [(i, i + 1) for i in range(4)], tree)
    best = gangplan.solve(chain, 10.0, workers=1).objective
    assert best == 16
    assert proves(chain, 15.999)
    assert not proves(chain, 16.001)
    # a node has two devices: three ops that share none are on two nodes, whatever the cluster has
    fan = step([1.0] * 3, [(0, 1), (0, 2)], tree, memory=np.full(3, 2.0))
    assert gangplan.solve(fan, 10.0, workers=1).objective == 12
    assert proves(fan, 11.999)
    assert not proves(fan, 12.001)


def batches(count: int) -> StepProblem:
    """Return batches through two stages of 2 and 3 s, each on a device of its own."""
    stages = np.arange(2 * count) % 2
    edges = [(2 * i, 2 * i + 1) for i in range(count)]
    flat = TreeTopology.regular((Level("node", 1e9, 0.0),), (2,))
    return step([2.0, 3.0] * count, edges, flat, memory=np.full(2 * count, 2.0 / count), colocation=stages)


def test_like_batches_take_turns() -> None:
    """Of six like batches nobody tries all orders; one that differs takes no turn with the others."""
    problem = batches(6)
    best = gangplan.solve(problem, 10.0, workers=1).objective
    assert best == pytest.approx(20, rel=1e-6)
    assert proves(problem, best * (1 - 1e-7), steps=500)
    assert not proves(problem, best * (1 + 1e-6))
    turns = StepSearch(problem, Fraction(20), EVERY).turns(problem)
    assert turns == tuple((v, v + 2) for v in range(10))
    sent, time = np.array([1.0, 2, 1, 1, 1, 1]), np.array([[2.0, 3, 2.5, 3, *[2, 3] * 4]])
    for changes in ({"edge_bytes": sent}, {"time": time}):
        other = replace(problem, graph=replace(problem.graph, **changes))
        assert all({2, 3}.isdisjoint(x) for x in StepSearch(other, Fraction(20), EVERY).turns(other))


def test_parts_of_a_series() -> None:
    """Two diamonds in a row are shown one by one; a document names as many parts as there are, the threshold in all."""
    diamonds = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)]
    flat = TreeTopology.regular((Level("node", 1.0, 0.0),), (2,))
    problem = step([1.0, 2, 2, 1, 3, 3, 1], diamonds, flat, memory=np.zeros(7))
    # 1 s; then both sides of a diamond at once, one of them and its end a second later on the other device
    assert series_of(problem) == [[((), (0,))], [((0,), (1, 2, 3))], [((3,), (4, 5, 6))]]
    assert gangplan.solve(problem, 10.0, workers=1).objective == 10
    close = Fraction(999999, 1000000)
    parts = [str(x * close) for x in (1, 4, 5)]
    assert proves(problem, 10 * close, parts=parts)
    assert not proves(problem, 10 * close, parts=[parts[0], str(4 + 2 * (1 - close)), parts[2]])
    for wrong in ([*parts[:2]], [*parts[:2], "1"]):
        with pytest.raises(InstanceError, match="parts"):
            verify_bound(problem, {"argument": "together", "threshold": 9, "steps": EVERY, "parts": wrong})


def tiny(seed: int) -> StepProblem:
    """Return a tiny problem, on a tree of three levels or of two or three like copies."""
    rng = np.random.default_rng(seed)
    problem: StepProblem = suite("step").random_problem(seed)
    if seed % 2:
        k = int(rng.integers(2, 4))
        group = np.zeros((3, k), dtype=np.int32)
        group[1] = np.sort(rng.integers(0, 2, k))
        group[0] = group[1] * 2 + rng.integers(0, 2, k)
        levels = tuple(Level(x, float(rng.choice([0.5, 1.0, 4.0])), float(rng.choice([0.0, 0.5]))) for x in "abc")
        kinds = problem.cluster.device_types
        return replace(problem, cluster=Cluster(kinds, np.zeros(k, dtype=np.int32), TreeTopology(levels, group)))
    graph, keep = problem.graph, np.arange(min(3, problem.graph.n_ops))
    inside = (graph.source < len(keep)) & (graph.target < len(keep))
    copies = int(rng.integers(2, 4)) if len(keep) < 3 else 2

    def again(name: str) -> Any:
        value = getattr(graph, name)
        if name == "names":
            return tuple(f"{x}{i}" for i in range(copies) for x in value[: len(keep)])
        if name in ("source", "target"):
            return np.concatenate([value[inside] + i * len(keep) for i in range(copies)])
        if name == "colocation":
            return np.tile(np.where(value >= 0, value, 100 + np.arange(len(value)))[keep], copies)
        if name == "twin":
            return np.full(copies * len(keep), -1)
        if name == "edge_bytes":
            return np.tile(value[inside], copies)
        return np.tile(value[..., keep], copies) if isinstance(value, np.ndarray) else value

    return replace(problem, graph=replace(graph, **{x.name: again(x.name) for x in fields(graph)}))


def shown(problem: StepProblem, optimum: float) -> Iterator[Fraction]:
    """Yield the longest share of the optimum that each part of the series is shown to take."""
    search = StepSearch(problem, Fraction(optimum), EVERY)
    for part in series_of(problem):
        low, high = Fraction(0), Fraction(2)
        while high - low > Fraction(1, 1000):
            middle = (low + high) / 2
            try:
                search.steps.left = EVERY
                search.part(part, middle)
                low = middle
            except InstanceError:
                high = middle
        yield low


def test_tiny_trees_copies_and_series_against_enumeration() -> None:
    """No threshold above the optimum is refuted, not by parts either; those just below it often are."""
    tight = turns = series = 0
    for seed in range(60):
        problem = tiny(seed)
        best = suite("step").optimum(problem)
        if not best:
            continue
        tight += proves(problem, Fraction(best) * (1 - Fraction(1, 10**7)))
        assert not any(proves(problem, Fraction(best) * x) for x in (1 + Fraction(1, 10**6), Fraction(3, 2))), seed
        turns += bool(StepSearch(problem, Fraction(best), EVERY).turns(problem))
        series += len(series_of(problem)) > 1
        assert sum(shown(problem, best)) <= 1, seed
    assert tight > 20 and turns > 5 and series > 5


def test_ops_of_one_device_are_there() -> None:
    """Ops that one device alone runs are on it: a shop is refuted by a few orders, and no further than its optimum."""
    problem = parse_jobshop(FT06)
    assert proves(problem, Fraction(55) * (1 - Fraction(1, 10**8)))
    assert not proves(problem, Fraction(55) * (1 + Fraction(1, 10**8)))


def test_a_class_of_two_devices_has_no_plan() -> None:
    """A class whose ops run on one device alone each, and not the same, refutes any threshold: there is no plan."""
    shop = parse_jobshop("1 2\n0 3 1 2\n")
    torn = replace(shop, graph=replace(shop.graph, colocation=np.array([0, 0])))
    assert proves(torn, 10**6)
    assert suite("step").optimum(torn) is None


def test_edges_are_found() -> None:
    """An op that would make others late comes after all of them, though it may come before each of them alone.

    Ops 0 and 1 take 3 s and leave 3 s behind, op 2 takes 3 s: should one of the former be the last of the three on
    their machine, the end is at 9 + 3 s. In 12 s op 2 is last; two of them alone take 9 s either way.
    """
    problem = parse_jobshop("3 2\n0 3 1 3\n0 3 1 3\n0 3 1 0\n")
    search = StepSearch(problem, Fraction(12), EVERY)
    second = search.goal // 4
    search.took = [second, 0, second, 0, second, 0]
    assert search.ends([0, 2, 4], [0] * 6, [second, 0, second, 0, 0, 0]) == {(0, 4), (2, 4)}
    assert search.ends([0, 2, 4], [second, 0, second, 0, 0, 0], [0] * 6) == {(4, 0), (4, 2)}
    search.goal += 4
    assert not search.ends([0, 2, 4], [0] * 6, [second, 0, second, 0, 0, 0])


@pytest.mark.parametrize("seed", range(20))
def test_tiny_shops_against_enumeration(seed: int) -> None:
    """The search refutes what is below the optimum of a shop by looking at all plans, and no more."""
    rng = np.random.default_rng(seed)
    rows = [" ".join(f"{k} {rng.integers(1, 9)}" for k in rng.permutation(3)) for _ in range(2)]
    problem = parse_jobshop("2 3\n" + "\n".join(rows))
    optimum = suite("step").optimum(problem)
    assert optimum is not None
    assert not proves(problem, Fraction(optimum) * (1 + Fraction(1, 10**6)))
    assert proves(problem, Fraction(optimum) * (1 - Fraction(1, 10**6)))
