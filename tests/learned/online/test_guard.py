"""The guard lets a network decide that is surely better than its rule, at any size, and knows no future."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.guard import (
    AHEAD,
    EVERYTHING,
    FIRST,
    GROWTH,
    LAST,
    NETWORK,
    PLAYS,
    RECENT,
    RULES,
    Guard,
    known,
)  # fmt: skip
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.policy.weights import find
from gangplan.simulator.gangs.arrays import first_jobs
from gangplan.simulator.gangs.formula import finish
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.traffic import VALIDATE

from ..conftest import SMALL, drawn


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


def test_a_bad_network_never_decides(make_world: Callable[..., Any]) -> None:
    """With one that starts what its rule likes least, all goes as by the rule behind it."""
    world, policy = make_world(0, arrived=0, jobs=200), contrary()
    alone = world.again()
    finish(world.jobs, world.cluster, alone.state, RULES[0])
    assert np.array_equal(finished(policy, world), alone.state.finish)
    policy.guarded = False
    assert alone.state.finish.mean() < 0.96 * finished(policy, world).mean()


def test_a_better_network_decides() -> None:
    """The weights that come with the package lead from the first comparison on, on a loaded cluster of 40 GPUs."""
    episode = next(x for x in VALIDATE if x.name == "whole-40").episode(VALIDATION + 1)
    state = episode.begin()
    guard, n = Guard(episode.cluster, GnnPolicy.load(find("gnn")).net), int(state.count[0])
    assert (guard.leader, guard.due) == (0, FIRST)
    guard.watch(episode.jobs, state, known(episode.jobs, state, n), n)
    guard.advance()
    assert guard.leader == NETWORK and guard.leaders == [0, NETWORK] and guard.due == n + 1
    assert len(guard.ahead) == PLAYS and np.mean(guard.ahead, axis=0)[0] > 0


def test_level_is_not_better(make_world: Callable[..., Any], make_policy: Any) -> None:
    """The rule itself as a network is ahead by nothing, and the rule decides."""
    world = make_world(0)
    guard = Guard(world.cluster, make_policy(0, 0.0).net, RULES[0])
    guard.watch(world.jobs, world.state, first_jobs(world.jobs, 40), 40)
    guard.advance()
    assert guard.leaders == [0, 0] and {row[0] for row in guard.ahead} == {0.0}


def test_all_play_the_same_jobs_from_the_same_state(make_world: Callable[..., Any], make_policy: Any) -> None:
    """What runs and waits, and then stretches of the past in their gaps; what is handed over is not changed."""
    world = make_world(1)
    before, past = world.state.copy(), known(world.jobs, world.state, 40)
    guard = Guard(world.cluster, make_policy(0).net)
    guard.watch(world.jobs, world.state, past, 40)
    live = int(world.state.count[1:].sum())
    for jobs, state in guard._plays:
        assert state.count[1:].tolist() == world.state.count[1:].tolist() and (state.free == world.state.free).all()
        come, times = jobs.gpus[live:], jobs.submit[live:]
        at = [i for i in range(40) if (past.gpus[(i + np.arange(AHEAD)) % 40] == come).all()]
        assert len(come) == AHEAD and at and (np.diff(times) >= 0).all() and times[0] >= state.clock[0]
    guard.advance()
    assert all(np.array_equal(x, getattr(world.state, name)) for name, x in before.arrays().items())


def test_a_large_cluster_is_played_in_part(
    make_world: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, make_policy: Any
) -> None:
    """One rack of two: the jobs that run there, half of those that wait, and arrivals half as often."""
    monkeypatch.setattr("gangplan.learned.online.guard.LARGE", 5)
    world = make_world(2)
    guard = Guard(world.cluster, make_policy(0).net)
    guard.watch(world.jobs, world.state, known(world.jobs, world.state, 40), 40)
    jobs, state = guard._plays[0]
    holders = set(world.state.holder[:16].tolist()) - {-1}
    assert state.count[2] == len(holders) and state.count[1] == (world.state.count[1] + 1) // 2
    assert (state.free == world.state.free[:4]).all() and jobs.gpus.max() <= 16
    held = [set(state.held[a:b].tolist()) for a, b in zip(jobs.first, jobs.first[1:], strict=False)]
    assert all(state.holder[gpu] == job for job in state.running[: state.count[2]] for gpu in held[job])
    guard.advance()
    assert len(guard.ahead) == PLAYS


def test_who_needs_nodes_that_are_down(make_world: Callable[..., Any], make_policy: Any) -> None:
    """With half of the nodes down, jobs that need all, or came when there were none, are played with what is up."""
    world = make_world(0, arrived=0)
    guard, gpus = Guard(world.cluster, make_policy(0).net), np.repeat([32, 0], 20)
    world.state.free[4:] = 0
    past = known(world.jobs, world.state, 40)
    guard.watch(world.jobs, world.state, past.replace(gpus=gpus), 40)
    assert {*guard._plays[0][0].gpus.tolist()} <= {*range(1, 17)}
    guard.advance()
    assert len(guard.ahead) == PLAYS and np.isfinite(guard.ahead).all()


def test_in_slices_it_comes_to_the_same(make_world: Callable[..., Any]) -> None:
    """Eight decisions at a time, as `Scheduler` has it; the leader stays until all have been played."""
    world, found = make_world(0), []
    for size in (EVERYTHING, 8):
        guard = Guard(world.cluster, contrary().net)
        guard.watch(world.jobs, world.state, known(world.jobs, world.state, 40), 40)
        turns = 0
        while not guard.idle:
            assert guard.leaders == [0]
            guard.advance(size)
            turns += 1
        assert (turns > 10) == (size == 8)
        guard.advance(size)  # nothing is left to do
        found.append((guard.leaders, guard.ahead))
    assert found[0] == found[1] and len(found[0][0]) == 2


def test_it_compares_again_when_half_as_many_more_came(make_world: Callable[..., Any], make_policy: Any) -> None:
    """Seldom, for playing takes time, and never twice for one arrival; the last plays are what counts."""
    world = make_world(0)
    guard = Guard(world.cluster, make_policy(0).net)
    for arrived, due in ((FIRST, int(GROWTH * FIRST)), (60, 90), (1000, 1001), (1001, 1501), (1501, 2251)):
        guard.watch(world.jobs, world.state, first_jobs(world.jobs, 40), arrived)
        assert guard.due == due
        guard.advance()
    assert len(guard.ahead) == RECENT and len(guard.leaders) == 6


def test_it_knows_no_future(make_world: Callable[..., Any]) -> None:
    """What is replayed has the jobs that arrived, and true lengths of those that are done only."""
    world = make_world(1)
    jobs = world.jobs.replace(expected=world.jobs.expected * 2)
    past = known(jobs, world.state, 40)
    done = world.state.finish[:40] <= world.state.clock[0]
    assert 0 < done.sum() < 40
    assert (past.work == np.where(done, jobs.work[:40], jobs.expected[:40])).all()
    assert [len(x) for x in past.arrays().values()] == [40, 40, 40, 40, 40, 41]


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
    other = jobs.replace(work=np.where(later, 9 * jobs.work, jobs.work), expected=jobs.work * np.where(later, 9, 1))
    one, two = world.again(), world.again(other)
    contrary().finish(jobs, one.cluster, one.state)
    contrary().finish(other, two.cluster, two.state)
    before = one.state.start < jobs.submit[n]
    assert 50 < before.sum() < 120
    assert np.array_equal(one.state.start[before], two.state.start[before])
