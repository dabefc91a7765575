"""Futures begin with the state as it is known, and rollouts tell a good candidate from a bad one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.rollouts import imagined, weigh
from gangplan.simulator.gangs.arrays import RUNNING, WAITING, first_jobs
from gangplan.simulator.gangs.formula import PATIENT, finish
from gangplan.simulator.gangs.step import start, total_jct


@pytest.mark.parametrize("fleet", [None, Fleet.regular(4, 8, 8)])
@pytest.mark.parametrize("seed", range(2))
def test_a_future_begins_with_the_state(make_world: Callable[..., Any], seed: int, fleet: Fleet | None) -> None:
    """Those who wait and run do so in the future, on the GPUs they have; others come later, and are like those seen."""
    jobs, cluster, state, *_ = make_world(seed, fleet=fleet)
    ours, then = imagined(jobs, cluster, state, first_jobs(jobs, int(state.count[0])), 25, seed, 0)
    live = int(state.count[WAITING] + state.count[RUNNING])
    assert (then.count == [live, state.count[WAITING], state.count[RUNNING]]).all()
    assert len(ours.submit) == live + 25
    assert (then.free == state.free).all()
    assert ((then.holder >= 0) == (state.holder >= 0)).all()
    waiting, running = then.queue[: then.count[WAITING]], then.running[: then.count[RUNNING]]
    assert (ours.expected[waiting] == jobs.expected[state.queue[: state.count[WAITING]]]).all()
    assert (ours.submit[live:] >= state.clock[0]).all()
    assert set(ours.expected[live:]) <= set(jobs.expected[: state.count[0]])
    np.testing.assert_allclose(
        np.sort(then.finish[running]), np.sort(state.finish[state.running[: state.count[RUNNING]]])
    )
    for job in running:
        assert (then.holder[then.held[ours.first[job] : ours.first[job + 1]]] == job).all()


def test_who_ends_at_this_instant_runs_still(make_world: Callable[..., Any]) -> None:
    """A future has whoever the state says waits and runs, though a job that takes no time ends as it starts."""
    jobs, cluster, state, *_ = make_world(0)
    running = np.sort(state.running[: state.count[RUNNING]])
    state.finish[running] = state.clock[0]
    ours, then = imagined(jobs, cluster, state, jobs, 0, 0, 0)
    live = np.sort(np.append(running, state.queue[: state.count[WAITING]]))
    assert len(running) and (ours.gpus == jobs.gpus[live]).all()
    assert then.count[RUNNING] == len(running)


def weighed(world: Any, tried: np.ndarray, seed: int = 1, ahead: int = 10) -> np.ndarray:
    """Return what the JCTs sum up to with each candidate, in each of four futures."""
    value, (jobs, cluster, state, s) = np.zeros((len(tried), 4)), world
    weigh(jobs, cluster, state, jobs, s, PATIENT, tried, ahead, seed, value)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_a_future_without_arrivals_is_the_rule_from_here(make_world: Callable[..., Any], seed: int) -> None:
    """With nobody to come all futures are one: the candidate, then the rule to the end; and nothing else changes."""
    world = make_world(seed)
    k, before = world.observe(), world.state.copy()
    value = weighed(world, np.arange(k), ahead=0)
    for name, x in before.arrays().items():
        assert np.array_equal(getattr(world.state, name), x)
    assert np.ptp(value, axis=1).max() <= 1e-9 * value.max()
    jobs, live, n = world.jobs, before.finish > before.clock[0], int(before.count[0])
    live[n:] = False
    for i in range(1, k):
        then = world.again(jobs.replace(submit=np.where(np.arange(len(jobs.submit)) < n, jobs.submit, np.inf)))
        state = world.state.copy()
        start(jobs, world.cluster, state, int(world.s.place[i]), world.s.take[i].copy())
        finish(then.jobs, world.cluster, state, PATIENT)
        assert value[i, 0] == pytest.approx((state.finish - jobs.submit)[live].sum(), rel=1e-9)


def test_the_same_seed_has_the_same_futures(make_world: Callable[..., Any]) -> None:
    """Another seed has others, and all candidates are tried in the same futures."""
    world = make_world(0)
    tried = np.arange(world.observe())
    first = weighed(world, tried)
    assert np.array_equal(first, weighed(world, tried))
    assert np.array_equal(first[1:], weighed(world, tried[1:]))
    assert not np.array_equal(first, weighed(world, tried, seed=2))
    assert len(np.unique(first[0])) > 1


def test_what_the_rule_likes_is_worth_it(make_world: Callable[..., Any]) -> None:
    """Over some decisions its candidate comes to less than the one that it likes least."""
    gain = []
    for seed in range(6):
        world = make_world(seed)
        k = world.observe()
        score = world.graph.x[:k, BY_RULE]
        value = weighed(world, np.array([np.argmax(score), np.argmin(score)])).mean(axis=1)
        gain.append(value[1] / value[0])
    assert world.s.place[0] == WAIT and np.mean(gain) > 1.01


def test_total_jct_leaves_out_who_has_not_started(make_world: Callable[..., Any]) -> None:
    """Those are the jobs whose end is infinite."""
    world = make_world(1)
    started = np.isfinite(world.state.finish)
    assert 0 < started.sum() < len(started)
    expected = (world.state.finish - world.jobs.submit)[started].sum()
    assert total_jct(world.jobs, world.state) == pytest.approx(expected)
