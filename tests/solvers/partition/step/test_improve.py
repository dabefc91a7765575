"""Busy stretches, better times for a placement, and better plans around a plan."""

import numpy as np
import pytest
from numba import njit

from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StepProblem, TreeTopology
from gangplan.instances.generators.families import make
from gangplan.solvers.compiled.kernel import by_reference
from gangplan.solvers.partition.step.improve import reorder, timetable
from gangplan.solvers.partition.step.improve.arrays import arrays_of
from gangplan.solvers.partition.step.improve.descent import descended
from gangplan.solvers.partition.step.improve.polish import polish, slide, sort
from gangplan.solvers.partition.step.improve.workroom import workroom
from gangplan.solvers.partition.step.methods import METHODS
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.run import Run


@njit
def first_gap(low, high, count, ready, took):
    """Call the compiled function of the name."""
    return timetable.first_gap(low, high, count, ready, took)


@njit
def occupy(low, high, count, start, end):
    """Call the compiled function of the name."""
    return timetable.occupy(low, high, count, start, end)


@njit
def sorted_twice(key, place, order, expected):
    """Slide an order to where it belongs, and write it anew."""
    slide(key, place, order)
    sort(key, place, np.empty(len(key), np.int64), expected)


@njit
def reordered(a, where, start, finish, best, budget, room):
    """Reorder with references to what is passed."""
    return reorder.reorder(by_reference(a), where, start, finish, best, budget, by_reference(room))


def test_gaps_against_a_plain_recount():
    """Whole numbers drawn at random take the first free slots, as marking them in an array says."""
    rng = np.random.default_rng(0)
    low, high, count, taken = np.zeros(200), np.zeros(200), 0, np.zeros(4000, dtype=bool)
    for _ in range(150):
        ready, took = int(rng.integers(0, 300)), int(rng.integers(1, 9))
        expected = next(t for t in range(ready, 4000) if not taken[t : t + took].any())
        at = first_gap(low, high, count, float(ready), float(took))
        assert at == expected
        taken[expected : expected + took] = True
        count = occupy(low, high, count, at, at + took)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], taken.astype(int), [0]])))
        assert np.array_equal(low[:count], edges[::2])
        assert np.array_equal(high[:count], edges[1::2])


def heft(p):
    """Return the arrays of a problem, and HEFT's devices of groups, starts and ends, if it finds a plan."""
    run = Run(p.problem, time_limit=60)
    METHODS["heft"].run(run, p)
    if run.plan is None:
        return None
    a, where = arrays_of(p), run.plan.device[[ops[0] for ops in p.members]].astype(np.int64)
    start = run.plan.start.copy()
    return a, where, start, start + a.seconds[where[a.group], np.arange(p.n)]


@pytest.mark.parametrize("seed", range(8))
def test_polishing_never_makes_a_plan_longer(seed):
    """Makespans fall or stay, and every op is after what it reads."""
    p = prepare(make("step", ("layered", "pipeline")[seed % 2], seed, 60))
    made = heft(p)
    if made is None:
        return
    a, where, start, finish = made
    before = finish.max()
    length = polish(a, workroom(a), where, start, finish, 4)
    assert length <= before * (1 + 1e-12)
    assert length == finish.max()
    u, v = p.edges
    device = where[p.group_of]
    arrival = finish[u] + a.delay[p.level[device[u], device[v]], u]
    assert (start[v] >= arrival - 1e-12 * length).all()


def test_sliding_is_sorting():
    """Ops in any order slide to where sorting puts them, ties by their places."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        key, place = rng.integers(0, 9, 30).astype(float), rng.permutation(30)
        order, expected = rng.permutation(30), np.empty(30, dtype=np.int64)
        sorted_twice(key, place, order, expected)
        assert np.array_equal(order, expected)


def waiting() -> StepProblem:
    """Return ops a and b on one device, a second each, and c, three seconds, which reads what b sends in a second."""
    graph = OpGraph(
        names=("a", "b", "c"), device_types=("x",), time=[[1.0, 1.0, 3.0]], memory=np.zeros(3),
        parameter_bytes=np.zeros(3), activation_bytes=np.full(3, 1e9), source=[1], target=[2],
        edge_bytes=[1e9], colocation=[0, 0, -1], twin=[-1] * 3, backward=[False] * 3,
    )  # fmt: skip
    return StepProblem(graph, Cluster((DeviceType("x"),), [0, 0], TreeTopology.regular((Level("link", 1e9),), (2,))))


def test_what_others_wait_for_goes_first():
    """On its device b changes places with a, and c on the other device ends at 5 instead of 6 seconds."""
    p = prepare(waiting())
    a = arrays_of(p)
    where = np.empty(p.n_groups, dtype=np.int64)
    where[p.group_of] = [0, 0, 1]
    start, finish = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 6.0])
    best, left = reordered(a, where, start, finish, 6.0, 100, workroom(a))
    assert best == pytest.approx(5.0)
    assert start.tolist() == pytest.approx([1.0, 0.0, 2.0])
    assert left < 100


@pytest.mark.parametrize("seed", range(6))
def test_a_longer_descent_is_no_worse(seed):
    """With more ops to schedule the plan gets no longer, and none that is made is too full or too early."""
    p = prepare(make("step", ("layered", "pipeline", "fork_join")[seed % 3], seed, 60))
    made, draws = heft(p), np.random.default_rng(0).random(512)
    if made is None:
        return
    a = made[0]
    lengths = [float(made[3].max())]
    for budget in (100, 2000, 20_000):
        where, start, finish = (x.copy() for x in made[1:])
        lengths.append(descended(a, where, start, finish, budget, draws))
        assert finish.max() == lengths[-1]
        assert (np.bincount(where, p.group_memory, p.n_devices) <= p.room * (1 + 1e-9)).all()
        u, v = p.edges
        device = where[p.group_of]
        assert (start[v] >= finish[u] + a.delay[p.level[device[u], device[v]], u] - 1e-12 * lengths[0]).all()
    assert lengths == sorted(lengths, reverse=True)
