"""The compiled loop of traces, run as Python: no place before or beyond an array is read or written."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from gangplan.instances.workload import Workload
from gangplan.simulator.trace import DISCIPLINES, loop, simulate

front: Any = import_module("gangplan.simulator.trace.simulate")


class Strict(np.ndarray):
    """An array in which no place counts from the end."""

    def _see(self, places: Any) -> None:
        for place in places if isinstance(places, tuple) else (places,):
            if isinstance(place, int | np.integer) and place < 0:
                raise IndexError(f"{place} is before the array")

    def __getitem__(self, places: Any) -> Any:
        """Return what is there."""
        self._see(places)
        return super().__getitem__(places)

    def __setitem__(self, places: Any, value: Any) -> None:
        """Put a value there."""
        self._see(places)
        super().__setitem__(places, value)


def strict(value: Any) -> Any:
    """Return the same with strict arrays."""
    if isinstance(value, tuple):
        return type(value)(*map(strict, value))
    return value.view(Strict) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("consolidate", [False, True])
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_places_are_within_arrays(discipline: str, consolidate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as Python on strict arrays, the loop makes the schedule that it makes compiled."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        jobs, nodes, gpus = (int(rng.integers(1, most)) for most in (50, 9, 9))
        work = Workload(
            tuple(map(str, range(jobs))),
            rng.integers(0, 40, jobs).astype(float),
            rng.integers(1, nodes * gpus + 1, jobs),
            rng.integers(0, 20, jobs).astype(float),
        )
        rules = {"policy": str(rng.choice(["fifo", "sjf"])), "discipline": discipline, "consolidate": consolidate}
        wanted = simulate(work, nodes, gpus, **rules)
        with monkeypatch.context() as python:
            plain = getattr(loop.run, "py_func", loop.run)
            python.setattr(loop, "run", lambda *given: tuple(map(np.asarray, plain(*map(strict, given)))))  # noqa: B023
            found = simulate(work, nodes, gpus, **rules)
        assert found.start.tolist() == wanted.start.tolist()
        assert found.row_node.tolist() == wanted.row_node.tolist()
