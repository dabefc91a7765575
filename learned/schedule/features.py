"""What the policy sees of a candidate, that is of placing one job at one option next, or leaving it out, compiled."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints, Ints2, inner
from gangplan.solvers.schedule.profile import Data

FEATURES = (
    *("first", "place", "own_best", "base", "dearer", "wait", "seconds", "gpus", "density", "weight", "start"),
    *("sooner", "later", "others", "spare", "idle", "out", "value", "efficiency", "slack", "released", "denser"),
    *("penalty", "backlog", "crowd", "to_go", "wants", "at_release"),
)
"""Names of the columns, see `describe`."""
WINDOW = 8
"""Jobs that compete for the next place: the first in the base order of those that have none."""


Singles2 = Annotated[Any, types.Array(types.float32, 2, "C")]
"""Arrays of float32."""


class Static(NamedTuple):
    """What does not change while a schedule is built.

    Attributes:
        second: seconds that are 1.
        slope: what a second costs each job, (n,).
        least: its fewest GPU-seconds, (n,).
        penalty: of each option what the base adds to its cost, (o,).
    """

    second: float
    slope: Floats
    least: Floats
    penalty: Floats


@inner
def _log(x: float) -> float:
    """Return log(1 + x) with the sign of x, at most 8."""
    y = float(np.log1p(min(abs(x), 3000.0)))
    return y if x >= 0 else -y


@inner
def describe(  # noqa: PLR0915, a line a feature
    cands: Ints2, count: int, jobs: Ints, k: int, state: Floats2, data: Data, static: Static, cheapest: Floats,
    total: float, left: float, x: Singles2,
) -> int:  # fmt: skip
    """Write features of `count` candidates to x (count, features); return which of them the base would take.

    Args:
        cands: (job's place in the window, option or -1), int64 (c, 2).
        count: how many.
        jobs: the window, int64 (w,), k of them count.
        k: see above.
        state: (start, finish, cost, spare GPUs at the start) of each candidate, float64 (c, 4); of leaving out its
            price is the cost.
        data, static: the problem.
        cheapest: written: the least cost of each of these jobs, (w,).
        total: GPUs.
        left: share of the jobs that are not placed.
    """
    gpus, seconds, release, deadline, price = data.gpus, data.seconds, data.release, data.deadline, data.price
    second, slope, least, penalty = static.second, static.slope, static.least, static.penalty
    base, base_cost = 0, np.inf
    for w in range(k):
        cheapest[w] = np.inf
    sooner, weigh, dense, area, crowd = np.inf, 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        w = cands[i, 0]
        cheapest[w] = min(cheapest[w], state[i, 2])
        if cands[i, 1] >= 0:
            sooner = min(sooner, state[i, 0])
        if w == 0 and state[i, 2] < base_cost:
            base, base_cost = i, state[i, 2]
    for w in range(k):
        j = jobs[w]
        weigh += slope[j] / k
        dense += np.log(slope[j] / max(least[j], 1e-9)) / k
        area += least[j]
    if sooner == np.inf:
        sooner = release[jobs[0]]
    for w in range(k):
        crowd += 1.0 if release[jobs[w]] <= sooner else 0.0
    base_start = state[base, 0] if cands[base, 1] >= 0 else sooner
    base_finish = state[base, 1] if cands[base, 1] >= 0 else sooner
    for i in range(count):
        w, o = cands[i, 0], cands[i, 1]
        j = jobs[w]
        runs = o >= 0
        start, finish, cost = state[i, 0], state[i, 1], state[i, 2]
        unit = slope[j] * second
        lasts, need = (seconds[o], float(gpus[o])) if runs else (0.0, 0.0)
        others, there, denser, mine = 0.0, 0.0, 0.0, np.log(slope[j] / max(lasts * need if runs else least[j], 1e-9))
        for v in range(k):
            if v != w and release[jobs[v]] <= finish:
                others += slope[jobs[v]]
            if v != w and release[jobs[v]] <= start:
                there += 1.0
                if slope[jobs[v]] / max(least[jobs[v]], 1e-9) > slope[j] / max(least[j], 1e-9):
                    denser += 1.0
        row = x[i]
        row[0] = 1.0 if w == 0 else 0.0
        row[1] = w / 8.0
        row[2] = 1.0 if cost <= cheapest[w] else 0.0
        row[3] = 1.0 if i == base else 0.0
        row[4] = _log((cost - cheapest[w]) / unit)
        row[5] = _log((start - release[j]) / second) if runs else 0.0
        row[6] = _log(lasts / second)
        row[7] = need / total
        row[8] = min(max(mine - dense, -6.0), 6.0)
        row[9] = min(max(np.log(slope[j] / weigh), -6.0), 6.0)
        row[10] = _log((start - sooner) / second)
        row[11] = _log((start - base_start) / second)
        row[12] = _log((finish - base_finish) / second)
        row[13] = _log(others * need * lasts / total / unit)
        row[14] = (state[i, 3] - need) / total if runs else 0.0
        row[15] = state[i, 3] / total if runs else 0.0
        row[16] = 0.0 if runs else 1.0
        row[17] = _log((price[j] - cheapest[w]) / unit) if price[j] < np.inf else 8.0
        row[18] = least[j] / max(lasts * need, 1e-9) if runs else 0.0
        row[19] = _log((deadline[j] - finish) / second) if runs and deadline[j] < np.inf else 8.0
        row[20] = there / 8.0
        row[21] = denser / 8.0
        row[22] = _log(penalty[o] / unit) if runs else 0.0
        row[23] = _log(area / (total * second))
        row[24] = crowd / 8.0
        row[25] = left
        row[26] = min(need / max(state[i, 3], 1.0), 2.0) if runs else 0.0
        row[27] = 1.0 if runs and start <= release[j] else 0.0
    return base
