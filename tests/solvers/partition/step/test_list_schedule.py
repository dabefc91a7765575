"""The list scheduler: HEFT without prices, feasible under any settings, timed as the solvers time it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StepProblem, TreeTopology, verify
from gangplan.instances.generators.families import make
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.list_schedule import decode, plan_of, search
from gangplan.solvers.partition.step.list_scheduler import ListState, build
from gangplan.solvers.partition.step.model import Prepared, prepare
from gangplan.solvers.partition.step.settings import SETTINGS, bred, draw, prices_of
from gangplan.solvers.partition.step.timing import Workroom

from .conftest import SOURCE

FAMILIES = ("layered", "fork_join", "series_parallel", "pipeline")


def decoded(p: Prepared, settings: np.ndarray):
    """Return the plan of some settings."""
    return decode(p, Workroom(p), settings)


def objective(problem: StepProblem, method: str) -> float | None:
    """Return the makespan of a method's plan."""
    run = Run(problem, time_limit=10)
    suite("step").methods[method].run(run, prepare(problem))
    return run.objective


@pytest.mark.parametrize("seed", range(12))
def test_zero_is_heft(seed):
    """With all settings at zero the plan is HEFT's, or a better timed one of the same placement."""
    problem = make("step", FAMILIES[seed % 4], seed, 40)
    found = decoded(prepare(problem), np.zeros(len(SETTINGS)))
    assert found is None or min(found[0], objective(problem, "list_schedule")) <= objective(problem, "heft") * (
        1 + 1e-9
    )


@pytest.mark.parametrize("seed", range(24))
def test_plans_of_any_setting_are_feasible(seed):
    """Whatever the settings say, the verifier takes the plan, and its makespan is the scheduler's or less."""
    problem = suite("step").random_problem(seed, "") if seed % 2 else make("step", FAMILIES[seed // 2 % 4], seed, 40)
    p = prepare(problem)
    if not p.allowed.any(axis=1).all():
        return
    rng, room = np.random.default_rng(seed), Workroom(p)
    drawn = list(draw(rng, 9))
    for settings in [*drawn, *(bred(rng, drawn) for _ in range(6))]:
        found = decode(p, room, settings)
        if found is not None:
            verdict = verify(problem, plan_of(p, room, found))
            assert verdict.objective is not None, verdict.violations
            assert verdict.objective <= found.length * (1 + 1e-9)


def regret(p: Prepared, settings: np.ndarray) -> float:
    """Return by how much, in mean ops, a device was once dearer than the cheapest, every device weighed in full."""
    a = p.__dict__["arrays"] = SOURCE.StepArrays(p)
    room = SOURCE.Workroom(p)
    state = SOURCE.ListState(room, a, prices_of(p.basis, settings))
    assert SOURCE.build(state, False)
    where, load, done = np.full(p.n_groups, -1), np.zeros(p.n_devices), np.zeros(p.n_devices)
    u, v = p.edges
    ends: list[list[tuple[float, float]]] = [[] for _ in range(p.n_devices)]
    worst, last = 0.0, -1
    for op in room.order:
        g, reads = a.group[op], u[v == op]
        if where[g] < 0:
            costs = np.full(p.n_devices, np.inf)
            pull = [(state.same[e], state.near[e], where[b]) for e, b in others(p, g) if where[b] >= 0]
            for d in np.flatnonzero(np.isfinite(a.work[:, g])):
                way = [a.delay[a.level[d, where[a.group[r]]], r] for r in reads]
                ready, took = (
                    max((room.finish[r] + x for r, x in zip(reads, way, strict=True)), default=0.0),
                    a.seconds[d, op],
                )
                stops = [ready, *(end for _, end in ends[d] if end > ready)]
                at = min(t for t in stops if not any(b < t + took and t < e for b, e in ends[d]))
                idle = max(0.0, at - max((end for _, end in ends[d]), default=0.0))
                even = (load[d] + a.work[d, g]) / a.even
                kinds = (
                    even,
                    even - done[d] / a.even,
                    float(d not in where),
                    0.0,
                    idle / a.unit,
                    d == last,
                    sum(way) / a.unit,
                )
                drawn = sum(same * (d == x) + near * a.near[d, x] for same, near, x in pull)
                costs[d] = (at + took) / a.unit + state.costs @ np.array(kinds, dtype=float) - drawn
            last = where[g] = state.where[g]
            worst = max(worst, costs[last] - costs.min())
            load[last] += a.work[last, g]
        ends[where[g]].append((room.start[op], room.finish[op]))
        done[where[g]] += a.seconds[where[g], op]
    return worst


def others(p: Prepared, g: int) -> list[tuple[int, int]]:
    """Return the edges of a group to others, each with the group at its other end."""
    a, b = p.group_of[p.edges[0]], p.group_of[p.edges[1]]
    return [(e, int(b[e] if a[e] == g else a[e])) for e in range(len(a)) if (a[e] == g) != (b[e] == g)]


@pytest.mark.parametrize("seed", range(12))
def test_each_group_goes_to_the_cheapest_device(seed):
    """No device that the bound leaves out would have been cheaper, whatever the prices."""
    problem = make("step", FAMILIES[seed % 4], seed, 40)
    ample = tuple(replace(kind, memory=None) for kind in problem.cluster.device_types)
    p = prepare(replace(problem, cluster=replace(problem.cluster, device_types=ample), contention=False))
    for settings in [np.zeros(len(SETTINGS)), *draw(np.random.default_rng(seed), 6)]:
        assert regret(p, settings) < 1e-9


def pairs() -> StepProblem:
    """Two pairs of ops side by side, a to b and c to d, each op a second; sending takes a second."""
    graph = OpGraph(
        names=("a", "b", "c", "d"), device_types=("x",), time=np.ones((1, 4)), memory=np.zeros(4),
        parameter_bytes=np.zeros(4), activation_bytes=np.full(4, 1e9), source=[0, 2], target=[1, 3],
        edge_bytes=[1e9, 1e9], colocation=[-1] * 4, twin=[-1] * 4, backward=[False] * 4,
    )  # fmt: skip
    levels = (Level("link", 1e9),)
    return StepProblem(graph, Cluster((DeviceType("x"),), [0, 0], TreeTopology.regular(levels, (2,))))


def test_what_is_costly_to_part_stays_together():
    """Joined pairs go to one device each, although a price on loads would part them."""
    settings = np.zeros(len(SETTINGS))
    settings[SETTINGS.index("device_costly")] = 0.5
    settings[SETTINGS.index("device_memory")], settings[SETTINGS.index("device_work")] = 1.0, 1.0
    length, where, *_ = decoded(prepare(pairs()), settings)
    assert where[0] == where[1] != where[2] == where[3]
    assert length == pytest.approx(2.0)


def test_a_price_on_opening_a_device_keeps_to_one():
    """Where a second device costs more than it saves, all ops stay on the first, four seconds."""
    settings = np.zeros(len(SETTINGS))
    settings[SETTINGS.index("opens")] = 100.0
    length, where, *_ = decoded(prepare(pairs()), settings)
    assert length == pytest.approx(4.0)
    assert len(set(where.tolist())) == 1


def test_a_dead_end_leaves_an_order():
    """Where memory leads into a dead end, the next search still begins with an order of all ops."""
    found = 0
    for seed in range(200):
        p = prepare(suite("step").random_problem(seed, ""))
        room, settings = Workroom(p), draw(np.random.default_rng(seed), 1)[0]
        np.asarray(room.order)[:] = -1
        if p.allowed.any(axis=1).all() and not build(ListState(room, p.arrays, prices_of(p.basis, settings)), False):
            found += 1
            assert sorted(room.order) == list(range(p.n))
    assert found


def test_search_yields_ever_better_plans():
    """Plans come in falling order of makespan; stopped, the first is all there is."""
    p = prepare(make("step", "fork_join", 1, 100))
    room = Workroom(p)
    found = [x.length for x in search(p, room, np.random.default_rng(1), lambda: False)]
    assert len(found) > 2 and all(a > b for a, b in pairwise(found))
    assert [x.length for x in search(p, room, np.random.default_rng(1), lambda: True)] == found[:1]


@pytest.mark.parametrize("name", ["list_schedule", "local_search"])
def test_memory_is_missed_by_a_hair(name: str) -> None:
    """An op that needs a billion times what a device has leaves no trace in the sum of the small ones tried there."""
    graph = OpGraph(
        ("a", "b", "c"), ("x", "y"), [[0.1, 0.1, 0.1], [0.6, 0.7, 0.3]], [0.002, 0.09, 8e8], np.zeros(3), np.zeros(3),
        [0, 0, 1], [1, 2, 2], [0.2, 0.2, 0.0],
    )  # fmt: skip
    cluster = Cluster.flat((DeviceType("x", memory=0.092 * (1 - 2e-9)), 1), (DeviceType("y"), 1), bandwidth=1.0)
    problem = StepProblem(graph, cluster)
    run, tools = Run(problem, time_limit=60), suite("step")
    prepared = tools.prepare(run)
    tools.draft(run, prepared)
    tools.methods[name].run(run, prepared)
    assert run.objective == pytest.approx(tools.optimum(problem))
