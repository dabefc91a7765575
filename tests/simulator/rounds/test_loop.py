"""The compiled rounds: to the bit what numba's made before them, and what they make as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.simulator.rounds import ROUND_POLICIES, RoundJobs, RoundsCluster, loop, simulate_rounds
from gangplan.solvers import native

from ...solvers.uncompiled import from_source

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's rounds of commit feefd4b9 made of `cases`."""


class Drawn:
    """Draw shares, many of them equal and some 0."""

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
        self.rng, self.types = np.random.default_rng(seed), len(cluster.types)
        self.in_order, self.strict = bool(seed % 2), bool(seed // 2 % 2)

    def shares(self, active: Any, left: Any, age: Any) -> Any:
        """Return eighths."""
        return self.rng.integers(1 if self.strict else 0, 5, (len(active), self.types)) / 8


def drawn(seed: int) -> tuple[RoundJobs, RoundsCluster]:
    """Draw jobs, up to 150 with speeds from .3 to 1e9, and up to three types of up to 80 GPUs."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 150)), int(rng.integers(1, 4))
    count = tuple(rng.integers(1, [9, 80][seed % 2], k).tolist())
    speed = rng.choice([0.0, 0.3, 1.0, 2.5, 7.0, 7.0, 1e9 / 3], (n, k))
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 8, 70], n), max(count))
    best = int(np.argmax(count))
    speed[:, best] = np.maximum(speed[:, best], 0.7)
    steps, submit = rng.integers(1, 9000, n), np.sort(rng.integers(0, 4000, n).astype(float))
    jobs = RoundJobs(tuple(map(str, range(n))), gpus, steps, speed, rng.choice([1.0, 2.0], n), submit)
    return jobs, RoundsCluster(tuple("abc"[:k]), count)


def cases(seeds: int, policies: dict[str, Callable[..., Any]]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield names and arguments of `simulate_rounds`; shares of linear programs are left out where solvers differ."""
    for name, policy in policies.items():
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            length, gap, overhead = (float(rng.choice(x)) for x in ([60.0, 61.7], [0.0, 200.0], [0.0, 10.3]))
            how = {"policy": policy, "length": length, "gap": gap, "overhead": overhead, "seed": seed}
            yield name, drawn(seed), how
    one = RoundJobs(("a",), [1], [1], [[1e15]], np.ones(1), np.zeros(1))
    yield "one", (one, RoundsCluster(("a",), (1,))), {"policy": "fifo"}
    long = RoundJobs(("a", "b"), [9000, 8000], [10**12, 10**6], [[1e9], [30.0]], np.ones(2), np.zeros(2))
    yield "long", (long, RoundsCluster(("a",), (20_000,))), {"policy": "fifo_perf", "length": 5.0}


def recorded(seeds: int, policies: dict[str, Callable[..., Any]]) -> dict[str, str]:
    """Return twelve digits for the leases of each name."""
    found: dict[str, Any] = {}
    for name, given, how in cases(seeds, policies):
        done = simulate_rounds(*given, **how)
        columns = (done.begins, done.row_job, done.row_node, done.row_gpu, done.row_steps)
        for x in (*columns, done.row_start, done.row_end, done.row_busy, np.array(done.allocations)):
            found.setdefault(name, hashlib.sha256()).update(np.ascontiguousarray(x).tobytes())
    return {name: value.hexdigest()[:12] for name, value in found.items()}


OURS = {name: ROUND_POLICIES[name] for name in ("fifo", "fifo_random", "fifo_perf")} | {"drawn": Drawn}


def test_outcomes_are_those_recorded() -> None:
    """Leases are those of numba's rounds."""
    assert recorded(8, OURS) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("seed", range(2))
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Run as Python on strict arrays, rounds are those that are compiled."""
    given, how = drawn(seed), {"policy": Drawn, "length": 61.7, "gap": 200.0, "overhead": 10.3, "seed": seed}
    wanted = simulate_rounds(*given, **how)
    with from_source(native, loop):
        found = simulate_rounds(*given, **how)
    for name in ("begins", "row_job", "row_gpu", "row_steps", "row_start", "row_end"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()


def test_more_steps_than_numbers_have() -> None:
    """A job that would make more steps in a round than 64 bits can count makes those it has."""
    fast = RoundJobs(("a",), [1], [7], [[1e300]], np.ones(1), np.zeros(1))
    done = simulate_rounds(fast, RoundsCluster(("a",), (1,)), "fifo")
    assert done.row_steps.tolist() == [7]


def test_wrong_sizes_are_refused() -> None:
    """Jobs larger than the type that they run on, and orders of other types or for more rounds, are refused."""
    jobs, cluster = drawn(1)
    with pytest.raises(ValueError, match="where they would run"):
        loop.Rounds(jobs, RoundsCluster(cluster.types, (1,) * len(cluster.types)), 60.0, 0.0, 0.0, False, 4)
    one = RoundJobs(("a",), [1], [7], [[1.0]], np.ones(1), np.zeros(1))
    rounds = loop.Rounds(one, RoundsCluster(("a",), (1,)), 60.0, 0.0, 0.0, False, 4)
    for shape in ((5, 1), (4, 2)):
        with pytest.raises(ValueError, match="are not for rounds"):
            rounds.advance(np.zeros(shape, np.int64))
