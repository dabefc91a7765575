"""The plain models prove the optimum that enumeration finds, on problems in which every constraint binds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import Run
from gangplan.hybrid.bench.peers.plain import cbc, cpsat, highs
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.method import suite
from gangplan.solvers.placement.enumeration import random_problem

PEERS = pytest.mark.parametrize("peer", [cpsat, highs, cbc])


def solved(problem: Any, peer: Any) -> Run:
    """Return the run of a peer."""
    run = Run(problem, time_limit=30)
    peer(run)
    return run


def agrees(run: Run, best: float | None) -> bool:
    """Return whether a run has proved `best`, or that there is no plan; say what is wrong if not."""
    if best is None:
        assert run.plan is None and (run.infeasible or run.bound is None)
        return False
    assert run.objective == pytest.approx(best, rel=2e-6, abs=1e-12)
    assert run.bound is None or run.bound <= best + 2e-6 * abs(best) + 1e-12
    return True


@PEERS
@pytest.mark.parametrize("objective", ["throughput", "latency", "step", "schedule"])
def test_optima(objective: str, peer: Any) -> None:
    """A plain model finds the optimum and no bound above it."""
    tools, seen, proved = suite(objective), 0, 0
    for seed in range(24 if peer is cpsat else 12):
        problem = tools.random_problem(seed, tools.variants[0])
        if getattr(problem, "contention", False):
            continue  # the plain models have no links
        try:
            run = solved(problem, peer)
        except NotImplementedError:
            continue
        if agrees(run, tools.optimum(problem)):
            seen += 1
            proved += run.gap is not None and run.gap <= 1e-6
    assert seen >= 3 and proved >= 0.7 * seen, (seen, proved)


def rigid(seed: int) -> PlacementProblem:
    """Return a tiny batch of what the plain models of placement know: rigid gangs of whole GPUs."""
    problem = random_problem(seed)
    jobs = [
        replace(
            job, workers=job.workers[-1:], value=None, worker=replace(job.worker, gpu=float(np.ceil(job.worker.gpu)))
        )
        for job in problem.jobs
    ]
    return replace(problem, jobs=tuple(jobs), goal="slowdown", running=())


@PEERS
def test_placements(peer: Any) -> None:
    """A plain model of placement proves the optimum."""
    tools = suite("placement")
    values = [
        seed
        for seed in range(30 if peer is cpsat else 12)
        if agrees(solved(rigid(seed), peer), tools.optimum(rigid(seed)))
    ]
    assert len(values) >= 5


def test_what_is_left_out() -> None:
    """A plain model names what it does not model."""
    problem = rigid(0)
    jobs = (replace(problem.jobs[0], value=1.0), *problem.jobs[1:])
    for broken, words in ((replace(problem, goal="throughput"), "goal"), (replace(problem, jobs=jobs), r"jobs\[0\]")):
        with pytest.raises(NotImplementedError, match=words):
            solved(broken, highs)
    with pytest.raises(NotImplementedError, match="no plain model of stages"):
        solved(suite("stages").random_problem(0, ""), cbc)
