"""The list scheduler with dials: HEFT at zero, feasible at any setting, timed as the solvers time it."""

from itertools import pairwise

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, Level, OpGraph, StepProblem, TreeTopology, verify
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.step.dials import DIALS, draw
from gangplan.learned.step.features import case_of
from gangplan.learned.step.plans import decode as decode_with
from gangplan.learned.step.play import improved, plan_of, search
from gangplan.solvers import Run
from gangplan.solvers.method import suite
from gangplan.solvers.partition.step.model import prepare

FAMILIES = ("layered", "fork_join", "series_parallel", "pipeline")


def decode(case, dials):
    """Return the plan of a setting."""
    return decode_with(case.p, case.arrays, case.basis, dials)


def heft(problem: StepProblem) -> float | None:
    """Return the makespan of the suite's HEFT."""
    run = Run(problem, time_limit=10)
    suite("step").methods["heft"].run(run, prepare(problem))
    return run.objective


@pytest.mark.parametrize("seed", range(24))
def test_zero_is_heft(seed):
    """With all dials at zero the plan is HEFT's, or a better timed one of the same placement."""
    problem = make("step", FAMILIES[seed % 4], seed, 40)
    case = case_of(prepare(problem))
    found = decode(case, np.zeros(len(DIALS)))
    assert (found is None) == (case.heft is None)
    if found is not None:
        assert found[0] == case.heft[0]
        assert min(x[0] for x in case.base) <= heft(problem) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_any_setting_are_feasible(seed):
    """Whatever the dials say, the verifier takes the plan, and its makespan is the scheduler's or less."""
    problem = suite("step").random_problem(seed, "") if seed % 2 else make("step", FAMILIES[seed // 2 % 4], seed, 40)
    p = prepare(problem)
    if not p.allowed.any(axis=1).all():
        return
    case = case_of(p)
    for dials in draw(np.random.default_rng(seed), 12):
        found = decode(case, dials)
        if found is None:
            continue
        verdict = verify(problem, plan_of(case, found[1], found[2]))
        assert verdict.objective is not None, verdict.violations
        if not problem.contention:
            assert verdict.objective <= found[0] * (1 + 1e-9)
        better = improved(case, found)
        verdict = verify(problem, plan_of(case, better[1], better[2]))
        assert verdict.objective is not None, verdict.violations
        assert better[0] <= found[0]
        if not problem.contention:
            assert verdict.objective <= better[0] * (1 + 1e-9)


def test_large_plans_are_annealed():
    """Beyond a hundred ops there is a last search, which keeps the plan feasible and makes none longer; below, none."""
    shorter = 0
    for i, family in enumerate(FAMILIES[:3]):
        problem = make("step", family, seed_of("validation", 500 + i), 300)
        case = case_of(prepare(problem))
        found = list(search(case, draw(np.random.default_rng(i), 2)))
        plain = list(search(case, draw(np.random.default_rng(i), 2), annealing=False))
        length, where, start = found[-1]
        verdict = verify(problem, plan_of(case, where, start))
        assert verdict.ok and verdict.objective <= length * (1 + 1e-9)
        assert length <= plain[-1][0]
        shorter += length < plain[-1][0]
        again = list(search(case, draw(np.random.default_rng(i), 2)))
        assert again[-1][0] == length
    assert shorter > 0
    small = case_of(prepare(make("step", "layered", seed_of("validation", 900), 60)))
    settings = draw(np.random.default_rng(0), 2)
    assert [x[0] for x in search(small, settings)] == [x[0] for x in search(small, settings, annealing=False)]


def pairs() -> StepProblem:
    """Two pairs of ops side by side, a to b and c to d, each op a second; sending takes a second."""
    graph = OpGraph(
        names=("a", "b", "c", "d"), device_types=("x",), time=np.ones((1, 4)), memory=np.zeros(4),
        parameter_bytes=np.zeros(4), activation_bytes=np.full(4, 1e9), source=[0, 2], target=[1, 3],
        edge_bytes=[1e9, 1e9], colocation=[-1] * 4, twin=[-1] * 4, backward=[False] * 4,
    )  # fmt: skip
    levels = (Level("link", 1e9),)
    return StepProblem(graph, Cluster((DeviceType("x"),), [0, 0], TreeTopology.regular(levels, (2,))))


def test_what_is_dear_to_part_stays_together():
    """Joined pairs go to one device each, although a price on loads would part them."""
    case = case_of(prepare(pairs()))
    dials = np.zeros(len(DIALS))
    dials[DIALS.index("device_dear")] = 0.5
    dials[DIALS.index("device_memory")], dials[DIALS.index("device_work")] = 1.0, 1.0
    length, where, _ = decode(case, dials)
    assert where[0] == where[1] != where[2] == where[3]
    assert length == pytest.approx(2.0)


def test_a_price_on_opening_a_device_keeps_to_one():
    """Where a second device costs more than it saves, all ops stay on the first, four seconds."""
    case = case_of(prepare(pairs()))
    dials = np.zeros(len(DIALS))
    dials[DIALS.index("opens")] = 100.0
    length, where, _ = decode(case, dials)
    assert length == pytest.approx(4.0)
    assert len(set(where.tolist())) == 1


def test_search_yields_ever_better_plans():
    """Plans come in falling order of makespan, first the one that the features show."""
    case = case_of(prepare(make("step", "pipeline", 3, 60)))
    found = [x[0] for x in search(case, draw(np.random.default_rng(1), 40))]
    assert found[0] == min(x[0] for x in case.base)
    assert all(a > b for a, b in pairwise(found))
    assert list(search(case, draw(np.random.default_rng(1), 40), lambda: True))[-1][0] == found[0]
