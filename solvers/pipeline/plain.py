"""Orders of passes as one linear model, for CP-SAT and as a MILP; letters as in docs/pipeline.md.

Nothing is reduced, nothing given: of each two passes of a device one comes first.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any

import numpy as np

from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.verify import TOLERANCE

from ..plain import ABOVE_ONE, TICKS, Formulation, New, PlainRows, Variable, add_up, both, refine
from ..run import Run

FORMULATION = Formulation(
    "Z, the seconds of a step",
    (
        Variable("Z", "", "seconds of a step", seconds=True),
        Variable("S", "pass", "when pass x starts", seconds=True),
        Variable("y", "pass pass", "1 if pass x comes before pass u on their device"),
        Variable("one", "", "1: passes are intervals that are always there"),
    ),
    (
        ("A", "S[x] >= S[u] + p[u] + lag[x] where x waits for u", "what comes before"),
        ("D", "y[x,u] = 1  =>  S[x] + p[x] <= S[u];  y[x,u] = 0  =>  S[u] + p[u] <= S[x]", "one at a time"),
        ("M", "a[x] + sum over u of change[u] y[u,x] <= M for each forward pass x", "memory"),
        ("Z", "Z >= S[x] + p[x], less S of the first pass of its device without a barrier", "the step"),
    ),
)
"""The model in words; symbols as in docs/pipeline.md."""


FINE = 10**9
"""Ticks of a plan where seconds have no common tick."""
WHOLE = 2000
"""Ticks of the longest pass in which a common tick of all seconds is looked for."""
MINUTE = 1e-280
"""Seconds of a step from which models have ticks."""
_ROUND = 1e-9
"""What of a tick is a rounding error of floats."""


def ticks_of(seconds: Any, worst: float) -> float:
    """Return ticks a second in which all `seconds` are whole, else `FINE` in the worst, or 0 if that is not given."""
    longest = float(seconds.max())
    shares = [Fraction(x / longest).limit_denominator(WHOLE) for x in set(seconds.tolist())] if longest else []
    common = lcm(*(x.denominator for x in shares))
    ticks = common / longest if longest else 1.0
    whole = common <= WHOLE and np.allclose(seconds * ticks, np.rint(seconds * ticks), rtol=0, atol=_ROUND)
    return ticks if whole else FINE / worst if worst else 0.0


def minute(problem: PipelineProblem) -> bool:
    """Return whether seconds are so small that ticks a second are beyond floats."""
    return 0.0 < float(problem.load().max()) < MINUTE


def rows(problem: PipelineProblem) -> int:
    """Return the number of rows of either model, but for a few."""
    if minute(problem):
        raise NotImplementedError(f"a step takes less than {MINUTE:g} s")
    each = np.bincount(problem.passes().device)
    return int((each * (each - 1) + 3 * each).sum())


def _solve(run: Run, by: str, new: New) -> None:
    """Minimise Z, the seconds of a step."""
    problem, found = run.problem, run.problem.passes()
    worst = float(found.seconds.sum() + found.lag.sum())  # one micro-batch, and one pass, after the other
    ticks = ticks_of(np.concatenate([found.seconds, found.lag]), 0.0)
    coarse = TICKS / ticks * (1 - _ROUND / WHOLE) if ticks and by == "plain_cpsat" else 0.0
    refine(run, by, rows(problem), worst, lambda unit: _state(problem, new(coarse or unit), unit))


plain_cpsat, plain_milp = both(_solve)


def _state(problem: PipelineProblem, model: PlainRows, worst: float) -> None:
    """State the model for steps of at most `worst` seconds, and minimise it."""
    found, z = problem.passes(), model.amount(worst / model.unit, "Z")
    # without a barrier all devices start while the first one is at work
    most = worst / model.unit * (2 - problem.barrier)
    takes, lag = ([model.units(x) for x in column.tolist()] for column in (found.seconds, found.lag))
    start = [model.amount(most, "S", x) for x in range(problem.n_passes)]
    end = [s + p for s, p in zip(start, takes, strict=True)]
    model.letter("A")
    for x, u in enumerate(found.before.tolist()):
        if u >= 0:
            model.row(end[u] + lag[x], start[x])
    own = [np.flatnonzero(found.device == d).tolist() for d in range(problem.devices)]
    first: dict[tuple[int, int], Any] = {}
    model.letter("D")
    for x, u in (pair for mine in own for pair in combinations(mine, 2)):
        y = model.binary("y", x, u)
        first[x, u], first[u, x] = y, 1 - y
        model.row(end[x], start[u], y, over=most * ABOVE_ONE + 1)
        model.row(end[u], start[x], 1 - y, over=most * ABOVE_ONE + 1)
    one = model.count(1, "one", least=1)
    for mine in own:  # which the rows say too, for HiGHS alone
        model.together([model.interval(start[x], takes[x], end[x], one) for x in mine])
    model.letter("M")
    for mine, room in zip(own, (problem.capacity * (1 + TOLERANCE)).tolist(), strict=False):
        change = {x: model.share(float(found.change[x]) / room) if room else 2.0 * (found.change[x] > 0) for x in mine}
        for x in (x for x in mine if found.change[x] > 0 and x < problem.stages * problem.micro_batches):
            held = add_up([change[x], *(change[u] * first[u, x] for u in mine if u != x)])
            model.row(held, model.share(1.0))
    model.letter("Z")
    for mine in own:
        # the first pass of a device is forward, in its first stage, of any micro-batch
        for x in mine:
            begins = [0] if problem.barrier else [start[mine[0] + j] for j in range(problem.micro_batches)]
            for begin in begins:
                model.row(end[x] - begin, z)

    def plan(value: Any) -> PipelinePlan:
        # starts are only right within tolerances, and passes may take no time: how many come before one says its place
        place = {x: sum(round(value(first[u, x])) for u in mine if u != x) for mine in own for x in mine}
        return problem.plan([sorted(mine, key=lambda x: (place[x], value(start[x]))) for mine in own])

    model.minimise(z, plan)
