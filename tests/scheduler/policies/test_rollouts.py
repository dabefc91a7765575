"""Compiled rollouts: to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.scheduler.policies import lookahead as module
from gangplan.scheduler.policies import rollouts
from gangplan.solvers import native

from ...solvers.uncompiled import from_source

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's rollout of commit feefd4b9 made of `scenes`."""


def scenes(seeds: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield names, and GPUs, seconds, needs, prices and who runs: up to 300 jobs, many alike, some with prices."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n, gpus = int(rng.integers(1, [12, 60, 300][seed % 3])), int(rng.integers(1, 200))
        left = rng.choice([0.0, 1.0, 7.5, 30.0, 1e5], n) if seed % 2 else rng.exponential(100.0, n)
        need, price = rng.integers(1, min(gpus + 2, 70), n), rng.choice([0.0, 3.3, 40.0, np.inf], n)
        yield f"{n > 60}", (gpus, left, need, price, rng.random(n) < 0.5)
    yield "extreme", (1, np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool))
    yield "extreme", (0, np.ones(2), np.ones(2, np.int64), np.ones(2), np.zeros(2, bool))
    yield "extreme", (4, np.array([1e300, 1e-300]), np.array([4, 4]), np.array([np.inf, 0.0]), np.array([True, False]))


def recorded(seeds: int) -> dict[str, str]:
    """Return twelve digits for the ends of each name."""
    found: dict[str, Any] = {}
    for name, given in scenes(seeds):
        for order in module.ORDERS:
            for reserve in (False, True):
                ends = module.rollout(module.RolloutStart(*given), reserve, order)
                found.setdefault(name, hashlib.sha256()).update(np.ascontiguousarray(ends).tobytes())
    return {name: value.hexdigest()[:12] for name, value in found.items()}


def test_outcomes_are_those_recorded() -> None:
    """Ends of jobs are those of numba's rollouts."""
    assert recorded(60) == json.loads(GOLDEN.read_text())


def test_the_source_does_what_is_compiled() -> None:
    """Run as Python on strict arrays, rollouts are those that are compiled."""
    wanted = recorded(2)
    with from_source(native, rollouts):
        assert recorded(2) == wanted


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_wrong_sizes_are_refused(at: int) -> None:
    """An array that is not of as many jobs as the others is refused."""
    given = [4, np.ones(3), np.ones(3, np.int64), np.ones(3), np.ones(3, bool)]
    given[at] = given[at][:2]
    with pytest.raises(ValueError, match="are not of"):
        module.rollout(module.RolloutStart(*given), True, 1.0)
