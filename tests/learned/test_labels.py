"""Labels say of every action what its best completion is worth, as enumeration does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from gangplan.instances import PartitionPlan, PartitionProblem, StepProblem, verify
from gangplan.instances.generators import generate
from gangplan.instances.generators.families import FAMILIES, make
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.generators.moldable import moldable
from gangplan.learned.labels import Configuration, Labels, State, label_instance, label_state, space_of, up_to
from gangplan.learned.labels.placement import LEFT_OUT, PlacementSpace
from gangplan.learned.labels.schedule import WAIT, ScheduleSpace
from gangplan.solvers import Run
from gangplan.solvers.method import suite_of
from gangplan.solvers.placement.grants import as_plan
from gangplan.solvers.placement.prepare import Batch

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
    space: Any = space_of(problem)
    every = pipelines(problem, space.group_of)
    plan = some_plan(problem, "greedy")
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


@pytest.mark.parametrize("seed", range(3))
def test_step(seed: int) -> None:
    """The second op beside the first is worth the optimum of both colocated; equal devices are worth alike."""
    made = generate("series_parallel", training=False, devices=3, ops=5, intensity=3000.0, seed=seed)
    problem = StepProblem(made.graph, made.cluster)
    tools = suite_of(problem)
    plan = some_plan(problem, "heft")
    found = labelled(problem, State(plan, 1), False)
    order = made.graph.topological_order()
    together = np.full(5, -1)
    together[order[:2]] = 0
    joined = tools.optimum(replace(problem, graph=replace(made.graph, colocation=together)))
    free = tools.optimum(problem)
    assert joined is not None and free is not None
    here = int(plan.device[order[0]])
    other = {a: free if joined > free * (1 + 1e-9) else None for a in range(3) if a != here}
    assert found.objective == pytest.approx(free, rel=1e-6)
    values = dict(zip(found.action.tolist(), found.value.tolist(), strict=True))
    lower = dict(zip(found.action.tolist(), found.lower.tolist(), strict=True))
    assert lower[here] <= joined * (1 + 1e-6)
    assert (values[here] if not isnan(values[here]) else inf) >= joined * (1 - 1e-6)
    for device, exact in other.items():
        assert exact is None or values[device] == pytest.approx(exact, rel=1e-6)
    assert len({str(values[a]) for a in other}) == 1


def placements(problem: Any) -> list[tuple[list[dict[int, tuple[int, int]]], float]]:
    """Return every feasible placement: the rows of its jobs, and its objective."""
    batch = Batch(problem)
    nodes = range(problem.fleet.n_nodes)
    menus = []
    for job in problem.jobs:
        splits = [c for c in product(range(job.gang + 1), repeat=len(nodes)) if sum(c) == job.gang]
        menus.append([{n: (w, 0) for n, w in enumerate(c) if w} for c in splits] + [{}] * (job.value is not None))
    room = problem.fleet.gpus.tolist()
    found = []
    for rows in product(*menus):
        if any(sum(r.get(n, (0, 0))[0] for r in rows) > room[n] for n in nodes):
            continue
        objective = verify(problem, as_plan(batch, list(rows), lambda n: [])).objective
        if objective is not None:
            found.append((list(rows), objective))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_placement(seed: int) -> None:
    """All nodes of all jobs, and of the next after one is placed, are worth what enumeration says."""
    problem = gangs(3, 1, 3, 4, 0.6, seed, collective="ring", optional=0.5)
    plan = some_plan(problem, "first_fit")
    every = placements(problem)
    worth: dict[tuple[int, int], float] = {}
    for rows, objective in every:
        for j, row in enumerate(rows):
            for n in row or [LEFT_OUT]:
                worth[j, n] = min(objective, worth.get((j, n), inf))
    check(labelled(problem, State(plan), True), worth)
    mine = {int(n): (int(w), 0) for n, w in zip(plan.node[plan.job == 0], plan.workers[plan.job == 0], strict=True)}
    worth = {}
    for rows, objective in every:
        if rows[0] == mine:
            for n in rows[1] or [LEFT_OUT]:
                worth[1, n] = min(objective, worth.get((1, n), inf))
    check(labelled(problem, State(plan, 1), False), worth)
    assert PlacementSpace(problem).depth(plan) == 3


@pytest.mark.parametrize("seed", range(3))
def test_schedule(seed: int) -> None:
    """Starting a job now, leaving it out and waiting are worth the optimum of a problem in which that is forced."""
    problem = moldable(3, 1, 4, 0.0, seed, optional=0.5, grain=600.0)
    tools = suite_of(problem)
    found = labelled(problem, State(some_plan(problem, "lists")), False)
    worth = {}
    for j, action in zip(found.decision.tolist(), found.action.tolist(), strict=True):
        jobs, paid = list(problem.jobs), 0.0
        if (j, action) == WAIT:
            jobs = [replace(job, release=600.0) for job in jobs]
        elif action < 0:
            paid = problem.price(j) or 0.0
            del jobs[j]
        else:
            degree, seconds = jobs[j].degrees[action], jobs[j].durations[action]
            jobs[j] = replace(jobs[j], degrees=(degree,), durations=(seconds,), deadline=seconds, value=None)
        optimum = tools.optimum(replace(problem, jobs=tuple(jobs)))
        if optimum is not None:
            worth[j, action] = optimum + paid
    check(found, worth)


def test_schedule_state() -> None:
    """After a start the job that runs is no action any more, and now is the next start."""
    problem = moldable(4, 1, 2, 0.0, 1, grain=600.0)
    plan = some_plan(problem, "lists")
    space = ScheduleSpace(problem)
    state = State(plan, 1)
    (first,) = space.started(state)
    found = labelled(problem, state, False)
    assert first not in found.decision
    assert space.now(state) >= plan.start[first]
    assert found.objective <= (verify(problem, plan).objective or inf)


def test_regret() -> None:
    """An action of which nothing is known has no regret to learn from; one that cannot be taken has an infinite one."""
    value, lower = np.array([2.0, 3.0, nan, nan, nan]), np.array([2.0, 2.0, 2.2, 2.0, inf])
    labels = Labels(2.0, 2.0, np.zeros(5, np.int32), np.arange(5, dtype=np.int32), value, lower, ())
    assert labels.regret == pytest.approx([0.0, 0.5, 0.1, nan, inf], nan_ok=True)


@pytest.mark.parametrize(("problem", "family"), [(p, f) for p, families in FAMILIES.items() for f in families])
def test_rows(problem: str, family: str) -> None:
    """Every kept plan is feasible and worth what the row says, and some action of each decision has no regret."""
    from gangplan.instances import load

    c = Configuration(problem, (family,), size=6, states=2, time_limit=20)
    row = label_instance(c, 3)
    made = make(problem, family, row["seed"], 6)
    assert row["plan"]
    for text, objective in zip(row["plan"], row["plan_objective"], strict=True):
        assert verify(made, load(text)).objective == pytest.approx(objective)
    assert row["bound"] <= row["objective"] <= min(row["plan_objective"]) * (1 + 1e-9)
    assert len(row["decision"]) == len(row["lower"]) == len(row["label_state"])
    best = [inf] * len(row["state_plan"])
    for state, value in zip(row["label_state"], row["value"], strict=True):
        best[state] = min(best[state], inf if value is None else value)
    assert best == pytest.approx(row["state_objective"])
