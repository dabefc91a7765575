"""The guard leaves a network that does worse than a rule, for a clear lead only, and knows no future."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.guard import EVERYTHING, FIRST, GROWTH, LAST, NETWORK, Guard, known
from gangplan.learned.online.policy import GnnPolicy
from gangplan.simulator.gangs.arrays import first_jobs

from .conftest import SMALL, drawn


def contrary() -> GnnPolicy:
    """Return a network that likes best what the rule likes least."""
    tensors = drawn(0, 0.0).tensors
    tensors["enter.candidate.weight"][0, BY_RULE] = -1.0  # the score of the rule, without its sign
    tensors["head.weight"][0, 0] = tensors["last.weight"][0, 0] = 2.0
    return GnnPolicy(tensors, SMALL)


def finished(policy: GnnPolicy, world: Any) -> np.ndarray:
    """Return when each job ends by a policy."""
    again = world.again()
    policy.finish(again.jobs, again.cluster, again.state)
    return again.state.finish


def test_a_bad_network_is_overruled(make_world: Callable[..., Any]) -> None:
    """One that starts what the rule likes least is left for a rule, and the mean JCT is less than by itself."""
    world, policy = make_world(0, arrived=0, jobs=200), contrary()
    guarded = finished(policy, world)
    policy.guarded = False
    assert guarded.mean() < 0.96 * finished(policy, world).mean()
    guard = Guard(world.cluster, policy.net)
    assert (guard.leader, guard.due) == (NETWORK, FIRST)
    guard.watch(first_jobs(world.jobs, 100), 100)
    guard.advance()
    assert guard.leader >= 0 and guard.leaders == [NETWORK, guard.leader] and guard.due == 101


def test_a_leader_stays_without_a_clear_lead(make_world: Callable[..., Any], make_policy: Any) -> None:
    """The rule itself as a network, and any network where hardly two jobs ever meet, decide throughout."""
    world, busy = make_world(0, arrived=0, jobs=200, arrival=0.004), make_world(0, arrived=0, jobs=200)
    for policy, where in ((make_policy(0, 0.1), world), (make_policy(0, 0.0), busy)):
        guarded = finished(policy, where)
        policy.guarded = False
        assert np.array_equal(guarded, finished(policy, where))


def test_in_slices_it_comes_to_the_same(make_world: Callable[..., Any]) -> None:
    """Eight decisions at a time, as `Scheduler` has it; the leader stays until all have been played."""
    world, leaders = make_world(0, arrived=0, jobs=100), []
    for size in (EVERYTHING, 8):
        guard = Guard(world.cluster, contrary().net)
        guard.watch(world.jobs, 100)
        turns = 0
        while len(guard.leaders) == 1:
            assert guard.leader == NETWORK
            guard.advance(size)
            turns += 1
        assert (turns > 10) == (size == 8)
        guard.advance(size)  # nothing is left to do
        leaders.append(tuple(guard.leaders))
    assert leaders[0] == leaders[1] and len(leaders[0]) == 2 and leaders[0][-1] >= 0


def test_it_compares_again_when_half_as_many_more_came(make_world: Callable[..., Any], make_policy: Any) -> None:
    """Seldom, for playing takes time, and never twice for one arrival."""
    guard = Guard(make_world(0, arrived=0).cluster, make_policy(0).net)
    jobs = make_world(0, arrived=0).jobs
    for arrived, due in ((FIRST, int(GROWTH * FIRST)), (60, 90), (1000, 1001)):
        guard.watch(jobs, arrived)
        assert guard.due == due


def test_it_knows_no_future(make_world: Callable[..., Any]) -> None:
    """What is replayed has the jobs that arrived, and true lengths of those that are done only."""
    world = make_world(1)
    jobs = world.jobs._replace(expected=world.jobs.expected * 2)
    past = known(jobs, world.state, 40)
    done = world.state.finish[:40] <= world.state.clock[0]
    assert 0 < done.sum() < 40
    assert (past.work == np.where(done, jobs.work[:40], jobs.expected[:40])).all()
    assert [len(x) for x in past] == [40, 40, 40, 40, 40, 41]


def test_it_forgets_what_is_long_ago(make_world: Callable[..., Any]) -> None:
    """Of more jobs the last are played, their GPUs counted anew; what was handed over may be written over."""
    world = make_world(0, arrived=0, jobs=LAST + 20)
    past = known(world.jobs, world.state, LAST + 15)
    assert (past.submit == world.jobs.submit[15 : LAST + 15]).all()
    assert past.first[0] == 0 and (np.diff(past.first) == past.gpus).all()
    before = past.submit.copy()
    world.jobs.submit[:] = -1
    assert (past.submit == before).all()


@pytest.mark.parametrize("seed", range(2))
def test_the_guard_hears_of_no_later_job(make_world: Callable[..., Any], seed: int) -> None:
    """Jobs that come later may be others: until then a guarded policy does the same."""
    world = make_world(seed, arrived=0, jobs=120)
    jobs, n = world.jobs, 80
    later = np.arange(120) >= n
    other = jobs._replace(work=np.where(later, 9 * jobs.work, jobs.work), expected=jobs.work * np.where(later, 9, 1))
    one, two = world.again(), world.again(other)
    contrary().finish(jobs, one.cluster, one.state)
    contrary().finish(other, two.cluster, two.state)
    before = one.state.start < jobs.submit[n]
    assert 50 < before.sum() < 120
    assert np.array_equal(one.state.start[before], two.state.start[before])
