"""Features have no scale and say nothing that a policy is not told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.systems.topdrl.select.episodes import observe
from gangplan.systems.topdrl.select.features import CANDIDATE, CONTEXT


@pytest.mark.parametrize("seed", range(4))
def test_features_have_no_scale(make_world: Callable[..., Any], seed: int) -> None:
    """With all times 1024 times as long the features are the same."""
    rows = []
    for scale in (1.0, 1024.0):
        jobs, cluster, state, s = make_world(seed, scale=scale)
        k = observe(jobs, cluster, state, s)
        rows.append(s.row[:k].copy())
    assert len(rows[0]) > 1
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)


def test_features_keep_to_what_is_told(make_world: Callable[..., Any]) -> None:
    """Other true lengths of jobs that wait or run, and other jobs to come, change no feature; other GPUs do."""
    jobs, cluster, state, s = make_world(2)
    k = observe(jobs, cluster, state, s)
    rows = s.row[:k].copy()
    live = state.finish > state.clock[0]
    work, later, finish = jobs.work.copy(), np.arange(len(jobs.work)) >= state.count[0], state.finish.copy()
    work[live] *= 3
    finish[live & np.isfinite(finish)] += 50
    told = jobs.expected.copy()
    told[later] *= 7
    other = jobs._replace(work=work, expected=told, submit=np.where(later, jobs.submit + 9, jobs.submit))
    assert observe(other, cluster, state._replace(finish=finish), s) == k
    assert (s.row[:k] == rows).all()
    gpus = jobs.gpus.copy()
    gpus[state.queue[0]] += 1
    observe(jobs._replace(gpus=gpus), cluster, state, s)
    assert not np.array_equal(s.row[:k], rows)


def test_the_dearer_place_shows(make_world: Callable[..., Any]) -> None:
    """The features of two places for a job differ, and the one whose slowdown is higher has the higher cost."""
    at = len(CONTEXT) + CANDIDATE.index("slowdown")
    pairs = 0
    for seed in range(8):
        jobs, cluster, state, s = make_world(seed)
        k = observe(jobs, cluster, state, s)
        for i in range(2, k):
            if s.place[i] == s.place[i - 1] and s.cost[i] != s.cost[i - 1]:
                assert (s.row[i, at] > s.row[i - 1, at]) == (s.cost[i] > s.cost[i - 1])
                pairs += 1
    assert pairs > 0
