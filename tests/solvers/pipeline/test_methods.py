"""All methods for pipelines against enumeration, and the frontier that they prove."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import Run, solve, verify
from gangplan.instances.certificates.windows import MOST, WindowsCertificate
from gangplan.instances.generators import generate
from gangplan.instances.pipeline import PipelineProblem
from gangplan.solvers.method import suite
from gangplan.solvers.pipeline.beam import beam
from gangplan.solvers.pipeline.plain import ticks_of
from gangplan.solvers.pipeline.published import published

TOOLS = suite("pipeline")
EXACT = ("cpsat", "plain_cpsat", "plain_milp", "milp")


def compared(seeds: range, names: tuple[str, ...]) -> None:
    """Compare bound, methods and enumeration on tiny problems; a method has the problem itself, without a bound."""
    for seed in seeds:
        problem = TOOLS.random_problem(seed, "")
        best = TOOLS.optimum(problem)
        bound = WindowsCertificate(MOST).bound(problem)
        assert bound <= (np.inf if best is None else best), seed
        for name in names:
            run = Run(problem, time_limit=60)
            TOOLS.methods[name].function(run, run)
            if best is None:
                assert run.infeasible, (seed, name)
            else:
                assert run.objective == pytest.approx(best, rel=1e-6), (seed, name)
                assert run.bound is not None and run.bound == pytest.approx(best, rel=1e-6), (seed, name)


def test_exact_methods_agree_with_enumeration() -> None:
    """The optimum is that of all orders, by CP-SAT's strong model and by the textbook model on both solvers."""
    compared(range(10), EXACT[:3])


@pytest.mark.long
def test_exact_methods_agree_with_enumeration_at_length() -> None:
    """The same of 200 problems."""
    compared(range(200), EXACT)


@pytest.mark.parametrize("seed", range(10))
def test_heuristics_make_plans(seed: int) -> None:
    """Beams and local search find plans that hold, and no worse ones from better ones."""
    problem = TOOLS.random_problem(seed, "")
    best = TOOLS.optimum(problem)
    for name in ("beam", "published", "local_search"):
        run = Run(problem, time_limit=0.3)
        if best is not None:
            with suppress(TimeoutError):
                TOOLS.methods[name].run(run, run)
            assert run.objective is None or run.objective >= best * (1 - 1e-9)
            assert name == "published" or run.plan is not None


def test_local_search_improves_a_bad_plan() -> None:
    """From one micro-batch after the other it comes to overlap them."""
    problem = generate("micro_batches", devices=3, micro_batches=4)
    own = [[x for x in range(problem.n_passes) if problem.passes().device[x] == d] for d in range(3)]
    orders = [sorted(order, key=lambda x: (x % 4, x)) for order in own]
    run = Run(problem, time_limit=3)
    run.offer(problem.plan(orders), "bad")
    before = run.objective
    TOOLS.methods["local_search"].function(run, run)
    assert before is not None and run.objective is not None and run.objective < 0.75 * before


@pytest.mark.parametrize("seed", range(12))
def test_a_wide_beam_is_exact(seed: int) -> None:
    """A beam that leaves nothing out proves its plan; without a barrier it only finds plans."""
    problem = TOOLS.random_problem(seed, "")
    best = TOOLS.optimum(problem)
    if best is not None:
        run = Run(problem, time_limit=30)
        TOOLS.methods["beam"].function(run, run)
        assert run.objective is not None and run.objective >= best * (1 - 1e-9)
        if problem.barrier:
            assert run.objective == pytest.approx(best) and run.bound == pytest.approx(best)


def test_wider_beams_are_no_worse() -> None:
    """Each width begins from what the one before has found."""
    problem, found = generate("micro_batches", devices=8, micro_batches=32, memory=5), []
    for tries in (1, 5):
        run = Run(problem, time_limit=60)
        TOOLS.methods["beam"].function(run, run, tries)
        found.append(run.objective)
    assert found == [131, 127]


def test_unlike_ticks() -> None:
    """Seconds with a common tick are whole numbers of it; others are fine parts of a plan."""
    assert ticks_of(np.array([0.3, 0.2, 0.7]), 1.0) == pytest.approx(10)
    assert ticks_of(np.array([1.0, np.pi]), 0.0) == 0.0 < ticks_of(np.array([1.0, np.pi]), 2.0)


PROVED = {(4, 8): (72, 41, 31, 27), (4, 12): (108, 61, 44, 39)}
"""Seconds of the best step of equal stages by devices, micro-batches, and memory from 1 on."""


@pytest.mark.parametrize(("devices", "micro_batches"), PROVED)
@pytest.mark.parametrize("barrier", [True, False])
def test_frontier(devices: int, micro_batches: int, barrier: bool) -> None:
    """Each amount of memory up to that of 1F1B has a proved optimum, with a barrier or without."""
    for memory, value in enumerate(PROVED[devices, micro_batches], 1):
        how: dict[str, Any] = {"devices": devices, "micro_batches": micro_batches, "memory": memory}
        result = solve(generate("micro_batches", **how, barrier=barrier), 60, method="cpsat", workers=1)
        assert (result.status, result.objective) == ("OPTIMAL", value)


def test_no_memory_is_explained() -> None:
    """A device that cannot hold one micro-batch is the conflict."""
    problem = generate("micro_batches", devices=2, micro_batches=2, memory=1)
    less = replace(problem, capacity=np.array([1.0, 0.5]))
    result = solve(less, 10)
    assert result.status == "INFEASIBLE" and result.conflict == ("memory: device 1 has 0.5 micro-batches",)


def test_large_problems_have_a_plan_in_time() -> None:
    """Of twenty-five thousand passes there is a plan and a bound within seconds."""
    problem = generate("micro_batches", devices=32, micro_batches=256, memory=32)
    result = solve(problem, 4, workers=1)
    assert result.plan is not None and result.bound is not None and result.gap is not None
    assert verify(problem, result.plan).ok


def test_other_kinds_of_memory() -> None:
    """Where W keeps a part of what F holds, memory is no order of passes, and CP-SAT counts bytes."""
    even = generate("micro_batches", devices=3, micro_batches=4, memory=2)
    values = {}
    for share in (0.0, 0.5, 1.0):
        problem: PipelineProblem = replace(even, kept=even.activation * share)
        strong, textbook = (solve(problem, 60, method=x, workers=1) for x in ("cpsat", "plain_cpsat"))
        assert strong.status == "OPTIMAL" and strong.objective == textbook.objective
        values[share] = strong.objective
    assert values[0.0] <= values[0.5] <= values[1.0]


@pytest.mark.parametrize("factor", [1e-308, 1e290])
@pytest.mark.parametrize("method", ["auto", *EXACT])
def test_extreme_seconds(factor: float, method: str) -> None:
    """Seconds near the ends of floats have a plan, and a bound that is not above it."""
    even = generate("micro_batches", devices=2, micro_batches=2, memory=1)
    names = ("forward", "backward", "weight")
    problem: PipelineProblem = replace(even, **{x: getattr(even, x) * factor for x in names})
    result = solve(problem, 1.5, method=method, workers=1)
    assert result.objective is not None and result.bound is not None
    assert 0 < result.bound <= result.objective < np.inf


@pytest.mark.parametrize("memory", [None, 5])
def test_a_plan_though_the_time_is_up(memory: int | None) -> None:
    """With no time at all there is a plan, published or of the narrowest beam, and nothing is raised."""
    result = solve(generate("micro_batches", devices=6, micro_batches=64, memory=memory), time_limit=1e-6)
    assert result.plan is not None and result.stop_reason == "time limit"


def test_a_search_begins_with_time_for_it() -> None:
    """Of many passes heads and tails alone take seconds, amid which nobody looks at the clock."""
    problem = generate("micro_batches", devices=16, micro_batches=1024)
    run = Run(problem, time_limit=60)
    published(run)
    run.deadline, before = time.perf_counter() + 1.0, time.process_time()
    beam(run)
    assert time.process_time() - before < 1.0
