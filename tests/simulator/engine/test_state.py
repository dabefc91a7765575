"""Whoever decides: no node gives more than it has, cores and memory included, and nobody looks at jobs to come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler, Outages, simulate
from gangplan.simulator.trace import DegreeOptions, Outcome, check

SEEDS = range(2)
MODES = [
    (policy, discipline, consolidate, shared)
    for policy in POLICIES
    for discipline in ("head", "overtake", "easy", "conservative")
    for consolidate in (False, True)
    for shared in (False, True)
]


def scheduler(policy: str, discipline: str, consolidate: bool, shared: bool) -> EngineScheduler:
    """Return a scheduler, or skip what does not go together."""
    try:
        return EngineScheduler((POLICIES[policy](),), discipline, consolidate, shared=shared or None)
    except InstanceError:
        pytest.skip("this discipline does not go with what the policy does")


def crowd(seed: int, fleet: Fleet, shared: bool) -> Workload:
    """Make jobs that each fit an idle cluster, of which cores and memory let fewer run than GPUs do."""
    rng, n = np.random.default_rng(seed), 24
    gpus = rng.integers(1, 5, n)
    heavy = rng.random(n) < 0.7
    return Workload(
        tuple(map(str, range(n))),
        np.sort(rng.integers(0, 40, n)).astype(float),
        gpus,
        rng.integers(0, 15, n).astype(float),
        queue=tuple(rng.choice(["x", "y"], n).tolist()),
        share=rng.choice([0.25, 0.5, 1.0], n) if shared else None,
        cpu=gpus * rng.choice([0.0, 1.0, 4.0, 6.0], n) * heavy,
        memory=gpus * rng.choice([0.0, 1e9, 2.5e10, 5e10], n) * heavy,
    )


def most_used(done: Outcome, asked: Any) -> dict[int, float]:
    """Return the most that jobs hold at once of what they ask for, on each node: row by row, from the outcome alone."""
    rows = range(len(done.row_job))
    need = [float(done.row_gpus[r] * asked[done.row_job[r]] / done.workload.gpus[done.row_job[r]]) for r in rows]
    most: dict[int, float] = {}
    for r in rows:
        at, node = done.row_start[r], int(done.row_node[r])
        if done.row_end[r] > at:
            here = (q for q in rows if done.row_node[q] == node and done.row_start[q] <= at < done.row_end[q])
            most[node] = max(most.get(node, 0.0), sum(need[q] for q in here))
    return most


@pytest.mark.parametrize(("policy", "discipline", "consolidate", "shared"), MODES)
def test_cores_and_memory_bind(policy: str, discipline: str, consolidate: bool, shared: bool) -> None:
    """Under every policy the jobs on a node hold no more cores and bytes than it has, and all are done."""
    parts = scheduler(policy, discipline, consolidate, shared)
    fleet = Fleet.regular(1, 3, 4, cpu=24.0, memory=2e11)
    for seed in SEEDS:
        jobs = crowd(seed, fleet, shared)
        options = DegreeOptions.scaling(jobs, (1, 2, 4)) if policy == "optimus" and not shared else None
        for outages in (None, Outages(mtbf=60.0, mttr=[0.0, 5.0][seed % 2], seed=seed)):
            done = simulate(jobs, fleet, parts, options=options, outages=outages, preempt_cost=0.5)
            assert done.admitted.all()
            for asked, has in ((jobs.cpu, 24.0), (jobs.memory, 2e11)):
                assert max(most_used(done, asked).values(), default=0.0) <= has * (1 + 1e-9), seed


def test_the_check_counts_cores() -> None:
    """Two jobs of 24 cores at a time on a node of 24 are told, as is memory."""
    fleet, two = Fleet.regular(1, 1, 4, cpu=24.0, memory=24.0), np.array([24.0, 24.0])
    jobs = Workload(("a", "b"), np.zeros(2), np.array([4, 4]), np.full(2, 5.0), share=np.full(2, 0.5))
    done = simulate(jobs, fleet, EngineScheduler((POLICIES["fifo"](),), shared=True))
    assert not check(done)
    for field, unit in (("cpu", "cores"), ("memory", "bytes")):
        more: Any = {field: two}
        assert f"node 0 holds 48 {unit} at 0 s, it has 24" in check(replace(done, workload=replace(jobs, **more)))


@pytest.mark.parametrize(("policy", "discipline", "consolidate", "shared"), MODES)
def test_jobs_to_come_change_nothing(policy: str, discipline: str, consolidate: bool, shared: bool) -> None:
    """What is decided before a job is submitted is the same without it, whatever it asks for."""
    parts, fleet = scheduler(policy, discipline, consolidate, shared), Fleet.regular(1, 3, 4, cpu=24.0, memory=2e11)
    for seed in SEEDS:
        jobs = crowd(seed, fleet, shared)
        early = np.arange(12)
        # the first ones name neither cores nor memory
        cpu, memory = (np.where(np.arange(24) < 12, 0.0, x) for x in (jobs.cpu, jobs.memory))
        jobs = replace(jobs, cpu=cpu, memory=memory, submit=jobs.submit + 4.0 * (np.arange(24) >= 12))
        whole, some = (simulate(x, fleet, parts) for x in (jobs, jobs.take(early)))
        before = np.minimum(some.start, jobs.submit[12])
        assert np.minimum(whole.start[early], jobs.submit[12]).tolist() == before.tolist(), seed


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
def test_reservations_stand_when_cores_come(policy: str) -> None:
    """Reservations on counted GPUs foresee no job with cores and, in order of submission, stand when it comes."""
    k, fleet, parts = 14, Fleet.regular(1, 3, 4, cpu=24.0), EngineScheduler((POLICIES[policy](),), "conservative")
    for seed in range(10):
        rng = np.random.default_rng(seed)
        jobs = Workload(
            tuple(map(str, range(k + 1))),
            np.append(np.sort(rng.integers(0, 6, k)), 8).astype(float),
            np.append(rng.integers(1, 9, k), 1),
            np.append(rng.integers(1, 15, k), 3).astype(float),
            cpu=np.append(np.zeros(k), 20.0),
        )
        whole, some = simulate(jobs, fleet, parts).start[:k], simulate(jobs.take(np.arange(k)), fleet, parts).start
        assert np.minimum(whole, 8).tolist() == np.minimum(some, 8).tolist(), seed
        assert policy != "fifo" or (whole <= some).all(), seed
