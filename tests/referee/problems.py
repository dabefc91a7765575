"""Evaluators written from docs/ alone: what a plan is worth, and the best of all plans of a tiny problem.

They take from the package no more than the fields of problems and plans, so that they say what the pages say.
``python -m tests.referee`` compares gangplan's answers with theirs and prints a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import drawn, graphs, just_fits, latency, placement, schedule, stages, stages_draw, step, throughput


def _same(problem: Any, a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-9 * abs(b))


def _below(problem: Any, a: Any, b: Any, share: float) -> bool:
    """Return whether a is less than b by more than a share of it."""
    return bool(a < b - share * abs(b))


@dataclass(frozen=True)
class Problem:
    """How the problems of an objective are drawn and judged.

    Attributes:
        draw: makes a tiny problem from a seed.
        optimum: returns the least value of any plan, `None` if there is no plan.
        value: returns what a plan is worth, `None` if it breaks a rule.
        same: whether two values agree.
        below: whether one value is below another by more than a share.
        plans: makes plans that may break rules from a plan and random numbers, to see that the verifier agrees.
    """

    draw: Callable[[int], Any]
    optimum: Callable[[Any], Any]
    value: Callable[[Any, Any], Any]
    same: Callable[[Any, Any, Any], bool] = _same
    below: Callable[[Any, Any, Any, float], bool] = _below
    plans: Callable[[Any, Any, Any], Iterable[Any]] = drawn.latency


PROBLEMS = {
    "throughput": Problem(
        partial(graphs.draw, objective="throughput"), throughput.optimum, throughput.value, plans=drawn.throughput
    ),
    "latency": Problem(partial(graphs.draw, objective="latency"), latency.optimum, latency.value, plans=drawn.latency),
    "step": Problem(partial(graphs.draw, objective="step"), step.optimum, step.value, plans=drawn.step),
    "stages": Problem(stages_draw.draw, stages.optimum, stages.value, plans=drawn.stages),
    "placement": Problem(
        just_fits.labelled, placement.optimum, placement.value, placement.same, placement.below, drawn.placement
    ),
    "schedule": Problem(
        schedule.draw_any,
        partial(schedule.optimum, tolerant=True),
        schedule.value,
        schedule.same,
        schedule.below,
        drawn.schedule,
    ),
}
