"""Dual ascent step by step: prices of GPU-seconds over time, and the bound that they prove."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.schedule import ScheduleProblem
from gangplan.solvers.schedule.prepare import ShiftedRun
from gangplan.solvers.schedule.prices import BestPrices
from gangplan.solvers.schedule.starts import prices

from .step import Recorder, Step, begin

_GRID = ((24, 40),)
"""Intervals of time, and steps at most."""


def dual_ascent(problem: ScheduleProblem) -> Iterator[Step]:
    """Yield steps of the library's volume algorithm (Barahona and Anbil 2000), on a grid of 24 intervals.

    Each step prices a GPU-second in every interval, lets each job run where it then costs least, and moves prices along
    the GPU-seconds that these runs use too much or too little. `bound` is Lagrange's at the best prices so far, `plan`
    the best list of the mean starts; prices are per GPU-second by the time at which the interval begins. The ascent
    runs to its end before the first step is yielded.

    Raises:
        InstanceError: if the problem is of another kind or there is no plan.
    """
    run, prepared = begin(problem, (ScheduleProblem,), "dual ascent")
    seen: list[tuple[Any, float | None, float, FloatArray, FloatArray]] = [
        (run.plan, run.bound, -np.inf, np.zeros(0), np.zeros(0))
    ]

    def watch(found: BestPrices) -> None:
        grid = found.grid
        begins = prepared.zero + grid.zero + grid.step * np.arange(len(grid.pi))
        seen.append((run.plan, run.bound, found.bound + run.zero, begins, grid.pi.copy()))

    prices(ShiftedRun(run, prepared), prepared, _GRID, 1, watch)

    def steps() -> Iterator[Step]:
        recorder, best = Recorder("Dual ascent"), -np.inf
        for plan, bound, value, begins, pi in seen:
            if not len(pi):
                yield recorder.step("First come, first served, and a bound in closed form", problem, plan, bound)
                continue
            high = int(pi.argmax())
            text = f"GPU-seconds cost up to {pi[high]:.3g}, at {begins[high]:.4g} s; the prices prove {value:.6g}"
            text += " as before: the step gets shorter" if value <= best else ""
            best = max(best, value)
            at = {f"{x:.4g}": y for x, y in zip(begins.tolist(), pi.tolist(), strict=True)}
            yield recorder.step(text, problem, plan, bound, at)

    return steps()
