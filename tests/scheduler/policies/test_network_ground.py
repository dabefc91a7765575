"""Compiled episodes and `Scheduler` side by side: each job starts at the same time on the same nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.learned.graph.compiled import FAR
from gangplan.learned.online.candidates import IN_SIGHT
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.policy.weights import find
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, simulate
from gangplan.simulator.gangs.arrays import begin, cluster_of, jobs_of
from gangplan.simulator.gangs.formula import FORMULAS, finish
from gangplan.simulator.gangs.traffic import DRAWN, TEST, TRAIN, VALIDATE, Traffic

GROUNDS = {x.name: x for table in (TRAIN, VALIDATE, TEST) for x in table}
NEVER = {"patience": 1e12, "max_wait": None}
"""Nobody is due: compiled episodes know no such rule."""


def most_wait(ground: Traffic, jobs: int, policy: str | GnnPolicy) -> int:
    """Play the first jobs of a ground both ways, compare each start, and return how many waited at most."""
    work, told = ground.draw(7)
    jobs = min(jobs, work.n_jobs)
    work, told = work.take(np.arange(jobs)), None if told is None else told[:jobs]
    ours, cluster = jobs_of(work, ground.proximity, told), cluster_of(ground.fleet, ground.proximity)
    state = begin(ours, cluster)
    if isinstance(policy, GnnPolicy):
        policy.finish(ours, cluster, state)
    elif policy in FORMULAS:
        finish(ours, cluster, state, FORMULAS[policy])
    else:
        GnnPolicy.load(find("gnn"), guarded=policy == "gnn").finish(ours, cluster, state)
    scheduler = EngineScheduler((SchedulerPolicy(True if told is None else told, policy=policy, **NEVER),), "overtake")
    outcome = simulate(work, ground.fleet, scheduler, speeds=ground.proximity)
    np.testing.assert_allclose(outcome.start, state.start, rtol=1e-12)
    mine, theirs = (np.zeros((jobs, ground.fleet.n_nodes), dtype=int) for _ in range(2))
    np.add.at(mine, (np.repeat(np.arange(jobs), ours.gpus), cluster.node[state.held]), 1)
    np.add.at(theirs, (outcome.row_job, outcome.row_node), outcome.row_gpus)
    assert np.array_equal(mine, theirs)
    return max(int(((ours.submit <= t) & (state.start > t)).sum()) for t in np.unique(state.start))


@pytest.mark.parametrize("policy", ["patient", "evolved", "gnn-unguarded"])
@pytest.mark.parametrize(("name", "jobs"), [("mix-32", 200), ("powers-2048", 200)])
def test_what_learns_is_what_decides(name: str, jobs: int, policy: str) -> None:
    """The rule and the network, on 32 and on 2,048 GPUs."""
    most_wait(GROUNDS[name], jobs, policy)


def test_on_a_cluster_larger_than_any_in_training_the_rule_decides() -> None:
    """Nobody is compared there, and both do what `evolved` does."""
    assert GROUNDS["powers-2048"].fleet.n_gpus > GnnPolicy.load(find("gnn")).settings.largest
    assert most_wait(GROUNDS["powers-2048"], 300, "gnn") == most_wait(GROUNDS["powers-2048"], 300, "evolved")


def test_queues_deeper_than_is_seen() -> None:
    """Where more jobs wait than the network sees, both see the same, whatever it learned from."""
    policy = GnnPolicy.load(find("gnn"), guarded=False)
    policy.net.low[:], policy.net.high[:] = -FAR, FAR
    assert most_wait(replace(GROUNDS["mix-64"], load=4.0), 500, policy) > IN_SIGHT


def test_who_waits_is_not_who_came_last_or_takes_longest() -> None:
    """By the evolved rule jobs of one line wait or not by their seconds and age, with priceless weights too."""
    ground = replace(GROUNDS["powers-128"], load=2.0)
    assert most_wait(ground, 500, "evolved") > 10


@pytest.mark.long
@pytest.mark.parametrize("policy", ["patient", "evolved", "gnn-unguarded", "gnn"])
@pytest.mark.parametrize("name", [x.name for x in GROUNDS.values() if x.jobs in DRAWN])
def test_what_learns_is_what_decides_for_long(name: str, policy: str) -> None:
    """On every ground, up to 1,500 jobs; with the guard only where it plays a decision at a time as they come."""
    if policy == "gnn" and GROUNDS[name].fleet.n_gpus > 64:
        pytest.skip("the guard of `Scheduler` plays in slices, and changes its mind later")
    most_wait(GROUNDS[name], 1500, policy)
