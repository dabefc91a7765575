"""Futures begin with the state as it is known, and rollouts tell a good candidate from a bad one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.simulator.gangs.arrays import RUNNING, WAITING
from gangplan.systems.topdrl.select.recipe import SelectSettings
from gangplan.systems.topdrl.select.rollouts import imagine, labels


@pytest.mark.parametrize("seed", range(3))
def test_a_future_begins_with_the_state(make_world: Callable[..., Any], seed: int) -> None:
    """Those who wait and run do so in the future, on the GPUs they have; others come later, and are like those seen."""
    jobs, cluster, state, _ = make_world(seed)
    np.random.seed(seed)  # noqa: NPY002, compiled code has the generator of numpy
    ours, then = imagine(jobs, cluster, state, jobs, int(state.count[0]), 25)
    live = int(state.count[WAITING] + state.count[RUNNING])
    assert (then.count == [live, state.count[WAITING], state.count[RUNNING]]).all()
    assert len(ours.submit) == live + 25
    assert (then.free == state.free).all()
    assert ((then.holder >= 0) == (state.holder >= 0)).all()
    waiting = then.queue[: then.count[WAITING]]
    assert (ours.expected[waiting] == jobs.expected[state.queue[: state.count[WAITING]]]).all()
    assert (ours.submit[live:] >= state.clock[0]).all()
    assert set(ours.expected[live:]) <= set(jobs.expected[: state.count[0]])
    ends = np.sort(then.finish[then.running[: then.count[RUNNING]]])
    np.testing.assert_allclose(ends, np.sort(state.finish[state.running[: state.count[RUNNING]]]))


def test_labels_are_regrets() -> None:
    """Each decision has a best candidate and worse ones, and the same seed the same labels; another one has others."""
    settings = SelectSettings(labels=60, futures=3, ahead=10)
    first, again = labels(settings, 0), labels(settings, 0)
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a, b)
    assert len(first.first) > 60
    starts, ends = first.first[:-1], first.first[1:]
    assert (ends - starts >= 2).all()
    assert (np.minimum.reduceat(first.regret, starts) == 0).all()
    assert (first.regret >= 0).all()
    assert first.regret.max() > 1
    assert len(first.rows) == first.first[-1]
    assert not np.array_equal(first.regret, labels(settings, 1).regret)
