"""The branch and bound that shows its tree."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.certificates.linear import LinearModel, TreeCertificate, dual_value
from gangplan.instances.certificates.rows import model_of
from gangplan.solvers.certificates.branch import BranchSearch
from gangplan.solvers.method import suite


def knapsack(rng: np.random.Generator) -> LinearModel:
    """Return a covering problem of six columns of which each whole-numbered point can be looked at."""
    model = LinearModel(Fraction(1))
    cost = rng.integers(1, 9, 6).tolist()
    z = model.column(100, cost=1)
    items = [model.column(1, whole=True) for _ in cost]
    model.row({z: 1, **{j: -c for j, c in zip(items, cost, strict=True)}}, 0)
    for _ in range(2):
        model.row(dict(zip(items, rng.integers(0, 5, 6).tolist(), strict=True)), int(rng.integers(3, 9)))
    return model


def least(model: LinearModel) -> Fraction | None:
    """Return the least cost of all points, None if none is feasible."""
    costs = []
    for point in product((0, 1), repeat=6):
        if all(sum(terms.get(j + 1, 0) * x for j, x in enumerate(point)) >= low for low, _, terms in model.rows[1:]):
            costs.append(sum(-model.rows[0][2].get(j + 1, Fraction(0)) * x for j, x in enumerate(point)))
    return min(costs, default=None)


def value(model: LinearModel, tree: TreeCertificate) -> Fraction:
    """Return what a tree proves of a model that is not that of a problem."""
    found, todo = [], [(0, list(model.low), list(model.high))]
    while todo:
        node, low, high = todo.pop()
        if node >= len(tree.splits):
            found.append(dual_value(model, tree.leaves[node - len(tree.splits)], low, high))
            continue
        column, at, below, beyond = tree.splits[node]
        down, up = list(high), list(low)
        down[column], up[column] = Fraction(at), Fraction(at + 1)
        todo += [(below, low, down), (beyond, up, high)]
    return min(found)


def test_trees_against_all_points() -> None:
    """Of small programmes a tree proves the optimum, and of those without a point any threshold."""
    rng, none = np.random.default_rng(0), 0
    for _ in range(40):
        model = knapsack(rng)
        optimum = least(model)
        threshold = Fraction(60) if optimum is None else optimum
        none += optimum is None
        tree = BranchSearch(model, threshold, lambda: 60.0, 500).solve()
        proved = value(model, tree)
        assert proved >= threshold * (1 - Fraction(1, 10**6))
        assert optimum is None or proved <= optimum
    assert none


@pytest.mark.parametrize("most", [1, 2, 4, 8])
def test_a_tree_that_is_cut_short_still_holds(most: int) -> None:
    """However few nodes there may be, the tree is whole, and proves no more than the optimum."""
    throughput = suite("throughput")
    for seed in range(6):
        problem = throughput.random_problem(seed, "contiguous")
        optimum = throughput.optimum(problem)
        if optimum:
            threshold = Fraction(optimum)
            tree = BranchSearch(model_of(problem, threshold), threshold, lambda: 60.0, most).solve()
            assert tree.bound(problem) <= threshold
            assert len(tree.leaves) == len(tree.splits) + 1


def test_any_multipliers_hold() -> None:
    """Random multipliers of the right sign prove no more than the least point; the wrong sign is refused."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        model = knapsack(rng)
        optimum: Any = least(model)
        multipliers = tuple((i, Fraction(int(rng.integers(0, 20)), 16)) for i in range(3))
        if optimum is not None:
            assert dual_value(model, multipliers, model.low, model.high) <= optimum
        with pytest.raises(InstanceError, match="wrong sign"):
            dual_value(model, ((0, Fraction(-1)),), model.low, model.high)


def test_steps_are_the_nodes_of_the_tree() -> None:
    """Each node is yielded once, as the tree has it; aiming at what each whole point costs ends with the optimum."""
    rng, whole = np.random.default_rng(2), 0
    for _ in range(20):
        model = knapsack(rng)
        optimum = least(model)
        search = BranchSearch(model, Fraction(60), lambda: 60.0, 500)
        best, steps = None, []
        for step in search.steps():
            steps.append(step)
            if step.whole:
                whole, best = whole + 1, step.value
                search.aim(Fraction(best))
        assert [step.split for step in sorted(steps, key=lambda step: step.node) if step.split] == [
            search.splits[node] for node in sorted(search.splits)
        ]
        assert sorted(step.node for step in steps) == list(range(search.nodes))
        assert best == (None if optimum is None else pytest.approx(float(optimum)))
    assert whole > 10
