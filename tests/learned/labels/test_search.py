"""Labels say of every action what its best completion is worth, as enumeration does."""

from __future__ import annotations

from itertools import product
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem, StepProblem, verify
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import FAMILIES, make
from gangplan.learned.labels import Configuration, Labels, State, label_instance, label_state, up_to
from gangplan.learned.labels.search import Pipelines
from gangplan.solvers import Run
from gangplan.solvers.method import suite_of

LEVELS = up_to(0.2)


def some_plan(problem: Any, *methods: str) -> Any:
    """Return the plan of quick methods, good or not."""
    run = Run(problem, time_limit=10)
    tools = suite_of(problem)
    prepared = tools.prepare(run)
    for name in methods:
        if not run.stopped:
            tools.methods[name].run(run, prepared)
    assert run.plan is not None
    return run.plan


def labelled(problem: Any, state: State, whole: bool) -> Labels:
    """Return the labels of a state."""
    return label_state(problem, state, time_limit=20, whole=whole, levels=LEVELS)


def check(found: Labels, worth: dict[tuple[int, int], float]) -> None:
    """Compare labels with the exact worth of every action: between the bounds, and in the right level."""
    assert worth
    best = min(worth.values())
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.proved
    actions = list(zip(found.decision.tolist(), found.action.tolist(), strict=True))
    assert set(worth) <= set(actions)
    for action, value, lower, regret in zip(actions, found.value, found.lower, found.regret, strict=True):
        exact = worth.get(action, inf)
        assert lower <= exact * (1 + 1e-6)
        if isnan(value):
            assert exact > best * (1 + LEVELS[-1]) * (1 - 1e-5)
            assert regret >= LEVELS[-1] * (1 - 1e-5)
            continue
        assert value >= exact * (1 - 1e-6)
        level = next(x for x in LEVELS if exact <= best * (1 + x) * (1 + 1e-5))
        assert value <= best * (1 + level) * (1 + 1e-5)


def pipelines(problem: PartitionProblem, group_of: Any) -> list[tuple[Any, float]]:
    """Return every feasible pipeline: the stages of its groups, and its objective."""
    found = []
    for stages in product(range(problem.cluster.n_devices), repeat=int(group_of.max()) + 1):
        if set(stages) != set(range(max(stages) + 1)):
            continue
        stage = np.array(stages)[group_of]
        objective = verify(problem, PartitionPlan(problem.graph.names, stage, stage)).objective
        if objective is not None:
            found.append((stages, objective))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_throughput(seed: int) -> None:
    """All stages of all groups, and of the next one half-way along a greedy pipeline, are worth what they are."""
    problem = generate("layered", training=False, devices=3, ops=6, layers=3, intensity=800.0, seed=seed)
    space = Pipelines(problem)
    every = pipelines(problem, space.group_of)
    plan = some_plan(problem, "pipedream")
    worth: dict[tuple[int, int], float] = {}
    for stages, objective in every:
        for action in enumerate(stages):
            worth[action] = min(objective, worth.get(action, inf))
    check(labelled(problem, State(plan), True), worth)
    first = [int(np.flatnonzero(space.group_of == g)[0]) for g in range(3)]
    before = tuple(plan.stage[first[:2]].tolist())
    worth = {}
    for stages, objective in every:
        if stages[:2] == before:
            worth[2, stages[2]] = min(objective, worth.get((2, stages[2]), inf))
    check(labelled(problem, State(plan, 2), False), worth)


def test_regret() -> None:
    """An action of which nothing is known has no regret to learn from; one that cannot be taken has an infinite one."""
    value, lower = np.array([2.0, 3.0, nan, nan, nan]), np.array([2.0, 2.0, 2.2, 2.0, inf])
    labels = Labels(2.0, 2.0, np.zeros(5, np.int32), np.arange(5, dtype=np.int32), value, lower, ())
    assert labels.regret == pytest.approx([0.0, 0.5, 0.1, nan, inf], nan_ok=True)


def test_other_problems_have_no_labels() -> None:
    """Only pipelines are labelled, and the error says so."""
    made = generate("layered", training=False, devices=2, ops=4, layers=2, seed=1)
    other: Any = StepProblem(made.graph, made.cluster)
    with pytest.raises(InstanceError, match="problem: 'step' has no labels"):
        Pipelines(other)


@pytest.mark.parametrize("family", FAMILIES["throughput"])
def test_rows(family: str) -> None:
    """Every kept plan is feasible and worth what the row says, and some action of each decision has no regret."""
    from gangplan.instances import load

    c = Configuration("throughput", (family,), size=6, states=2, time_limit=20)
    row = label_instance(c, 3)
    made = make("throughput", family, row["seed"], 6)
    assert row["plan"]
    for text, objective in zip(row["plan"], row["plan_objective"], strict=True):
        assert verify(made, load(text)).objective == pytest.approx(objective)
    assert row["bound"] <= row["objective"] <= min(row["plan_objective"]) * (1 + 1e-9)
    assert len(row["decision"]) == len(row["lower"]) == len(row["label_state"])
    best = [inf] * len(row["state_plan"])
    for state, value in zip(row["label_state"], row["value"], strict=True):
        best[state] = min(best[state], inf if value is None else value)
    assert best == pytest.approx(row["state_objective"])
