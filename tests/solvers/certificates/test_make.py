"""Certificates against enumeration: no bound is above an optimum, however the numbers are scaled."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError
from gangplan.instances.certificates import certifies, verify_bound, write
from gangplan.instances.certificates.document import ARGUMENTS
from gangplan.instances.layout import LayoutProblem
from gangplan.instances.partition import GraphProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.readers.shops import parse_jobshop
from gangplan.instances.schedule import ScheduleProblem
from gangplan.solvers import Run
from gangplan.solvers.certificates import make
from gangplan.solvers.certificates.make import certify
from gangplan.solvers.method import OBJECTIVES, suite
from tests.seeds import some

SEEDS = 12
CASES = [(x, variant) for x in OBJECTIVES for variant in suite(x).variants]


def proved(problem: Any, optimum: float | None, plan: Any = None) -> Iterator[Any]:
    """Yield all certificates that are made of a problem, read back from their documents."""
    from gangplan.solvers.certificates.make import _candidates

    run = Run(problem, time_limit=60.0)
    run.objective = optimum
    for made in _candidates(run, lambda: 60.0):
        certificate = getattr(made, "certificate", made)
        if certificate.argument in ("together", "around", "grouped"):
            # whether the search ends is for the checker to say: `certify` passes over those that do not
            try:
                verify_bound(problem, certificate)
            except InstanceError:
                continue
        yield json.loads(json.dumps(write(certificate)))


def seeds(objective: str) -> Sequence[int]:
    """Return seeds of tiny problems: of layouts, each of which takes a second, other ones each time."""
    return some(range(SEEDS), 3) if objective == "layout" else range(SEEDS)


def tiny(objective: str, variant: str, seed: int) -> tuple[Any, float | None]:
    """Return a tiny problem and its optimum."""
    known = suite(objective)
    problem = known.random_problem(seed, variant)
    return problem, known.optimum(problem)


@pytest.mark.parametrize(("objective", "variant"), CASES)
def test_no_certified_bound_is_above_the_optimum(objective: str, variant: str) -> None:
    """Of tiny problems that are enumerated, each certificate proves no more than the optimum, and some prove it."""
    tight = made = 0
    for seed in seeds(objective):
        problem, optimum = tiny(objective, variant, seed)
        for data in proved(problem, optimum):
            made += 1
            bound = verify_bound(problem, data)
            if optimum is not None:
                assert bound <= optimum, (seed, data["argument"])
                tight += certifies(bound, optimum, gangplan.Run(problem, time_limit=1.0).zero)
    assert made
    assert tight, "no tiny problem was proved"


@pytest.mark.parametrize(
    ("argument", "objective"), [("around", "throughput"), ("grouped", "latency"), ("together", "step")]
)
def test_no_threshold_above_the_optimum_is_refuted(argument: str, objective: str) -> None:
    """Whatever the threshold, a search of the checker's own proves no more than the best of all plans."""
    refuted = refused = 0
    for variant in suite(objective).variants:
        for seed in range(SEEDS):
            problem, optimum = tiny(objective, variant, seed)
            for factor in (Fraction(1, 2), Fraction(999, 1000), 1, 1 + Fraction(1, 10**6), Fraction(3, 2)) * bool(
                optimum
            ):
                threshold = str(Fraction(optimum or 0) * factor)
                try:
                    bound = verify_bound(problem, {"argument": argument, "threshold": threshold, "steps": 10**5})
                except InstanceError:
                    refused += 1
                    continue
                refuted += 1
                assert bound <= optimum, (variant, seed, factor)
    assert refuted and refused


def scaled(problem: Any, rng: np.random.Generator) -> Any:
    """Return the problem with rows of numbers between a billionth and a billion times what they were."""
    if isinstance(problem, GraphProblem):
        graph = problem.graph
        factor = 10.0 ** rng.integers(-9, 10, graph.n_ops)
        changed = replace(graph, time=graph.time * factor, memory=graph.memory)
        return replace(problem, graph=changed)
    if isinstance(problem, LayoutProblem):
        factors = (10.0 ** rng.integers(-9, 10, len(problem.pools))).tolist()
        pools = [replace(x, flops=x.flops * k) for x, k in zip(problem.pools, factors, strict=True)]
        return replace(problem, pools=tuple(pools))
    if isinstance(problem, ScheduleProblem):
        jobs = []
        for job, k in zip(problem.jobs, rng.integers(-9, 10, len(problem.jobs)).tolist(), strict=True):
            jobs.append(
                replace(job, weight=job.weight * 10.0**k, durations=tuple(x * 10.0 ** -(k // 3) for x in job.durations))
            )
        return replace(problem, jobs=tuple(jobs))
    if isinstance(problem, PipelineProblem):
        factor = 10.0 ** rng.integers(-9, 10, problem.stages)
        return replace(problem, forward=problem.forward * factor, transfer=problem.transfer * factor[::-1])
    jobs = [
        replace(job, weight=job.weight * 10.0**k)
        for job, k in zip(problem.jobs, rng.integers(-9, 10, len(problem.jobs)).tolist(), strict=True)
    ]
    return replace(problem, jobs=tuple(jobs))


@pytest.mark.parametrize(("objective", "variant"), CASES)
def test_badly_scaled_numbers(objective: str, variant: str) -> None:
    """Rows from 1e-9 to 1e9 make bounds weaker at worst, not wrong."""
    rng, made = np.random.default_rng(7), 0
    for seed in range(SEEDS // 2):
        problem = scaled(suite(objective).random_problem(seed, variant), rng)
        optimum = suite(objective).optimum(problem)
        for data in proved(problem, optimum):
            made += 1
            if optimum is not None:
                assert verify_bound(problem, data) <= optimum, (seed, data["argument"])
    assert made


def numbers(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the numbers of a document are."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key != "argument":
            yield from numbers(value, (*path, key))
    if not isinstance(data, dict | list):
        yield path


def mutated(data: Any, path: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the document with one number changed, in several ways."""
    text = json.dumps(data)
    value = data
    for key in path:
        value = value[key]
    million = Fraction(1, 10**6)
    changes = (
        [value - 1, value + 1, value + 7, -value]
        if isinstance(value, int)
        else [str(Fraction(value) * k) for k in (1 + million, 1 - million, 2, -1, 0, 1000)]
    )
    for change in changes:
        copy = inside = json.loads(text)
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = change
        yield copy


@pytest.mark.parametrize(("objective", "variant"), CASES)
def test_a_changed_number_is_refused_or_proves_no_more_than_is_true(objective: str, variant: str) -> None:
    """Each number of a certificate is changed in several ways: the checker refuses, or the bound still holds."""
    rng, refused, tried = random.Random(3), 0, 0
    for seed in seeds(objective):
        problem, optimum = tiny(objective, variant, seed)
        for data in proved(problem, optimum) if optimum is not None else ():
            places = list(numbers(data))
            for path in rng.sample(places, min(len(places), 20)):
                for changed in mutated(data, path):
                    tried += 1
                    try:
                        bound = verify_bound(problem, changed)
                    except InstanceError:
                        refused += 1
                    else:
                        assert bound <= optimum, (seed, data["argument"], path)
    assert refused and tried > refused


def test_a_leaf_that_is_dropped_is_missed() -> None:
    """A tree without one of its leaves is refused."""
    problem, optimum = tiny("throughput", "contiguous", 1)
    (tree,) = (x for x in proved(problem, optimum) if x["argument"] == "tree")
    with pytest.raises(InstanceError, match="leaves"):
        verify_bound(problem, tree | {"leaves": tree["leaves"][:-1]})


def test_every_argument_is_made_of_some_problem() -> None:
    """The makers know all arguments but the combination of others."""
    made, known = set(), set(ARGUMENTS) - {"best"}
    for seed, case in product(range(SEEDS), CASES):
        made |= {data["argument"] for data in proved(*tiny(*case, seed))}
        if made >= known:
            break
    assert made == known


def test_documents_are_frozen_dataclasses_of_whole_numbers_and_rationals() -> None:
    """Nothing in a certificate is a float."""
    for objective, variant in CASES[:3]:
        for data in proved(*tiny(objective, variant, 0)):
            assert "." not in json.dumps({k: v for k, v in data.items() if k != "argument"})
    for name in ARGUMENTS:
        assert is_dataclass(ARGUMENTS[name]) and fields(ARGUMENTS[name])


def test_certify_stops_at_a_proof() -> None:
    """Of a problem whose simplest certificate is tight no other is made, and the result says so."""
    # one op on one device: the path is the makespan
    kind = gangplan.DeviceType("gpu")
    cluster = gangplan.Cluster.flat((kind, 1), bandwidth=1e9)
    graph = gangplan.OpGraph(("a",), ("gpu",), [[2.0]], [0.0], [0.0], [0.0], [], [], [], [-1], [-1], [False])
    run = Run(gangplan.StepProblem(graph, cluster), time_limit=1.0)
    run.objective = 2.0
    best = certify(run, 10.0)
    assert best is not None and best.certificate.argument == "path"
    assert 2 * (1 - Fraction(1, 10**8)) < best.bound < 2


@pytest.mark.parametrize(("left", "arguments"), [(0.02, ["path", "together"]), (10.0, ["path", "together", "shares"])])
def test_of_a_shop_nothing_loads_highs_in_no_time(left: float, arguments: list[str]) -> None:
    """Where milliseconds are left, the search of a shop is not followed by arguments that take longer to import."""
    run = Run(parse_jobshop("2 2\n0 3 1 2\n1 2 0 4\n"), time_limit=10)
    suite("step").methods["heft"].run(run, suite("step").prepare(run))
    assert [x.argument for x in make._step(run, lambda: left)][:3] == arguments
