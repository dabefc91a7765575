"""The compiled loop of traces: what numba's made before it, and within its arrays as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.workload import Workload
from gangplan.simulator import fit
from gangplan.simulator.trace import DISCIPLINES, ORDERS, loop, simulate
from gangplan.solvers import native

from ...solvers.uncompiled import from_source

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's loop of commit feefd4b9 made of `cases`."""


def work(submit: Any, gpus: Any, duration: Any) -> Workload:
    """Build a workload."""
    return Workload(tuple(map(str, range(len(gpus)))), np.array(submit, float), gpus, np.array(duration, float))


def drawn(seed: int) -> tuple[Workload, int, int]:
    """Draw jobs, nodes and GPUs of a node: up to 8 of 8, 2 of 200 or 300 of 4."""
    rng = np.random.default_rng(seed)
    jobs, (nodes, gpus) = int(rng.integers(1, 400)), [rng.integers(1, 9, 2).tolist(), (2, 200), (300, 4)][seed % 3]
    most = [nodes * gpus, min(nodes * gpus, 9)][int(rng.integers(2))]
    times = [rng.integers(0, 40, (2, jobs)), rng.uniform(0.0, 1e5, (2, jobs)), rng.exponential(9.0, (2, jobs))]
    submit, duration = times[int(rng.integers(3))] * [[jobs / 20], [1.0]]
    return work(submit, rng.integers(1, most + 1, jobs), duration), nodes, gpus


def cases(seeds: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield names and arguments of `simulate`: every order, discipline, placed and counted."""
    for discipline in DISCIPLINES:
        for consolidate in (False, True):
            how = {"discipline": discipline, "consolidate": consolidate}
            name = f"{discipline} {'placed' if consolidate else 'counted'}"
            for policy in ORDERS:
                for seed in range(seeds):
                    yield name, drawn(seed), how | {"policy": policy}
            yield f"extreme {name}", (work([0], [1], [0]), 1, 1), how
            yield f"extreme {name}", (work([0] * 300, [1] * 300, range(300)), 1, 300), how
            yield f"extreme {name}", (work(range(90), [7] * 45 + [9] * 45, [1e300] * 44 + [0] * 46), 45, 7), how


def recorded(seeds: int) -> dict[str, str]:
    """Return twelve digits for the schedules of each name."""
    found: dict[str, Any] = {}
    for name, given, how in cases(seeds):
        done = simulate(*given, **how)
        for x in (done.start, done.row_job, done.row_node, done.row_gpus):
            found.setdefault(name, hashlib.sha256()).update(np.ascontiguousarray(x).tobytes())
    return {name: value.hexdigest()[:12] for name, value in found.items()}


def test_outcomes_are_those_recorded() -> None:
    """Schedules are those of numba's loop."""
    assert recorded(12) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("consolidate", [False, True])
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_places_are_within_arrays(discipline: str, consolidate: bool) -> None:
    """Run as Python on strict arrays, the loop makes the schedule that it makes compiled."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        jobs, nodes, gpus = (int(rng.integers(1, most)) for most in (50, 9, 9))
        drawn = work(rng.integers(0, 40, jobs), rng.integers(1, nodes * gpus + 1, jobs), rng.integers(0, 20, jobs))
        rules = {"policy": str(rng.choice(["fifo", "sjf"])), "discipline": discipline, "consolidate": consolidate}
        wanted = simulate(drawn, nodes, gpus, **rules)
        with from_source(native, fit, loop):
            found = simulate(drawn, nodes, gpus, **rules)
        assert found.start.tolist() == wanted.start.tolist()
        assert found.row_node.tolist() == wanted.row_node.tolist()


@pytest.mark.parametrize(("name", "size"), [("submit", 2), ("arrivals", 4), ("order", 2)])
def test_wrong_sizes_are_refused(name: str, size: int) -> None:
    """Arrays that are not of three jobs are refused before any of them is read."""
    three, one = np.arange(3), np.ones((1, 1))
    nodes = fit.Nodes(three + 1, np.ones((3, 1)), 0 * three, np.ones(3), 9 * one, 9 * one, one > 0, False)
    given: dict[str, Any] = {"submit": np.zeros(3), "arrivals": three, "order": three}
    assert loop.run(**given, nodes=nodes, discipline=0)[0].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="are not of 3"):
        loop.run(**given | {name: np.arange(size).astype(given[name].dtype)}, nodes=nodes, discipline=0)
