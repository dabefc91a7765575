"""Certificates of placements: cases argued by hand, any prices and thresholds against enumeration, and GapBench's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from gangplan.hybrid.bench.library import read_library
from gangplan.hybrid.bench.suite import make, suite
from gangplan.instances import InstanceError
from gangplan.instances.certificates import certifies, verify_bound, write
from gangplan.instances.certificates.covers import CoversCertificate
from gangplan.instances.certificates.nodes import NodeFamilies
from gangplan.instances.documents import from_document
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem, Running, SpeedModel
from gangplan.solvers import Run
from gangplan.solvers.certificates.make import certify
from gangplan.solvers.certificates.placements import candidates
from gangplan.solvers.method import suite as solvers

SPEEDS = SpeedModel(("m",), ("a",), [[1.0]], [1e9], [0.0], [[0.5]], [[0.5]])
"""A step of 1 s; a job beside another computes half as long again; 1 GB to synchronise."""


def problem_of(*workers: int, nodes: int = 1, gpus: int = 2, **more: Any) -> PlacementProblem:
    """Return gangs on nodes of some GPUs, 1 GB/s between nodes."""
    fleet = Fleet.regular(1, nodes, gpus, gpu_type="a", link=1e12, nic=1e9)
    return PlacementProblem(fleet, tuple(GangJob(f"j{i}", "m", (w,), **more) for i, w in enumerate(workers)), SPEEDS)


def covers(threshold: Any, prices: Any, steps: int = 1000) -> dict[str, Any]:
    """Return a document."""
    return {"argument": "covers", "threshold": str(threshold), "prices": [*map(str, prices)], "steps": steps}


def test_two_jobs_on_a_node() -> None:
    """Each slows the other down to 3/2: 3 in all, of which a price of 1 proves what they cost alone."""
    problem = problem_of(1, 1)
    assert 2 - 1e-6 < verify_bound(problem, covers(0, [1])) < 2
    # at 2 both one job and two cost 1 less than they pay: 2 + 2 - 1
    assert 3 - 1e-6 < verify_bound(problem, covers(0, [2])) < 3
    assert 3 - 1e-6 < verify_bound(problem, covers(3, [1])) < 3
    with pytest.raises(InstanceError, match="threshold: a plan may be below it"):
        verify_bound(problem, covers("31/10", [1]))
    with pytest.raises(InstanceError, match="steps: are over"):
        verify_bound(problem, covers(3, [1], steps=2))
    for wrong in ([1, 1], ["-1"], []):
        with pytest.raises(InstanceError, match="prices"):
            verify_bound(problem, covers(3, wrong))
    # on two nodes they need not meet
    with pytest.raises(InstanceError, match="may be below"):
        verify_bound(problem_of(1, 1, nodes=2), covers("201/100", [1]))


def test_a_gang_on_two_nodes() -> None:
    """A gang of two on two nodes is delayed by the node that is slowest."""
    # alone on as few nodes as there could be, one of two GPUs, a step takes 1 s: that is the reference
    apart = problem_of(2, nodes=2, most_per_node=1)
    assert solvers("placement").optimum(apart) == pytest.approx(1.0)  # but it may not be there, and this counts too
    assert 1 - 1e-6 < verify_bound(apart, covers(1, [0])) < 1
    # a job on each node would slow down the gang that spans both, once: 2 + 1/2, and each of them by a half
    three = problem_of(2, 1, 1, nodes=2)
    optimum = solvers("placement").optimum(three)
    made = CoversCertificate(Fraction(optimum) * (1 - Fraction(1, 10**7)), (Fraction(1), Fraction(1)), 1000)
    assert certifies(verify_bound(three, made), optimum)


def test_no_node_for_a_gang() -> None:
    """A worker of three GPUs is on no node of two."""
    problem = problem_of(1, worker=Demand(3.0))
    assert verify_bound(problem, covers(0, [0])) == inf
    assert verify_bound(replace(problem, goal="throughput"), covers(9, [9])) == 0


def test_a_job_that_moves_pays() -> None:
    """A job runs on one of two nodes where another must stay: it is slowed down there by 1/2 each, or pays 1/4."""
    problem = problem_of(1, 1, nodes=2)
    stays = Running("j0", ("node0",), (1,))
    moves = Running("j1", ("node0",), (1,), movable=True, migration=0.25)
    problem = replace(problem, running=(stays, moves))
    assert 2.25 - 1e-5 < verify_bound(problem, covers("9/4", [1, 1])) < 2.25
    with pytest.raises(InstanceError, match="may be below"):
        verify_bound(problem, covers("23/10", [1, 1]))


def random_problems(count: int) -> Iterator[tuple[int, PlacementProblem, float]]:
    """Yield tiny problems that have a plan, with their optima."""
    for seed in range(count):
        problem = replace(solvers("placement").random_problem(seed, ""), goal="slowdown")
        optimum = solvers("placement").optimum(problem)
        if optimum:
            yield seed, problem, optimum


def test_what_is_made_against_enumeration() -> None:
    """No certificate proves more than the optimum, and most prove it."""
    tight = tried = 0
    for seed, problem, optimum in random_problems(30):
        run = Run(problem, time_limit=60.0)
        run.objective = optimum
        bounds = list[Any]()
        for certificate, bound in candidates(run, lambda: 60.0):
            bounds.append(verify_bound(problem, json.loads(json.dumps(write(certificate)))))
            assert bounds[-1] == bound, "its maker says what the checker says"
        assert max(bounds) <= optimum, seed
        tight, tried = tight + certifies(max(bounds), optimum), tried + 1
    assert tight > tried * 0.7


def test_any_prices_and_thresholds_against_enumeration() -> None:
    """Whatever the prices, no threshold above the optimum is proved."""
    rng, refused, proved = np.random.default_rng(3), 0, 0
    for seed, problem, optimum in random_problems(30):
        families = len(NodeFamilies(problem).families)
        for factor in (0.9, 1.001):
            prices = tuple(Fraction(x) for x in (rng.random(families) * optimum * rng.choice([0.5, 2.0])).tolist())
            try:
                bound = verify_bound(problem, CoversCertificate(Fraction(optimum * factor), prices, 10**4))
            except InstanceError:
                refused += 1
            else:
                assert bound <= optimum, (seed, factor)
                proved += 1
    assert refused > 10 and proved > 5


@pytest.mark.parametrize("name", ["racks-toy-00", "racks-small-00", "racks-small-05", "racks-small-12"])
def test_instances_of_gapbench(name: str) -> None:
    """By floors alone, servers, jobs that stay, and jobs that may move: the plan of the library is proved optimal."""
    (instance,) = (x for x in suite("placement") if x.id == f"placement-{name}")
    problem, record = make(instance), read_library()[instance.id]
    run = Run(problem, time_limit=inf)
    run.offer(from_document(dict(record.plan)), "library")
    best = certify(run, 300.0)
    assert best is not None and certifies(best.bound, run.objective)
    for step in (1 - Fraction(1, 10**5), 1 + Fraction(1, 10**5), 2):  # prices that are off prove less, or nothing
        changed = replace(best.certificate, prices=tuple(x * step for x in best.certificate.prices))
        try:
            assert verify_bound(problem, changed) <= run.objective
        except InstanceError:
            continue
