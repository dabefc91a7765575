"""Fit the constants of the cost model to measured steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..errors import InstanceError, within
from ..verify.layout import LayoutVerdict, verify_layout
from .problem import Calibration, LayoutPlan, LayoutProblem

PULL = 0.3
"""How much a constant's logarithm is held at where it starts: as a row that is so many times wrong. What no row tells
stays."""
STEP = 1e-7
"""Of a logarithm, for slopes."""
_LEAST = np.array([0.01, 0.01, 0.01, 0.01, 1e-7, 1e-3])
_MOST = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 1.0])
"""Between which the constants are, in the order of the fields of `Calibration`."""
UNLIMITED = 1e18
"""Bytes of a GPU of which a measured layout is known to fit."""


class MeasuredStep(NamedTuple):
    """A layout that was run: seconds of a step, and most bytes in use on a GPU, 0 if that is not known."""

    problem: LayoutProblem
    plan: LayoutPlan
    seconds: float
    memory: float = 0.0

    def predict(self, calibration: Calibration) -> LayoutVerdict:
        """Return what the cost model says of it with other constants, whether or not it fits into memory."""
        pools = tuple(replace(pool, memory=UNLIMITED) for pool in self.problem.pools)
        return verify_layout(replace(self.problem, pools=pools, calibration=calibration), self.plan)


def refit(steps: Sequence[MeasuredStep], start: Calibration | None = None) -> Calibration:
    """Return the constants with which seconds come closest to measured ones: least squares of logarithms.

    Args:
        steps: that were measured.
        start: constants that are kept as far as the steps say nothing else; those of `Calibration` unless given.

    Raises:
        InstanceError: naming the step that is no layout of its problem.
    """
    first = start or Calibration()
    for i, step in enumerate(steps):
        with within(f"rows[{i}]"):
            if step.predict(first).objective is None:
                raise InstanceError("plan", step.predict(first).violations[0])
    names, begin = [x.name for x in fields(first)], np.clip(np.array(astuple(first)), _LEAST, _MOST)

    def constants(x: FloatArray) -> Calibration:
        return Calibration(**dict(zip(names, np.exp(x).tolist(), strict=True)))

    def errors(x: FloatArray) -> FloatArray:
        told = [step.predict(constants(x)).objective or 0.0 for step in steps]
        wrong = np.log(told) - np.log([step.seconds for step in steps])
        return np.concatenate([wrong, PULL * (x - np.log(begin))])

    x, damping = np.log(begin), 1e-3
    wrong = errors(x)
    while damping < 1e6:  # Levenberg (1944), constants at a limit stay there
        slope = np.stack([(errors(x + STEP * e) - wrong) / STEP for e in np.eye(len(x))], axis=1)
        pull = slope.T @ wrong
        free = ~(((x <= np.log(_LEAST)) & (pull > 0)) | ((x >= np.log(_MOST)) & (pull < 0)))
        move = np.linalg.solve(slope.T @ slope + damping * np.eye(len(x)), -pull * free)
        tried = np.clip(x + move * free, np.log(_LEAST), np.log(_MOST))
        now = errors(tried)
        better = now @ now < (1 - 1e-12) * (wrong @ wrong)
        x, wrong, damping = (tried, now, damping / 4) if better else (x, wrong, damping * 4)
    return constants(x)


def within_memory(problem: LayoutProblem, plan: LayoutPlan) -> LayoutPlan:
    """Return a plan in which as few first layers of each stage as it takes to fit compute again what they need.

    Norms and activation functions are computed again first, then all. A plan that cannot fit computes all again.
    """
    sizes = np.bincount(plan.chunks() % len(plan.pool), minlength=len(plan.pool))
    sizes[0] -= 1
    sizes[-1] -= 1
    most = np.array([problem.pools[k].memory for k in plan.pool])
    step = MeasuredStep(problem, plan, 1.0)
    for _ in range(2 * int(sizes.max())):
        over = step.predict(problem.calibration).memory.sum(axis=0) > most
        full = np.minimum(plan.full + (over & (plan.full + plan.selective >= sizes)), sizes)
        selective = np.minimum(plan.selective + over, sizes - full)
        if not over.any():
            break
        plan = replace(plan, full=full, selective=selective)
        step = step._replace(plan=plan)
    return plan
