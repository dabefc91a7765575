"""Candidates are what may be done: jobs that fit, on idle GPUs, none of them twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.online.candidates import BLOCKED, IN_SIGHT, JOBS, MEDIUM, PLACES, SMALL, WAIT
from gangplan.simulator.gangs.arrays import RUNNING, WAITING
from gangplan.simulator.gangs.formula import PATIENT, Formula, key_of
from gangplan.simulator.gangs.step import advance, communication

RACKS = Fleet.regular(4, 8, 8)


def check(world: Any) -> int:
    """Check each candidate, and return how many there are."""
    jobs, cluster, state, s = world
    k, pairs = world.observe(), set()
    assert (s.place[0] == WAIT) == (state.count[RUNNING] > 0 and k > 0)
    for i in range(int(s.place[0] == WAIT), k):
        assert 0 <= s.place[i] < state.count[WAITING]
        assert s.listed[s.of[i]] == s.place[i]
        assert s.take[i].sum() == jobs.gpus[state.queue[s.place[i]]]
        assert (s.take[i] <= state.free).all()
        assert s.cost[i] == pytest.approx(communication(cluster, s.take[i]))
        pairs.add((int(s.place[i]), tuple(s.take[i].tolist())))
    assert len(pairs) == k - (s.place[0] == WAIT)
    return k


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", ["small", "racks", "unequal"])
def test_candidates_fit_and_differ(make_world: Callable[..., Any], unequal: Fleet, seed: int, shape: str) -> None:
    """Each starts a waiting job on as many idle GPUs as it needs; no two of a job are on the same; waiting is first."""
    fleet = {"small": None, "racks": RACKS, "unequal": unequal}[shape]
    world = make_world(seed, arrived=20 + 5 * seed, fleet=fleet, jobs=80)
    assert check(world) > 2
    assert world.s.take[0].sum() == 0 and world.s.place[0] == WAIT


@pytest.mark.parametrize(("nodes", "size"), [(8, 0), (SMALL + 1, 1), (MEDIUM + 1, 2)])
def test_a_long_queue_is_cut(make_world: Callable[..., Any], nodes: int, size: int) -> None:
    """Of more kinds of jobs than there is room for, the first by the rule; the larger the cluster, the fewer."""
    world = make_world(1, arrived=0, fleet=Fleet.regular(1, nodes, 4), jobs=IN_SIGHT, length=200)
    world = world.again(world.jobs.replace(submit=np.zeros(IN_SIGHT)))
    advance(world.jobs, world.cluster, world.state)
    jobs, state, s, k = world.jobs, world.state, world.s, check(world)
    waiting = state.queue[: state.count[WAITING]]
    key = np.unique([key_of(jobs, job, 0.0, Formula(PATIENT, s.ideal, 0, 0)) for job in waiting])
    assert len(key) > JOBS[size] and 1 < k <= len(s.place)
    assert WAIT not in s.place[:k]  # nothing runs
    chosen = {int(state.queue[place]) for place in s.place[:k]}
    assert len(chosen) == s.fit == JOBS[size]
    least = sorted({float(key_of(jobs, job, 0.0, Formula(PATIENT, s.ideal, 0, 0))) for job in chosen})
    assert least == key[: len(least)].tolist()
    assert np.bincount(s.of[:k]).max() <= PLACES[size]
    assert np.isfinite(world.x()).all()


def test_of_more_than_are_in_sight(make_world: Callable[..., Any]) -> None:
    """Candidates are of the first by the rule, at their places in the whole queue."""
    world = make_world(1, arrived=0, fleet=Fleet.regular(1, 8, 4), jobs=400, length=200)
    world = world.again(world.jobs.replace(submit=np.zeros(400)))
    advance(world.jobs, world.cluster, world.state)
    check(world)
    key = [key_of(world.jobs, job, 0.0, Formula(PATIENT, world.s.ideal, 0, 0)) for job in range(400)]
    assert {*world.s.place[: world.s.fit].tolist()} <= {*np.argsort(key, kind="stable")[:IN_SIGHT].tolist()}
    assert world.state.count[WAITING] == 400


def test_of_equal_jobs_the_first_submitted(make_world: Callable[..., Any]) -> None:
    """Each kind is a candidate once; the same length with another intensity is another kind."""
    world = make_world(0, arrived=0, jobs=12)
    n = np.ones(12)
    jobs = world.jobs.replace(submit=0 * n, expected=n, gpus=2 + 0 * world.jobs.gpus, intensity=n.copy())
    jobs.intensity[[7, 9]] = 2.0
    world = world.again(jobs.replace(first=np.append(0, np.cumsum(jobs.gpus))))
    advance(world.jobs, world.cluster, world.state)
    check(world)
    assert world.s.listed[: world.s.fit].tolist() == [0, 7]


def test_who_does_not_fit_is_looked_at(make_world: Callable[..., Any]) -> None:
    """Of jobs larger than what is idle those with the least work are kept apart, and are no candidates."""
    world = make_world(3, arrived=0, jobs=60, gpus=32, length=200)
    world = world.again(world.jobs.replace(submit=np.zeros(60)))
    advance(world.jobs, world.cluster, world.state)
    world.state.free[1:] = 0
    world.state.free[0] = 3
    check(world)
    jobs, queue, s = world.jobs, world.state.queue[: world.state.count[WAITING]], world.s
    held = queue[s.blocked[: s.not_fit]]
    assert len(held) == BLOCKED and (jobs.gpus[held] > 3).all()
    works = np.unique((jobs.expected * jobs.gpus)[queue[jobs.gpus[queue] > 3]])
    assert set(jobs.expected[held] * jobs.gpus[held]) <= set(works[:BLOCKED])
    assert (jobs.gpus[queue[s.place[: s.fit]]] <= 3).all()


def test_nothing_to_decide(make_world: Callable[..., Any]) -> None:
    """Before the first arrival, and while no waiting job fits, there is no candidate."""
    world = make_world(0, arrived=0)
    assert world.observe() == 0
    advance(world.jobs, world.cluster, world.state)
    assert world.observe() > 0
    world.state.free[:] = 0
    assert world.observe() == 0
