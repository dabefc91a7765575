"""Candidates are what may be done: jobs that fit, on idle GPUs, none of them twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.simulator.gangs.arrays import WAITING
from gangplan.simulator.gangs.step import advance
from gangplan.systems.topdrl.select.candidates import JOBS, MOST, WAIT
from gangplan.systems.topdrl.select.episodes import observe


@pytest.mark.parametrize("seed", range(6))
def test_candidates_fit_and_differ(make_world: Callable[..., Any], seed: int) -> None:
    """Each starts a waiting job on as many idle GPUs as it needs; no two of a job are on the same; waiting is first."""
    jobs, cluster, state, s = make_world(seed, arrived=20 + 5 * seed)
    k = observe(jobs, cluster, state, s)
    assert s.place[0] == WAIT
    assert s.take[0].sum() == 0
    seen = set()
    for i in range(1, k):
        assert 0 <= s.place[i] < state.count[WAITING]
        assert s.take[i].sum() == jobs.gpus[state.queue[s.place[i]]]
        assert (s.take[i] <= state.free).all()
        seen.add((int(s.place[i]), tuple(s.take[i].tolist())))
    assert len(seen) == k - 1


def test_a_long_queue_is_cut_to_the_least_work(make_world: Callable[..., Any]) -> None:
    """Of more kinds of jobs than there is room for, those with the least work are candidates."""
    jobs, cluster, state, s = make_world(1, arrived=1, jobs=400, length=200)
    jobs = jobs._replace(submit=np.zeros(400))
    advance(jobs, cluster, state)
    k = observe(jobs, cluster, state, s)
    waiting = state.queue[: state.count[WAITING]]
    fits = waiting[jobs.gpus[waiting] <= state.free.sum()]
    assert k <= MOST
    assert len(fits) > JOBS
    work = np.unique(jobs.expected[fits] * jobs.gpus[fits])
    chosen = {int(state.queue[place]) for place in s.place[:k]}
    assert WAIT not in s.place[:k]  # nothing runs
    least = sorted({float(jobs.expected[job] * jobs.gpus[job]) for job in chosen})
    assert 1 < len(chosen) <= JOBS
    assert least == work[: len(least)].tolist()
    assert np.isfinite(s.row[:k]).all()
