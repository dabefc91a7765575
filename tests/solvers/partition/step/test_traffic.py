"""The loads that `traffic` keeps move by move are those of its placement; its plans fit, hold and are no worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import solve, verify
from gangplan.instances import StepProblem
from gangplan.instances.generators.large import make_large
from gangplan.solvers.partition.step.arrays import workroom
from gangplan.solvers.partition.step.found import devices_of
from gangplan.solvers.partition.step.loads import Traffic, traffic_of
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.traffic import anneal_traffic, decides


@pytest.fixture(scope="module")
def problem() -> StepProblem:
    """Return 200 ops on 16 devices that are short of memory, in servers with slow links."""
    made = make_large("step", "contention", 113, 200)
    assert isinstance(made, StepProblem)
    return made


def searched(p: Prepared, problem: StepProblem, moves: int) -> Traffic:
    """Return a search after so many moves from a first plan."""
    plan = solve(problem, time_limit=5, method="heft", workers=1).plan
    assert plan is not None
    links = workroom(p).links
    s = traffic_of(p, links, devices_of(p, plan))
    anneal_traffic(p.arrays, links, s, 4.0, 0.05, 0, moves, moves, 3)
    return s


def test_loads_are_those_of_the_placement(problem: StepProblem) -> None:
    """After thousands of moves, taken back or not, every device and link is as busy as a count from nothing says."""
    p = prepare(problem)
    s, busy = searched(p, problem, 5000), np.zeros(p.n_devices + len(p.links.names))
    device = s.where[p.group_of]
    assert (device == s.device).all()
    np.add.at(busy, device, p.time[p.type_of[device], np.arange(p.n)])
    sent = {(int(u), int(device[v])) for u, v in zip(*p.edges, strict=True) if device[u] != device[v]}
    for u, d in sent:
        for link in p.routes[device[u]][d]:
            busy[p.n_devices + link] += p.delay[p.level[device[u], d], u]
    assert len(sent) > 50
    np.testing.assert_allclose(s.busy, busy, rtol=1e-9, atol=1e-12 * busy.max())
    np.testing.assert_allclose(s.left, p.room - np.bincount(s.where, p.group_memory, p.n_devices), rtol=1e-9)


def test_multipliers_are_a_flow(problem: StepProblem) -> None:
    """Of the multipliers as much enters an op as leaves it, and 1 in all ends: they share out one critical path."""
    p = prepare(problem)
    s = searched(p, problem, 1000)
    into = np.bincount(p.edges[1], s.edge, p.n)
    first, last = np.bincount(p.edges[1], minlength=p.n) == 0, np.bincount(p.edges[0], minlength=p.n) == 0
    np.testing.assert_allclose(into[~first], s.flow[~first])
    np.testing.assert_allclose(np.bincount(p.edges[0], s.edge, p.n)[~last], s.flow[~last])
    assert s.flow[last].sum() == pytest.approx(1.0) == s.flow[first].sum()


def test_plans_hold_and_are_better(problem: StepProblem) -> None:
    """From a first plan it comes to a feasible one of half its length, the same for the same seed."""
    first = solve(problem, time_limit=5, method="heft", workers=1)
    found = [
        solve(problem, time_limit=20, method="traffic", initial=first.plan, workers=1, seed=seed) for seed in (1, 1)
    ]
    assert first.objective is not None and first.plan is not None
    plans = [x.plan for x in found if x.plan is not None]
    assert len(plans) == 2 and (plans[0].device == plans[1].device).all()
    verdict = verify(problem, plans[0])
    assert verdict.ok and verdict.objective < 0.5 * first.objective


def test_it_is_for_traffic(problem: StepProblem) -> None:
    """It suits no problem whose links are not shared, whose memory is ample, or whose outputs are small."""
    assert decides(prepare(problem))
    assert not decides(prepare(replace(problem, contention=False)))
    ample = tuple(replace(kind, memory=1e15) for kind in problem.cluster.device_types)
    assert not decides(prepare(replace(problem, cluster=replace(problem.cluster, device_types=ample))))
    small = replace(problem.graph, edge_bytes=problem.graph.edge_bytes * 1e-3)
    assert not decides(prepare(replace(problem, graph=small)))
