"""Numbers for readers: objectives, shares, columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem
from gangplan.instances.arrays import FloatArray
from gangplan.instances.quantities import quantity, scale, short
from gangplan.instances.schedule import SchedulePlan, ScheduleProblem, total

SLOWEST_LINK = 1e3
"""Bytes/s. Files that state transfers as times, in a unit they do not name, are kept as bytes over a link of 1."""


def time_unit(problem: GraphProblem) -> str:
    """Return ``s``, or the empty string where the file's times are in a unit of its own (the NeurIPS 2020 inputs)."""
    if not hasattr(problem, "cluster"):
        return "s"
    bandwidth, _ = getattr(problem.cluster.topology, "slowest_link", lambda: (float("inf"), 0.0))()
    return "" if bandwidth <= SLOWEST_LINK else "s"


def plus_minus(mean: float, margin: float | None, digits: int = 4) -> str:
    """Return a mean and, if it is known, half of its interval: ``12.34 ± 0.56``."""
    return short(mean, digits) + ("" if margin is None else f" ± {short(margin, 2)}")


def column(values: Iterable[float], digits: int = 4) -> list[str]:
    """Return numbers with as many decimals as the largest needs to have `digits` significant digits."""
    numbers = [float(x) for x in values]
    largest = max((abs(x) for x in numbers if isfinite(x)), default=0.0)
    decimals = min(max(digits - 1 - floor(log10(largest)), 0), 9) if largest > 0 else 0
    return [f"{x:.{decimals}f}" if isfinite(x) else "-" for x in numbers]


def in_unit(columns: Mapping[str, Iterable[float]], unit: str, largest: float) -> dict[str, list[str]]:
    """Return columns of numbers in one unit, which suits the largest, and which the head of each names."""
    factor, name = scale(float(largest), unit)
    return {f"{head}, {name}".removesuffix(", "): column(x / factor for x in of) for head, of in columns.items()}


def percent(ratio: float | None) -> str:
    """Return a ratio in percent, with three significant digits; a dash for None."""
    if ratio is None:
        return "-"
    return "0%" if abs(ratio) < 5e-7 else f"{short(100 * ratio, 3)}%"


GOALS = {
    "slowdown": "weighted slowdowns in sum",
    "communication": "weighted seconds, to send a gigabyte between each pair of a gang's GPUs",
    "fragmentation": "GPUs that tasks to come cannot use",
    "weighted_completion": "s of weighted completion in sum",
    "mean_jct": "s from release to completion in the mean",
    "makespan": "s to the last completion",
    "blocked": "blocked, by value",
    "placement throughput": "of weighted throughput lost",
    "schedule throughput": "not done by the horizon, by weight",
}
"""What the objective of a batch of gangs or of a schedule is, by goal; with "s " in front it is a time."""


def objective_unit(problem: Any) -> str:
    """Return the unit of the objective of any problem; empty if it has none."""
    goal = getattr(problem, "goal", None)
    if problem.objective == "layout":
        return "s"
    return time_unit(problem) if goal is None else "s" if GOALS.get(goal, "").startswith("s ") else ""


def amount(problem: Any, value: float | None, digits: int = 4) -> str:
    """Return the objective of any problem in words; a dash for None."""
    if value is None:
        return "-"
    unit, goal = objective_unit(problem), getattr(problem, "goal", None)
    if goal is None:
        per = " per pass" if problem.objective in ("throughput", "stages") else ""
        per = " per step" if problem.objective == "pipeline" else per
        return f"{quantity(value, unit, digits)}{per}{'' if unit else ', in the unit of the file'}"
    told = GOALS.get(goal) or GOALS[f"{problem.objective} {goal}"]
    return f"{quantity(value, unit, digits + 1)} {told.removeprefix('s ')}"


def words(problem: GraphProblem) -> str:
    """Return the kind of a problem in words: its objective and what sets it apart among its kind."""
    contention = ", with contention" if getattr(problem, "contention", False) else ""
    return f"{problem.objective}{', ' if problem.variant else ''}{problem.variant}{contention}"


def utilisation(problem: ScheduleProblem, plan: SchedulePlan, finish: FloatArray) -> float:
    """Return the share of the GPU-seconds from 0 to the last of some completions, NaN of who is left out, in use."""
    runs = [(problem.jobs[j], d) for j, d in enumerate(plan.degree.tolist()) if d >= 0]
    last = float(np.nanmax(finish)) if runs else 0.0
    return sum(job.degrees[d] * job.durations[d] for job, d in runs) / (last * total(problem.capacity)) if last else 0.0
