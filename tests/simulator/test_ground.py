"""The checker of grounds passes all that there are, and notices what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from gangplan.hybrid.bench.makers import QueueDraw
from gangplan.instances.workload import Workload
from gangplan.simulator.ground import Ground, check_ground
from gangplan.systems import SYSTEMS, ground_of

SMALL: dict[str, Callable[[], Ground]] = {
    "queue": lambda: QueueDraw("philly", 40, 8),
    "topdrl": lambda: ground_of("topdrl")(jobs=15),
    "harmony": lambda: ground_of("harmony")(jobs=15),
    "marl": lambda: ground_of("marl")(jobs=15),
}
"""Grounds; that of PAC-ML needs profiles."""


@pytest.mark.parametrize("name", SMALL)
def test_grounds_hold(name: str) -> None:
    """Every ground is what the checker asks for."""
    assert {*SYSTEMS} - {*SMALL} == {"pacml"}
    check_ground(SMALL[name])


class Above(QueueDraw):
    """Its bound is too high."""

    def bound(self, drawn: Workload, time_limit: float) -> float:
        """Return ten times the bound."""
        return 10 * super().bound(drawn, time_limit)


class Same(QueueDraw):
    """It draws the same from all seeds."""

    def draw(self, seed: int) -> Workload:
        """Return the draw of seed 0."""
        return super().draw(0)


class Drifts(QueueDraw):
    """It draws something else each time."""

    def draw(self, seed: int) -> Workload:
        """Return the draw of a seed that changes."""
        return super().draw(int(np.random.default_rng().integers(1 << 30)))


class Undeclared(QueueDraw):
    """It has a figure that it does not declare."""

    def play(self, policy: Any, drawn: Workload) -> Mapping[str, float]:
        """Return one more."""
        return {**super().play(policy, drawn), "more": 0.0}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Above, "below the bound"),
        (Same, "draw the same"),
        (Drifts, "draws another thing"),
        (Undeclared, "declared are"),
    ],
)
def test_what_is_wrong_is_named(kind: type[QueueDraw], words: str) -> None:
    """A bound that is none, seeds that do not matter or do not suffice, and figures not declared are refused."""
    with pytest.raises(AssertionError, match=words):
        check_ground(lambda: kind("philly", 20, 8))
