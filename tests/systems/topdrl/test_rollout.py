"""Rollouts: values by hand, nothing known that is not, and better than the rule that they play with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.arrays import (
    ARRIVED,
    RUNNING,
    WAITING,
    Jobs,
    State,
    begin,
    cluster_of,
    first_jobs,
    jobs_of,
)  # fmt: skip
from gangplan.simulator.gangs.mixes import SMALL
from gangplan.simulator.gangs.step import advance, start
from gangplan.systems.topdrl.rollout import WAIT, Rollout
from gangplan.systems.topdrl.rules import TopdrlPatient
from gangplan.systems.topdrl.simulate import simulate

FLEET = Fleet.regular(2, 4, 4)
CLUSTER = cluster_of(FLEET, Proximity())


def _midway(jobs: Jobs) -> State:
    """Return a state that the rule gets to in which jobs run, some wait, and some of these fit."""
    state, first = begin(jobs, CLUSTER), Rollout(futures=1, ahead=0)
    while True:
        found = first.values(jobs, CLUSTER, state, np.random.default_rng(0))
        if state.count[WAITING] > 3 and state.count[RUNNING] > 3 and len(found.at) > 2:
            return state
        if found.at[found.base] == WAIT:
            advance(jobs, CLUSTER, state)
        else:
            start(jobs, CLUSTER, state, int(found.at[found.base]), found.take[found.base])


def test_values_by_hand() -> None:
    """A long job now and a short one after it, the other way round, or neither until the one that runs is done."""
    work = Workload(("r", "long", "short"), np.zeros(3), np.array([2, 2, 2]), np.array([3.0, 10.0, 4.0]))
    fleet, free = Fleet.regular(1, 1, 4), Proximity(0, 0, 0)
    jobs, cluster = jobs_of(work, free), cluster_of(fleet, free)
    state = begin(jobs, cluster)
    advance(jobs, cluster, state)
    start(jobs, cluster, state, 0, np.array([2]))
    found = Rollout(futures=2, ahead=0).values(jobs, cluster, state, np.random.default_rng(0))
    jct = dict(zip(found.at.tolist(), found.value[:, 0].tolist(), strict=True))
    assert jct == {0: 3 + 10 + 7, 1: 3 + 4 + 13, WAIT: 3 + 7 + 13}
    assert (found.value[:, 0] == found.value[:, 1]).all()
    assert found.at[found.base] == 1


def test_the_rule_alone_is_played_as_it_is() -> None:
    """With no jobs to come the value of the rule's own candidate is the sum of JCTs that the rule then has."""
    jobs = jobs_of(SMALL.draw(1), Proximity())
    state = _midway(jobs)
    played = Rollout(futures=1, ahead=0)
    found = played.values(jobs, CLUSTER, state, np.random.default_rng(0))
    present = np.concatenate([state.queue[: state.count[WAITING]], state.running[: state.count[RUNNING]]])
    known = first_jobs(jobs, int(state.count[ARRIVED]))
    rest = state.copy()
    played.base.finish(known, CLUSTER, rest)
    assert found.value[found.base, 0] == pytest.approx((rest.finish - jobs.submit)[present].sum())


def test_nothing_is_known_that_is_not() -> None:
    """Values depend neither on jobs that have not arrived nor on true durations."""
    jobs = jobs_of(SMALL.draw(2), Proximity())
    state = _midway(jobs)
    arrived = state.count[ARRIVED]
    other = jobs.copy()
    other.submit[arrived:] += 1000
    other.expected[arrived:] *= 7
    other.work[:] *= 3
    values = [Rollout(futures=3).values(x, CLUSTER, state, np.random.default_rng(0)).value for x in (jobs, other)]
    assert (values[0] == values[1]).all()


def test_rollouts_beat_their_rule() -> None:
    """Over two workloads the sum of JCTs is at least 5 percent less than the rule's; the same seed does the same."""
    played = Rollout(base=TopdrlPatient(gpus=1.0, slowdown=0.0, patience=10.0))  # least work, on any GPUs
    sums = {}
    for policy in (played, played.base, replace(played)):
        outcomes = [simulate(SMALL.draw(seed), FLEET, policy) for seed in range(1, 3)]
        sums[id(policy)] = sum(float((o.finish - o.workload.submit).sum()) for o in outcomes)
    first, base, again = sums.values()
    assert first == again < 0.95 * base


def test_bad_input() -> None:
    """What no rollout can be is refused by field."""
    with pytest.raises(InstanceError, match="futures"):
        Rollout(futures=0)
