"""The exact teacher's values: those of the rule's plans at most, in the futures of rollouts, the same again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.rollouts import weigh
from gangplan.learned.training.online.exact import WINDOW, weigh_exactly
from gangplan.simulator.gangs.arrays import WAITING
from gangplan.simulator.gangs.formula import PATIENT

FEW = 2
"""Arrivals."""


def both(world: Any, ahead: int, **options: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what two candidates come to by rollouts and exactly, in the same two futures."""
    k = world.observe()
    tried = np.array([0, k - 1])
    assert k > 1 and world.s.place[0] == WAIT
    rolled, solved = np.zeros((2, 2)), np.zeros((2, 2))
    given = world.jobs, world.cluster, world.state, world.jobs, world.s, PATIENT, tried, ahead, 5
    weigh(*given, rolled)
    weigh_exactly(*given, solved, **options)
    return rolled, solved


def small(make_world: Callable[..., Any], seed: int) -> Any:
    """Return a state in which nothing is cut from a future."""
    for arrived in range(2, 58):
        world = make_world(seed, arrived=arrived, fleet=Fleet.regular(2, 2, 4), arrival=0.2)
        if 2 <= world.state.count[WAITING] <= WINDOW - FEW and world.observe() > 2 and world.s.place[0] == WAIT:
            return world
    raise AssertionError("no such state")


@pytest.mark.parametrize("seed", range(3))
def test_no_worse_than_rollouts(make_world: Callable[..., Any], seed: int) -> None:
    """Without time the values are those of the rule's rollouts, with time at most these, and the same again."""
    world = small(make_world, seed)
    rolled, same = both(world, FEW, seconds=0.0)
    np.testing.assert_allclose(same, rolled, rtol=1e-12)
    rolled, solved = both(world, FEW)
    assert (solved <= rolled + 1e-9).all()
    assert np.array_equal(solved, both(world, FEW)[1])


def test_a_long_queue_is_cut(make_world: Callable[..., Any]) -> None:
    """Of a long queue and many arrivals some jobs are solved, the tried ones among them, and nothing changes."""
    world = make_world(1, arrived=40, fleet=Fleet.regular(2, 2, 4), arrival=0.6)
    assert world.state.count[WAITING] > WINDOW
    before = world.state.copy()
    rolled, solved = both(world, 20, seconds=0.02, sure=False)
    assert (solved > 0).all() and (solved < rolled).all()
    assert all(np.array_equal(getattr(world.state, name), x) for name, x in before.arrays().items())
