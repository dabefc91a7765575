"""Features have no scale and say nothing that a policy is not told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.schema import CANDIDATE
from gangplan.simulator.gangs.arrays import RUNNING


@pytest.mark.parametrize("fleet", [None, Fleet.regular(4, 8, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_features_have_no_scale(make_world: Callable[..., Any], seed: int, fleet: Fleet | None) -> None:
    """With all times 1024 times as long the features are the same, of every node of the graph."""
    rows = []
    for scale in (1.0, 1024.0):
        world = make_world(seed, scale=scale, fleet=fleet)
        assert world.observe() > 1
        rows.append(world.x())
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)


def test_features_keep_to_what_is_told(make_world: Callable[..., Any]) -> None:
    """Other true lengths of jobs that wait or run, and other jobs to come, change nothing; other GPUs do."""
    world = make_world(2)
    jobs, _, state, s = world
    graph = s.graph
    k, before, weight = world.observe(), world.x(), graph.weight[: graph.relation[-1]].copy()
    live = state.finish > state.clock[0]
    work, later, finish = jobs.work.copy(), np.arange(len(jobs.work)) >= state.count[0], state.finish.copy()
    assert later.any() and (live & np.isfinite(finish)).any()
    work[live] *= 3
    finish[live & np.isfinite(finish)] += 50
    told = jobs.expected.copy()
    told[later] *= 7
    other = jobs.replace(work=work, expected=told, submit=np.where(later, jobs.submit + 9, jobs.submit))
    assert world._replace(jobs=other, state=state.replace(finish=finish)).observe() == k
    assert np.array_equal(world.x(), before)
    assert np.array_equal(graph.weight[: graph.relation[-1]], weight)
    gpus = jobs.gpus.copy()
    gpus[state.queue[0]] += 1
    world._replace(jobs=jobs.replace(gpus=gpus)).observe()
    assert not np.array_equal(world.x(), before)


def test_the_dearer_place_shows(make_world: Callable[..., Any]) -> None:
    """The features of two places for a job differ, and the one that costs more has the higher slowdown."""
    at, pairs = CANDIDATE.index("slowdown"), 0
    for seed in range(8):
        world = make_world(seed)
        s = world.s
        for i in range(2, world.observe()):
            if s.place[i] == s.place[i - 1] and s.cost[i] != s.cost[i - 1]:
                assert (world.graph.x[i, at] > world.graph.x[i - 1, at]) == (s.cost[i] > s.cost[i - 1])
                pairs += 1
    assert pairs > 0


@pytest.mark.parametrize("seed", range(4))
def test_the_rule_likes_one_best(make_world: Callable[..., Any], seed: int) -> None:
    """A score of 0, or it waits: -1; a place that is not the closest of its job is half a point behind that one."""
    world = make_world(seed)
    k, s = world.observe(), world.s
    score = world.graph.x[:k, BY_RULE]
    assert s.place[0] == WAIT and score[0] == -1.0
    assert score.max() in (0.0, -1.0) and (score == score.max()).sum() == 1
    for i in range(2, k):
        if s.place[i] == s.place[i - 1] and score[i] > -1.5 and score[i - 1] > -1.5:
            first = next(j for j in range(k) if s.place[j] == s.place[i])
            assert score[i] == pytest.approx(score[first] - 0.5, abs=1e-6)


def test_a_job_that_should_have_ended(make_world: Callable[..., Any]) -> None:
    """It is expected to take half its age more, and what is seen of it stays finite."""
    world = make_world(1)
    state = world.state
    assert state.count[RUNNING] > 0
    expected = world.jobs.expected.copy()
    expected[state.running[: state.count[RUNNING]]] = 1e-3
    assert world._replace(jobs=world.jobs.replace(expected=expected)).observe() > 0
    late = world.graph.x[world.graph.kind[2] : world.graph.kind[3], 3]
    assert (
        len(late) == state.count[RUNNING]
        and (late == 1).sum()
        >= len(late) - (state.start[state.running[: state.count[RUNNING]]] == state.clock[0]).sum()
    )
    assert np.isfinite(world.x()).all()
